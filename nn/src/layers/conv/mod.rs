//! One-dimensional convolution and the maximum over positions, without ever storing all positions.
//!
//! `z[p, k] = window(p) . W[:, k]`, `y[k] = f(max_p z[p, k] + b[k])`; `f` is monotone, so it may follow the maximum.
//! A sequence is `length` rows of `dim` numbers; `window(p)` is rows `p..p + width` of it, with `padding` rows of zeros
//! at either end (and as many more at the end as a short sequence needs). `W` is (width * dim, kernels).
//! Items of a batch (time, batch, dim) give (1, batch, kernels); words of characters give (time, batch, kernels).

mod backward;

use super::conv_max::{Best, Finish};
use super::{Activation, Lens};
use crate::Real;
use crate::gemm::{Into, Mat, Packed, gemm_packed};
use crate::params::{Init, Layout, Params, Span};
use crate::tape::{Shape, Tape, Var};
use backward::Backward;
use rayon::prelude::*;

/// Sequences handled together.
const GROUP: usize = 8;
/// Kernels handled together.
const COLUMNS: usize = 256;

/// Convolution, maximum, activation.
#[derive(Clone, Copy, Debug)]
pub struct ConvMax {
    weight: Span,
    bias: Span,
    width: usize,
    padding: usize,
    activation: Activation,
}

/// How a value holds its sequences.
#[derive(Clone, Debug)]
pub enum Windows {
    /// Items of a time-major batch with these lengths.
    Items(Lens),
    /// Each step of each item is a word of so many consecutive rows.
    Words(usize),
}

impl ConvMax {
    /// `kernels` windows of `width` rows of `dim` numbers; the activation is tanh or ReLU.
    #[expect(clippy::too_many_arguments, reason = "the sizes of a convolution")]
    pub fn new(
        layout: &mut Layout,
        name: &str,
        dim: usize,
        width: usize,
        kernels: usize,
        padding: usize,
        activation: Activation,
        init: Init,
    ) -> Self {
        assert!(
            matches!(activation, Activation::Tanh | Activation::Relu),
            "the maximum needs a monotone activation"
        );
        let weight = layout.add(&format!("{name}.weight"), width * dim, kernels, init);
        let bias = layout.add(&format!("{name}.bias"), 1, kernels, Init::Constant(0.0));
        ConvMax {
            weight,
            bias,
            width,
            padding,
            activation,
        }
    }

    /// The maximum of every kernel over every sequence.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        windows: Windows,
    ) -> Var {
        let shape = tape.shape(x);
        let (n, kernels) = (shape.dim, self.weight.cols);
        let out_shape = match &windows {
            Windows::Items(_) => Shape::new(1, shape.batch, kernels),
            Windows::Words(width) => Shape::new(shape.time, shape.batch / width, kernels),
        };
        let y = tape.output(out_shape, &[x], true);
        let winners = tape.value(out_shape, false);
        let (mut out, mut won) = (tape.take(y), tape.take(winners));
        let rows = Sequences {
            data: tape.get(x),
            shape,
            windows: &windows,
            layer: self,
        };
        let w = params.get(self.weight);
        let tiles: Vec<(usize, Packed<T>)> = (0..kernels)
            .step_by(COLUMNS)
            .map(|from| {
                let mut packed = Packed::default();
                packed.pack(Mat::strided(
                    &w[from..],
                    self.weight.rows,
                    COLUMNS.min(kernels - from),
                    kernels,
                ));
                (from, packed)
            })
            .collect();
        let groups = out
            .par_chunks_mut(GROUP * kernels)
            .zip(won.par_chunks_mut(GROUP * kernels))
            .enumerate();
        groups.for_each_init(
            Default::default,
            |(im, z): &mut (Vec<T>, Vec<T>), (g, (out, won))| {
                im.clear();
                let sequences = g * GROUP..g * GROUP + out.len() / kernels;
                let counts: Vec<usize> = sequences.map(|s| rows.windows(s, im)).collect();
                let total: usize = counts.iter().sum();
                for (from, packed) in &tiles {
                    let width = COLUMNS.min(kernels - from);
                    z.resize(total * width, T::ZERO);
                    gemm_packed(Into::Set, z, Mat::new(im, total, self.width * n), packed);
                    let mut start = 0;
                    for (s, count) in counts.iter().enumerate() {
                        let at = s * kernels + from..s * kernels + from + width;
                        T::launch(Best {
                            z: &z[start * width..(start + count) * width],
                            best: &mut out[at.clone()],
                            won: &mut won[at],
                        });
                        start += count;
                    }
                }
                T::launch(Finish {
                    y: out,
                    bias: params.get(self.bias),
                    tanh: self.activation == Activation::Tanh,
                });
            },
        );
        tape.put(y, out);
        tape.put(winners, won);
        tape.record(
            y,
            Backward {
                layer: *self,
                x,
                y,
                winners,
                windows,
            },
        );
        y
    }
}

/// The windows of each sequence of a value.
struct Sequences<'a, T> {
    data: &'a [T],
    shape: Shape,
    windows: &'a Windows,
    layer: &'a ConvMax,
}

impl<T: Real> Sequences<'_, T> {
    /// The length of sequence `s` and where its row `t` starts.
    fn place(&self, s: usize) -> (usize, usize, usize) {
        let Shape { time, batch, dim } = self.shape;
        match self.windows {
            Windows::Items(lens) => (lens[s].min(time), s * dim, batch * dim),
            Windows::Words(width) => (*width, s * width * dim, dim),
        }
    }

    /// Rows of sequence `s` inside window `p`: (first row of the window, first row of the sequence, rows).
    fn inside(&self, length: usize, p: usize) -> (usize, usize, usize) {
        let (width, padding) = (self.layer.width, self.layer.padding);
        let skip = padding.saturating_sub(p);
        let row = (p + skip).saturating_sub(padding);
        (
            skip,
            row,
            (width.saturating_sub(skip)).min(length.saturating_sub(row)),
        )
    }

    /// Appends the windows of sequence `s`; returns their number.
    fn windows(&self, s: usize, out: &mut Vec<T>) -> usize {
        let (length, start, step) = self.place(s);
        let (dim, width) = (self.shape.dim, self.layer.width);
        let count = (length + 2 * self.layer.padding).saturating_sub(width) + 1;
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
