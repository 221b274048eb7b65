//! Everything a fit needs to go on as if it had never stopped, as bytes.
//!
//! Format: the line `ablate-nn-checkpoint/2`, the lines that identify its fit, a header of little-endian numbers, the
//! arrays with their lengths, and a checksum over all before it. Numbers keep every bit.

use crate::autodiff::Params;
use crate::batch::Carry;
use crate::error::{Error, Result};
use crate::training::{Checksum, Evaluation, FitIdentity, Memory, Optimiser};

const MAGIC: &[u8] = b"ablate-nn-checkpoint/2\n";

/// Where in the order of training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Restarts made.
    pub attempt: u32,
    /// The current epoch.
    pub epoch: usize,
    /// Batches of it already used.
    pub batch: usize,
    /// The sum of their losses.
    pub loss: f64,
    /// Evaluations without improvement since the last one.
    pub bad: u32,
    /// Evaluations without improvement in all.
    pub failures: u32,
}

/// Weights and what they reach on dev.
pub type Best = (Evaluation, Vec<f32>);

/// A training run between two steps. Frozen weights are not in it: they do not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The fit it belongs to.
    pub identity: FitIdentity,
    /// Where it is.
    pub position: Position,
    /// The weights.
    pub trained: Vec<f32>,
    /// What the optimiser remembers.
    pub memory: Memory<f32>,
    /// The best weights of this attempt.
    pub best: Option<Best>,
    /// The best weights of the attempts before a restart.
    pub earlier: Option<Best>,
    /// Dev after each epoch, where a fit reports them all.
    pub history: Vec<Evaluation>,
    /// The states between two windows of a text, shard by shard.
    pub carry: Vec<Carry<f32>>,
}

impl Checkpoint {
    /// Before the first step.
    pub(crate) fn start(
        identity: FitIdentity,
        params: &Params<f32>,
        optimiser: &Optimiser,
    ) -> Self {
        Checkpoint {
            identity,
            position: Position::default(),
            trained: params.trained.clone(),
            memory: Memory::new(optimiser, params.trained.len()),
            best: None,
            earlier: None,
            history: Vec::new(),
            carry: Vec::new(),
        }
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.number(self.identity.lines.len() as u64);
        for (name, value) in &self.identity.lines {
            out.text(name);
            out.text(value);
        }
        let p = &self.position;
        for n in [
            u64::from(p.attempt),
            p.epoch as u64,
            p.batch as u64,
            p.loss.to_bits(),
            u64::from(p.bad),
            u64::from(p.failures),
            self.memory.updates,
        ] {
            out.number(n);
        }
        for array in [&self.trained, &self.memory.first, &self.memory.second] {
            out.array(array);
        }
        for best in [&self.best, &self.earlier] {
            out.number(u64::from(best.is_some()));
            if let Some((dev, weights)) = best {
                out.evaluation(dev);
                out.array(weights);
            }
        }
        out.number(self.history.len() as u64);
        self.history.iter().for_each(|e| out.evaluation(e));
        out.number(self.carry.len() as u64);
        for shard in &self.carry {
            out.number(shard.len() as u64);
            for (h, c) in shard {
                out.array(h);
                out.array(c);
            }
        }
        let sum = checksum(&out.0);
        out.number(sum);
        out.0
    }

    /// From bytes; damaged or foreign bytes are an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let body = bytes.len().checked_sub(8).ok_or_else(|| bad("too short"))?;
        let (body, sum) = bytes.split_at(body);
        let rest = body
            .strip_prefix(MAGIC)
            .ok_or_else(|| bad("does not start with ablate-nn-checkpoint/2"))?;
        if checksum(body).to_le_bytes() != *sum {
            return Err(bad("damaged: the checksum differs"));
        }
        let mut from = Reader(rest);
        let lines = from.list(|r| Ok((r.text()?, r.text()?)))?;
        let mut head = [0; 7];
        for n in &mut head {
            *n = from.number()?;
        }
        let position = Position {
            attempt: head[0] as u32,
            epoch: head[1] as usize,
            batch: head[2] as usize,
            loss: f64::from_bits(head[3]),
            bad: head[4] as u32,
            failures: head[5] as u32,
        };
        let trained = from.array()?;
        let memory = Memory {
            updates: head[6],
            first: from.array()?,
            second: from.array()?,
        };
        let mut best = || {
            Ok(if from.number()? == 0 {
                None
            } else {
                Some((from.evaluation()?, from.array()?))
            })
        };
        let (best, earlier) = (best()?, best()?);
        let history = from.list(Reader::evaluation)?;
        let carry = from.list(|r| r.list(|r| Ok((r.array()?, r.array()?))))?;
        if !from.0.is_empty() {
            return Err(bad("too long"));
        }
        Ok(Checkpoint {
            identity: FitIdentity { lines },
            position,
            trained,
            memory,
            best,
            earlier,
            history,
            carry,
        })
    }
}

fn bad(why: &str) -> Error {
    Error::Format {
        what: "checkpoint",
        why: why.into(),
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = Checksum::default();
    for part in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        sum.add(u64::from_le_bytes(word));
    }
    sum.0
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, n: u64) {
        self.0.extend(n.to_le_bytes());
    }
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.bytes());
    }
    fn array(&mut self, array: &[f32]) {
        self.number(array.len() as u64);
        array.iter().for_each(|x| self.0.extend(x.to_le_bytes()));
    }
    fn evaluation(&mut self, e: &Evaluation) {
        [e.loss.to_bits(), e.accuracy.to_bits(), e.count]
            .into_iter()
            .for_each(|n| self.number(n));
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes(&mut self, len: Option<usize>) -> Result<&[u8]> {
        let parts = len.and_then(|n| self.0.split_at_checked(n));
        let (head, tail) = parts.ok_or_else(|| bad("too short"))?;
        self.0 = tail;
        Ok(head)
    }
    fn number(&mut self) -> Result<u64> {
        let bytes = self.bytes(Some(8))?;
        Ok(bytes.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b)))
    }
    fn text(&mut self) -> Result<String> {
        let len = self.number()? as usize;
        let bytes = self.bytes(Some(len))?;
        String::from_utf8(bytes.to_vec()).map_err(|_| bad("a name is not text"))
    }
    fn array(&mut self) -> Result<Vec<f32>> {
        let len = self.number()? as usize;
        let bytes = self.bytes(len.checked_mul(4))?;
        let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Ok(bytes.chunks_exact(4).map(number).collect())
    }
    fn evaluation(&mut self) -> Result<Evaluation> {
        Ok(Evaluation {
            loss: f64::from_bits(self.number()?),
            accuracy: f64::from_bits(self.number()?),
            count: self.number()?,
        })
    }
    fn list<X>(&mut self, mut one: impl FnMut(&mut Self) -> Result<X>) -> Result<Vec<X>> {
        let len = self.number()?;
        (0..len).map(|_| one(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_damage_is_found() {
        let dev = Evaluation {
            loss: 0.25,
            accuracy: 0.5,
            count: 8,
        };
        let position = Position {
            attempt: 1,
            epoch: 2,
            batch: 3,
            loss: 4.5,
            bad: 5,
            failures: 6,
        };
        let memory = Memory {
            updates: 9,
            first: vec![1.0, -0.0],
            second: vec![f32::MIN_POSITIVE / 8.0],
        };
        let c = Checkpoint {
            identity: FitIdentity {
                lines: vec![("settings.rate".into(), "0.1".into())],
            },
            position,
            trained: vec![1.5, 2.5],
            memory,
            best: Some((dev, vec![3.0])),
            earlier: None,
            history: vec![dev, dev],
            carry: vec![vec![(vec![1.0], vec![])], vec![]],
        };
        let bytes = c.to_bytes();
        assert_eq!(Checkpoint::from_bytes(&bytes).unwrap(), c);
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 4;
            assert!(Checkpoint::from_bytes(&damaged).is_err(), "byte {i}");
            assert!(Checkpoint::from_bytes(&bytes[..i]).is_err(), "cut at {i}");
        }
    }
}
