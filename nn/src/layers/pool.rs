//! One vector from a sequence: additive attention, or the mean.
//!
//! Attention (Bahdanau's scores with a learned query): `s[t] = v . tanh(h[t] W + b)`, `a = softmax over t of s`,
//! `y = sum_t a[t] h[t]`. Mean: `a[t] = 1 / length`. `h` is (time, batch, dim), `a` (time, batch, 1), `y` (1, batch, dim).
//! Steps beyond an item's length get weight zero.
//!
//! Backward: `dh[t] += a[t] dy`; `da[t] = dy . h[t]`; `ds[t] = a[t] (da[t] - sum_u a[u] da[u])`.

use crate::autodiff::{Init, Layout, Params, Shape, Tape, Var};
use crate::batch::Lens;
use crate::layers::pool_scores::{Squashed, pack};
use crate::layers::{Activation, Dense, Steps, activate};
use crate::numeric::gemm::{Into, Mat, Packed, gemm_packed};
use crate::numeric::simd::{Kernel, Lanes};
use crate::numeric::{Real, dot, softmax};

/// Additive attention pooling.
#[derive(Clone, Copy, Debug)]
pub struct AttentionPool {
    hidden: Dense,
    query: Dense,
}

impl AttentionPool {
    /// Scores computed in `size` hidden numbers.
    pub fn new(layout: &mut Layout, name: &str, dim: usize, size: usize, init: Init) -> Self {
        AttentionPool {
            hidden: Dense::new(layout, &format!("{name}.hidden"), dim, size, init),
            query: Dense::without_bias(layout, &format!("{name}.query"), size, 1, init),
        }
    }

    /// The pooled vector and the weights.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        h: Var,
        lens: &Lens,
    ) -> (Var, Var) {
        let hidden = self.hidden.forward(tape, params, h);
        let hidden = activate(tape, hidden, Activation::Tanh);
        let scores = self.query.forward(tape, params, hidden);
        weigh(tape, h, Some(scores), lens)
    }

    /// The pooled vectors alone, (1, batch, dim), with the same bits, of rows that stand in several values; each step
    /// that all items share is scored once.
    pub(crate) fn of_steps<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        parts: &[Steps<T>],
        lens: &Lens,
    ) -> Var {
        let (batch, time) = (parts[0].batch(), parts[0].time());
        let (dim, size) = (self.hidden.weight.rows, self.hidden.weight.cols);
        let panels = pack(params.get(self.hidden.weight), size);
        let mut query = Packed::default();
        query.pack(params.mat(self.query.weight));
        let mut squashed = tape.dirty(batch * size);
        // (batch, time): an item's scores side by side.
        let (mut scores, mut step) = (tape.dirty(batch * time), tape.dirty(batch));
        for t in 0..time {
            let shared = parts.iter().all(|part| part.is_shared(t));
            let items = if shared { 1 } else { batch };
            let (step, squashed) = (&mut step[..items], &mut squashed[..items * size]);
            T::launch(Squashed {
                panels: panels.get(),
                bias: self.hidden.bias_in(params),
                parts,
                t,
                squashed,
            });
            gemm_packed(Into::Set, step, Mat::new(squashed, items, size), &query);
            for (b, scores) in scores.chunks_exact_mut(time).enumerate() {
                scores[t] = step[if shared { 0 } else { b }];
            }
        }
        for (scores, len) in scores.chunks_exact_mut(time).zip(&lens[..]) {
            softmax(&mut scores[..time.min(*len)]);
        }
        let (mut out, mut from) = (tape.zeros(batch * dim), 0);
        for part in parts {
            T::launch(Weighted {
                part,
                lens,
                weights: &scores,
                to: &mut out,
                dim,
                from,
            });
            from += part.dim();
        }
        for spare in [squashed, scores, step] {
            tape.recycle(spare);
        }
        tape.keep(Shape::new(1, batch, dim), out)
    }
}

/// `to = sum_t weights[t] rows[t]` of every item, step after step, so that rows are read in the order in which they lie.
struct Weighted<'a, T> {
    part: &'a Steps<T>,
    lens: &'a [usize],
    /// (batch, time)
    weights: &'a [T],
    /// (batch, dim), of which the part's columns begin at `from`.
    to: &'a mut [T],
    dim: usize,
    from: usize,
}

impl<T: Real> Kernel<T> for Weighted<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let time = self.part.time();
        for t in 0..time {
            for (b, to) in self.to.chunks_exact_mut(self.dim).enumerate() {
                if t >= self.lens[b] {
                    continue;
                }
                let (row, w) = (self.part.row(t, b), V::splat(self.weights[b * time + t]));
                let to = &mut to[self.from..][..row.len()];
                for (to, x) in to.chunks_mut(V::N).zip(row.chunks(V::N)) {
                    V::load(to).add(w.mul(V::load(x))).store(to);
                }
            }
        }
    }
}

/// The mean of an item's steps.
pub fn mean<T: Real>(tape: &mut Tape<T>, h: Var, lens: &Lens) -> Var {
    weigh(tape, h, None, lens).0
}

fn weigh<T: Real>(tape: &mut Tape<T>, h: Var, scores: Option<Var>, lens: &Lens) -> (Var, Var) {
    let Shape { time, batch, dim } = tape.shape(h);
    let inputs: Vec<Var> = [Some(h), scores].into_iter().flatten().collect();
    let (y, weights) = (
        tape.output(Shape::new(1, batch, dim), &inputs, false),
        tape.value(Shape::new(time, batch, 1), false),
    );
    let (mut out, mut a) = (tape.zeros(batch * dim), tape.zeros(time * batch));
    for b in 0..batch {
        let n = lens[b].min(time);
        let mut item: Vec<T> = match scores {
            Some(s) => (0..n).map(|t| tape.get(s)[t * batch + b]).collect(),
            None => vec![T::ZERO; n],
        };
        softmax(&mut item);
        for (t, w) in item.iter().enumerate() {
            a[t * batch + b] = *w;
            let row = &tape.get(h)[(t * batch + b) * dim..][..dim];
            for (y, x) in out[b * dim..(b + 1) * dim].iter_mut().zip(row) {
                *y += *w * *x;
            }
        }
    }
    tape.put(y, out);
    tape.put(weights, a);
    tape.record_output(y, move |tape, _, _, dy| {
        tape.add_grad_with(h, |tape, dh| {
            let a = tape.get(weights);
            for (row, dh) in dh.chunks_exact_mut(dim).enumerate() {
                let b = row % batch;
                for (d, y) in dh.iter_mut().zip(&dy[b * dim..(b + 1) * dim]) {
                    *d += a[row] * *y;
                }
            }
        });
        if let Some(scores) = scores {
            tape.add_grad_with(scores, |tape, ds| {
                let (a, h) = (tape.get(weights), tape.get(h));
                for (b, dy) in dy.chunks_exact(dim).enumerate() {
                    let row = |t: usize| &h[(t * batch + b) * dim..][..dim];
                    let da: Vec<T> = (0..time).map(|t| dot(dy, row(t))).collect();
                    let mean: T = (0..time).map(|t| a[t * batch + b] * da[t]).sum();
                    for (t, da) in da.iter().enumerate() {
                        ds[t * batch + b] += a[t * batch + b] * (*da - mean);
                    }
                }
            });
        }
    });
    (y, weights)
}
