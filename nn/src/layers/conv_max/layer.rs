//! One-dimensional convolution and the maximum over positions, without ever storing all positions.
//!
//! `z[p, k] = window(p) . W[:, k]`, `y[k] = f(max_p z[p, k] + b[k])`; `f` is monotone, so it may follow the maximum.
//! A sequence is `length` rows of `dim` numbers; `window(p)` is rows `p..p + width` of it, with `padding` rows of zeros
//! at either end (and as many more at the end as a short sequence needs). `W` is (width * dim, kernels).
//! Items of a batch (time, batch, dim) give (1, batch, kernels); words of characters give (time, batch, kernels).

use super::backward::Backward;
use super::kernels::{Best, Finish};
use super::windows::{ConvWeights, Sequences, Windows};
use crate::autodiff::{Init, Layout, Params, Shape, Tape, Var};
use crate::layers::activation::Activation;
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, Packed, gemm_packed};
use rayon::prelude::*;

/// Sequences handled together.
const GROUP: usize = 8;
/// Kernels handled together.
const COLUMNS: usize = 256;

/// Convolution, maximum, activation.
#[derive(Clone, Copy, Debug)]
pub struct ConvMax(ConvWeights);

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
        ConvMax(ConvWeights {
            weight,
            bias,
            width,
            padding,
            activation,
        })
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
        let (n, kernels) = (shape.dim, self.0.weight.cols);
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
            weights: &self.0,
        };
        let w = params.get(self.0.weight);
        let tiles: Vec<(usize, Packed<T>)> = (0..kernels)
            .step_by(COLUMNS)
            .map(|from| {
                let mut packed = Packed::default();
                packed.pack(Mat::strided(
                    &w[from..],
                    self.0.weight.rows,
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
                    gemm_packed(Into::Set, z, Mat::new(im, total, self.0.width * n), packed);
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
                    bias: params.get(self.0.bias),
                    tanh: self.0.activation == Activation::Tanh,
                });
            },
        );
        tape.put(y, out);
        tape.put(winners, won);
        tape.record(
            y,
            Backward {
                weights: self.0,
                x,
                y,
                winners,
                windows,
            },
        );
        y
    }
}
