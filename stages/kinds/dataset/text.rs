//! Bytes to text, by a named encoding. What cannot be decoded is an error that says where,
//! or is replaced if that was asked for. Knows nothing of rows.

use serde::Deserialize;

use crate::Failure;

/// How bytes become text.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// UTF-8; anything else is an error.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-8; anything else becomes U+FFFD.
    #[serde(rename = "utf-8-lossy")]
    Utf8Lossy,
    /// Every byte is the code point of that number.
    #[serde(rename = "latin-1")]
    Latin1,
    /// Latin-1 with punctuation where that has control characters.
    #[serde(rename = "windows-1252")]
    Windows1252,
}

/// The names that a pipeline may write.
pub const NAMES: [(&str, Encoding); 4] = [
    ("utf-8", Encoding::Utf8),
    ("utf-8-lossy", Encoding::Utf8Lossy),
    ("latin-1", Encoding::Latin1),
    ("windows-1252", Encoding::Windows1252),
];

/// What windows-1252 has at 0x80 to 0x9F; the five unassigned codes are as on the web.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Decodes a whole file. A byte-order mark is not part of the text.
pub fn decode(bytes: Vec<u8>, encoding: Encoding, file: &str) -> Result<String, Failure> {
    decode_at(bytes, encoding, file, 0)
}

/// Decodes bytes that begin at this offset of the file.
pub fn decode_at(
    bytes: Vec<u8>,
    encoding: Encoding,
    file: &str,
    offset: u64,
) -> Result<String, Failure> {
    let mut text = match encoding {
        Encoding::Utf8 => String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let byte = error.as_bytes()[at];
            let wide = offset == 0 && matches!(error.as_bytes(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
            let at = offset + at as u64;
            Failure::new(format!("{file} is not UTF-8: byte {at} is 0x{byte:02X}")).help(match wide {
                true => "it looks like UTF-16: save it as UTF-8",
                false => "name its encoding, for instance encoding = \"latin-1\", or \"utf-8-lossy\" to replace what is not UTF-8",
            })
        })?,
        Encoding::Utf8Lossy => match String::from_utf8_lossy(&bytes) {
            std::borrow::Cow::Owned(text) => text,
            std::borrow::Cow::Borrowed(text) => text.to_owned(),
        },
        Encoding::Latin1 => bytes.into_iter().map(char::from).collect(),
        Encoding::Windows1252 => {
            let windows = |byte: u8| match byte {
                0x80..=0x9F => WINDOWS[usize::from(byte - 0x80)],
                byte => char::from(byte),
            };
            bytes.into_iter().map(windows).collect()
        }
    };
    if offset == 0 && text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// The lines of a text without their endings. Only `\n` ends a line, so a form feed or U+0085
/// inside one does not; a last line need not be ended.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let empty = text.is_empty();
    let lines = text.split('\n').filter(move |_| !empty);
    lines.map(|line| line.strip_suffix('\r').unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn utf_16_is_called_by_its_name() {
        let failure = decode(b"\xff\xfea\0".to_vec(), Encoding::Utf8, "a.txt").unwrap_err();
        assert_eq!(
            failure.help.unwrap(),
            "it looks like UTF-16: save it as UTF-8"
        );
    }

    #[test]
    fn what_is_not_utf8_says_where() {
        let bytes = b"caf\xe9".to_vec();
        let failure = decode(bytes.clone(), Encoding::Utf8, "a.txt").unwrap_err();
        assert_eq!(failure.message, "a.txt is not UTF-8: byte 3 is 0xE9");
        let decode = |encoding| decode(bytes.clone(), encoding, "a.txt").unwrap();
        assert_eq!(decode(Encoding::Utf8Lossy), "caf\u{fffd}");
        assert_eq!(decode(Encoding::Latin1), "café");
        assert_eq!(
            decode_at(b"\xff".to_vec(), Encoding::Utf8, "b", 7)
                .unwrap_err()
                .message,
            "b is not UTF-8: byte 7 is 0xFF"
        );
    }

    #[test]
    fn windows_has_punctuation_where_latin_1_has_controls() {
        let decode = |encoding| decode(b"\x85\x96\xe9".to_vec(), encoding, "a").unwrap();
        assert_eq!(decode(Encoding::Windows1252), "…–é");
        assert_eq!(decode(Encoding::Latin1), "\u{85}\u{96}é");
    }

    #[test]
    fn lines_end_at_line_feeds_only() {
        let all = |text| lines(text).collect::<Vec<_>>();
        assert_eq!(all("a\u{85}b\r\nc\n"), ["a\u{85}b", "c"]);
        assert_eq!(all("a\n\nb"), ["a", "", "b"]);
        assert!(all("").is_empty());
    }

    proptest! {
        #[test]
        fn every_text_comes_back_as_it_was(text in "\\PC{0,40}") {
            let decoded = decode(text.clone().into_bytes(), Encoding::Utf8, "a").unwrap();
            prop_assert_eq!(decoded, text.strip_prefix('\u{feff}').unwrap_or(&text));
        }
    }
}
