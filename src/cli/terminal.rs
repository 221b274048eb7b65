//! Texts for a terminal: what it would obey and not show is made visible.

use std::borrow::Cow;

/// The text with its control characters as pictures. Lines and tabs stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    match text.contains(is_obeyed) {
        false => Cow::Borrowed(text),
        true => text.chars().map(shown).collect::<String>().into(),
    }
}

/// The same in one line: what somebody else wrote must not look like a line of ours.
pub fn one_line(text: &str) -> Cow<'_, str> {
    match text.contains(['\n', '\t']) {
        true => harmless(&text.replace('\n', "\u{2424}").replace('\t', " "))
            .into_owned()
            .into(),
        false => harmless(text),
    }
}

/// Control characters, and those that turn the direction of what follows.
fn is_obeyed(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn shown(c: char) -> char {
    match c {
        c if !is_obeyed(c) => c,
        '\u{7f}' => '\u{2421}',
        // ␀ to ␟
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        assert_eq!(harmless("a\tb\nç 日"), "a\tb\nç 日");
        assert_eq!(harmless("\u{1b}[2J\r\u{7}x\u{7f}"), "␛[2J␍␇x␡");
        assert_eq!(super::one_line("a\nb\u{1b}"), "a␤b␛");
        assert_eq!(harmless("a\u{202e}b\u{9b}c"), "a\u{fffd}b\u{fffd}c");
    }
}
