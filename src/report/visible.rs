//! Text as a person may look at it: what would be invisible, or would turn the text around it,
//! is written out, so that `⟨U+202E⟩` stands where it stands. An attack may consist of nothing
//! else. Knows nothing of pages.

use std::borrow::Cow;

/// Writes out what cannot be seen. Line ends and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| (b' '..0x7F).contains(&byte) || matches!(byte, b'\n' | b'\r' | b'\t');
    if text.bytes().all(plain) || !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        match is_hidden(sign) {
            true => seen.push_str(&format!("⟨U+{:04X}⟩", u32::from(sign))),
            false => seen.push(sign),
        }
    }
    Cow::Owned(seen)
}

/// Control characters, marks and overrides of direction, and signs without a width. The script
/// of the pages has the same list.
fn is_hidden(sign: char) -> bool {
    match sign {
        '\n' | '\r' | '\t' => false,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{FEFF}' => true,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' => true,
        '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}' => true,
        _ => sign.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_turns_text_is_written_out() {
        assert_eq!(visible("a\u{202E}gpj.exe"), "a⟨U+202E⟩gpj.exe");
        assert_eq!(
            visible("\u{1B}[31m\u{0}\u{200B}\u{2067}"),
            "⟨U+001B⟩[31m⟨U+0000⟩⟨U+200B⟩⟨U+2067⟩"
        );
        assert_eq!(visible("x\u{E0041}"), "x⟨U+E0041⟩");
    }

    #[test]
    fn what_can_be_seen_stays() {
        for text in [
            "",
            "two\nlines\tand a tab",
            "naïve – “film”",
            "فيلم جيد",
            "映画",
            "🎬",
        ] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }
}
