//! Lines about the outcome of a stage, of the run and of its claims.

use std::collections::BTreeMap;
use std::time::Duration;

use store::Status;

use super::event::{Tally, Worked};
use crate::amounts::{counted, seconds};

pub(super) fn stage_line(
    label: &str,
    status: Status,
    wall: Duration,
    worked: &Worked,
    why: Option<&str>,
) -> String {
    match status {
        Status::Ran if worked.taken => format!("took {label}"),
        Status::Ran if worked.work.is_empty() => format!("ran  {label}  {}", seconds(wall)),
        Status::Ran => format!("ran  {label}  {}  {worked}", seconds(wall)),
        Status::Hit => format!("hit  {label}"),
        Status::Failed => format!("FAIL {label}"),
        Status::Skipped => match why {
            Some(why) => format!("skip {label}: {why}"),
            None => format!("skip {label}"),
        },
    }
}

/// `ablate: 3 ran, 6 cached in 0.21 s`, or that there was nothing to do.
pub(super) fn summary(tally: &Tally) -> String {
    let total = tally.ran + tally.hits + tally.failed + tally.skipped;
    if tally.hits == 1 && total == 1 {
        return "ablate: the stage is cached".to_owned();
    }
    if tally.hits == total {
        return format!("ablate: all {total} stages cached");
    }
    let counts = [
        (tally.ran - tally.taken, "ran"),
        (tally.taken, "taken from the remote"),
        (tally.hits, "cached"),
        (tally.failed, "failed"),
        (tally.skipped, "skipped"),
    ];
    let parts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let end = if tally.interrupted {
        ", interrupted"
    } else {
        ""
    };
    format!(
        "ablate: {}{end} in {}",
        parts.join(", "),
        seconds(tally.wall)
    )
}

/// `claims: 6 reproduced, 0 uncertain, 1 not reproduced, 2 not run (ablate claims)`; if they are not graded,
/// `claims: 6 of 7 hold, 2 not run; not graded yet (ablate claims)`.
pub(super) fn claims(counts: &BTreeMap<&'static str, usize>) -> String {
    let count = |name| counts.get(name).copied();
    let (Some(holds), Some(fails)) = (count("holds"), count("does not hold")) else {
        return format!("claims: {} (ablate claims)", counted(counts));
    };
    let not_run = count("not run").unwrap_or_default();
    let of = holds + fails;
    format!("claims: {holds} of {of} hold, {not_run} not run; not graded yet (ablate claims)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_counted_by_verdict_or_by_whether_they_hold() {
        let graded = BTreeMap::from([("reproduced", 6), ("uncertain", 0), ("not reproduced", 1)]);
        assert_eq!(
            claims(&graded),
            "claims: 6 reproduced, 0 uncertain, 1 not reproduced (ablate claims)"
        );
        let plain = BTreeMap::from([("holds", 6), ("does not hold", 1), ("not run", 2)]);
        assert_eq!(
            claims(&plain),
            "claims: 6 of 7 hold, 2 not run; not graded yet (ablate claims)"
        );
    }

    #[test]
    fn amounts_are_shown_with_their_rates() {
        let worked = |seconds: f64, work: &[(&str, u64)]| Worked {
            work: work.iter().map(|(u, n)| ((*u).to_owned(), *n)).collect(),
            wall: Duration::from_secs_f64(seconds),
            taken: false,
        };
        let attack = worked(12.33, &[("items", 291), ("forward", 8123)]);
        assert_eq!(
            stage_line("attack", Status::Ran, attack.wall, &attack, None),
            "ran  attack  12 s  8123 forward, 659/s; 291 items, 23.6/s"
        );
        let none = worked(0.5, &[]);
        let line = stage_line("mix", Status::Ran, none.wall, &none, None);
        assert_eq!(line, "ran  mix  0.50 s");
        let taken = Worked {
            taken: true,
            ..none.clone()
        };
        let line = stage_line("mix", Status::Ran, none.wall, &taken, None);
        assert_eq!(line, "took mix");
        let why = Some("reads `mix`, which failed");
        let line = stage_line("end", Status::Skipped, none.wall, &none, why);
        assert_eq!(line, "skip end: reads `mix`, which failed");
        assert_eq!(worked(0.0, &[("items", 3)]).to_string(), "3 items");
    }
}
