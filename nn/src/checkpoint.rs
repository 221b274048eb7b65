//! Everything a fit needs to go on as if it had never stopped, as bytes.
//!
//! Format: the line `ablate-nn-checkpoint/1`, a header of little-endian numbers, the arrays with
//! their lengths, and a checksum over all before it. Numbers keep every bit.

use crate::evaluate::Evaluation;
use crate::optimiser::{Memory, Optimiser};
use crate::params::Params;
use crate::{Error, Result};

const MAGIC: &[u8] = b"ablate-nn-checkpoint/1\n";

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

/// A training run between two steps. Frozen weights are not in it: they do not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Where it is.
    pub position: Position,
    /// The weights.
    pub trained: Vec<f32>,
    /// What the optimiser remembers.
    pub memory: Memory<f32>,
    /// The best weights on dev so far, and dev there.
    pub best: Option<(Evaluation, Vec<f32>)>,
}

impl Checkpoint {
    /// Before the first step.
    pub fn start(params: &Params<f32>, optimiser: &Optimiser) -> Self {
        Checkpoint {
            position: Position::default(),
            trained: params.trained.clone(),
            memory: Memory::new(optimiser, params.trained.len()),
            best: None,
        }
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let p = &self.position;
        let (dev, best) = self.best.clone().unwrap_or_default();
        let header = [
            u64::from(p.attempt),
            p.epoch as u64,
            p.batch as u64,
            p.loss.to_bits(),
            u64::from(p.bad),
            u64::from(p.failures),
            self.memory.updates,
        ];
        let dev = [
            u64::from(self.best.is_some()),
            dev.loss.to_bits(),
            dev.accuracy.to_bits(),
            dev.count,
        ];
        let mut out = MAGIC.to_vec();
        for n in header.into_iter().chain(dev) {
            out.extend(n.to_le_bytes());
        }
        for array in [
            &self.trained,
            &self.memory.first,
            &self.memory.second,
            &best,
        ] {
            out.extend((array.len() as u64).to_le_bytes());
            array.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        let sum = checksum(&out);
        out.extend(sum.to_le_bytes());
        out
    }

    /// From bytes; damaged or foreign bytes are an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bad = |why: &str| Error::Format {
            what: "checkpoint",
            why: why.into(),
        };
        let body = bytes.len().checked_sub(8).ok_or_else(|| bad("too short"))?;
        let (body, sum) = bytes.split_at(body);
        let rest = body
            .strip_prefix(MAGIC)
            .ok_or_else(|| bad("does not start with ablate-nn-checkpoint/1"))?;
        if checksum(body).to_le_bytes() != *sum {
            return Err(bad("damaged: the checksum differs"));
        }
        let mut rest = rest;
        let number = |rest: &mut &[u8]| -> Result<u64> {
            let (n, tail) = rest
                .split_first_chunk::<8>()
                .ok_or_else(|| bad("too short"))?;
            *rest = tail;
            Ok(u64::from_le_bytes(*n))
        };
        let mut head = [0u64; 11];
        for n in &mut head {
            *n = number(&mut rest)?;
        }
        let mut arrays: [Vec<f32>; 4] = Default::default();
        for array in &mut arrays {
            let len = number(&mut rest)? as usize;
            let bytes = len.checked_mul(4).and_then(|n| rest.split_at_checked(n));
            let (data, tail) = bytes.ok_or_else(|| bad("too short"))?;
            *array = data
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect();
            rest = tail;
        }
        if !rest.is_empty() {
            return Err(bad("too long"));
        }
        let [trained, first, second, best] = arrays;
        let position = Position {
            attempt: head[0] as u32,
            epoch: head[1] as usize,
            batch: head[2] as usize,
            loss: f64::from_bits(head[3]),
            bad: head[4] as u32,
            failures: head[5] as u32,
        };
        let dev = Evaluation {
            loss: f64::from_bits(head[8]),
            accuracy: f64::from_bits(head[9]),
            count: head[10],
        };
        let best = (head[7] != 0).then_some((dev, best));
        Ok(Checkpoint {
            position,
            trained,
            memory: Memory {
                updates: head[6],
                first,
                second,
            },
            best,
        })
    }
}

/// FNV-1a over 64-bit words: finds damage, not malice; the store has real digests.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xcbf2_9ce4_8422_2325, |h: u64, part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        (h ^ u64::from_le_bytes(word))
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(17)
    })
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
            position,
            trained: vec![1.5, 2.5],
            memory,
            best: Some((dev, vec![3.0])),
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
