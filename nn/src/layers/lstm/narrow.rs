//! A step of a narrow LSTM; `layer.rs` has the equations, and `kernels.rs` the same for rows.

use super::kernels::gates_and_cell;
use crate::autodiff::Params;
use crate::layers::recurrent::GateWeights;
use crate::layers::recurrent::narrow::{Block, NarrowEquations, NarrowGates, Place};
use crate::numeric::Real;
use crate::numeric::gemm::Into;
use crate::numeric::simd::Lanes;

/// The weights.
pub struct NarrowLstm<T>(NarrowGates<T>);

impl<T: Real> NarrowLstm<T> {
    pub(super) fn new(params: &Params<T>, weights: &GateWeights) -> Self {
        NarrowLstm(NarrowGates::new(params, weights))
    }
}

/// What is kept: `i`, `f`, `g`, `o`, `tanh(c)`.
impl<T: Real> NarrowEquations<T> for NarrowLstm<T> {
    const KEPT: usize = 5;

    fn inputs(&self) -> usize {
        self.0.inputs()
    }

    #[inline(always)]
    fn forward<V: Lanes<T = T>, const ONE: bool>(&self, place: Place<ONE>, block: &mut Block<T>) {
        for j in 0..place.vectors() {
            let (mut sums, mut bias) = ([V::splat(T::ZERO); 4], [V::splat(T::ZERO); 4]);
            for k in 0..4 {
                let from = [&block.x[..], &block.h[..]];
                (sums[k], bias[k]) = self.0.sum::<V, ONE>(place, from, k, j);
            }
            let before = place.load(&block.c, 0, j);
            let ([i, f, a], cell, squashed, o) = gates_and_cell(sums, bias, before);
            place.store(&mut block.h_after, 0, j, o.mul(squashed));
            place.store(&mut block.c_after, 0, j, cell);
            place.store(&mut block.kept, 0, j, i);
            place.store(&mut block.kept, 1, j, f);
            place.store(&mut block.kept, 2, j, a);
            place.store(&mut block.kept, 3, j, o);
            place.store(&mut block.kept, 4, j, squashed);
        }
    }

    #[inline(always)]
    fn backward<V: Lanes<T = T>, const ONE: bool>(
        &self,
        place: Place<ONE>,
        block: &mut Block<T>,
        state: bool,
    ) {
        let (zero, one, tiny) = (V::splat(T::ZERO), V::splat(T::ONE), V::splat(T::TINY));
        let Block {
            c, kept, dh, dc, ..
        } = block;
        let slope = &mut block.slope;
        for j in 0..place.vectors() {
            let (i, f): (V, V) = (place.load(kept, 0, j), place.load(kept, 1, j));
            let (a, o): (V, V) = (place.load(kept, 2, j), place.load(kept, 3, j));
            let (dh_now, squashed): (V, V) = (place.load(dh, 0, j), place.load(kept, 4, j));
            let dh_now = dh_now.abs().lt(tiny, zero, dh_now);
            let through = dh_now.mul(o).mul(one.sub(squashed.mul(squashed)));
            let dc_now = place.load::<V>(dc, 0, j).add(through);
            let dc_now = dc_now.abs().lt(tiny, zero, dc_now);
            let di = dc_now.fma(a, zero);
            let df = dc_now.fma(place.load(c, 0, j), zero);
            let da = dc_now.fma(i, zero);
            let dout = dh_now.fma(squashed, zero);
            place.store(slope, 0, j, di.mul(i).mul(one.sub(i)));
            place.store(slope, 1, j, df.mul(f).mul(one.sub(f)));
            place.store(slope, 2, j, da.mul(one.sub(a.mul(a))));
            place.store(slope, 3, j, dout.mul(o).mul(one.sub(o)));
            place.store(dc, 0, j, dc_now.mul(f));
            place.store(dh, 0, j, zero);
        }
        if state {
            self.0.back_to_state::<V, ONE>(dh, slope);
        }
        self.0.back::<V, ONE>(Into::Set, &mut block.dx, slope);
    }
}
