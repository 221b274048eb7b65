//! Vanilla recurrent layer: `h[t] = tanh(x[t] W + h[t-1] U + b)`.
//!
//! `x` is (time, batch, inputs), `W` (inputs, units), `U` (units, units), `h` (time, batch, units).
//! Backward: `dpre = dh (1 - h^2)`, `dh[t-1] = dpre U^T`, and one product at the end for each weight.

use super::Lens;
use super::lstm::{add, split};
use super::recurrent::{Direction, Recurrent, States, recurrent_product};
use crate::Real;
use crate::batch::Side;
use crate::gemm::{Into, Mat, gemm};
use crate::grads::{Grads, Rows};
use crate::params::{Init, Layout, Params, Span};
use crate::simd::{Kernel, Lanes};
use crate::tape::{Op, Shape, Tape, Var};

/// Elman's recurrent network.
#[derive(Clone, Copy, Debug)]
pub struct Rnn {
    /// (inputs, units)
    pub input: Span,
    /// (units, units)
    pub recurrent: Span,
    /// (1, units)
    pub bias: Span,
    /// Hidden units.
    pub units: usize,
}

impl Rnn {
    /// Weights start as `init`, the bias at zero.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        Rnn {
            input: layout.add_map(&format!("{name}.input"), inputs, units, init),
            recurrent: layout.add_map(&format!("{name}.recurrent"), units, units, init),
            bias: layout.add(&format!("{name}.bias"), 1, units, Init::Constant(0.0)),
            units,
        }
    }

    /// Runs over all steps from `initial`, or from zero.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        lens: &Lens,
        initial: Option<Var>,
        direction: Direction,
    ) -> States {
        let shape = tape.shape(x);
        let Shape { time, batch, .. } = shape;
        let (n, row) = (self.units, batch * self.units);
        let inputs: Vec<Var> = [Some(x), initial].into_iter().flatten().collect();
        let h = tape.output(shape.with_dim(n), &inputs, true);
        let mut vh = tape.take(h);
        gemm(
            Into::Set,
            &mut vh,
            Mat::new(tape.get(x), shape.rows(), shape.dim),
            params.mat(self.input),
        );
        let u = Recurrent::new(params.mat(self.recurrent), time);
        let zero = tape.zeros(row);
        let h0 = initial.map_or(&zero[..], |h| tape.get(h));
        for t in direction.steps(time) {
            let before = direction.before(t, time);
            let (h_before, now) = split(&mut vh, before, t, row, h0);
            if before.is_some() || initial.is_some() {
                u.add(now, Mat::new(h_before, batch, n));
            }
            T::launch(Forward {
                t,
                n,
                lens,
                bias: params.get(self.bias),
                before: h_before,
                h: now,
            });
        }
        tape.recycle(zero);
        tape.put(h, vh);
        tape.record(
            h,
            Backward {
                layer: *self,
                x,
                h,
                lens: lens.clone(),
                initial,
                direction,
            },
        );
        States {
            h,
            c: None,
            gates: Vec::new(),
            direction,
            side: Side::Source,
        }
    }
}

struct Backward {
    layer: Rnn,
    x: Var,
    h: Var,
    lens: Lens,
    initial: Option<Var>,
    direction: Direction,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let Some(dh_out) = tape.take_grad(self.h) else {
            return;
        };
        let Shape {
            time,
            batch,
            dim: n,
        } = tape.shape(self.h);
        let row = batch * n;
        let mut dpre = tape.dirty(row * time);
        let mut dh = tape.zeros(row);
        let u = Recurrent::new(params.mat(self.layer.recurrent).t(), time);
        for t in self.direction.steps(time).rev() {
            let now = t * row..(t + 1) * row;
            add(&mut dh, &dh_out[now.clone()]);
            let d = &mut dpre[now.clone()];
            T::launch(Back {
                t,
                n,
                lens: &self.lens,
                h: &tape.get(self.h)[now],
                dh: &mut dh,
                d,
            });
            if self.direction.before(t, time).is_some() || self.initial.is_some() {
                u.add(&mut dh, Mat::new(d, batch, n));
            }
        }
        if let Some(h0) = self.initial
            && let Some(mut to) = tape.grad_to_add(h0)
        {
            add(&mut to, &dh);
            tape.put_grad(h0, to);
        }
        if let Some(mut dx) = tape.grad_to_add(self.x) {
            gemm(
                Into::Add,
                &mut dx,
                Mat::new(&dpre, time * batch, n),
                params.mat(self.layer.input).t(),
            );
            tape.put_grad(self.x, dx);
        }
        grads.bias(self.layer.bias, &dpre);
        let dpre = tape.keep(Shape::new(time, batch, n), dpre);
        grads.product(
            tape,
            self.layer.input,
            Rows::all(tape, self.x),
            Rows::all(tape, dpre),
        );
        recurrent_product(
            tape,
            grads,
            self.layer.recurrent,
            self.h,
            self.initial,
            dpre,
            self.direction,
        );
        tape.recycle(dh);
        tape.recycle(dh_out);
    }
}

pub(super) struct Forward<'a, T> {
    pub(super) t: usize,
    pub(super) n: usize,
    pub(super) lens: &'a [usize],
    pub(super) bias: &'a [T],
    pub(super) before: &'a [T],
    pub(super) h: &'a mut [T],
}

impl<T: Real> Kernel<T> for Forward<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        for (b, h) in self.h.chunks_exact_mut(self.n).enumerate() {
            if self.t >= self.lens[b] {
                h.copy_from_slice(&self.before[b * self.n..(b + 1) * self.n]);
                continue;
            }
            for (h, bias) in h.chunks_mut(V::N).zip(self.bias.chunks(V::N)) {
                V::load(h).add(V::load(bias)).tanh().store(h);
            }
        }
    }
}

pub(super) struct Back<'a, T> {
    pub(super) t: usize,
    pub(super) n: usize,
    pub(super) lens: &'a [usize],
    pub(super) h: &'a [T],
    pub(super) dh: &'a mut [T],
    pub(super) d: &'a mut [T],
}

impl<T: Real> Kernel<T> for Back<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let (n, zero, one, tiny) = (
            self.n,
            V::splat(T::ZERO),
            V::splat(T::ONE),
            V::splat(T::TINY),
        );
        for (b, d) in self.d.chunks_exact_mut(n).enumerate() {
            let (h, dh) = (
                &self.h[b * n..(b + 1) * n],
                &mut self.dh[b * n..(b + 1) * n],
            );
            if self.t >= self.lens[b] {
                d.fill(T::ZERO);
                continue;
            }
            for ((h, dh), d) in h
                .chunks(V::N)
                .zip(dh.chunks_mut(V::N))
                .zip(d.chunks_mut(V::N))
            {
                let (h, g) = (V::load(h), V::load(dh));
                let g = g.abs().lt(tiny, zero, g);
                g.mul(one.sub(h.mul(h))).store(d);
                zero.store(dh);
            }
        }
    }
}
