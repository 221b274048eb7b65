//! The scheme `words`: lower case, `<br />` is a space, everything but letters of the
//! English alphabet, digits and spaces is deleted, words are what spaces separate.
//!
//! These are the rules of the LSTM tutorial that the IMDb study cites: punctuation is
//! deleted, not replaced, so "don't" is `dont` and "good,bad" is `goodbad`. So are tabs and
//! line ends, which its regular expression does not spare either.

use super::interner::Word;

/// What to do with a byte that is neither a letter nor a digit.
const DELETE: u8 = 0;
const SPACE: u8 = 1;
const TAG: u8 = 2;
const LOOK: u8 = 3;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut class = [DELETE; 256];
    class[b' ' as usize] = SPACE;
    class[b'<' as usize] = TAG;
    // The first bytes of the only two letters outside of ASCII whose lower case is inside.
    class[0xc4] = LOOK;
    class[0xe2] = LOOK;
    class
}

/// Calls `emit` with each word of the text.
///
/// Eight bytes are looked at together, so that most words take one step rather than one for
/// each of their letters.
pub fn scan(text: &str, scratch: &mut Vec<u8>, mut emit: impl FnMut(Word<'_>)) {
    let bytes = text.as_bytes();
    // Eight bytes are written at a time, the last of them perhaps beyond the word.
    if scratch.len() < bytes.len() + 8 {
        scratch.resize(bytes.len() + 8, 0);
    }
    let word = &mut scratch[..];
    let (mut at, mut length) = (0, 0);
    while at < bytes.len() {
        let (eight, run) = run(eight(bytes, at));
        word[length..length + 8].copy_from_slice(&eight.to_le_bytes());
        length += run;
        at += run;
        // Eight letters may be followed by more; beyond the end are zeros, which are none.
        if run == 8 || at == bytes.len() {
            continue;
        }
        let class = CLASS[bytes[at] as usize];
        at += 1;
        match class {
            SPACE => {}
            TAG if is_break(&bytes[at - 1..]) => at += BREAK.len() - 1,
            LOOK => {
                if let Some(letter) = folded(&bytes[at - 1..]) {
                    word[length] = letter;
                    length += 1;
                }
                continue;
            }
            _ => continue,
        }
        if length > 0 {
            emit(Word::padded(word, length));
            length = 0;
        }
    }
    if length > 0 {
        emit(Word::padded(word, length));
    }
}

/// Eight bytes of a text, or what is left of it and zeros.
#[inline]
fn eight(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(eight) => u64::from_le_bytes(eight.try_into().expect("eight bytes")),
        None => {
            let rest = &bytes[at..];
            let mut eight = [0; 8];
            eight[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(eight)
        }
    }
}

/// Eight bytes in lower case, and how many of them from the first on are letters or digits.
///
/// Each byte is tested in its own lane: adding `0x80 - low` sets the highest bit from `low` on,
/// and no lane carries into the next because the highest bits were cleared before.
#[inline]
fn run(eight: u64) -> (u64, usize) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let within = |lanes: u64, low: u8, high: u8| {
        let from = lanes + u64::from(0x80 - low) * ONES;
        let beyond = lanes + u64::from(0x7f - high) * ONES;
        from & !beyond & HIGH
    };
    let seven = eight & !HIGH;
    let letters = within(seven | (0x20 * ONES), b'a', b'z') & !eight;
    let digits = within(seven, b'0', b'9') & !eight;
    let others = !(letters | digits) & HIGH;
    // Capitals differ from small letters by one bit, which small letters have already.
    let lower = eight | letters >> 2;
    (lower, others.trailing_zeros() as usize / 8)
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
            words.push(String::from_utf8(word.bytes.to_vec()).unwrap());
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
    fn every_byte_is_told_apart_in_every_place() {
        for place in 0..8 {
            for byte in 0..=255_u8 {
                let mut bytes = *b"aZ09zAq5";
                bytes[place] = byte;
                let (lower, length) = run(u64::from_le_bytes(bytes));
                let expected = if byte.is_ascii_alphanumeric() {
                    8
                } else {
                    place
                };
                assert_eq!(length, expected, "{byte} at {place}");
                let lower = lower.to_le_bytes();
                assert_eq!(lower[..length], bytes.to_ascii_lowercase()[..length]);
            }
        }
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
