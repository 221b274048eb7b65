//! The scheme `words`: lower case, `<br />` is a space, everything but letters of the
//! English alphabet, digits and spaces is deleted, words are what spaces separate.
//!
//! These are the rules of the LSTM tutorial that the IMDb study cites: punctuation is
//! deleted, not replaced, so "don't" is `dont` and "good,bad" is `goodbad`. So are tabs and
//! line ends, which its regular expression does not spare either.

/// What to do with a byte: a letter or digit stands for itself in lower case.
const DELETE: u8 = 0;
const SPACE: u8 = 1;
const TAG: u8 = 2;
const LOOK: u8 = 3;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut class = [DELETE; 256];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphanumeric() {
            class[byte] = (byte as u8).to_ascii_lowercase();
        }
        byte += 1;
    }
    class[b' ' as usize] = SPACE;
    class[b'<' as usize] = TAG;
    // The first bytes of the only two letters outside of ASCII whose lower case is inside.
    class[0xc4] = LOOK;
    class[0xe2] = LOOK;
    class
}

/// Calls `emit` with each word of the text.
pub fn scan(text: &str, scratch: &mut Vec<u8>, mut emit: impl FnMut(&[u8])) {
    let bytes = text.as_bytes();
    if scratch.len() < bytes.len() {
        scratch.resize(bytes.len(), 0);
    }
    let word = &mut scratch[..];
    let (mut at, mut length) = (0, 0);
    while at < bytes.len() {
        let class = CLASS[bytes[at] as usize];
        at += 1;
        if class > LOOK {
            word[length] = class;
            length += 1;
            continue;
        }
        match class {
            DELETE => continue,
            TAG if !is_break(&bytes[at - 1..]) => continue,
            TAG => at += BREAK.len() - 1,
            LOOK => {
                if let Some(letter) = folded(&bytes[at - 1..]) {
                    word[length] = letter;
                    length += 1;
                }
                continue;
            }
            _ => {}
        }
        if length > 0 {
            emit(&word[..length]);
            length = 0;
        }
    }
    if length > 0 {
        emit(&word[..length]);
    }
}

/// The line break of HTML as the data set writes it; upper case counts too, because the text
/// is in lower case before the break is looked for.
const BREAK: &[u8] = b"<br />";

/// Whether a text in any case begins with a line break.
pub fn is_break(text: &[u8]) -> bool {
    text.len() >= BREAK.len() && text[..BREAK.len()].eq_ignore_ascii_case(BREAK)
}

/// `İ` (dotted I) and `K` (the sign for Kelvin) become `i` and `k` in lower case.
fn folded(text: &[u8]) -> Option<u8> {
    if text.starts_with("İ".as_bytes()) {
        Some(b'i')
    } else if text.starts_with("\u{212a}".as_bytes()) {
        Some(b'k')
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        scan(text, &mut Vec::new(), |word| {
            words.push(String::from_utf8(word.to_vec()).unwrap());
        });
        words
    }

    /// The tutorial's three lines, as slowly and plainly as they can be written.
    fn plainly(text: &str) -> Vec<String> {
        let lower = text.to_lowercase().replace("<br />", " ");
        let kept: String = lower
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == ' ')
            .collect();
        kept.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn worked_by_hand() {
        assert_eq!(
            words("I don't  think so.<br /><BR />It's a 10/10 -- \"must see\""),
            [
                "i", "dont", "think", "so", "its", "a", "1010", "must", "see"
            ]
        );
        assert_eq!(words("good,bad\tugly\nend"), ["goodbaduglyend"]);
        assert_eq!(words("a <br/> b < c"), ["a", "br", "b", "c"]);
        assert_eq!(
            words("café naïve 9\u{212a} İs"),
            ["caf", "nave", "9k", "is"]
        );
        assert!(words(" ,.;  ").is_empty() && words("").is_empty());
    }

    #[test]
    fn every_single_character_is_as_the_rules_say() {
        for c in '\0'..=char::MAX {
            let text = format!("x{c}y");
            assert_eq!(words(&text), plainly(&text), "{:?} U+{:04X}", c, c as u32);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_as_the_rules_say(text in "(<br />|<BR />|[ -~]|\\PC|[a-z ]){0,60}") {
            prop_assert_eq!(words(&text), plainly(&text));
        }
    }
}
