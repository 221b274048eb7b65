//! The best of all words in some direction: one product of a batch of directions with the table of vectors.
//!
//! `best[i] = argmax over rows z, z not skipped, of directions[i] . table[z]`, the first of equals.
//! The table is packed once, tile by tile; a batch reads it once, and each tile's scores are looked at
//! while they are in the cache. A running maximum, never a sort. A direction gets the same answer
//! alone and in any batch, on any number of threads.

use crate::gemm::{Into, Mat, Packed, gemm_packed};
use crate::{Error, Result};
use rayon::prelude::*;

/// Rows of the table in a tile: with 16 directions their scores take 32 KiB.
const TILE: usize = 512;

/// A table of vectors, ready to be searched.
#[derive(Debug)]
pub struct Dictionary {
    tiles: Vec<Packed<f32>>,
    rows: usize,
    dim: usize,
}

/// A row of the table and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The row.
    pub row: u32,
    /// Its product with the direction.
    pub score: f32,
}

impl Dictionary {
    /// Packs a table of rows of `dim` numbers.
    pub fn new(table: &[f32], dim: usize) -> Result<Self> {
        if dim == 0 || table.is_empty() || !table.len().is_multiple_of(dim) {
            return Err(Error::Shape {
                what: "dictionary",
                expected: format!("rows of {dim} numbers"),
                got: format!("{} numbers", table.len()),
            });
        }
        crate::error::finite("dictionary", table)?;
        let tiles = table
            .par_chunks(TILE * dim)
            .map(|part| {
                let mut packed = Packed::default();
                packed.pack(Mat::new(part, part.len() / dim, dim).t());
                packed
            })
            .collect();
        Ok(Dictionary {
            tiles,
            rows: table.len() / dim,
            dim,
        })
    }

    /// Rows of the table.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The best row for each direction; `skip` lists the rows that may not be the answer.
    /// None when every row is skipped.
    pub fn best(&self, directions: &[f32], skip: &[&[u32]]) -> Result<Vec<Option<Best>>> {
        crate::error::same("directions", skip.len() * self.dim, directions.len())?;
        crate::error::finite("direction", directions)?;
        let a = Mat::new(directions, skip.len(), self.dim);
        let found: Vec<Vec<Option<Best>>> = self
            .tiles
            .par_iter()
            .enumerate()
            .map_init(Vec::new, |scores, (tile, packed)| {
                let from = tile * TILE;
                let width = TILE.min(self.rows - from);
                scores.resize(skip.len() * width, 0.0);
                gemm_packed(Into::Set, scores, a, packed);
                scores
                    .chunks_exact_mut(width)
                    .zip(skip)
                    .map(|(scores, skip)| top(scores, from, skip))
                    .collect()
            })
            .collect();
        let mut best: Vec<Option<Best>> = vec![None; skip.len()];
        for tile in found {
            for (best, new) in best.iter_mut().zip(tile) {
                if let Some(new) = new
                    && best.is_none_or(|old| new.score > old.score)
                {
                    *best = Some(new);
                }
            }
        }
        Ok(best)
    }
}

/// The largest score of one tile. The maximum first, which is vectorised, then its place.
fn top(scores: &mut [f32], from: usize, skip: &[u32]) -> Option<Best> {
    for row in skip {
        let at = (*row as usize).wrapping_sub(from);
        if let Some(score) = scores.get_mut(at) {
            *score = f32::NEG_INFINITY;
        }
    }
    let mut lanes = [f32::NEG_INFINITY; 16];
    let chunks = scores.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, score) in lanes.iter_mut().zip(chunk) {
            *lane = if *score > *lane { *score } else { *lane };
        }
    }
    let most = lanes
        .iter()
        .chain(rest)
        .copied()
        .fold(f32::NEG_INFINITY, f32::max);
    if most == f32::NEG_INFINITY {
        return None;
    }
    let at = scores.iter().position(|score| *score == most)?;
    Some(Best {
        row: (from + at) as u32,
        score: most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    #[test]
    fn it_is_the_definition_for_every_batch() {
        let (rows, dim, items) = (1300, 7, 9);
        let stream = Stream::new(5, "dictionary");
        // Few distinct numbers, so that there are many equal scores.
        let number = |i: u64| stream.below(i, 5) as f32 - 2.0;
        let table: Vec<f32> = (0..(rows * dim) as u64).map(number).collect();
        let directions: Vec<f32> = (0..(items * dim) as u64)
            .map(|i| number(i + (1 << 32)))
            .collect();
        let skip: Vec<Vec<u32>> = (0..items as u32)
            .map(|i| (0..i * 40).map(|k| (k * 31) % rows as u32).collect())
            .collect();
        let skip: Vec<&[u32]> = skip.iter().map(Vec::as_slice).collect();
        let dictionary = Dictionary::new(&table, dim).unwrap();
        let all = dictionary.best(&directions, &skip).unwrap();
        for (i, direction) in directions.chunks_exact(dim).enumerate() {
            let mut best: Option<Best> = None;
            for (z, row) in table.chunks_exact(dim).enumerate() {
                let score = row.iter().zip(direction).map(|(a, b)| a * b).sum();
                let better = best.is_none_or(|b| score > b.score);
                if better && !skip[i].contains(&(z as u32)) {
                    best = Some(Best {
                        row: z as u32,
                        score,
                    });
                }
            }
            assert_eq!(all[i], best, "direction {i}");
            let alone = dictionary.best(direction, &skip[i..=i]).unwrap();
            assert_eq!(alone[0], best, "direction {i} alone");
        }
    }

    #[test]
    fn a_dictionary_with_nothing_to_choose_from_has_no_best() {
        let dictionary = Dictionary::new(&[1.0, 2.0], 1).unwrap();
        assert_eq!(dictionary.best(&[1.0], &[&[0, 1]]).unwrap(), [None]);
        assert!(dictionary.best(&[f32::NAN], &[&[]]).is_err());
        assert!(dictionary.best(&[1.0, 2.0], &[&[]]).is_err());
        assert!(Dictionary::new(&[1.0, 2.0, 3.0], 2).is_err());
    }
}
