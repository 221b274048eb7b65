//! The best of all words in some direction: one product of a batch of directions with the table of vectors.
//!
//! `best[i] = argmax over rows z, z not skipped, of directions[i] . table[z]`, the first of equals.
//! The table is packed once, tile by tile; a batch reads it once at most, and each tile's scores are looked at
//! while they are in the cache. A running maximum, never a sort. A direction gets the same answer
//! alone and in any batch, on any number of threads.
//!
//! Rows lie in order of their size, large ones first: `|p . e| <= max |p| * sum |e|` and `<= |p| |e|`, so that once
//! these bounds are below the best score, a direction needs no more rows. What is found is exactly the maximum.

use super::finite::finite;
use super::rows::max;
use crate::error::{Error, Result, same};
use crate::numeric::gemm::{Into, Mat, Packed, gemm_packed};
use ndarray::{ArrayView1, ArrayView2};
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows of the table in a tile: with 16 directions their scores take 32 KiB.
const TILE: usize = 512;

/// A table of vectors, ready to be searched.
#[derive(Debug)]
pub struct Dictionary {
    tiles: Vec<Tile>,
    /// The row of the table at each place, and the place of each row.
    order: Vec<u32>,
    place: Vec<u32>,
    dim: usize,
}

#[derive(Debug)]
struct Tile {
    packed: Packed<f32>,
    /// Neither this tile nor any after it has a larger row.
    largest: Size,
}

/// The size of a row or of a direction.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// `max |x|`
    peak: f64,
    /// `sum |x|`
    sum: f64,
    /// `sqrt(sum x^2)`
    length: f64,
}

/// A row of the table and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestRow {
    /// The row.
    pub row: u32,
    /// Its product with the direction.
    pub score: f32,
}

/// Places of the rows whose product with a direction is above a limit, ascending. With rows and a direction of
/// length 1 these are cosines. Sums go from left to right, so that every machine finds the same rows.
pub fn similar(rows: ArrayView2<f32>, direction: ArrayView1<f32>, above: f32) -> Vec<usize> {
    let rows = rows.rows().into_iter().enumerate();
    let scored = rows.map(|(place, row)| {
        let pairs = row.iter().zip(&direction);
        (place, pairs.fold(0.0f32, |sum, (x, y)| sum + x * y))
    });
    let near = scored.filter(|(_, score)| *score > above);
    near.map(|(place, _)| place).collect()
}

impl Size {
    fn of(x: &[f32]) -> Size {
        let mut size = Size::default();
        for x in x.iter().map(|x| f64::from(x.abs())) {
            size.peak = size.peak.max(x);
            size.sum += x;
            size.length += x * x;
        }
        size.length = size.length.sqrt();
        size
    }

    fn max(self, other: Size) -> Size {
        Size {
            peak: self.peak.max(other.peak),
            sum: self.sum.max(other.sum),
            length: self.length.max(other.length),
        }
    }

    /// No score of this direction with a row up to that size is computed to be larger.
    fn bound(self, row: Size, dim: usize) -> f64 {
        // Each of `dim` roundings adds at most 2^-24 of the sum of |p e|, which both bounds are bounds of.
        let rounding = 1.0 + 2.0 * dim as f64 * f64::from(f32::EPSILON);
        (self.peak * row.sum).min(self.length * row.length) * rounding
            + f64::from(f32::MIN_POSITIVE)
    }
}

impl BestRow {
    fn beats(self, old: Option<BestRow>) -> bool {
        old.is_none_or(|old| {
            self.score > old.score || (self.score == old.score && self.row < old.row)
        })
    }
}

impl Dictionary {
    /// Packs a table, (rows, dim).
    pub fn new(table: ArrayView2<f32>) -> Result<Self> {
        let dim = table.ncols();
        if table.is_empty() {
            return Err(Error::Empty { what: "dictionary" });
        }
        let table = table.as_standard_layout();
        let table = table.as_slice().expect("the standard layout");
        finite("dictionary", table)?;
        let sizes: Vec<Size> = table.par_chunks(dim).map(Size::of).collect();
        let mut order: Vec<u32> = (0..sizes.len() as u32).collect();
        let sum = |row: u32| sizes[row as usize].sum;
        order.par_sort_unstable_by(|a, b| sum(*b).total_cmp(&sum(*a)).then(a.cmp(b)));
        let mut place = vec![0; order.len()];
        for (at, row) in order.iter().enumerate() {
            place[*row as usize] = at as u32;
        }
        let pack = |rows: &[u32]| {
            let mut part = Vec::with_capacity(rows.len() * dim);
            for row in rows {
                part.extend_from_slice(&table[*row as usize * dim..][..dim]);
            }
            let mut packed = Packed::default();
            packed.pack(Mat::new(&part, rows.len(), dim).t());
            let sizes = rows.iter().map(|row| sizes[*row as usize]);
            Tile {
                packed,
                largest: sizes.fold(Size::default(), Size::max),
            }
        };
        let mut tiles: Vec<Tile> = order.par_chunks(TILE).map(pack).collect();
        let mut largest = Size::default();
        for tile in tiles.iter_mut().rev() {
            largest = largest.max(tile.largest);
            tile.largest = largest;
        }
        Ok(Dictionary {
            tiles,
            order,
            place,
            dim,
        })
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Rows of the table.
    pub fn rows(&self) -> usize {
        self.order.len()
    }

    /// The best row for each direction; `skip` lists the rows that may not be the answer.
    /// None when every row is skipped.
    pub fn best(
        &self,
        directions: ArrayView2<f32>,
        skip: &[&[u32]],
    ) -> Result<Vec<Option<BestRow>>> {
        same("dimension of a direction", self.dim, directions.ncols())?;
        let directions = directions.as_standard_layout();
        let directions = directions.as_slice().expect("the standard layout");
        self.search(directions, skip).map(|(best, _)| best)
    }

    /// The best rows, and how many scores were computed for them.
    fn search(&self, directions: &[f32], skip: &[&[u32]]) -> Result<(Vec<Option<BestRow>>, usize)> {
        same("directions", skip.len() * self.dim, directions.len())?;
        finite("direction", directions)?;
        let direction = |i: usize| &directions[i * self.dim..(i + 1) * self.dim];
        let sizes: Vec<Size> = (0..skip.len()).map(|i| Size::of(direction(i))).collect();
        let best: Mutex<Vec<Option<BestRow>>> = Mutex::new(vec![None; skip.len()]);
        let all = || best.lock().expect("nothing panics while it is held");
        let computed = AtomicUsize::new(0);
        // In order, whichever thread is free: the largest rows first. What is left out depends on who is faster,
        // what is found does not.
        let tiles = self.tiles.iter().enumerate().par_bridge();
        let memory = <(Vec<usize>, Vec<f32>, Vec<f32>)>::default;
        tiles.for_each_init(memory, |(open, rows, scores), (tile, part)| {
            let earlier = all().clone();
            open.clear();
            open.extend((0..skip.len()).filter(|i| {
                let bound = sizes[*i].bound(part.largest, self.dim);
                // An equal score may belong to an earlier row; infinite scores cannot be ranked.
                earlier[*i].is_none_or(|b| f64::from(b.score) <= bound || b.score.is_infinite())
            }));
            if open.is_empty() {
                return;
            }
            rows.clear();
            open.iter()
                .for_each(|i| rows.extend_from_slice(direction(*i)));
            let from = tile * TILE;
            let width = TILE.min(self.rows() - from);
            scores.resize(open.len() * width, 0.0);
            let a = Mat::new(rows, open.len(), self.dim);
            gemm_packed(Into::Set, scores, a, &part.packed);
            computed.fetch_add(scores.len(), Ordering::Relaxed);
            for (scores, i) in scores.chunks_exact_mut(width).zip(&*open) {
                if let Some(new) = self.top(scores, from, skip[*i], earlier[*i]) {
                    let best = &mut all()[*i];
                    if new.beats(*best) {
                        *best = Some(new);
                    }
                }
            }
        });
        let best = all().clone();
        Ok((best, computed.into_inner()))
    }

    /// The largest score of the tile that starts at a place, the first row of equals; none if an earlier one is larger.
    fn top(
        &self,
        scores: &mut [f32],
        from: usize,
        skip: &[u32],
        earlier: Option<BestRow>,
    ) -> Option<BestRow> {
        for row in skip {
            let place = self.place.get(*row as usize);
            let at = place.map(|place| (*place as usize).wrapping_sub(from));
            if let Some(score) = at.and_then(|at| scores.get_mut(at)) {
                *score = f32::NEG_INFINITY;
            }
        }
        let most = max(scores);
        if most == f32::NEG_INFINITY || earlier.is_some_and(|earlier| most < earlier.score) {
            return None;
        }
        let equal = scores.iter().zip(&self.order[from..]);
        let equal = equal.filter(|(score, _)| **score == most);
        let row = *equal.map(|(_, row)| row).min()?;
        Some(BestRow { row, score: most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Stream;

    fn view(rows: &[f32], dim: usize) -> ArrayView2<'_, f32> {
        ArrayView2::from_shape((rows.len() / dim, dim), rows).unwrap()
    }

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
        let dictionary = Dictionary::new(view(&table, dim)).unwrap();
        let all = dictionary.best(view(&directions, dim), &skip).unwrap();
        for (i, direction) in directions.chunks_exact(dim).enumerate() {
            let mut best: Option<BestRow> = None;
            for (z, row) in table.chunks_exact(dim).enumerate() {
                let score = row.iter().zip(direction).map(|(a, b)| a * b).sum();
                let better = best.is_none_or(|b| score > b.score);
                if better && !skip[i].contains(&(z as u32)) {
                    best = Some(BestRow {
                        row: z as u32,
                        score,
                    });
                }
            }
            assert_eq!(all[i], best, "direction {i}");
            let alone = dictionary.best(view(direction, dim), &skip[i..=i]).unwrap();
            assert_eq!(alone[0], best, "direction {i} alone");
        }
    }

    #[test]
    fn small_rows_are_left_out_and_the_first_of_equals_is_still_found() {
        let (rows, dim, items) = (96 * TILE - 100, 5, 4);
        let stream = Stream::new(6, "dictionary");
        let number = |i: u64| stream.below(i, 5) as f32 - 2.0;
        let mut table: Vec<f32> = (0..(rows * dim) as u64).map(number).collect();
        let directions: Vec<f32> = (0..(items * dim) as u64)
            .map(|i| {
                if number(i + (1 << 32)) < 0.0 {
                    -1.0
                } else {
                    1.0
                }
            })
            .collect();
        // The best rows twice for each direction, the later one with more that does not count.
        for (i, direction) in directions.chunks_exact(dim).enumerate() {
            for row in [rows - 1 - i, 70 + i] {
                let best = direction.iter().map(|x| 3.0 * x);
                table.splice(row * dim..(row + 1) * dim, best);
            }
            table[(rows - 1 - i) * dim] += 8.0 * directions[i * dim];
            table[(rows - 1 - i) * dim + 1] -= 8.0 * directions[i * dim + 1];
        }
        let dictionary = Dictionary::new(view(&table, dim)).unwrap();
        let skip: Vec<Vec<u32>> = (0..items as u32).map(|i| vec![70 + (i ^ 1)]).collect();
        let skip: Vec<&[u32]> = skip.iter().map(Vec::as_slice).collect();
        let (best, scores) = dictionary.search(&directions, &skip).unwrap();
        assert!(scores < items * rows / 2, "{scores}");
        for (i, direction) in directions.chunks_exact(dim).enumerate() {
            let score = |z: usize| -> f32 {
                let row = &table[z * dim..(z + 1) * dim];
                row.iter().zip(direction).map(|(a, b)| a * b).sum()
            };
            let allowed = (0..rows).filter(|z| !skip[i].contains(&(*z as u32)));
            let expected = allowed.fold(None::<usize>, |best, z| match best {
                Some(b) if score(z) <= score(b) => best,
                _ => Some(z),
            });
            assert_eq!(best[i].map(|b| b.row as usize), expected, "direction {i}");
        }
    }

    #[test]
    fn a_dictionary_with_nothing_to_choose_from_has_no_best() {
        let dictionary = Dictionary::new(view(&[1.0, 2.0], 1)).unwrap();
        assert_eq!(
            dictionary.best(view(&[1.0], 1), &[&[0, 1]]).unwrap(),
            [None]
        );
        assert!(dictionary.best(view(&[f32::NAN], 1), &[&[]]).is_err());
        assert!(dictionary.best(view(&[1.0, 2.0], 2), &[&[]]).is_err());
        assert!(Dictionary::new(view(&[], 2)).is_err());
    }
}
