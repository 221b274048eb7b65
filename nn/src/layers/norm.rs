//! Layer norm: `y = g (x - mean) / sqrt(variance + eps) + b`, over the numbers of each row.
//!
//! `x`, `y` are (time, batch, dim), `g`, `b` (dim). With `n = (x - mean) / s` and `e = dy g`:
//! `dx = (e - mean(e) - n mean(e n)) / s`, `dg = sum of rows of dy n`, `db = sum of rows of dy`.

use crate::autodiff::{Grads, Init, Layout, Params, Span, Tape, Var};
use crate::numeric::{Real, dot, sum_of_squares, total};

/// Normalises each row.
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm {
    /// (1, dim)
    pub scale: Span,
    /// (1, dim)
    pub shift: Span,
    eps: f64,
}

impl LayerNorm {
    /// Starts as plain normalisation.
    pub fn new(layout: &mut Layout, name: &str, dim: usize, eps: f64) -> Self {
        LayerNorm {
            scale: layout.add(&format!("{name}.scale"), 1, dim, Init::Constant(1.0)),
            shift: layout.add(&format!("{name}.shift"), 1, dim, Init::Constant(0.0)),
            eps,
        }
    }

    /// Normalises every row of `x`.
    pub fn forward<T: Real>(&self, tape: &mut Tape<T>, params: &Params<T>, x: Var) -> Var {
        let shape = tape.shape(x);
        let y = tape.output(shape, &[x], true);
        let normal = tape.value(shape, false);
        let inverse = tape.value(shape.with_dim(1), false);
        let (mut out, mut n, mut inv) = (tape.take(y), tape.take(normal), tape.take(inverse));
        let (g, b) = (params.get(self.scale), params.get(self.shift));
        let size = T::of(shape.dim as f64);
        for (row, x) in tape.get(x).chunks_exact(shape.dim).enumerate() {
            let n = &mut n[row * shape.dim..(row + 1) * shape.dim];
            let mean = total(x) / size;
            for (n, x) in n.iter_mut().zip(x) {
                *n = *x - mean;
            }
            let s = T::ONE / (sum_of_squares(n) / size + T::of(self.eps)).sqrt();
            inv[row] = s;
            let y = &mut out[row * shape.dim..(row + 1) * shape.dim];
            for (((y, n), g), b) in y.iter_mut().zip(n).zip(g).zip(b) {
                *n *= s;
                *y = *n * *g + *b;
            }
        }
        tape.put(y, out);
        tape.put(normal, n);
        tape.put(inverse, inv);
        let layer = *self;
        tape.record_output(y, move |tape, params, grads, dy| {
            layer.backward(tape, params, grads, dy, [x, normal, inverse]);
        });
        y
    }
    fn backward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        grads: &mut Grads<T>,
        dy: &mut [T],
        [x, normal, inverse]: [Var; 3],
    ) {
        let dim = self.scale.cols;
        grads.bias(self.shift, dy);
        if grads.wants(self.scale) {
            let to = grads.get(self.scale);
            let normal = tape.get(normal).chunks_exact(dim);
            for (dy, n) in dy.chunks_exact(dim).zip(normal) {
                for ((t, d), n) in to.iter_mut().zip(dy).zip(n) {
                    *t += *d * *n;
                }
            }
        }
        tape.add_grad_with(x, |tape, dx| {
            let (g, size) = (params.get(self.scale), T::of(dim as f64));
            let rows = dy
                .chunks_exact_mut(dim)
                .zip(tape.get(normal).chunks_exact(dim))
                .zip(tape.get(inverse));
            for (((e, n), s), dx) in rows.zip(dx.chunks_exact_mut(dim)) {
                e.iter_mut().zip(g).for_each(|(e, g)| *e *= *g);
                let (mean, along) = (total(e) / size, dot(e, n) / size);
                for ((dx, e), n) in dx.iter_mut().zip(e.iter()).zip(n) {
                    *dx += (*e - mean - *n * along) * *s;
                }
            }
        });
    }
}
