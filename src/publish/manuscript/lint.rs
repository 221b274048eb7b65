//! What a manuscript says beside what was computed. A number that somebody typed is right, stale
//! or wrong if a note says which cell it is; without one it is recognised by its digits.

use serde::Serialize;

use super::cells::Known;
use super::numbers::{Computed, Written};

/// A finding about a number.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// Its note names a cell, and that is what it has.
    Right {
        /// The cell.
        cell: String,
    },
    /// It was right in a past run.
    Stale {
        /// The cell.
        cell: String,
        /// The newest run that had it.
        run: i64,
        /// What it is now.
        now: Option<Computed>,
    },
    /// Its note names a cell that has another number, and always had.
    Wrong {
        /// The cell.
        cell: String,
        /// What it is.
        now: Computed,
    },
    /// Its note names no cell.
    NoCell {
        /// What the note says.
        cell: String,
        /// What is wrong with it.
        why: String,
    },
    /// It was typed by hand, and these cells have it.
    Typed {
        /// The references to write instead, at most a few.
        cells: Vec<String>,
    },
    /// A note stands behind no number.
    Stray {
        /// What the note says.
        cell: String,
    },
    /// A reference cannot be resolved.
    Unfilled {
        /// What is wrong with it.
        why: String,
    },
}

impl Finding {
    /// Whether somebody must look at it.
    pub fn is_fault(&self) -> bool {
        !matches!(self, Finding::Right { .. } | Finding::Typed { .. })
    }
}

/// The numbers of a past run.
pub struct Past {
    /// The run.
    pub run: i64,
    /// Its numbers.
    pub cells: Vec<Known>,
}

/// How many cells are offered for a number.
const OFFERED: usize = 3;

/// Judges one number. `cell` looks a note's reference up in the current results.
pub fn judge(
    written: &Written,
    now: &[Known],
    past: &[Past],
    cell: impl Fn(&str) -> Result<Computed, String>,
) -> Option<Finding> {
    if let Some(note) = &written.claims {
        let name = note.cell.clone();
        return Some(match cell(&name) {
            Err(why) => Finding::NoCell { cell: name, why },
            Ok(value) if written.is_computed(value) => Finding::Right { cell: name },
            Ok(value) => match was(written, past, |known| known.reference == name) {
                Some((run, _)) => Finding::Stale {
                    cell: name,
                    run,
                    now: Some(value),
                },
                None => Finding::Wrong {
                    cell: name,
                    now: value,
                },
            },
        });
    }
    if written.is_vague() {
        return None;
    }
    let same = now.iter().filter(|known| written.is(known.value));
    let cells: Vec<String> = same
        .map(|known| format!("{}{}", known.reference, written.form(known.value)))
        .take(OFFERED)
        .collect();
    if !cells.is_empty() {
        return Some(Finding::Typed { cells });
    }
    let (run, known) = was(written, past, |_| true)?;
    let current = now.iter().find(|one| one.reference == known.reference);
    Some(Finding::Stale {
        cell: known.reference.clone(),
        run,
        now: current.map(|known| Computed::Float(known.value)),
    })
}

fn was<'a>(
    written: &Written,
    past: &'a [Past],
    which: impl Fn(&Known) -> bool,
) -> Option<(i64, &'a Known)> {
    past.iter().find_map(|past| {
        let mut cells = past.cells.iter();
        let known = cells.find(|known| which(known) && written.is(known.value))?;
        Some((past.run, known))
    })
}

#[cfg(test)]
mod tests {
    use super::super::numbers::written;
    use super::*;

    fn known(reference: &str, value: f64) -> Known {
        Known {
            reference: reference.to_owned(),
            value,
        }
    }

    fn judged(text: &str) -> Option<Finding> {
        let now = [known("r[row=a]", 0.9163), known("r[row=b]", 0.25)];
        let past = [Past {
            run: 3,
            cells: vec![known("r[row=a]", 0.8817), known("r[row=gone]", 0.4444)],
        }];
        judge(&written(text)[0], &now, &past, |name| {
            let found = now.iter().find(|known| known.reference == name);
            found
                .map(|known| Computed::Float(known.value))
                .ok_or_else(|| "no row".to_owned())
        })
    }

    #[test]
    fn typed_stale_and_unknown() {
        let cells = vec!["r[row=a]|.3".to_owned()];
        assert_eq!(judged("It is 0.916."), Some(Finding::Typed { cells }));
        let stale = |cell: &str, now: Option<f64>| Finding::Stale {
            cell: cell.to_owned(),
            run: 3,
            now: now.map(Computed::Float),
        };
        assert_eq!(
            judged("It is 88.2%."),
            Some(stale("r[row=a]", Some(0.9163)))
        );
        assert_eq!(judged("It is 0.444."), Some(stale("r[row=gone]", None)));
        assert_eq!(judged("It is 0.777."), None);
        assert_eq!(judged("It is 0.2."), None, "too vague");
    }

    #[test]
    fn notes_are_held_to_their_word() {
        let cell = "r[row=a]".to_owned();
        let note = |text: &str| judged(&format!("It is {text}<!-- ablate:r[row=a] -->"));
        assert_eq!(note("0.92"), Some(Finding::Right { cell: cell.clone() }));
        let stale = Finding::Stale {
            cell: cell.clone(),
            run: 3,
            now: Some(Computed::Float(0.9163)),
        };
        assert_eq!(note("0.88"), Some(stale));
        let now = Computed::Float(0.9163);
        let wrong = Finding::Wrong { cell, now };
        assert_eq!(note("0.99"), Some(wrong));
        let found = judged("It is 0.92<!-- ablate:r[row=c] -->");
        assert!(matches!(found, Some(Finding::NoCell { .. })), "{found:?}");
    }
}
