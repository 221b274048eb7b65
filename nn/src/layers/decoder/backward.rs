//! Backward through the decoder, last step first, with `du` from the output and from the next step's `dpre C^T`:
//! `da[k] = du . memory[k]`, `dmemory[k] += a[k] du`, `ds = a (da - sum a da)`,
//! `e[k] = ds[k] v (1 - tanh^2)` goes to `dkey[k]`, its sum `dq` to `Q` and through it to `dh`; then the LSTM cell.

use super::by_item;
use super::context::{BackContext, BackMemory};
use super::scores::BackScores;
use super::weights::{DecoderWeights, Start};
use crate::autodiff::{Grads, Op, Params, Rows, Shape, Tape, Var};
use crate::batch::Lens;
use crate::layers::lstm::kernels::Back;
use crate::layers::recurrent::{Direction, RecurrentWeights, StepRows, recurrent_product};
use crate::layers::slices::{add, turn};
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

pub(super) struct Backward {
    pub weights: DecoderWeights,
    pub y: Var,
    pub memory: Var,
    pub keys: Var,
    pub lens: Lens,
    pub start: Start,
    pub h: Var,
    pub c: Var,
    pub gates: Var,
    pub context: Var,
    pub tanh_c: Var,
    pub attention: Var,
    pub hidden: Var,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let outs = [self.h, self.c, self.gates, self.context].map(|v| tape.take_grad(v));
        if outs.iter().all(Option::is_none) {
            return;
        }
        let layer = &self.weights;
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
        // What reached the context of each step.
        let mut dus = tape.dirty(time * wide);
        let mut dv = vec![T::ZERO; size];
        let (mut dmemory, mut dkeys) = (tape.grad_to_add(self.memory), tape.grad_to_add(self.keys));
        let copy = by_item::copy(tape, self.memory, time);
        let memory_rows = by_item::rows(tape, self.memory, &copy);
        // Item by item, as the hidden rows are.
        let mut turned_dkeys = dkeys.as_ref().map(|dkeys| {
            let mut turned = vec![T::ZERO; dkeys.len()];
            turn(dkeys, batch, size, &mut turned);
            turned
        });
        let recurrent = layer.cell.weights.transposed(params, time);
        let (to_context, from_query) = (
            RecurrentWeights::new(params.mat(layer.context).t(), time),
            RecurrentWeights::new(params.mat(layer.query.weight).t(), time),
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
            dus[t * wide..(t + 1) * wide].copy_from_slice(&du);
            let dq = &mut dq[t * batch * size..(t + 1) * batch * size];
            for b in 0..batch {
                let (len, du) = (
                    self.lens[b].min(source.time),
                    &du[b * source.dim..(b + 1) * source.dim],
                );
                let a = &tape.get(self.attention)[(t * batch + b) * source.time..][..len];
                T::launch(BackContext {
                    du,
                    attention: a,
                    memory: memory_rows,
                    ds: &mut ds[..len],
                    b,
                });
                let width = source.time * size;
                T::launch(BackScores {
                    ds: &ds[..len],
                    hidden: &tape.get(self.hidden)[(t * batch + b) * width..][..width],
                    v: params.get(layer.score),
                    dq: &mut dq[b * size..(b + 1) * size],
                    dv: &mut dv,
                    dkeys: turned_dkeys.as_mut().map(|d| &mut d[b * width..][..width]),
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
                step: StepRows {
                    t,
                    n,
                    lens: &always,
                },
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
        if let (Some(turned), Some(dkeys)) = (&turned_dkeys, &mut dkeys) {
            turn(turned, source.time, size, dkeys);
        }
        if let Some(dmemory) = &mut dmemory {
            T::launch(BackMemory {
                attention: tape.get(self.attention),
                du: &dus,
                dmemory,
                lens: &self.lens,
                source: source.time,
                dim: source.dim,
            });
        }
        for (v, d) in [
            (Some(self.start.h), &dh),
            (Some(self.start.c), &dc),
            (self.start.context, &du),
        ] {
            if let Some(v) = v {
                tape.add_grad(v, d);
            }
        }
        for (v, d) in [(self.memory, dmemory), (self.keys, dkeys)] {
            if let Some(d) = d {
                tape.put_grad(v, d);
            }
        }
        let cell = &layer.cell.weights;
        let dpre = cell.input.backward(tape, params, grads, self.y, dpre);
        grads.bias(layer.score, &dv);
        if let Some(bias) = layer.query.bias {
            grads.bias(bias, &dq);
        }
        let dq = tape.keep(Shape::new(time, batch, size), dq);
        let (h, dq) = (Rows::all(tape, self.h), Rows::all(tape, dq));
        grads.product(tape, layer.query.weight, h, dq);
        for (span, states, initial) in [
            (cell.recurrent, self.h, Some(self.start.h)),
            (layer.context, self.context, self.start.context),
        ] {
            let direction = Direction::Forward;
            recurrent_product(tape, grads, span, states, initial, dpre, direction);
        }
        for v in [dh, dc, du, dus]
            .into_iter()
            .chain(outs.into_iter().flatten())
        {
            tape.recycle(v);
        }
    }
}
