//! Copies of blocks in the order in which the micro-kernel reads them.

use super::matrix::{KC, Mat, NC, PANEL, TILE};
use crate::numeric::simd::{Kernel, Lanes};
use crate::numeric::{Lines, Real};
use rayon::prelude::*;

/// Rows that are packed together.
const TURN: usize = 8;

/// `B` packed once and used many times, as recurrent weights are.
#[derive(Clone, Debug, Default)]
pub struct Packed<T> {
    pub(super) data: Lines<T>,
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
        let (width, data) = self.room(b);
        for pc in (0..b.rows).step_by(KC) {
            let kc = KC.min(b.rows - pc);
            let block = &mut data[pc * width..][..kc * width];
            fill_b(block, b, pc, kc, 0, b.cols);
        }
    }

    /// As [`Packed::pack`], by all threads of the pool.
    pub fn pack_in_parallel(&mut self, b: Mat<T>) {
        let (width, data) = self.room(b);
        let blocks = data.par_chunks_mut((KC * width).max(1)).enumerate();
        blocks.for_each(|(i, block)| {
            let (pc, kc) = (i * KC, KC.min(b.rows - i * KC));
            let parts = block.par_chunks_mut(NC * kc).enumerate();
            parts.for_each(|(j, part)| {
                fill_b(part, b, pc, kc, j * NC, NC.min(b.cols - j * NC));
            });
        });
    }

    /// Sets the size for `b`; returns the number of columns with padding, and the memory.
    fn room(&mut self, b: Mat<T>) -> (usize, &mut [T]) {
        (self.k, self.n) = (b.rows, b.cols);
        let width = b.cols.next_multiple_of(PANEL);
        (width, self.data.room(b.rows * width))
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
        let (data, stride) = (&b.data[pc * b.row_stride + jc..], b.row_stride);
        T::launch(Straight {
            out,
            data,
            stride,
            kc,
            nc,
        });
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

/// Panels of `kc` contiguous rows of `nc` numbers that start `stride` apart.
struct Straight<'a, T> {
    out: &'a mut [T],
    data: &'a [T],
    stride: usize,
    kc: usize,
    nc: usize,
}

impl<T: Real> Kernel<T> for Straight<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        // A few rows at a time: they are read from end to end, and a panel gets whole cache lines side by side.
        for p in (0..self.kc).step_by(TURN) {
            let rows = TURN.min(self.kc - p);
            let panels = self.out.chunks_exact_mut(PANEL * self.kc).enumerate();
            for (i, panel) in panels {
                let (j, to) = (i * PANEL, &mut panel[p * PANEL..(p + rows) * PANEL]);
                let width = PANEL.min(self.nc - j);
                for (r, to) in to.chunks_exact_mut(PANEL).enumerate() {
                    let from = &self.data[(p + r) * self.stride + j..][..width];
                    for (v, to) in to.chunks_exact_mut(V::N).enumerate() {
                        V::load(from.get(v * V::N..).unwrap_or(&[])).store(to);
                    }
                }
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
    out: &mut Lines<T>,
    a: Mat<T>,
    ic: usize,
    mc: usize,
    pc: usize,
    kc: usize,
) {
    // Rows beyond the last one are never read, so whatever is there may stay.
    let out = out.room(mc.div_ceil(TILE) * TILE * kc);
    if a.row_stride == 1 {
        // A column of `A` is contiguous: it is read from end to end.
        for p in 0..kc {
            let column = &a.data[ic + (pc + p) * a.col_stride..][..mc];
            let (whole, rest) = column.as_chunks::<TILE>();
            let mut to = p * TILE;
            for part in whole {
                out[to..to + TILE].copy_from_slice(part);
                to += TILE * kc;
            }
            if !rest.is_empty() {
                out[to..to + rest.len()].copy_from_slice(rest);
            }
        }
        return;
    }
    let tiles = out.chunks_exact_mut(TILE * kc);
    for (tile, i) in tiles.zip((ic..ic + mc).step_by(TILE)) {
        let height = TILE.min(ic + mc - i);
        for (p, to) in tile.chunks_exact_mut(TILE).enumerate() {
            let at = i * a.row_stride + (pc + p) * a.col_stride;
            for (r, to) in to[..height].iter_mut().enumerate() {
                *to = a.data[at + r * a.row_stride];
            }
        }
    }
}
