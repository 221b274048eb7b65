//! Copies of blocks in the order in which the micro-kernel reads them.

use super::matrix::{KC, Mat, NC, PANEL, TILE};
use crate::numeric::Real;
use rayon::prelude::*;

/// `B` packed once and used many times, as recurrent weights are.
#[derive(Clone, Debug, Default)]
pub struct Packed<T> {
    pub(super) data: Vec<T>,
    pub(super) k: usize,
    pub(super) n: usize,
}

impl<T: Real> Packed<T> {
    /// Columns of what was packed.
    pub(crate) fn columns(&self) -> usize {
        self.n
    }

    /// Packs `b`, reusing this value's memory.
    pub fn pack(&mut self, b: Mat<T>) {
        let width = self.room(b);
        for pc in (0..b.rows).step_by(KC) {
            let kc = KC.min(b.rows - pc);
            let block = &mut self.data[pc * width..][..kc * width];
            fill_b(block, b, pc, kc, 0, b.cols);
        }
    }

    /// As [`Packed::pack`], by all threads of the pool.
    pub fn pack_in_parallel(&mut self, b: Mat<T>) {
        let width = self.room(b);
        let blocks = self.data.par_chunks_mut((KC * width).max(1)).enumerate();
        blocks.for_each(|(i, block)| {
            let (pc, kc) = (i * KC, KC.min(b.rows - i * KC));
            let parts = block.par_chunks_mut(NC * kc).enumerate();
            parts.for_each(|(j, part)| {
                fill_b(part, b, pc, kc, j * NC, NC.min(b.cols - j * NC));
            });
        });
    }

    /// Sets the size for `b`; returns the number of columns with padding.
    fn room(&mut self, b: Mat<T>) -> usize {
        (self.k, self.n) = (b.rows, b.cols);
        let width = b.cols.next_multiple_of(PANEL);
        self.data.resize(b.rows * width, T::ZERO);
        width
    }
}

/// Columns `jc..jc+nc` of rows `pc..pc+kc`, panel after panel, the last one padded with zeros, over whatever
/// `out` held before.
pub(super) fn fill_b<T: Real>(
    out: &mut [T],
    b: Mat<T>,
    pc: usize,
    kc: usize,
    jc: usize,
    nc: usize,
) {
    if b.col_stride == 1 {
        // Row by row: a row is read from end to end, which the memory likes; writes are whole cache lines.
        for p in 0..kc {
            let row = &b.data[(pc + p) * b.row_stride + jc..][..nc];
            let mut to = p * PANEL;
            let whole = row.chunks_exact(PANEL);
            let rest = whole.remainder();
            for part in whole {
                out[to..to + PANEL].copy_from_slice(part);
                to += kc * PANEL;
            }
            if !rest.is_empty() {
                out[to..to + rest.len()].copy_from_slice(rest);
                out[to + rest.len()..to + PANEL].fill(T::ZERO);
            }
        }
        return;
    }
    let panels = out.chunks_exact_mut(PANEL * kc);
    for (panel, j) in panels.zip((jc..jc + nc).step_by(PANEL)) {
        let width = PANEL.min(jc + nc - j);
        if width < PANEL {
            panel.fill(T::ZERO);
        }
        if width == PANEL && b.row_stride == 1 {
            transpose(panel, b, pc, kc, j);
            continue;
        }
        for w in 0..width {
            let at = (j + w) * b.col_stride + pc * b.row_stride;
            let from = b.data[at..].iter().step_by(b.row_stride);
            for (to, from) in panel.chunks_exact_mut(PANEL).zip(from) {
                to[w] = *from;
            }
        }
    }
}

/// A full panel of a transposed matrix: [`PANEL`] contiguous columns become its rows.
fn transpose<T: Real>(panel: &mut [T], b: Mat<T>, pc: usize, kc: usize, j: usize) {
    let columns: [&[T]; PANEL] =
        std::array::from_fn(|w| &b.data[(j + w) * b.col_stride + pc..][..kc]);
    // Four at a time: small squares stay in registers, and every line of the panel is written once.
    let whole = kc / 4 * 4;
    for p in (0..whole).step_by(4) {
        let to = &mut panel[p * PANEL..(p + 4) * PANEL];
        for w in (0..PANEL).step_by(4) {
            let square: [&[T]; 4] = std::array::from_fn(|k| &columns[w + k][p..p + 4]);
            for q in 0..4 {
                for k in 0..4 {
                    to[q * PANEL + w + k] = square[k][q];
                }
            }
        }
    }
    for p in whole..kc {
        for (to, column) in panel[p * PANEL..].iter_mut().zip(columns) {
            *to = column[p];
        }
    }
}

/// Rows `ic..ic+mc` of columns `pc..pc+kc`, tiles of [`TILE`] rows, element by element of the sum.
pub(super) fn pack_a<T: Real>(
    out: &mut Vec<T>,
    a: Mat<T>,
    ic: usize,
    mc: usize,
    pc: usize,
    kc: usize,
) {
    // Rows beyond the last one are never read, so whatever is there may stay.
    out.resize(mc.div_ceil(TILE) * TILE * kc, T::ZERO);
    for (tile, i) in out
        .chunks_exact_mut(TILE * kc)
        .zip((ic..ic + mc).step_by(TILE))
    {
        let height = TILE.min(ic + mc - i);
        for (p, to) in tile.chunks_exact_mut(TILE).enumerate() {
            let at = i * a.row_stride + (pc + p) * a.col_stride;
            if a.row_stride == 1 && height == TILE {
                to.copy_from_slice(&a.data[at..at + TILE]);
                continue;
            }
            for (r, to) in to[..height].iter_mut().enumerate() {
                *to = a.data[at + r * a.row_stride];
            }
        }
    }
}
