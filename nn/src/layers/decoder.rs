//! LSTM decoder with Bahdanau's additive attention, all steps as one layer.
//!
//! At step `t`, from `h[t-1]`, `c[t-1]` and the context `u[t-1]`:
//! `[i f g o] = y[t] W + u[t-1] C + h[t-1] U + b`, an LSTM cell gives `h[t]`, `c[t]`;
//! `s[k] = v . tanh(key[k] + h[t] Q + q)`, `a = softmax over source positions k of s`, `u[t] = sum_k a[k] memory[k]`.
//! `y` is (time, batch, dim), `memory` (source, batch, m), `key` (source, batch, size); out come `h` (time, batch, units),
//! `u` (time, batch, m) and the weights `a`, (time, batch, source).
//!
//! Backward, last step first, with `du` from the output and from the next step's `dpre C^T`:
//! `da[k] = du . memory[k]`, `dmemory[k] += a[k] du`, `ds = a (da - sum a da)`,
//! `e[k] = ds[k] v (1 - tanh^2)` goes to `dkey[k]`, its sum `dq` to `Q` and through it to `dh`; then the LSTM cell.
//!
//! Differs from TensorFlow's wrapper: the context is used as it is, without another dense layer.

use super::lstm::{Lstm, add, split};
use super::lstm_cell::{Back, Forward};
use super::recurrent::{Direction, Gate, Recurrent, States, recurrent_product};
use super::scores::{BackScores, Scores};
use super::{Dense, Lens};
use crate::Real;
use crate::gemm::{Into, Mat, gemm};
use crate::grads::{Grads, Rows};
use crate::params::{Init, Layout, Params, Span};
use crate::simd::{dot, softmax};
use crate::tape::{Op, Shape, Tape, Var};

/// The decoder.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// The cell; its input weights are for `y` only.
    pub cell: Lstm,
    /// (m, 4 units)
    pub context: Span,
    /// Keys of the memory, made once a sequence.
    pub keys: Dense,
    /// (units, size) and its bias.
    pub query: Dense,
    /// (1, size)
    pub score: Span,
}

/// What a decoder starts from.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// (1, batch, units)
    pub h: Var,
    /// (1, batch, units)
    pub c: Var,
    /// (1, batch, m); zero when there is none.
    pub context: Option<Var>,
}

/// What a decoder leaves.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// Hidden states and the rest of the cell.
    pub states: States,
    /// (time, batch, m)
    pub context: Var,
    /// (time, batch, source)
    pub weights: Var,
}

impl Decoder {
    /// Sizes of the decoder's input, its units, the memory's rows, and the attention's hidden layer.
    pub fn new(
        layout: &mut Layout,
        name: &str,
        dim: usize,
        units: usize,
        memory: usize,
        size: usize,
        init: Init,
    ) -> Self {
        Decoder {
            cell: Lstm::new(layout, &format!("{name}.cell"), dim, units, init),
            context: layout.add_map(&format!("{name}.context"), memory, 4 * units, init),
            keys: Dense::without_bias(layout, &format!("{name}.keys"), memory, size, init),
            query: Dense::new(layout, &format!("{name}.query"), units, size, init),
            score: layout.add(&format!("{name}.score"), 1, size, init),
        }
    }

    /// Runs over all steps of `y`. `keys` come from [`Decoder::keys`] of the memory; `lens` are the sources' lengths.
    #[expect(
        clippy::too_many_arguments,
        reason = "two sequences and where to start"
    )]
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        y: Var,
        memory: Var,
        keys: Var,
        lens: &Lens,
        start: Start,
    ) -> Decoded {
        let (shape, source) = (tape.shape(y), tape.shape(memory));
        let Shape { time, batch, .. } = shape;
        let (n, size, row) = (self.cell.units, self.score.cols, batch * self.cell.units);
        let inputs: Vec<Var> = [
            Some(y),
            Some(memory),
            Some(keys),
            Some(start.h),
            Some(start.c),
            start.context,
        ]
        .into_iter()
        .flatten()
        .collect();
        let h = tape.output(shape.with_dim(n), &inputs, true);
        let wants = tape.wants(h);
        let [c, gates, context] =
            [n, 4 * n, source.dim].map(|dim| tape.value(shape.with_dim(dim), wants));
        let [tanh_c, weights] = [n, source.time].map(|dim| tape.value(shape.with_dim(dim), false));
        let hidden = tape.value(Shape::new(time * source.time, batch, size), false);
        let (mut vh, mut vc, mut vg, mut vu) = (
            tape.take(h),
            tape.take(c),
            tape.take(gates),
            tape.take(context),
        );
        let (mut vt, mut va, mut vs) = (tape.take(tanh_c), tape.take(weights), tape.take(hidden));

        gemm(
            Into::Set,
            &mut vg,
            Mat::new(tape.get(y), shape.rows(), shape.dim),
            params.mat(self.cell.input),
        );
        let (recurrent, from_context) = (
            Recurrent::new(params.mat(self.cell.recurrent), time),
            Recurrent::new(params.mat(self.context), time),
        );
        let query = Recurrent::new(params.mat(self.query.weight), time);
        let zero = tape.zeros(batch * source.dim);
        let (h0, c0) = (tape.get(start.h), tape.get(start.c));
        let u0 = start.context.map_or(&zero[..], |u| tape.get(u));
        let always: Vec<usize> = vec![time; batch];
        let bias = self.query.bias.map_or(&[][..], |b| params.get(b));
        let mut q = vec![T::ZERO; batch * size];
        for t in 0..time {
            let before = t.checked_sub(1);
            let g = &mut vg[t * 4 * row..(t + 1) * 4 * row];
            let (h_before, h_now) = split(&mut vh, before, t, row, h0);
            let (c_before, c_now) = split(&mut vc, before, t, row, c0);
            let (u_before, u_now) = split(&mut vu, before, t, batch * source.dim, u0);
            recurrent.add(g, Mat::new(h_before, batch, n));
            from_context.add(g, Mat::new(u_before, batch, source.dim));
            T::launch(Forward {
                t,
                n,
                lens: &always,
                bias: params.get(self.cell.bias),
                g,
                h_before,
                c_before,
                h: h_now,
                c: c_now,
                tanh_c: &mut vt[t * row..(t + 1) * row],
            });
            q.chunks_exact_mut(size)
                .for_each(|q| q.copy_from_slice(bias));
            query.add(&mut q, Mat::new(h_now, batch, n));
            let (s, a) = (
                &mut vs[t * source.time * batch * size..][..source.time * batch * size],
                &mut va[t * batch * source.time..][..batch * source.time],
            );
            T::launch(Scores {
                keys: tape.get(keys),
                q: &q,
                v: params.get(self.score),
                hidden: s,
                scores: a,
                batch,
                lens,
            });
            u_now.fill(T::ZERO);
            for (b, a) in a.chunks_exact_mut(source.time).enumerate() {
                let len = lens[b].min(source.time);
                softmax(&mut a[..len]);
                a[len..].fill(T::ZERO);
                for (k, a) in a[..len].iter().enumerate() {
                    let memory = &tape.get(memory)[(k * batch + b) * source.dim..][..source.dim];
                    u_now[b * source.dim..][..source.dim]
                        .iter_mut()
                        .zip(memory)
                        .for_each(|(u, m)| *u += *a * *m);
                }
            }
        }
        tape.recycle(zero);
        for (v, data) in [
            (h, vh),
            (c, vc),
            (gates, vg),
            (context, vu),
            (tanh_c, vt),
            (weights, va),
            (hidden, vs),
        ] {
            tape.put(v, data);
        }
        tape.record(
            h,
            Backward {
                layer: *self,
                y,
                memory,
                keys,
                lens: lens.clone(),
                start,
                h,
                c,
                gates,
                context,
                tanh_c,
                weights,
                hidden,
            },
        );
        let gates = ['i', 'f', 'g', 'o']
            .iter()
            .enumerate()
            .map(|(k, &name)| Gate {
                name,
                var: gates,
                from: k * n,
            })
            .collect();
        Decoded {
            states: States {
                h,
                c: Some(c),
                gates,
                direction: Direction::Forward,
            },
            context,
            weights,
        }
    }
}

struct Backward {
    layer: Decoder,
    y: Var,
    memory: Var,
    keys: Var,
    lens: Lens,
    start: Start,
    h: Var,
    c: Var,
    gates: Var,
    context: Var,
    tanh_c: Var,
    weights: Var,
    hidden: Var,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let outs = [self.h, self.c, self.gates, self.context].map(|v| tape.take_grad(v));
        if outs.iter().all(Option::is_none) {
            return;
        }
        let layer = &self.layer;
        let (
            Shape {
                time,
                batch,
                dim: n,
            },
            source,
        ) = (tape.shape(self.h), tape.shape(self.memory));
        let (size, row, wide) = (layer.score.cols, batch * n, batch * source.dim);
        let (mut dpre, mut dq) = (tape.dirty(4 * row * time), tape.zeros(time * batch * size));
        let (mut dh, mut dc, mut du) = (tape.zeros(row), tape.zeros(row), tape.zeros(wide));
        let mut dv = vec![T::ZERO; size];
        let (mut dmemory, mut dkeys) = (tape.grad_to_add(self.memory), tape.grad_to_add(self.keys));
        let recurrent = Recurrent::new(params.mat(layer.cell.recurrent).t(), time);
        let (to_context, from_query) = (
            Recurrent::new(params.mat(layer.context).t(), time),
            Recurrent::new(params.mat(layer.query.weight).t(), time),
        );
        let always: Vec<usize> = vec![time; batch];
        let mut ds = vec![T::ZERO; source.time];
        for t in (0..time).rev() {
            for (to, out, width) in [
                (&mut dh, &outs[0], row),
                (&mut dc, &outs[1], row),
                (&mut du, &outs[3], wide),
            ] {
                if let Some(out) = out {
                    add(to, &out[t * width..(t + 1) * width]);
                }
            }
            let dq = &mut dq[t * batch * size..(t + 1) * batch * size];
            for b in 0..batch {
                let (len, du) = (
                    self.lens[b].min(source.time),
                    &du[b * source.dim..(b + 1) * source.dim],
                );
                let a = &tape.get(self.weights)[(t * batch + b) * source.time..][..len];
                let memory = tape.get(self.memory);
                for (k, ds) in ds[..len].iter_mut().enumerate() {
                    *ds = dot(du, &memory[(k * batch + b) * source.dim..][..source.dim]);
                }
                let mean = dot(a, &ds[..len]);
                for (k, a) in a.iter().enumerate() {
                    ds[k] = *a * (ds[k] - mean);
                    if let Some(dm) = &mut dmemory {
                        dm[(k * batch + b) * source.dim..][..source.dim]
                            .iter_mut()
                            .zip(du)
                            .for_each(|(m, u)| *m += *a * *u);
                    }
                }
                let hidden = &tape.get(self.hidden)[t * source.time * batch * size..]
                    [..source.time * batch * size];
                let (dq, dkeys) = (&mut dq[b * size..(b + 1) * size], dkeys.as_deref_mut());
                T::launch(BackScores {
                    ds: &ds[..len],
                    hidden,
                    v: params.get(layer.score),
                    dq,
                    dv: &mut dv,
                    dkeys,
                    b,
                    batch,
                });
            }
            from_query.add(&mut dh, Mat::new(dq, batch, size));
            let c_before = t.checked_sub(1).map_or(tape.get(self.start.c), |b| {
                &tape.get(self.c)[b * row..(b + 1) * row]
            });
            let d = &mut dpre[t * 4 * row..(t + 1) * 4 * row];
            let extra = outs[2].as_ref().map(|v| &v[t * 4 * row..(t + 1) * 4 * row]);
            let (gates, tanh_c) = (
                &tape.get(self.gates)[t * 4 * row..(t + 1) * 4 * row],
                &tape.get(self.tanh_c)[t * row..(t + 1) * row],
            );
            T::launch(Back {
                t,
                n,
                lens: &always,
                gates,
                tanh_c,
                c_before,
                extra,
                dh: &mut dh,
                dc: &mut dc,
                d,
            });
            recurrent.add(&mut dh, Mat::new(d, batch, 4 * n));
            du.fill(T::ZERO);
            to_context.add(&mut du, Mat::new(d, batch, 4 * n));
        }
        for (v, d) in [
            (Some(self.start.h), &dh),
            (Some(self.start.c), &dc),
            (self.start.context, &du),
        ] {
            if let Some(v) = v
                && let Some(mut to) = tape.grad_to_add(v)
            {
                add(&mut to, d);
                tape.put_grad(v, to);
            }
        }
        for (v, d) in [(self.memory, dmemory), (self.keys, dkeys)] {
            if let Some(d) = d {
                tape.put_grad(v, d);
            }
        }
        if let Some(mut dy) = tape.grad_to_add(self.y) {
            gemm(
                Into::Add,
                &mut dy,
                Mat::new(&dpre, time * batch, 4 * n),
                params.mat(layer.cell.input).t(),
            );
            tape.put_grad(self.y, dy);
        }
        grads.bias(layer.cell.bias, &dpre);
        grads.bias(layer.score, &dv);
        if let Some(bias) = layer.query.bias {
            grads.bias(bias, &dq);
        }
        let (dpre, dq) = (
            tape.keep(Shape::new(time, batch, 4 * n), dpre),
            tape.keep(Shape::new(time, batch, size), dq),
        );
        grads.product(
            tape,
            layer.cell.input,
            Rows::all(tape, self.y),
            Rows::all(tape, dpre),
        );
        grads.product(
            tape,
            layer.query.weight,
            Rows::all(tape, self.h),
            Rows::all(tape, dq),
        );
        recurrent_product(
            tape,
            grads,
            layer.cell.recurrent,
            self.h,
            Some(self.start.h),
            dpre,
            Direction::Forward,
        );
        recurrent_product(
            tape,
            grads,
            layer.context,
            self.context,
            self.start.context,
            dpre,
            Direction::Forward,
        );
        for v in [dh, dc, du].into_iter().chain(outs.into_iter().flatten()) {
            tape.recycle(v);
        }
    }
}
