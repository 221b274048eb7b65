//! What a checkpoint belongs to: the model, the settings and the data of one fit, as named lines.
//!
//! A checkpoint resumed with anything else would give weights that belong to no fit at all, so
//! the first line that differs is an error with both values. Data are named by count and checksum.

use crate::autodiff::Params;
use crate::batch::{Example, Sequence, Target};
use crate::error::{Error, Result};
use crate::models::Model;
use serde::Serialize;
use serde_json::Value;

/// Names and values, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FitIdentity {
    pub(crate) lines: Vec<(String, String)>,
}

impl FitIdentity {
    /// A fit of `model` with `settings`, that starts from `start`.
    /// Only the frozen weights are named: the trained ones are in the checkpoint.
    pub(crate) fn new(model: &Model, start: &Params<f32>, settings: &impl Serialize) -> Self {
        let mut identity = FitIdentity::default();
        let spec = serde_json::from_str(model.spec()).unwrap_or(Value::Null);
        flatten("model", &spec, &mut identity.lines);
        identity.json("settings", settings);
        let mut sum = Checksum::default();
        start
            .frozen
            .iter()
            .for_each(|w| sum.add(u64::from(w.to_bits())));
        identity.data("frozen weights", start.frozen.len(), sum);
        identity
    }

    /// Adds examples.
    pub(crate) fn examples(mut self, name: &str, examples: &[Example]) -> Self {
        let mut sum = Checksum::default();
        examples.iter().for_each(|e| sum.example(e));
        self.data(name, examples.len(), sum);
        self
    }

    /// Adds a text.
    pub(crate) fn tokens(mut self, name: &str, text: &[u32]) -> Self {
        let mut sum = Checksum::default();
        sum.all(text);
        self.data(name, text.len(), sum);
        self
    }

    /// An error at the first line of `got` that is not this one's.
    pub(crate) fn check(&self, got: &FitIdentity) -> Result<()> {
        let value = |of: &FitIdentity, name: &str| {
            of.lines
                .iter()
                .find(|(n, _)| n == name)
                .map_or("nothing".to_string(), |(_, v)| v.clone())
        };
        for (name, _) in self.lines.iter().chain(&got.lines) {
            let (mine, other) = (value(self, name), value(got, name));
            if mine != other {
                return Err(Error::Foreign {
                    what: name.clone(),
                    expected: mine,
                    got: other,
                });
            }
        }
        Ok(())
    }

    fn data(&mut self, name: &str, count: usize, sum: Checksum) {
        self.lines
            .push((name.into(), format!("{count} with checksum {:016x}", sum.0)));
    }

    fn json(&mut self, name: &str, value: &impl Serialize) {
        // Specifications hold numbers, words and lists only: none of it can fail to be written.
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        flatten(name, &value, &mut self.lines);
    }
}

/// One line for every number and word inside: `settings.rate`, `model.reads.dim`.
fn flatten(name: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                flatten(&format!("{name}.{field}"), value, lines);
            }
        }
        other => lines.push((name.into(), other.to_string())),
    }
}

/// FNV-1a over 64-bit words: finds damage and mistakes, not malice; the store has real digests.
#[derive(Clone, Copy)]
pub(crate) struct Checksum(pub(crate) u64);

impl Default for Checksum {
    fn default() -> Self {
        Checksum(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    pub(crate) fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(17);
    }

    fn all(&mut self, ids: &[u32]) {
        self.add(ids.len() as u64);
        ids.iter().for_each(|id| self.add(u64::from(*id)));
    }

    fn example(&mut self, e: &Example) {
        match &e.input {
            Sequence::Tokens(ids) => {
                self.add(1);
                self.all(ids);
            }
            Sequence::Vectors(rows) => {
                self.add(2 + ((rows.ncols() as u64) << 8));
                self.add(rows.len() as u64);
                rows.iter().for_each(|x| self.add(u64::from(x.to_bits())));
            }
            Sequence::Chars { width, ids } => {
                self.add(3 + ((*width as u64) << 8));
                self.all(ids);
            }
        }
        match &e.target {
            Target::None => self.add(4),
            Target::Class(c) => self.add(5 + (u64::from(*c) << 8)),
            Target::Tokens(ids) => {
                self.add(6);
                self.all(ids);
            }
        }
    }
}
