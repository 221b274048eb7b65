//! The text of an RTF document: as much of the format as word processors write for plain text.
//!
//! Groups that describe fonts, colours and the like are left out, control words are dropped, `\'hh` is a character of
//! Windows' code page 1252, `\uN` one of Unicode. Knows nothing of what the text is for.

use crate::kinds::dataset::text::{Encoding, decode};

/// Groups whose contents are not text.
const HIDDEN: [&str; 5] = ["fonttbl", "colortbl", "stylesheet", "info", "*"];

/// The text, with a line feed for each paragraph or forced line.
pub fn text(document: &str) -> String {
    let mut reader = Reader {
        rest: document,
        text: String::new(),
        depth: 0,
        hidden_from: None,
        stand_ins: vec![1],
        skip: 0,
    };
    while let Some(c) = reader.rest.chars().next() {
        reader.rest = &reader.rest[c.len_utf8()..];
        match c {
            '{' => reader.open(),
            '}' => reader.close(),
            '\\' => reader.control(),
            // Lines of the file are not lines of the text.
            '\n' | '\r' => {}
            other => reader.push(other),
        }
    }
    reader.text
}

struct Reader<'a> {
    rest: &'a str,
    text: String,
    depth: usize,
    /// The depth of the group that is left out.
    hidden_from: Option<usize>,
    /// How many characters stand in for a `\uN`, of each open group.
    stand_ins: Vec<usize>,
    skip: usize,
}

impl Reader<'_> {
    fn open(&mut self) {
        self.depth += 1;
        self.stand_ins
            .push(self.stand_ins.last().copied().unwrap_or(1));
    }

    fn close(&mut self) {
        if self.hidden_from == Some(self.depth) {
            self.hidden_from = None;
        }
        self.depth = self.depth.saturating_sub(1);
        self.stand_ins.pop();
    }

    fn push(&mut self, c: char) {
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.hidden_from.is_none() {
            self.text.push(c);
        }
    }

    /// After a backslash.
    fn control(&mut self) {
        let Some(c) = self.rest.chars().next() else {
            return;
        };
        if c.is_ascii_alphabetic() {
            return self.word();
        }
        self.rest = &self.rest[c.len_utf8()..];
        match c {
            '\'' => {
                let code = self
                    .rest
                    .get(..2)
                    .and_then(|hex| u8::from_str_radix(hex, 16).ok());
                self.rest = self.rest.get(2..).unwrap_or_default();
                let decoded = code.map(|byte| decode(vec![byte], Encoding::Windows1252, "RTF"));
                if let Some(Ok(text)) = decoded {
                    text.chars().for_each(|c| self.push(c));
                }
            }
            '\n' | '\r' => self.push('\n'),
            '~' => self.push(' '),
            '*' => self.hidden_from = self.hidden_from.or(Some(self.depth)),
            '\\' | '{' | '}' => self.push(c),
            _ => {}
        }
    }

    /// A control word with its number, and the space that ends it.
    fn word(&mut self) {
        let letters = self.rest.find(|c: char| !c.is_ascii_alphabetic());
        let (name, rest) = self.rest.split_at(letters.unwrap_or(self.rest.len()));
        let digits = rest
            .char_indices()
            .find(|(n, c)| !(c.is_ascii_digit() || (*n == 0 && *c == '-')));
        let (number, rest) = rest.split_at(digits.map_or(rest.len(), |(n, _)| n));
        self.rest = rest.strip_prefix(' ').unwrap_or(rest);
        let number: Option<i32> = number.parse().ok();
        match name {
            "par" | "line" => self.push('\n'),
            "tab" => self.push(' '),
            "uc" => {
                if let (Some(last), Some(count)) = (self.stand_ins.last_mut(), number) {
                    *last = usize::try_from(count).unwrap_or(1);
                }
            }
            "u" => {
                // Numbers above 32,767 are written as negative ones.
                let code = number.map(|n| if n < 0 { n + 65_536 } else { n } as u32);
                if let Some(c) = code.and_then(char::from_u32) {
                    self.push(c);
                }
                self.skip = self.stand_ins.last().copied().unwrap_or(1);
            }
            hidden if HIDDEN.contains(&hidden) => {
                self.hidden_from = self.hidden_from.or(Some(self.depth));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn text_is_what_a_reader_would_see() {
        let document = "{\\rtf1\\ansi\\ansicpg1252\n{\\fonttbl\\f0\\fmodern Courier;}\n{\\colortbl;\\red0;}\n\\f0\\fs24 \\cf2 Caf\\'e9 \\'93so\\'94\\\nit\\'92s \\{here\\} \\uc0\\u8212 yes\\uc1\\u8220?now\\par end}";
        assert_eq!(text(document), "Café “so”\nit’s {here} —yes“now\nend");
    }

    #[test]
    fn broken_documents_give_what_they_can() {
        assert_eq!(text("a\\'9"), "a");
        assert_eq!(text("}}b\\"), "b");
        assert_eq!(text("{\\*\\hidden x}{y"), "y");
    }
}
