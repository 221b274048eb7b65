//! Which rows of a sequence a window covers.

use crate::autodiff::{Shape, Span};
use crate::batch::Lens;
use crate::layers::activation::Activation;
use crate::numeric::Real;

/// Places of the weights, and the sizes of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConvWeights {
    pub weight: Span,
    pub bias: Span,
    pub width: usize,
    pub padding: usize,
    pub activation: Activation,
}

/// How a value holds its sequences.
#[derive(Clone, Debug)]
pub enum Windows {
    /// Items of a time-major batch with these lengths.
    Items(Lens),
    /// Each step of each item is a word of this many consecutive rows.
    Words(usize),
}

/// The windows of each sequence of a value.
pub(super) struct Sequences<'a, T> {
    pub data: &'a [T],
    pub shape: Shape,
    pub windows: &'a Windows,
    pub weights: &'a ConvWeights,
}

impl<T: Real> Sequences<'_, T> {
    /// The length of sequence `s` and where its row `t` starts.
    pub fn place(&self, s: usize) -> (usize, usize, usize) {
        let Shape { time, batch, dim } = self.shape;
        match self.windows {
            Windows::Items(lens) => (lens[s].min(time), s * dim, batch * dim),
            Windows::Words(width) => (*width, s * width * dim, dim),
        }
    }

    /// Rows of sequence `s` inside window `p`: (first row of the window, first row of the sequence, rows).
    pub fn inside(&self, length: usize, p: usize) -> (usize, usize, usize) {
        let (width, padding) = (self.weights.width, self.weights.padding);
        let skip = padding.saturating_sub(p);
        let row = (p + skip).saturating_sub(padding);
        (
            skip,
            row,
            (width.saturating_sub(skip)).min(length.saturating_sub(row)),
        )
    }

    /// Appends the windows of sequence `s`; returns their number.
    pub fn windows(&self, s: usize, out: &mut Vec<T>) -> usize {
        let (length, start, step) = self.place(s);
        let (dim, width) = (self.shape.dim, self.weights.width);
        let count = (length + 2 * self.weights.padding).saturating_sub(width) + 1;
        for p in 0..count {
            let at = out.len();
            out.resize(at + width * dim, T::ZERO);
            let (skip, row, rows) = self.inside(length, p);
            for r in 0..rows {
                let from = start + (row + r) * step;
                out[at + (skip + r) * dim..][..dim].copy_from_slice(&self.data[from..from + dim]);
            }
        }
        count
    }
}
