//! Copies of rows that blocks train, and how a row moves by what was done to its copies.
//! Knows nothing of words.

use rayon::prelude::*;

/// Updates of a row in a round up to which its moves are simply added. Measured on 1.4 million
/// words of film reviews: with sums alone the vectors diverge; with means alone, and longer
/// blocks, all words end up alike.
const CALM: u32 = 64;

/// Copies of the rows that a block has touched.
#[derive(Debug)]
pub struct Touched {
    /// For every row of the shared matrix its place among the copies, or `NONE`.
    place: Vec<u32>,
    rows: Vec<u32>,
    /// How often each copy was used.
    updates: Vec<u32>,
    /// The copies, one after another.
    pub copies: Vec<f32>,
}

const NONE: u32 = u32::MAX;

impl Touched {
    /// None of this many rows touched.
    pub fn new(rows: usize) -> Touched {
        Touched {
            place: vec![NONE; rows],
            rows: Vec::new(),
            updates: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// Where the copy of a row begins.
    #[inline]
    pub fn row(&mut self, row: u32, shared: &[f32], stride: usize) -> usize {
        let place = self.place[row as usize];
        if place != NONE {
            self.updates[place as usize] += 1;
            return place as usize * stride;
        }
        self.copy(row, shared, stride)
    }

    #[cold]
    fn copy(&mut self, row: u32, shared: &[f32], stride: usize) -> usize {
        self.place[row as usize] = self.rows.len() as u32;
        self.rows.push(row);
        self.updates.push(1);
        let (at, from) = (self.copies.len(), row as usize * stride);
        self.copies.extend_from_slice(&shared[from..from + stride]);
        at
    }

    fn clear(&mut self) {
        for row in self.rows.drain(..) {
            self.place[row as usize] = NONE;
        }
        self.updates.clear();
        self.copies.clear();
    }
}

/// Moves every touched row by what was done to its copies, block after block.
pub fn merge<L>(
    shared: &mut [f32],
    stride: usize,
    learners: &mut [L],
    of: impl Fn(&mut L) -> &mut Touched + Copy,
) {
    let blocks: Vec<&mut Touched> = learners.iter_mut().map(of).collect();
    let touched: Vec<&Touched> = blocks.iter().map(|block| &**block).collect();
    // Rows are independent of each other, so they may be moved in parallel.
    let slice = (shared.len() / stride).div_ceil(64).max(1);
    let slices = shared.par_chunks_mut(slice * stride).enumerate();
    slices.for_each(|(n, rows)| {
        for (at, row) in rows.chunks_exact_mut(stride).enumerate() {
            move_row(row, n * slice + at, stride, &touched);
        }
    });
    blocks.into_iter().for_each(Touched::clear);
}

fn move_row(row: &mut [f32], number: usize, stride: usize, blocks: &[&Touched]) {
    let copies = |block: &&&Touched| block.place[number] != NONE;
    let count = blocks.iter().filter(copies).count();
    if count == 0 {
        return;
    }
    let updates = blocks.iter().filter(copies);
    let updates: u32 = updates
        .map(|block| block.updates[block.place[number] as usize])
        .sum();
    let share = (CALM as f32 / updates as f32).clamp(1.0 / count as f32, 1.0);
    let mut moved = [0.0_f32; 64];
    for start in (0..stride).step_by(64) {
        let end = (start + 64).min(stride);
        let (base, moved) = (&mut row[start..end], &mut moved[..end - start]);
        moved.fill(0.0);
        for block in blocks.iter().filter(copies) {
            let at = block.place[number] as usize * stride;
            let copy = &block.copies[at + start..at + end];
            for ((moved, copy), base) in moved.iter_mut().zip(copy).zip(&*base) {
                *moved += copy - base;
            }
        }
        for (base, moved) in base.iter_mut().zip(moved) {
            *base += *moved * share;
        }
    }
}
