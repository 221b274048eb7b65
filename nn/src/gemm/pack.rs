//! Copies of blocks in the order in which the micro-kernel reads them.

use super::{KC, Mat, PANEL, TILE};
use crate::Real;

/// `B` packed once and used many times, as recurrent weights are.
#[derive(Clone, Debug, Default)]
pub struct Packed<T> {
    pub(super) data: Vec<T>,
    pub(super) k: usize,
    pub(super) n: usize,
}

impl<T: Real> Packed<T> {
    /// Packs `b`, reusing this value's memory.
    pub fn pack(&mut self, b: Mat<T>) {
        (self.k, self.n) = (b.rows, b.cols);
        self.data.clear();
        for pc in (0..b.rows).step_by(KC) {
            pack_b(&mut self.data, b, pc, KC.min(b.rows - pc), 0, b.cols);
        }
    }
}

/// Appends columns `jc..jc+nc` of rows `pc..pc+kc`, panel after panel, the last one padded with zeros.
pub(super) fn pack_b<T: Real>(
    out: &mut Vec<T>,
    b: Mat<T>,
    pc: usize,
    kc: usize,
    jc: usize,
    nc: usize,
) {
    let start = out.len();
    out.resize(start + nc.div_ceil(PANEL) * PANEL * kc, T::ZERO);
    let panels = out[start..].chunks_exact_mut(PANEL * kc);
    for (panel, j) in panels.zip((jc..jc + nc).step_by(PANEL)) {
        let width = PANEL.min(jc + nc - j);
        if b.col_stride == 1 {
            for (p, to) in panel.chunks_exact_mut(PANEL).enumerate() {
                let at = (pc + p) * b.row_stride + j;
                if width == PANEL {
                    to.copy_from_slice(&b.data[at..at + PANEL]);
                } else {
                    to[..width].copy_from_slice(&b.data[at..at + width]);
                }
            }
        } else {
            for w in 0..width {
                let at = (j + w) * b.col_stride + pc * b.row_stride;
                if b.row_stride == 1 {
                    for (to, from) in panel.chunks_exact_mut(PANEL).zip(&b.data[at..at + kc]) {
                        to[w] = *from;
                    }
                } else {
                    let from = b.data[at..].iter().step_by(b.row_stride);
                    for (to, from) in panel.chunks_exact_mut(PANEL).zip(from) {
                        to[w] = *from;
                    }
                }
            }
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
    out.clear();
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
