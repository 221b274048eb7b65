//! The schemes `words-punctuation`, `whitespace` and `chars`: words and signs, what white
//! space separates, and single characters.
//!
//! A character is a Unicode code point. Lower case is taken for each by itself, so that no
//! token depends on its neighbours.

use unicode_normalization::char::is_combining_mark;

use super::words::is_break;

/// How words are cut out of a text.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether words are put into lower case.
    pub lowercase: bool,
    /// Whether `<br />` is a space rather than four signs and a word.
    pub breaks: bool,
}

/// Calls `emit` with each run of letters, digits and their accents, and with every other
/// character that is not white space by itself.
pub fn scan(text: &str, rules: Rules, word: &mut Vec<u8>, mut emit: impl FnMut(&[u8])) {
    let bytes = text.as_bytes();
    let mut at = 0;
    word.clear();
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_alphanumeric() {
            word.push(match rules.lowercase {
                true => byte.to_ascii_lowercase(),
                false => byte,
            });
            at += 1;
            continue;
        }
        let next = if byte.is_ascii() {
            char::from(byte)
        } else {
            text[at..].chars().next().expect("`at` is inside the text")
        };
        let width = next.len_utf8();
        if !byte.is_ascii() && (next.is_alphanumeric() || is_combining_mark(next)) {
            push(next, rules.lowercase, word);
            at += width;
            continue;
        }
        if !word.is_empty() {
            emit(word);
            word.clear();
        }
        if rules.breaks && byte == b'<' && is_break(&bytes[at..]) {
            at += "<br />".len();
            continue;
        }
        if !next.is_whitespace() {
            emit(&bytes[at..at + width]);
        }
        at += width;
    }
    if !word.is_empty() {
        emit(word);
    }
}

/// Calls `emit` with each piece of text between white space.
pub fn whitespace(text: &str, lowercase: bool, word: &mut Vec<u8>, mut emit: impl FnMut(&[u8])) {
    for piece in text.split_whitespace() {
        if !lowercase {
            emit(piece.as_bytes());
            continue;
        }
        word.clear();
        piece.chars().for_each(|c| push(c, true, word));
        emit(word);
    }
}

/// Calls `emit` with each character.
pub fn chars(text: &str, lowercase: bool, mut emit: impl FnMut(&[u8])) {
    let mut space = [0; 4];
    for c in text.chars() {
        if lowercase && c.is_uppercase() {
            c.to_lowercase()
                .for_each(|c| emit(c.encode_utf8(&mut space).as_bytes()));
        } else {
            emit(c.encode_utf8(&mut space).as_bytes());
        }
    }
}

fn push(c: char, lowercase: bool, word: &mut Vec<u8>) {
    let mut space = [0; 4];
    if lowercase {
        for c in c.to_lowercase() {
            word.extend_from_slice(c.encode_utf8(&mut space).as_bytes());
        }
    } else {
        word.extend_from_slice(c.encode_utf8(&mut space).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str, lowercase: bool) -> Vec<String> {
        let mut words = Vec::new();
        let rules = Rules {
            lowercase,
            breaks: lowercase,
        };
        scan(text, rules, &mut Vec::new(), |word| {
            words.push(String::from_utf8(word.to_vec()).unwrap());
        });
        words
    }

    #[test]
    fn worked_by_hand() {
        assert_eq!(
            split("Don't go!<br />It's 9.5/10…", true),
            [
                "don", "'", "t", "go", "!", "it", "'", "s", "9", ".", "5", "/", "10", "…"
            ]
        );
        assert_eq!(
            split("AT&T <br/> Cafe\u{301} ÉTÉ\u{a0}日本", false),
            [
                "AT",
                "&",
                "T",
                "<",
                "br",
                "/",
                ">",
                "Cafe\u{301}",
                "ÉTÉ",
                "日本"
            ]
        );
        assert_eq!(split("ÉTÉ", true), ["été"]);
    }

    #[test]
    fn white_space_and_characters_by_hand() {
        let mut seen = Vec::new();
        whitespace(" The <unk>  N's\n", true, &mut Vec::new(), |w| {
            seen.push(String::from_utf8(w.to_vec()).unwrap());
        });
        assert_eq!(seen, ["the", "<unk>", "n's"]);
        seen.clear();
        chars("Aé ö", false, |w| {
            seen.push(String::from_utf8(w.to_vec()).unwrap());
        });
        assert_eq!(seen, ["A", "é", " ", "ö"]);
    }

    proptest! {
        /// Nothing but white space is lost, and words put together again split the same way.
        #[test]
        fn nothing_is_lost(text in "(\\PC|[ -~]|\\s){0,60}") {
            let words = split(&text, false);
            let visible: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            prop_assert_eq!(words.concat(), visible);
            prop_assert_eq!(split(&words.join(" "), false), words);
            let lower = split(&text, true);
            prop_assert_eq!(split(&lower.join(" "), true), lower);
        }
    }
}
