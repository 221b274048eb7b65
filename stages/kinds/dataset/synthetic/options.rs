//! What a synthetic data set is, what `generate` says of one, and random numbers for its rows.

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use store::Value;

use crate::kinds::dataset::catalogue::Schema;

/// A synthetic data set.
pub struct Synthetic {
    /// Its name, as in `name = "frequency"`.
    pub name: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// The columns of its table.
    pub schema: Schema,
    /// Whether rows have a second text.
    pub pairs: bool,
    /// The names of its classes.
    pub labels: &'static [&'static str],
    /// The file that generates it: its code is part of the key, the others' is not.
    pub file: &'static str,
    /// How many rows its splits have, unless `generate` says otherwise.
    pub splits: &'static [(&'static str, usize)],
    /// Its other options, with their defaults.
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

/// What `generate` says, with defaults for the rest.
#[derive(Debug)]
pub struct Options {
    splits: Vec<(&'static str, usize)>,
    settings: BTreeMap<&'static str, Setting>,
}

impl Options {
    /// Checks a `generate` table against what a set takes.
    pub fn new(
        set: &Synthetic,
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
