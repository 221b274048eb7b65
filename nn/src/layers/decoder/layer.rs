//! LSTM decoder with Bahdanau's additive attention, all steps as one layer.
//!
//! At step `t`, from `h[t-1]`, `c[t-1]` and the context `u[t-1]`:
//! `[i f g o] = y[t] W + u[t-1] C + h[t-1] U + b`, an LSTM cell gives `h[t]`, `c[t]`;
//! `s[k] = v . tanh(key[k] + h[t] Q + q)`, `a = softmax over source positions k of s`, `u[t] = sum_k a[k] memory[k]`.
//! `y` is (time, batch, dim), `memory` (source, batch, m), `key` (source, batch, size); out come `h` (time, batch, units),
//! `u` (time, batch, m) and the weights `a`, (time, batch, source).
//!
//! Differs from TensorFlow's wrapper: the context is used as it is, without another dense layer.

use super::backward::Backward;
use super::by_item;
use super::context::Context;
use super::scores::Scores;
use super::weights::{DecoderWeights, Start};
use crate::autodiff::{Init, Layout, Params, Shape, Tape, Var};
use crate::batch::{Lens, Side};
use crate::layers::dense::Dense;
use crate::layers::lstm::Lstm;
use crate::layers::lstm::kernels::Forward;
use crate::layers::recurrent::{
    Direction, Gate, RecurrentCell, RecurrentWeights, States, StepRows,
};
use crate::layers::slices::split;
use crate::numeric::gemm::Mat;
use crate::numeric::{Real, softmax};

/// The decoder.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// Places of its weights.
    pub weights: DecoderWeights,
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
        let weights = DecoderWeights {
            cell: Lstm::new(layout, &format!("{name}.cell"), dim, units, init),
            context: layout.add_map(&format!("{name}.context"), memory, 4 * units, init),
            keys: Dense::without_bias(layout, &format!("{name}.keys"), memory, size, init),
            query: Dense::new(layout, &format!("{name}.query"), units, size, init),
            score: layout.add(&format!("{name}.score"), 1, size, init),
        };
        Decoder { weights }
    }

    /// Runs over all steps of `y`. `keys` come from [`DecoderWeights::keys`] of the memory; `lens` are the sources' lengths.
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
        let (n, size) = (self.weights.cell.units(), self.weights.score.cols);
        let row = batch * n;
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
        // (time, batch, source, size)
        let hidden = tape.value(Shape::new(time * batch, source.time, size), false);
        let [mut vh, mut vc, mut vg, mut vu] = [h, c, gates, context].map(|v| tape.take(v));
        let [mut vt, mut va, mut vs] = [tanh_c, weights, hidden].map(|v| tape.take(v));

        let cell = self.weights.cell.weights;
        cell.map_input(tape, params, y, &mut vg);
        let recurrent = cell.forward(params, time);
        let from_context = RecurrentWeights::new(params.mat(self.weights.context), time);
        let query = RecurrentWeights::new(params.mat(self.weights.query.weight), time);
        let zero = tape.zeros(batch * source.dim);
        let copies = [memory, keys].map(|v| by_item::copy(tape, v, time));
        let memory_rows = by_item::rows(tape, memory, &copies[0]);
        let key_rows = by_item::rows(tape, keys, &copies[1]);
        let (h0, c0) = (tape.get(start.h), tape.get(start.c));
        let u0 = start.context.map_or(&zero[..], |u| tape.get(u));
        let always: Vec<usize> = vec![time; batch];
        let bias = self.weights.query.bias_in(params);
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
                step: StepRows {
                    t,
                    n,
                    lens: &always,
                },
                bias: cell.input.bias_in(params),
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
                keys: key_rows,
                q: &q,
                v: params.get(self.weights.score),
                hidden: s,
                scores: a,
                lens,
            });
            for (a, len) in a.chunks_exact_mut(source.time).zip(&lens[..]) {
                let (real, beyond) = a.split_at_mut(source.time.min(*len));
                softmax(real);
                beyond.fill(T::ZERO);
            }
            T::launch(Context {
                attention: a,
                memory: memory_rows,
                context: u_now,
                batch,
                lens,
            });
        }
        copies.into_iter().for_each(|copy| tape.recycle(copy));
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
                weights: self.weights,
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
                attention: weights,
                hidden,
            },
        );
        let gates = Gate::list("ifgo", gates, n);
        Decoded {
            states: States {
                side: Side::Target,
                ..States::new(h, Some(c), gates, Direction::Forward)
            },
            context,
            weights,
        }
    }
}
