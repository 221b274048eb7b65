//! Backward through a convolution with maximum: only the window that won has a gradient.
//!
//! With `d = dy f'(y)` and `p` the winner, `dW[:, k] += d window(p)`, `db[k] += d`, `dwindow(p) += d W[:, k]`.

use super::kernels::Axpy;
use super::windows::{ConvWeights, Sequences, Windows};
use crate::autodiff::{Grads, Op, Params, Tape, Var};
use crate::layers::activation::Activation;
use crate::layers::slices::add;
use crate::numeric::Real;
use rayon::prelude::*;

/// Kernels whose weight gradient one task computes.
const OWNED: usize = 64;

pub(super) struct Backward {
    pub weights: ConvWeights,
    pub x: Var,
    pub y: Var,
    pub winners: Var,
    pub windows: Windows,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let Some(mut d) = tape.take_grad(self.y) else {
            return;
        };
        let layer = &self.weights;
        let (kernels, size) = (layer.weight.cols, layer.weight.rows);
        for (d, y) in d.iter_mut().zip(tape.get(self.y)) {
            let slope = match layer.activation {
                Activation::Tanh => T::ONE - *y * *y,
                _ if *y > T::ZERO => T::ONE,
                _ => T::ZERO,
            };
            *d *= slope;
        }
        let count = d.len() / kernels;
        let mut dx = tape.grad_to_add(self.x);
        let shape = tape.shape(self.x);
        let rows = Sequences {
            data: tape.get(self.x),
            shape,
            windows: &self.windows,
            weights: layer,
        };
        let winners = tape.get(self.winners);
        if grads.wants(layer.weight) {
            let mut transposed = vec![T::ZERO; size * kernels];
            transposed
                .par_chunks_mut(OWNED * size)
                .enumerate()
                .for_each_init(Vec::new, |window: &mut Vec<T>, (chunk, to)| {
                    for s in 0..count {
                        window.clear();
                        rows.windows(s, window);
                        for (k, to) in to.chunks_exact_mut(size).enumerate() {
                            let at = s * kernels + chunk * OWNED + k;
                            if d[at] != T::ZERO {
                                T::launch(Axpy {
                                    a: d[at],
                                    x: &window[winners[at].to_f64() as usize * size..][..size],
                                    y: to,
                                });
                            }
                        }
                    }
                });
            let to = grads.get(layer.weight);
            for (k, column) in transposed.chunks_exact(size).enumerate() {
                column
                    .iter()
                    .enumerate()
                    .for_each(|(r, g)| to[r * kernels + k] += *g);
            }
            grads.bias(layer.bias, &d);
        }
        if let Some(dx) = &mut dx {
            let w = params.get(layer.weight);
            let mut transposed = vec![T::ZERO; size * kernels];
            for (r, row) in w.chunks_exact(kernels).enumerate() {
                row.iter()
                    .enumerate()
                    .for_each(|(k, w)| transposed[k * size + r] = *w);
            }
            let parts: Vec<Vec<T>> = (0..count)
                .into_par_iter()
                .map(|s| self.sequence(&rows, &transposed, winners, &d, s))
                .collect();
            for (s, part) in parts.iter().enumerate() {
                let (_, start, step) = rows.place(s);
                for (t, row) in part.chunks_exact(shape.dim).enumerate() {
                    add(&mut dx[start + t * step..][..shape.dim], row);
                }
            }
        }
        if let Some(dx) = dx {
            tape.put_grad(self.x, dx);
        }
        tape.recycle(d);
    }
}

impl Backward {
    /// The gradient of one sequence's rows.
    fn sequence<T: Real>(
        &self,
        rows: &Sequences<T>,
        weights: &[T],
        winners: &[T],
        d: &[T],
        s: usize,
    ) -> Vec<T> {
        let (size, dim) = (self.weights.weight.rows, rows.shape.dim);
        let kernels = self.weights.weight.cols;
        let (length, ..) = rows.place(s);
        let mut part = vec![T::ZERO; length * dim];
        for k in 0..kernels {
            let at = s * kernels + k;
            if d[at] == T::ZERO {
                continue;
            }
            let (skip, row, count) = rows.inside(length, winners[at].to_f64() as usize);
            // A window of padding alone has no rows, and nothing of the kernel to add to them.
            if count == 0 {
                continue;
            }
            let w = &weights[k * size + skip * dim..][..count * dim];
            T::launch(Axpy {
                a: d[at],
                x: w,
                y: &mut part[row * dim..][..count * dim],
            });
        }
        part
    }
}
