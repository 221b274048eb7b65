//! Multi-head attention: for each item and head, `P = softmax(Q K^T / sqrt(d))`, `y = P V`.
//!
//! `q` is (queries, batch, heads * d), `k` and `v` (keys, batch, heads * d), `y` as `q`.
//! `P` is kept as (heads * queries, batch, keys) for those who read the attention weights.
//! Keys beyond an item's length, and later keys when causal, get weight zero; queries beyond it give zero.
//!
//! Backward, with `dy` given: `dV = P^T dy`, `dP = dy V^T`, `dS = P (dP - sum of the row of dP P)`,
//! `dQ = dS K / sqrt(d)`, `dK = dS^T Q / sqrt(d)`.

use crate::autodiff::{Init, Layout, Params, Shape, Tape, Var};
use crate::batch::Lens;
use crate::layers::Dense;
use crate::layers::slices::add;
use crate::numeric::gemm::{Into, Mat, gemm};
use crate::numeric::{Real, dot, softmax};

/// Attention with its four linear maps.
#[derive(Clone, Copy, Debug)]
pub struct MultiHead {
    /// To queries.
    pub query: Dense,
    /// To keys.
    pub key: Dense,
    /// To values.
    pub value: Dense,
    /// From the heads' outputs.
    pub out: Dense,
    heads: usize,
}

/// Which queries attend to which keys.
#[derive(Clone, Debug)]
pub struct Sight {
    /// Real queries of each item.
    pub queries: Lens,
    /// Real keys of each item.
    pub keys: Lens,
    /// Whether query `t` sees keys `0..=t` only.
    pub causal: bool,
}

impl MultiHead {
    /// `heads` must divide `dim`.
    pub fn new(layout: &mut Layout, name: &str, dim: usize, heads: usize, init: Init) -> Self {
        let mut map = |part: &str| Dense::new(layout, &format!("{name}.{part}"), dim, dim, init);
        MultiHead {
            query: map("query"),
            key: map("key"),
            value: map("value"),
            out: map("out"),
            heads,
        }
    }

    /// Rows of `x` attend to rows of `memory` (itself for self-attention). Returns the output and the weights.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        memory: Var,
        sight: &Sight,
    ) -> (Var, Var) {
        let q = self.query.forward(tape, params, x);
        let k = self.key.forward(tape, params, memory);
        let v = self.value.forward(tape, params, memory);
        let (y, weights) = attend(tape, q, k, v, self.heads, sight);
        (self.out.forward(tape, params, y), weights)
    }
}

/// The heads themselves.
pub fn attend<T: Real>(
    tape: &mut Tape<T>,
    q: Var,
    k: Var,
    v: Var,
    heads: usize,
    sight: &Sight,
) -> (Var, Var) {
    let (sq, keys) = (tape.shape(q), tape.shape(k).time);
    let y = tape.output(sq, &[q, k, v], false);
    let weights = tape.value(Shape::new(heads * sq.time, sq.batch, keys), false);
    let (mut out, mut p) = (tape.take(y), tape.take(weights));
    out.fill(T::ZERO);
    p.fill(T::ZERO);
    let head = Heads {
        dim: sq.dim / heads,
        batch: sq.batch,
        width: sq.dim,
    };
    let [mut hq, mut hk, mut hv, mut scores, mut hy]: [Vec<T>; 5] = Default::default();
    for b in 0..sq.batch {
        let (nq, nk) = (sight.queries[b].min(sq.time), sight.keys[b].min(keys));
        for h in 0..heads {
            head.read(tape.get(q), h, b, nq, &mut hq);
            head.read(tape.get(k), h, b, nk, &mut hk);
            head.read(tape.get(v), h, b, nk, &mut hv);
            let scale = T::ONE / T::of(head.dim as f64).sqrt();
            hq.iter_mut().for_each(|x| *x *= scale);
            scores.clear();
            scores.resize(nq * nk, T::ZERO);
            gemm(
                Into::Set,
                &mut scores,
                Mat::new(&hq, nq, head.dim),
                Mat::new(&hk, nk, head.dim).t(),
            );
            for (t, row) in scores.chunks_exact_mut(nk).enumerate() {
                let seen = if sight.causal { nk.min(t + 1) } else { nk };
                softmax(&mut row[..seen]);
                row[seen..].fill(T::ZERO);
                p[((h * sq.time + t) * sq.batch + b) * keys..][..nk].copy_from_slice(row);
            }
            hy.clear();
            hy.resize(nq * head.dim, T::ZERO);
            gemm(
                Into::Set,
                &mut hy,
                Mat::new(&scores, nq, nk),
                Mat::new(&hv, nk, head.dim),
            );
            head.add(&mut out, h, b, &hy);
        }
    }
    tape.put(y, out);
    tape.put(weights, p);
    let half = Backward {
        q,
        k,
        v,
        weights,
        heads,
        sight: sight.clone(),
    };
    tape.record_output(y, move |tape, _, _, dy| half.add_grads(tape, dy));
    (y, weights)
}

/// Columns of one head in rows of one item.
struct Heads {
    dim: usize,
    batch: usize,
    width: usize,
}

impl Heads {
    fn read<T: Real>(&self, from: &[T], h: usize, b: usize, rows: usize, to: &mut Vec<T>) {
        to.clear();
        for t in 0..rows {
            to.extend_from_slice(
                &from[(t * self.batch + b) * self.width + h * self.dim..][..self.dim],
            );
        }
    }

    fn add<T: Real>(&self, to: &mut [T], h: usize, b: usize, from: &[T]) {
        for (t, row) in from.chunks_exact(self.dim).enumerate() {
            add(
                &mut to[(t * self.batch + b) * self.width + h * self.dim..][..self.dim],
                row,
            );
        }
    }
}

struct Backward {
    q: Var,
    k: Var,
    v: Var,
    weights: Var,
    heads: usize,
    sight: Sight,
}

impl Backward {
    fn add_grads<T: Real>(&self, tape: &mut Tape<T>, dy: &[T]) {
        let (sq, keys) = (tape.shape(self.q), tape.shape(self.k).time);
        let (mut dq, mut dk, mut dv) = (
            tape.grad_to_add(self.q),
            tape.grad_to_add(self.k),
            tape.grad_to_add(self.v),
        );
        let head = Heads {
            dim: sq.dim / self.heads,
            batch: sq.batch,
            width: sq.dim,
        };
        let scale = T::ONE / T::of(head.dim as f64).sqrt();
        let [mut hq, mut hk, mut hv, mut hd, mut p, mut ds, mut part]: [Vec<T>; 7] =
            Default::default();
        for b in 0..sq.batch {
            let (nq, nk) = (
                self.sight.queries[b].min(sq.time),
                self.sight.keys[b].min(keys),
            );
            for h in 0..self.heads {
                head.read(tape.get(self.q), h, b, nq, &mut hq);
                head.read(tape.get(self.k), h, b, nk, &mut hk);
                head.read(tape.get(self.v), h, b, nk, &mut hv);
                head.read(dy, h, b, nq, &mut hd);
                p.clear();
                for t in 0..nq {
                    p.extend_from_slice(
                        &tape.get(self.weights)[((h * sq.time + t) * sq.batch + b) * keys..][..nk],
                    );
                }
                let (hq, hk, hv) = (
                    Mat::new(&hq, nq, head.dim),
                    Mat::new(&hk, nk, head.dim),
                    Mat::new(&hv, nk, head.dim),
                );
                let d = Mat::new(&hd, nq, head.dim);
                let product = |part: &mut Vec<T>, rows: usize, a: Mat<T>, b: Mat<T>| {
                    part.resize(rows * head.dim, T::ZERO);
                    gemm(Into::Set, part, a, b);
                };
                if let Some(dv) = &mut dv {
                    product(&mut part, nk, Mat::new(&p, nq, nk).t(), d);
                    head.add(dv, h, b, &part);
                }
                ds.resize(nq * nk, T::ZERO);
                gemm(Into::Set, &mut ds, d, hv.t());
                for (ds, p) in ds.chunks_exact_mut(nk).zip(p.chunks_exact(nk)) {
                    let mean = dot(ds, p);
                    ds.iter_mut()
                        .zip(p)
                        .for_each(|(d, p)| *d = *p * (*d - mean) * scale);
                }
                if let Some(dq) = &mut dq {
                    product(&mut part, nq, Mat::new(&ds, nq, nk), hk);
                    head.add(dq, h, b, &part);
                }
                if let Some(dk) = &mut dk {
                    product(&mut part, nk, Mat::new(&ds, nq, nk).t(), hq);
                    head.add(dk, h, b, &part);
                }
            }
        }
        for (v, d) in [(self.q, dq), (self.k, dk), (self.v, dv)] {
            if let Some(d) = d {
                tape.put_grad(v, d);
            }
        }
    }
}
