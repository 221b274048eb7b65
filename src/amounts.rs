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

/// `6 reproduced, 1 not reproduced, 2 not run`.
pub fn counted(counts: &BTreeMap<&'static str, usize>) -> String {
    let order = ["reproduced", "not reproduced", "not run", "reported"];
    let each = order.iter().filter_map(|name| {
        let count = counts.get(name)?;
        Some(format!("{count} {name}"))
    });
    each.collect::<Vec<_>>().join(", ")
}
