//! Sets that are made from a seed: no network, no files. One list; each entry says what it makes
//! and which options it takes.

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use store::Value;

use super::catalogue::Schema;
use super::table::Texts;
use super::{frequency, reviews_grammar};

/// A set that is made.
pub struct Embedded {
    /// Its name, as in `name = "frequency"`.
    pub name: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// The columns of its table.
    pub schema: Schema,
    /// The names of its classes.
    pub labels: &'static [&'static str],
    /// The file or folder that makes it: its code is part of the key, the others' is not.
    pub source: &'static str,
    /// How many rows its splits have, unless `generate` says otherwise.
    pub splits: &'static [(&'static str, usize)],
    /// Its other options, with their values if left out.
    pub options: &'static [(&'static str, Setting)],
    /// Makes it.
    pub make: fn(&Options, u64) -> RecordBatch,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// Yes or no.
    Flag(bool),
    /// A share, from 0 to 1.
    Share(f64),
}

/// Every set that is made.
pub static EMBEDDED: &[Embedded] = &[
    Embedded {
        name: "frequency",
        title: "Sine waves with a period inside 5..6 or outside it, 100 steps of 0.1",
        schema: Schema::Sequence,
        labels: &["inside", "outside"],
        source: "frequency.rs",
        splits: &[("train", 10_000), ("dev", 2_000), ("test", 2_000)],
        options: &[("halves", Setting::Flag(false))],
        make: frequency::make,
    },
    Embedded {
        name: "reviews-grammar",
        title: "Short reviews of films and restaurants, written by a grammar",
        schema: Schema::Text,
        labels: &["negative", "positive"],
        source: "reviews_grammar",
        splits: &[("train", 4_000), ("dev", 1_000), ("test", 1_000)],
        options: &[("typos", Setting::Share(0.01))],
        make: reviews,
    },
];

/// Reviews in a table; each split has a seed of its own, so that none has another's rows.
fn reviews(options: &Options, seed: u64) -> RecordBatch {
    let mut rows = Texts::default();
    for (n, (split, count)) in (0_u64..).zip(options.splits()) {
        let seed = seed.wrapping_mul(3).wrapping_add(n);
        let reviews = reviews_grammar::generate(count, seed, options.share("typos"));
        for (n, review) in reviews.iter().enumerate() {
            rows.push(
                &format!("{split}/{n}"),
                split,
                Some(review.label),
                &review.text,
            );
        }
    }
    rows.finish()
}

/// The set of that name.
pub fn find(name: &str) -> Option<&'static Embedded> {
    EMBEDDED.iter().find(|set| set.name == name)
}

/// What `generate` says, with the rest filled in.
#[derive(Debug)]
pub struct Options {
    splits: Vec<(&'static str, usize)>,
    settings: BTreeMap<&'static str, Setting>,
}

impl Options {
    /// Checks a `generate` table against what a set takes.
    pub fn new(
        set: &Embedded,
        written: Option<&BTreeMap<String, Value>>,
    ) -> Result<Options, String> {
        let mut options = Options {
            splits: set.splits.to_vec(),
            settings: set.options.iter().copied().collect(),
        };
        for (key, value) in written.into_iter().flatten() {
            let wrong = |expected: &str| {
                Err(format!(
                    "`{key}` of `{}` must be {expected}, not {value}",
                    set.name
                ))
            };
            if let Some((_, count)) = options.splits.iter_mut().find(|(split, _)| split == key) {
                match value.as_int().map(usize::try_from) {
                    Some(Ok(rows)) if rows <= 10_000_000 => *count = rows,
                    _ => return wrong("a number of rows, at most ten million"),
                }
            } else if let Some(setting) = options.settings.get_mut(key.as_str()) {
                match (value, setting) {
                    (Value::Bool(value), Setting::Flag(flag)) => *flag = *value,
                    (_, Setting::Flag(_)) => return wrong("true or false"),
                    (Value::Float(value), Setting::Share(share)) if (0.0..=1.0).contains(value) => {
                        *share = *value;
                    }
                    (Value::Int(value @ (0 | 1)), Setting::Share(share)) => *share = *value as f64,
                    (_, Setting::Share(_)) => return wrong("a number from 0 to 1"),
                }
            } else {
                let known = set
                    .splits
                    .iter()
                    .map(|(name, _)| *name)
                    .chain(set.options.iter().map(|(name, _)| *name));
                return Err(format!(
                    "`{}` has no option `{key}`: it has {}",
                    set.name,
                    known.collect::<Vec<_>>().join(", ")
                ));
            }
        }
        match options.splits.iter().all(|(_, rows)| *rows == 0) {
            true => Err(format!("`{}` would have no rows", set.name)),
            false => Ok(options),
        }
    }

    /// The splits and how many rows each has.
    pub fn splits(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.splits.iter().copied()
    }

    /// The value of an option that is a share.
    pub fn share(&self, name: &str) -> f64 {
        match self.settings.get(name) {
            Some(Setting::Share(share)) => *share,
            _ => 0.0,
        }
    }

    /// Whether an option is on.
    pub fn flag(&self, name: &str) -> bool {
        self.settings.get(name) == Some(&Setting::Flag(true))
    }
}

/// Random numbers that depend on the set, the seed, the split and the row, and on nothing else.
pub struct Stream(blake3::OutputReader);

impl Stream {
    /// The stream of one row.
    pub fn new(set: &str, seed: u64, split: &str, row: usize) -> Stream {
        let mut hasher = blake3::Hasher::new_derive_key("ablate dataset stream 1");
        for part in [
            set.as_bytes(),
            &seed.to_le_bytes(),
            split.as_bytes(),
            &(row as u64).to_le_bytes(),
        ] {
            hasher
                .update(&(part.len() as u64).to_le_bytes())
                .update(part);
        }
        Stream(hasher.finalize_xof())
    }

    /// A number from 0 to 1, without 1.
    pub fn uniform(&mut self) -> f64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::table::{content, rows_of};

    fn made(seed: u64, options: &[(&str, Value)]) -> RecordBatch {
        let set = find("frequency").unwrap();
        let options = options
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.clone()))
            .collect();
        (set.make)(&Options::new(set, Some(&options)).unwrap(), seed)
    }

    /// If this fails, the set changed and with it every result on it.
    #[test]
    fn frequency_is_pinned() {
        let table = made(
            7,
            &[
                ("train", Value::Int(4)),
                ("dev", Value::Int(0)),
                ("test", Value::Int(2)),
            ],
        );
        assert_eq!(table.num_rows(), 6);
        assert_eq!(
            content(&table, "train").unwrap().to_string(),
            "92a007e1921e8308aaf174d654f99137fa75ff9af733b8bca20e6b88f5c874b3"
        );
    }

    #[test]
    fn more_rows_begin_with_the_same_ones() {
        let few = made(7, &[("train", Value::Int(4))]);
        let many = made(7, &[("train", Value::Int(8))]);
        assert_eq!(rows_of(&many, "train").len(), 8);
        assert_eq!(few.slice(0, 4), many.slice(0, 4));
        assert_ne!(
            few.slice(0, 4),
            made(8, &[("train", Value::Int(4))]).slice(0, 4)
        );
        assert_ne!(
            few.slice(0, 4),
            made(
                7,
                &[("train", Value::Int(4)), ("halves", Value::Bool(true))]
            )
            .slice(0, 4)
        );
    }

    #[test]
    fn options_are_checked() {
        let set = find("frequency").unwrap();
        let message = |key: &str, value| {
            Options::new(set, Some(&[(key.to_owned(), value)].into())).unwrap_err()
        };
        assert_eq!(
            message("typos", Value::Float(0.1)),
            "`frequency` has no option `typos`: it has train, dev, test, halves"
        );
        assert_eq!(
            message("train", Value::Int(-1)),
            "`train` of `frequency` must be a number of rows, at most ten million, not -1"
        );
        assert_eq!(
            message("halves", Value::Int(1)),
            "`halves` of `frequency` must be true or false, not 1"
        );
    }
}
