//! Text as a person may look at it, on a page or a terminal: what would be invisible, would turn the
//! text around it, or would be obeyed by a terminal is written out, so that `⟨U+202E⟩` stands where
//! it stands. An attack may consist of nothing else. Knows nothing of pages and terminals.

use std::borrow::Cow;
use std::fmt::Write;

/// Writes out what cannot be seen. Line ends and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    rewritten(text, is_hidden, |sign, seen| {
        write!(seen, "⟨U+{:04X}⟩", u32::from(sign)).expect("strings grow");
    })
}

/// The same for a terminal, which a carriage return would let write over what stands in the line.
pub fn on_terminal(text: &str) -> Cow<'_, str> {
    let returns = |sign: char| is_hidden(sign) || sign == '\r';
    rewritten(text, returns, |sign, seen| {
        write!(seen, "⟨U+{:04X}⟩", u32::from(sign)).expect("strings grow");
    })
}

/// The same in one line: what somebody else wrote must not look like a line of ours.
pub fn one_line(text: &str) -> Cow<'_, str> {
    match text.contains(['\n', '\t']) {
        true => on_terminal(&text.replace('\n', "\u{2424}").replace('\t', " "))
            .into_owned()
            .into(),
        false => on_terminal(text),
    }
}

/// JSON with the same signs as `\u202e`: the same values, and nothing that a terminal obeys.
pub fn in_json(json: &str) -> Cow<'_, str> {
    rewritten(json, is_hidden, |sign, seen| {
        for unit in sign.encode_utf16(&mut [0; 2]) {
            write!(seen, "\\u{unit:04x}").expect("strings grow");
        }
    })
}

/// A source text whose places are known by their bytes: each hidden sign becomes a visible one of
/// the same length.
pub fn in_place(text: &str) -> Cow<'_, str> {
    rewritten(text, is_hidden, |sign, seen| {
        seen.push(match sign.len_utf8() {
            1 => '?',
            2 => '¿',
            3 => '\u{fffd}',
            _ => '\u{1f6ab}',
        });
    })
}

fn rewritten(
    text: &str,
    hidden: impl Fn(char) -> bool,
    write: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let plain = |byte: u8| (b' '..0x7F).contains(&byte) || matches!(byte, b'\n' | b'\t');
    if text.bytes().all(plain) || !text.chars().any(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        match hidden(sign) {
            true => write(sign, &mut seen),
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
            assert!(matches!(on_terminal(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        assert_eq!(
            on_terminal("\u{1b}[2J\r\u{7}x\u{7f}\u{9b}"),
            "⟨U+001B⟩[2J⟨U+000D⟩⟨U+0007⟩x⟨U+007F⟩⟨U+009B⟩"
        );
        assert_eq!(one_line("a\nb\u{1b}"), "a␤b⟨U+001B⟩");
    }

    #[test]
    fn json_keeps_its_values() {
        let value = serde_json::json!({ "a\u{9b}": "b\u{202e}\u{e0041}\u{1b}é" });
        let written = value.to_string();
        let shown = in_json(&written);
        assert!(shown.chars().all(|sign| !is_hidden(sign)), "{shown}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
    }

    #[test]
    fn places_in_a_source_stay_where_they_are() {
        let text = "a\u{9b}b\u{202e}c\u{e0041}d\u{1b}e";
        let shown = in_place(text);
        assert_eq!(shown.len(), text.len());
        assert_eq!(shown, "a¿b\u{fffd}c\u{1f6ab}d?e");
    }
}
