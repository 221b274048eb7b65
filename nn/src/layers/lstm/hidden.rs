//! The hidden states of an LSTM alone, where nobody asks for gradients or gates: `layer.rs` has the equations.
//!
//! Product and gates of a step are one loop: a few items times the four gates of some units are summed in registers,
//! and leave them as `h` and `c`. Sums are those of `numeric::gemm`, term by term, so the bits are those of the layer.

use super::kernels::up_to_cell;
use crate::autodiff::{Params, Tape, map};
use crate::layers::alike::{rows_equal, spread};
use crate::layers::recurrent::{GateWeights, Reading, StepRows};
use crate::layers::steps::Steps;
use crate::layers::tile::{TERM, UNITS, add_terms, rows_of};
use crate::numeric::gemm::{BLOCK, Mat};
use crate::numeric::simd::{Kernel, Lanes};
use crate::numeric::{Lines, Real};

/// The hidden states of every step.
pub(super) fn hidden_states<T: Real>(
    weights: &GateWeights,
    tape: &mut Tape<T>,
    params: &Params<T>,
    x: &Steps<T>,
    reading: Reading<'_>,
) -> Steps<T> {
    let (n, time, batch) = (weights.units(), x.time(), x.batch());
    let mut projected = x.like(tape, 4 * n);
    let rows = x.all().len() / x.dim();
    let from = Mat::new(x.all(), rows, x.dim());
    map(
        tape,
        params,
        weights.input.weight,
        None,
        from,
        projected.all_mut(),
    );

    let (mut c, mut h0) = (tape.zeros(batch * n), tape.zeros(batch * n));
    for (to, from) in [(&mut h0, reading.h0), (&mut c, reading.c0)] {
        if let Some(from) = from {
            to.copy_from_slice(tape.get(from));
        }
    }
    let mut alike = reading.lens.windows(2).all(|pair| pair[0] == pair[1])
        && rows_equal(&h0, n)
        && rows_equal(&c, n);
    let mut shared = vec![false; time];
    for t in reading.direction.steps(time) {
        alike &= x.is_shared(t);
        shared[t] = alike;
    }
    let mut h = Steps::room(tape, n, batch, &shared);
    let panels = pack(params.get(weights.recurrent), n);
    let mut were_shared = true;
    for t in reading.direction.steps(time) {
        let before = reading.direction.before(t, time);
        // From here on every item has a cell state of its own.
        if were_shared && !shared[t] && before.is_some() {
            spread(&mut c, n);
        }
        were_shared = shared[t];
        let stride = before.map_or(n, |b| h.stride(b));
        let (h_before, h_now) = match before {
            Some(b) => h.pair(b, t),
            None => (&h0[..], h.step_mut(t)),
        };
        T::launch(Step {
            step: StepRows {
                t,
                n,
                lens: reading.lens,
            },
            recurs: before.is_some() || reading.h0.is_some(),
            panels: panels.get(),
            projected: (projected.step(t), projected.stride(t)),
            bias: weights.input.bias_in(params),
            h_before: (h_before, stride),
            h: h_now,
            c: &mut c,
        });
    }
    projected.recycle(tape);
    for spare in [c, h0] {
        tape.recycle(spare);
    }
    h
}

/// `U`, (units, 4 units), for the loop: for [`UNITS`] units all terms, each with the four gates one after the other;
/// zero beyond the last unit.
fn pack<T: Real>(u: &[T], n: usize) -> Lines<T> {
    let mut lines = Lines::default();
    let panels = lines.room(n.div_ceil(UNITS) * n * TERM);
    panels.fill(T::ZERO);
    for (panel, first) in panels.chunks_exact_mut(n * TERM).zip((0..n).step_by(UNITS)) {
        let width = UNITS.min(n - first);
        for (to, from) in panel.chunks_exact_mut(TERM).zip(u.chunks_exact(4 * n)) {
            for k in 0..4 {
                to[k * UNITS..][..width].copy_from_slice(&from[k * n + first..][..width]);
            }
        }
    }
    lines
}

/// One step of all items, or of the one row that they share.
struct Step<'a, T> {
    step: StepRows<'a>,
    /// Whether there is a state before.
    recurs: bool,
    panels: &'a [T],
    /// `x W` and the distance between the rows of items, 0 if they share one.
    projected: (&'a [T], usize),
    bias: &'a [T],
    h_before: (&'a [T], usize),
    h: &'a mut [T],
    c: &'a mut [T],
}

impl<T: Real> Kernel<T> for Step<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(mut self) {
        let (n, items) = (self.step.n, self.h.len() / self.step.n);
        let tile = rows_of::<V>();
        for (panel, first) in self
            .panels
            .chunks_exact(n * TERM)
            .zip((0..n).step_by(UNITS))
        {
            for lane in (0..UNITS).step_by(V::N) {
                let units = first + lane..n.min(first + lane + V::N);
                if units.is_empty() {
                    break;
                }
                for item in (0..items).step_by(tile) {
                    match tile.min(items - item) {
                        6 => self.tile::<V, 6>(panel, lane, item, units.start, units.end),
                        5 => self.tile::<V, 5>(panel, lane, item, units.start, units.end),
                        4 => self.tile::<V, 4>(panel, lane, item, units.start, units.end),
                        3 => self.tile::<V, 3>(panel, lane, item, units.start, units.end),
                        2 => self.tile::<V, 2>(panel, lane, item, units.start, units.end),
                        _ => self.tile::<V, 1>(panel, lane, item, units.start, units.end),
                    }
                }
            }
        }
    }
}

impl<T: Real> Step<'_, T> {
    /// Units `j..e` of `M` items from `item` on.
    #[inline(always)]
    fn tile<V: Lanes<T = T>, const M: usize>(
        &mut self,
        panel: &[T],
        lane: usize,
        item: usize,
        j: usize,
        e: usize,
    ) {
        let n = self.step.n;
        let mut gates = [[V::splat(T::ZERO); 4]; M];
        for (r, gates) in gates.iter_mut().enumerate() {
            let row = &self.projected.0[(item + r) * self.projected.1..][..4 * n];
            for (k, gate) in gates.iter_mut().enumerate() {
                *gate = V::load(&row[k * n + j..k * n + e]);
            }
        }
        let mut from = 0;
        while self.recurs && from < n {
            let length = BLOCK.min(n - from);
            let mut rows = [&self.h_before.0[..0]; M];
            for (r, row) in rows.iter_mut().enumerate() {
                *row = &self.h_before.0[(item + r) * self.h_before.1 + from..][..length];
            }
            let mut sums = [[V::splat(T::ZERO); 4]; M];
            add_terms(
                &mut sums,
                rows,
                &panel[from * TERM..][..length * TERM],
                lane,
            );
            for (gates, sums) in gates.iter_mut().zip(sums) {
                for (gate, sum) in gates.iter_mut().zip(sums) {
                    *gate = gate.add(sum);
                }
            }
            from += length;
        }
        let mut bias = [V::splat(T::ZERO); 4];
        for (k, bias) in bias.iter_mut().enumerate() {
            *bias = V::load(&self.bias[k * n + j..k * n + e]);
        }
        // All items up to their cells and then all hidden states: what waits for nothing else is computed side by side.
        let mut cells = [[V::splat(T::ZERO); 2]; M];
        for ((r, gates), cells) in gates.into_iter().enumerate().zip(&mut cells) {
            let b = item + r;
            if !self.step.is_padding(b) {
                let c = &mut self.c[b * n + j..b * n + e];
                let (_, cell, o) = up_to_cell(gates, bias, V::load(c));
                cell.store(c);
                *cells = [cell, o];
            }
        }
        for (r, [cell, o]) in cells.into_iter().enumerate() {
            let b = item + r;
            let h = &mut self.h[b * n + j..b * n + e];
            if self.step.is_padding(b) {
                h.copy_from_slice(&self.h_before.0[b * self.h_before.1..][j..e]);
            } else {
                o.mul(cell.tanh()).store(h);
            }
        }
    }
}
