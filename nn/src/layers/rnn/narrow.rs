//! A step of a narrow RNN; `layer.rs` has the equations, and `kernels.rs` the same for rows.

use crate::autodiff::Params;
use crate::layers::recurrent::GateWeights;
use crate::layers::recurrent::narrow::{Block, NarrowEquations, NarrowGates, Place};
use crate::numeric::Real;
use crate::numeric::gemm::Into;
use crate::numeric::simd::Lanes;

/// The weights.
pub struct NarrowRnn<T>(NarrowGates<T>);

impl<T: Real> NarrowRnn<T> {
    pub(super) fn new(params: &Params<T>, weights: &GateWeights) -> Self {
        NarrowRnn(NarrowGates::new(params, weights))
    }
}

/// Nothing is kept but the state after.
impl<T: Real> NarrowEquations<T> for NarrowRnn<T> {
    const KEPT: usize = 0;

    fn inputs(&self) -> usize {
        self.0.inputs()
    }

    #[inline(always)]
    fn forward<V: Lanes<T = T>, const ONE: bool>(&self, place: Place<ONE>, block: &mut Block<T>) {
        for j in 0..place.vectors() {
            let (sum, bias) = self.0.sum::<V, ONE>(place, [&block.x, &block.h], 0, j);
            place.store(&mut block.h_after, 0, j, sum.add(bias).tanh());
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
        for j in 0..place.vectors() {
            let (h, g): (V, V) = (
                place.load(&block.h_after, 0, j),
                place.load(&block.dh, 0, j),
            );
            let g = g.abs().lt(tiny, zero, g);
            place.store(&mut block.slope, 0, j, g.mul(one.sub(h.mul(h))));
            place.store(&mut block.dh, 0, j, zero);
        }
        if state {
            self.0.back_to_state::<V, ONE>(&mut block.dh, &block.slope);
        }
        self.0
            .back::<V, ONE>(Into::Set, &mut block.dx, &block.slope);
    }
}
