//! The numbers that somebody wrote into a text: where, which, and with how many decimals.
//! Knows nothing of results.

use std::ops::Range;

/// A number as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Where, in bytes.
    pub place: Range<usize>,
    /// Its value.
    pub value: f64,
    /// How many decimals are written.
    pub decimals: usize,
    /// Whether a percent sign follows.
    pub percent: bool,
    /// The cell that it is said to be, from a note right behind it:
    /// `0.916<!-- ablate:results[row=lstm] -->`, in TeX `0.916% ablate:results[row=lstm]`.
    pub claims: Option<String>,
}

/// What a reference looks like in a text: `{{ablate:results[row=lstm,col=clean]}}`.
pub const OPEN: &str = "{{ablate:";

/// Where references stand: the place of each with its braces, and what is inside.
pub fn references(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(OPEN).map(|at| from + at) {
        let inside = start + OPEN.len();
        let Some(end) = text[inside..].find("}}").map(|at| inside + at) else {
            break;
        };
        found.push((start..end + 2, &text[inside..end]));
        from = end + 2;
    }
    found
}

/// Every number with a decimal point, and every one with a note. Whole numbers without one are
/// years, pages and counts: nobody could say which was computed.
pub fn written(text: &str) -> Vec<Written> {
    let references = references(text);
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if let Some((place, _)) = references.iter().find(|(place, _)| place.contains(&at)) {
            at = place.end;
            continue;
        }
        if !bytes[at].is_ascii_digit() || continues(bytes, at) {
            at += 1;
            continue;
        }
        let end = end_of_number(bytes, at);
        if let Some(number) = number(text, at, end) {
            found.push(number);
        }
        at = end;
    }
    found
}

/// Whether what stands here goes on from a word. A dash does if a word is before it, and is a
/// sign otherwise.
fn continues(bytes: &[u8], at: usize) -> bool {
    match at.checked_sub(1).map(|before| bytes[before]) {
        None => false,
        Some(b'-') => at >= 2 && is_word(bytes[at - 2]),
        Some(before) => is_word(before),
    }
}

/// Letters, digits and what ties them together: `v1.2`, `x_3`, `1.2.3` and `10.1145/12` are names.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'.' | b'/' | b'-' | b'#' | b':')
        || byte >= 0x80
}

fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = start;
    // A comma or a point belongs to the number if a digit follows.
    while digit(end) || matches!(bytes.get(end), Some(b'.' | b',')) && digit(end + 1) {
        end += 1;
    }
    end
}

fn number(text: &str, start: usize, end: usize) -> Option<Written> {
    let bytes = text.as_bytes();
    // `12ms`, `3-fold`, `1/2`: part of something else. A full stop or a sign may follow.
    let next = bytes.get(end).copied().unwrap_or(b' ');
    if next.is_ascii_alphanumeric() || matches!(next, b'_' | b'/') || next >= 0x80 {
        return None;
    }
    let plain = &text[start..end];
    if plain.matches('.').count() > 1 {
        return None;
    }
    let value: f64 = plain.replace(',', "").parse().ok()?;
    let negative = start > 0 && bytes[start - 1] == b'-';
    let decimals = plain.split_once('.').map_or(0, |(_, after)| after.len());
    let rest = &text[end..];
    let (percent, rest) = match (rest.strip_prefix("\\%"), rest.strip_prefix('%')) {
        (Some(rest), _) => (true, rest),
        // In TeX a bare percent sign begins a note.
        (None, Some(after)) if after.trim_start().starts_with("ablate:") => (false, rest),
        (None, Some(after)) => (true, after),
        (None, None) => (false, rest),
    };
    let claims = note(rest);
    if decimals == 0 && claims.is_none() {
        return None;
    }
    Some(Written {
        place: start..end,
        value: if negative { -value } else { value },
        decimals,
        percent,
        claims,
    })
}

fn note(rest: &str) -> Option<String> {
    let line = rest.lines().next()?.trim_start_matches([' ', '$', '}']);
    let inside = match line.strip_prefix("<!--") {
        Some(inside) => inside.split_once("-->")?.0,
        None => line.strip_prefix('%')?,
    };
    Some(inside.trim().strip_prefix("ablate:")?.trim().to_owned())
}

impl Written {
    /// Whether a computed number is written like this: rounded, or as a percentage and rounded.
    pub fn is(&self, computed: f64) -> bool {
        self.matches(computed) || self.matches(computed * 100.0)
    }

    fn matches(&self, computed: f64) -> bool {
        // Half a unit of the last decimal, and a hair for numbers that lie in the middle.
        let unit = 10f64.powi(-(self.decimals as i32));
        (computed - self.value).abs() <= unit * 0.5 + unit * 1e-6
    }

    /// Too few digits to say that it is this number and no other.
    pub fn is_vague(&self) -> bool {
        let digits = format!("{:.*}", self.decimals, self.value.abs()).replace('.', "");
        digits.trim_start_matches('0').trim_end_matches('0').len() < 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(values("{{ablate:a[b=0.5]}} and 0.75"), [0.75]);
    }

    #[test]
    fn a_note_names_a_cell() {
        let found = written("It is 91.6%<!-- ablate:r[row=a] --> here.");
        assert_eq!(found[0].claims.as_deref(), Some("r[row=a]"));
        assert!(found[0].percent);
        let found = written("$12$ % ablate:r[row=b].n\n");
        assert_eq!(found[0].claims.as_deref(), Some("r[row=b].n"));
        let found = written("It is 0.916 % ablate: r[row=c]\n");
        assert_eq!(found[0].claims.as_deref(), Some("r[row=c]"));
    }

    #[test]
    fn what_is_written_is_rounded() {
        let one = |text: &str| written(text).remove(0);
        assert!(one("0.92").is(0.9163) && !one("0.91").is(0.9163));
        assert!(one("91.6").is(0.9163) && one("91.6%").is(0.9163));
        assert!(one("0.5").is_vague() && !one("0.51").is_vague());
    }
}
