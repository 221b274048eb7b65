//! Durations and counts as people read them.

use std::collections::BTreeMap;
use std::time::Duration;

/// A duration that a person can read at a glance.
pub fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 0.0995 => format!("{:.1} ms", s * 1000.0),
        s if s < 9.95 => format!("{s:.2} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s => format!("{} min {:02} s", s as u64 / 60, s as u64 % 60),
    }
}

/// Verdicts in the order in which they are shown: before claims are graded, whether they hold.
pub const VERDICTS: [&str; 7] = [
    "reproduced",
    "uncertain",
    "not reproduced",
    "holds",
    "does not hold",
    "not run",
    "reported",
];

/// `6 reproduced, 1 uncertain, 1 not reproduced, 2 not run`.
pub fn counted(counts: &BTreeMap<&'static str, usize>) -> String {
    let order = VERDICTS;
    let each = order.iter().filter_map(|name| {
        let count = counts.get(name)?;
        Some(format!("{count} {name}"))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// `1 row`, `2 rows`; `1 entry`, `2 entries`.
pub fn plural(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// `1,000`.
pub fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.char_indices() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{plural, thousands};

    #[test]
    fn one_is_not_a_plural() {
        let shown = [0, 1, 2].map(|count| plural(count, "object"));
        assert_eq!(shown, ["0 objects", "1 object", "2 objects"]);
        let shown = [0, 1, 2].map(|count| plural(count, "entry"));
        assert_eq!(shown, ["0 entries", "1 entry", "2 entries"]);
    }

    #[test]
    fn digits_stand_in_threes() {
        let shown = [0, 999, 1000, 12_345, 1_234_567].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
