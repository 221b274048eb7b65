//! The numbers that somebody wrote into a text: where, which, and with how many decimals.
//! Knows nothing of results.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// A computed number. A float cannot tell integers beyond 2^53 apart, so they are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Computed {
    /// An integer.
    Integer(i64),
    /// A float.
    Float(f64),
}

impl Computed {
    /// The number that a cell shows, if it shows one.
    pub fn parse(text: &str) -> Option<Computed> {
        let integer = text.parse().map(Computed::Integer);
        integer.or_else(|_| text.parse().map(Computed::Float)).ok()
    }
}

impl fmt::Display for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Computed::Integer(integer) => integer.fmt(f),
            Computed::Float(float) => float.fmt(f),
        }
    }
}

/// A number as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Where, in bytes.
    pub place: Range<usize>,
    /// Its value.
    pub value: f64,
    /// All its digits as one integer, if they are not too many: 916 for `0.916`.
    pub digits: Option<i128>,
    /// How many decimals are written; fewer than none for `9.3e4`.
    pub decimals: i32,
    /// Whether a percent sign follows.
    pub percent: bool,
    /// The cell that it is annotated with, by a note right behind it:
    /// `0.916<!-- ablate:results[row=lstm] -->`, in TeX `0.916% ablate:results[row=lstm]`.
    pub claims: Option<Note>,
}

/// What somebody noted about a number: the cell that it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// Where, in bytes.
    pub place: Range<usize>,
    /// The cell.
    pub cell: String,
}

/// What a reference looks like in a text: `{{ablate:results[row=lstm,col=clean]}}`.
const OPEN: &str = "{{ablate:";

/// Where references stand: the place of each with its braces, and what is inside; nothing for one
/// that is not closed on its line. Spaces and capitals do not matter.
pub fn references(text: &str) -> Vec<(Range<usize>, Option<&str>)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        // Where the next one closes; looked for again only behind it.
        let mut close = 0;
        for (open, _) in line.match_indices("{{") {
            let after = line[open + 2..].trim_start_matches(' ');
            let named = after.get(..OPEN.len() - 2);
            if open < close || !named.is_some_and(|name| name.eq_ignore_ascii_case(&OPEN[2..])) {
                continue;
            }
            let inside = line.len() - after.len() + OPEN.len() - 2;
            match line[inside..].find("}}") {
                Some(end) => {
                    close = inside + end + 2;
                    found.push((
                        start + open..start + close,
                        Some(&line[inside..inside + end]),
                    ));
                }
                None => {
                    found.push((start + open..start + inside, None));
                    // None of this line is closed.
                    break;
                }
            }
        }
        start += line.len();
    }
    found
}

/// Every number with a decimal point, and every one with a note. Integers without one are
/// years, pages and counts: nobody could say which was computed.
pub fn written(text: &str) -> Vec<Written> {
    let notes = notes(text);
    // What is not the author's text, in order.
    let references = references(text).into_iter().map(|(place, _)| place);
    let mut skipped: Vec<Range<usize>> = references
        .chain(notes.iter().map(|note| note.place.clone()))
        .collect();
    skipped.sort_unstable_by_key(|place| place.start);
    let mut skipped = skipped.into_iter().peekable();
    let bytes = text.as_bytes();
    let mut found: Vec<Written> = Vec::new();
    // Where the spread of the number before ends, which has the note.
    let mut spread = 0;
    let mut at = 0;
    while at < bytes.len() {
        if let Some(place) = skipped.next_if(|place| place.start <= at) {
            at = at.max(place.end);
            continue;
        }
        if !begins(bytes, at) {
            at += 1;
            continue;
        }
        let figures = Figures::at(text, at);
        let end = figures
            .as_ref()
            .map_or(end_of_digits(bytes, at), |it| it.place.end);
        if let Some(figures) = figures {
            let mut rest = end + percent_sign(&text[end..]);
            let is_spread = at < spread;
            if let Some(other) = plus_minus(text, rest) {
                rest = other + percent_sign(&text[other..]);
                spread = rest;
            }
            let note = match is_spread {
                true => None,
                false => {
                    let next = notes.partition_point(|note| note.place.start < rest);
                    let between =
                        |note: &&Note| text[rest..note.place.start].chars().all(is_markup);
                    notes.get(next).filter(between)
                }
            };
            if figures.decimals != 0 || figures.scaled || note.is_some() {
                found.push(Written {
                    place: figures.place,
                    value: figures.value,
                    digits: figures.digits,
                    decimals: figures.decimals,
                    percent: percent_sign(&text[end..]) > 0,
                    claims: note.cloned(),
                });
            }
        }
        at = end;
    }
    found
}

/// Notes that stand behind no number: somebody meant one, and it was not recognised.
pub fn stray(text: &str, found: &[Written]) -> Vec<Note> {
    let claimed = found.iter().filter_map(|one| one.claims.as_ref());
    let claimed: HashSet<usize> = claimed.map(|note| note.place.start).collect();
    let mut all = notes(text);
    all.retain(|note| !claimed.contains(&note.place.start));
    all
}

/// Every `<!-- ablate:… -->` and `% ablate:…`.
fn notes(text: &str) -> Vec<Note> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let last_close = line.rfind("-->").unwrap_or(0);
        for (at, _) in line.match_indices("ablate:") {
            let before = line[..at].trim_end();
            let after = &line[at + "ablate:".len()..];
            let (open, cell, close) = if before.ends_with("<!--") {
                // A long line of comments that do not end is not searched again for each.
                if at > last_close {
                    continue;
                }
                let Some(close) = after.find("-->") else {
                    continue;
                };
                (before.len() - 4, &after[..close], close + 3)
            } else if before.ends_with('%') && !before.ends_with("\\%") {
                (
                    before.len() - 1,
                    after,
                    after.trim_end_matches(['\r', '\n']).len(),
                )
            } else {
                continue;
            };
            found.push(Note {
                place: start + open..start + at + "ablate:".len() + close,
                cell: cell.trim().to_owned(),
            });
        }
        start += line.len();
    }
    found
}

/// What may stand between a number and its note: the end of emphasis, of mathematics, of a cell.
fn is_markup(c: char) -> bool {
    c.is_whitespace() && c != '\n' || "$}]*_`~)\\,".contains(c)
}

/// Digits, and what they are worth.
struct Figures {
    place: Range<usize>,
    value: f64,
    digits: Option<i128>,
    decimals: i32,
    /// Whether a power of ten is written.
    scaled: bool,
}

impl Figures {
    /// The number that begins here, if it is not a part of something else.
    fn at(text: &str, start: usize) -> Option<Figures> {
        let bytes = text.as_bytes();
        let digits = end_of_digits(bytes, start);
        let plain = &text[start..digits];
        if plain.matches('.').count() > 1 {
            return None;
        }
        let (end, power) = match power(&text[digits..]) {
            Some((length, power)) => (digits + length, Some(power)),
            None => (digits, None),
        };
        // `12ms`, `3-fold`, `1/2`: part of something else. A full stop or a sign may follow.
        let mut next = text[end..].chars();
        let (next, after) = (next.next().unwrap_or(' '), next.next().unwrap_or(' '));
        let ties = match next {
            '_' => after.is_alphanumeric(),
            '±' | '×' | '–' | '—' | '’' | '”' | '…' => false,
            next => next.is_alphanumeric() || next == '/' || !next.is_ascii(),
        };
        if ties {
            return None;
        }
        let power = power.unwrap_or(0);
        let value: f64 = format!("{}e{power}", plain.replace(',', "")).parse().ok()?;
        let before = &text[..start];
        let sign = ["-", "\u{2212}"]
            .into_iter()
            .find(|sign| before.ends_with(sign));
        let written = plain.split_once('.').map_or(0, |(_, after)| after.len());
        let digits: Option<i128> = plain.replace([',', '.'], "").parse().ok();
        Some(Figures {
            place: start - sign.map_or(0, str::len)..end,
            value: if sign.is_some() { -value } else { value },
            digits: digits.map(|digits| if sign.is_some() { -digits } else { digits }),
            decimals: i32::try_from(written).ok()? - power,
            scaled: power != 0,
        })
    }
}

/// Whether a number may begin here: at a digit, or at a point before one, that no word is before.
fn begins(bytes: &[u8], at: usize) -> bool {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let point = bytes[at] == b'.' && digit(at + 1);
    if !(digit(at) || point) {
        return false;
    }
    let word = |at: usize| is_word(bytes[at]);
    match at.checked_sub(1).map(|before| bytes[before]) {
        None => true,
        // A dash is a sign, an underscore begins emphasis, unless a word is before them.
        Some(b'-' | b'_') => at < 2 || !word(at - 2),
        // The end of `±`, `×` or `–`: signs, not letters.
        Some(0xb1) => at >= 2 && bytes[at - 2] == 0xc2,
        Some(0x93 | 0x94) => at >= 3 && bytes[at - 3..at - 1] == [0xe2, 0x80],
        // A minus sign of its own.
        Some(0x92) => at >= 3 && bytes[at - 3..at - 1] == [0xe2, 0x88],
        // A decimal comma in TeX: what follows is not a separate number.
        Some(b'}') => !bytes[..at].ends_with(b"{,}"),
        Some(_) => !word(at - 1),
    }
}

/// Letters, digits and what ties them together: `v1.2`, `x_3`, `1.2.3` and `10.1145/12` are names.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'.' | b'/' | b'-' | b'#' | b':')
        || byte >= 0x80
}

fn end_of_digits(bytes: &[u8], start: usize) -> usize {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = start;
    // A comma or a point belongs to the number if a digit follows.
    while digit(end) || matches!(bytes.get(end), Some(b'.' | b',')) && digit(end + 1) {
        end += 1;
    }
    end
}

/// A power of ten right behind digits, `e-1` or `\times 10^{-1}`: its length, and the exponent.
fn power(rest: &str) -> Option<(usize, i32)> {
    let after = match rest.strip_prefix(['e', 'E']) {
        Some(after) => after,
        None => {
            let rest = rest.trim_start();
            let times = ["\\times", "\\cdot", "×"].iter();
            let rest = times.filter_map(|sign| rest.strip_prefix(sign)).next()?;
            let rest = rest.trim_start().strip_prefix("10^")?;
            rest.strip_prefix('{').unwrap_or(rest)
        }
    };
    let sign = usize::from(after.starts_with(['-', '+']));
    let digits = after[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let exponent = after[..sign + digits]
        .parse()
        .ok()
        .filter(|_| digits <= 3)?;
    let braces = usize::from(after[sign + digits..].starts_with('}'));
    Some((rest.len() - after.len() + sign + digits + braces, exponent))
}

/// How far a percent sign reaches, if one stands here: `%`, `\%`, `\,\%`, `}{\percent}`. In TeX a
/// bare one begins a comment, so behind a space it counts only before what ends a phrase.
fn percent_sign(rest: &str) -> usize {
    let thin = |text: &'_ str| {
        text.trim_start_matches(['~', '\u{a0}', '\u{202f}', ' '])
            .len()
    };
    let after = rest.strip_prefix("\\,").unwrap_or(rest);
    let after = &after[after.len() - thin(after)..];
    let spaced = after.len() < rest.len();
    if let Some(end) = after.strip_prefix("\\%") {
        return rest.len() - end.len();
    }
    if let Some(end) = after.strip_prefix("}{\\percent}") {
        return rest.len() - end.len();
    }
    let Some(end) = after.strip_prefix('%') else {
        return 0;
    };
    let ends = end.is_empty() || end.starts_with(['<', ',', '.', ';', ')', '|', '\n']);
    let note = end.trim_start().starts_with("ablate:");
    match note || spaced && !ends {
        true => 0,
        false => rest.len() - end.len(),
    }
}

/// Where a spread ends that follows here: `± 0.01` however that is written, or `(0.01)`.
fn plus_minus(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    if let Some(inside) = rest.trim_start_matches([' ', '~']).strip_prefix('(') {
        let start = text.len() - inside.len();
        let end = Figures::at(text, start).filter(|_| begins(text.as_bytes(), start))?;
        let end = end.place.end + percent_sign(&text[end.place.end..]);
        return text[end..].starts_with(')').then_some(end + 1);
    }
    let rest = rest.trim_start_matches([' ', '$', '}', '_', '{', '~']);
    let signs = ["\\pm", "±", "+/-", "+-"].iter();
    let rest = signs.filter_map(|sign| rest.strip_prefix(sign)).next()?;
    let rest = rest.trim_start_matches([' ', '$', '{']);
    let start = text.len() - rest.len();
    let digits = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let figures = Figures::at(text, start).filter(|_| digits)?;
    Some(figures.place.end)
}

impl Written {
    /// Whether a computed number is written like this: rounded, or as a percentage and rounded.
    pub fn is(&self, computed: f64) -> bool {
        // With a percent sign, 0.88 is not 88%. Some results are percentages already.
        let plain = !self.percent || computed.abs() > 1.0;
        plain && self.matches(computed) || self.is_percentage_of(computed)
    }

    /// The same of a cell's number, exactly where it is an integer.
    pub fn is_computed(&self, computed: Computed) -> bool {
        match (computed, self.digits) {
            (Computed::Float(computed), _) => self.is(computed),
            (Computed::Integer(computed), None) => self.is(computed as f64),
            (Computed::Integer(computed), Some(digits)) => {
                let computed = i128::from(computed);
                let plain = !self.percent || computed.abs() > 1;
                plain && self.rounds(digits, computed) || self.rounds(digits, computed * 100)
            }
        }
    }

    /// Whether an integer rounds to these digits at the last decimal that is written.
    fn rounds(&self, digits: i128, computed: i128) -> bool {
        let unit = 10i128.checked_pow(self.decimals.unsigned_abs());
        match (self.decimals >= 0, unit) {
            (true, Some(unit)) => computed.checked_mul(unit) == Some(digits),
            (false, Some(unit)) => {
                let written = digits.checked_mul(unit);
                written.is_some_and(|written| 2 * (written - computed).abs() <= unit)
            }
            (_, None) => self.matches(computed as f64),
        }
    }

    /// Whether it is written as a percentage.
    pub fn is_percentage_of(&self, computed: f64) -> bool {
        self.matches(computed * 100.0)
    }

    fn matches(&self, computed: f64) -> bool {
        // Half a unit of the last decimal, and a hair for numbers that lie in the middle.
        let unit = 10f64.powi(-self.decimals);
        (computed - self.value).abs() <= unit * 0.5 + unit * 1e-6
    }

    /// What asks for a computed number as it is written here, behind a reference.
    pub fn form(&self, computed: f64) -> String {
        match (self.decimals, self.is_percentage_of(computed)) {
            (decimals @ 0.., true) => format!("|%{decimals}"),
            (decimals @ 0.., false) => format!("|.{decimals}"),
            _ => String::new(),
        }
    }

    /// Too few digits to say that it is this number and no other.
    pub fn is_vague(&self) -> bool {
        let digits = (self.value.abs() * 10f64.powi(self.decimals)).round();
        let digits = format!("{digits:.0}");
        digits.trim_start_matches('0').trim_end_matches('0').len() < 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both are the same float.
    #[test]
    fn integers_beyond_floats_are_told_apart() {
        let cell = Computed::parse("9007199254740993").unwrap();
        let is = |text: &str| {
            let text = format!("{text}<!-- ablate:n -->");
            written(&text)[0].is_computed(cell)
        };
        assert!(is("9007199254740993") && is("9007199254740993.0") && is("9,007,199,254,740,993"));
        assert!(!is("9007199254740992.0") && !is("9007199254740992") && !is("-9007199254740993"));
        assert!(is("9.007e15") && !is("9.008e15"));
        assert!(is("900719925474099300%"));
        assert_eq!(cell.to_string(), "9007199254740993");
        let float = Computed::parse("0.9163").unwrap();
        assert!(written("0.92")[0].is_computed(float));
    }

    fn values(text: &str) -> Vec<f64> {
        written(text).iter().map(|number| number.value).collect()
    }

    #[test]
    fn numbers_are_found_and_names_are_not() {
        assert_eq!(values("accuracy is 0.916, or 91.6%."), [0.916, 91.6]);
        assert_eq!(
            values("v1.2, 1.2.3, x_1.5, 10.1145/33.5, 3.5ms, 12"),
            [0.0; 0]
        );
        assert_eq!(values("-0.25 and $1,234.5$"), [-0.25, 1234.5]);
        assert_eq!(
            values("{{ablate:a[b=0.5]}} and {{ Ablate:a[b=0.6] }} 0.75"),
            [0.75]
        );
    }

    #[test]
    fn a_note_names_a_cell() {
        for (text, value, cell) in [
            (
                "It is 91.6%<!-- ablate:r[row=a] --> here.",
                91.6,
                "r[row=a]",
            ),
            ("$12$ % ablate:r[row=b].n\n", 12.0, "r[row=b].n"),
            ("It is 0.916 % ablate: r[row=c]\n", 0.916, "r[row=c]"),
            ("**0.93**<!-- ablate:r -->", 0.93, "r"),
            ("_0.93_ <!--ablate:r-->", 0.93, "r"),
            ("`0.93`<!-- ablate:r -->", 0.93, "r"),
            ("\\textbf{0.93}% ablate:r", 0.93, "r"),
            ("$9.3e-1$ % ablate:r", 0.93, "r"),
            ("$9.3\\times10^{-1}$ % ablate:r", 0.93, "r"),
            (".93<!-- ablate:r -->", 0.93, "r"),
            ("0.93$\\pm$0.01% ablate:r", 0.93, "r"),
            ("$93.1\\% \\pm 0.4\\%$ % ablate:r", 93.1, "r"),
            ("0.93 ± 0.01<!-- ablate:r -->", 0.93, "r"),
            ("0.93 (0.01)<!-- ablate:r -->", 0.93, "r"),
            ("$\\mathbf{0.93}_{\\pm 0.004}$ % ablate:r", 0.93, "r"),
            ("87.6 %<!-- ablate:r -->", 87.6, "r"),
            ("$91.63\\,\\%$% ablate:r", 91.63, "r"),
            ("\\SI{91.63}{\\percent}% ablate:r", 91.63, "r"),
            ("[0.86, 0.8761]<!-- ablate:r -->", 0.8761, "r"),
            ("\u{2212}0.25<!-- ablate:r -->", -0.25, "r"),
        ] {
            let found = written(text);
            let claimed: Vec<(f64, &str)> = found
                .iter()
                .filter_map(|one| Some((one.value, one.claims.as_ref()?.cell.as_str())))
                .collect();
            assert_eq!(claimed, [(value, cell)], "{text}");
            assert_eq!(stray(text, &found), []);
        }
    }

    #[test]
    fn a_note_behind_no_number_is_found() {
        for text in [
            "ninety <!-- ablate:r -->",
            "0.9 per cent % ablate:r\n",
            "0{,}9163% ablate:r\n",
        ] {
            let found = written(text);
            let stray = stray(text, &found);
            assert_eq!(stray.len(), 1, "{text}");
            assert_eq!(stray[0].cell, "r");
            assert!(text[stray[0].place.clone()].contains("ablate:r"));
        }
    }

    #[test]
    fn what_asks_for_it_writes_it_the_same_way() {
        let form = |text: &str, computed: f64| written(text)[0].form(computed);
        assert_eq!(form("0.866", 0.8664), "|.3");
        assert_eq!(form("91.6%", 0.9163), "|%1");
        assert_eq!(form("9.2e3", 9210.0), "");
    }

    #[test]
    fn what_is_written_is_rounded() {
        let one = |text: &str| written(text).remove(0);
        assert!(one("0.92").is(0.9163) && !one("0.91").is(0.9163));
        assert!(one("91.6").is(0.9163) && one("91.6%").is(0.9163));
        assert!(!one("0.9163%").is(0.9163), "a hundredth of it");
        assert!(one("91.63%").is(91.63), "a percentage already");
        assert!(one("0.5").is_vague() && !one("0.51").is_vague());
        assert!(one("9.16e-1").is(0.9163) && !one("9.15e-1").is(0.9163));
        assert!(one("9.2e3").is(9210.0) && !one("9.2e3").is(9260.0));
    }
}
