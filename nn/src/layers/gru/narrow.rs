//! A step of a narrow GRU; `layer.rs` has the equations, and `kernels.rs` the same for rows.

use super::weights::GruWeights;
use crate::autodiff::Params;
use crate::layers::recurrent::narrow::{Block, NarrowEquations, NarrowGates, Place};
use crate::numeric::Real;
use crate::numeric::gemm::Into;
use crate::numeric::simd::Lanes;

/// The weights.
pub struct NarrowGru<T> {
    gates: NarrowGates<T>,
    new: NarrowGates<T>,
}

impl<T: Real> NarrowGru<T> {
    pub(super) fn new(params: &Params<T>, weights: &GruWeights) -> Self {
        NarrowGru {
            gates: NarrowGates::new(params, &weights.gates),
            new: NarrowGates::new(params, &weights.new),
        }
    }
}

/// What is kept: `z`, `r`, `n`.
impl<T: Real> NarrowEquations<T> for NarrowGru<T> {
    const KEPT: usize = 3;

    fn inputs(&self) -> usize {
        self.gates.inputs()
    }

    #[inline(always)]
    fn forward<V: Lanes<T = T>, const ONE: bool>(&self, place: Place<ONE>, block: &mut Block<T>) {
        let one = V::splat(T::ONE);
        let Block { x, h, kept, .. } = block;
        // `r h`
        let reset = &mut block.slope;
        for j in 0..place.vectors() {
            let (z, bias) = self.gates.sum::<V, ONE>(place, [x, h], 0, j);
            let z = z.add(bias).sigmoid();
            let (r, bias) = self.gates.sum::<V, ONE>(place, [x, h], 1, j);
            let r = r.add(bias).sigmoid();
            place.store(reset, 0, j, r.mul(place.load(h, 0, j)));
            place.store(kept, 0, j, z);
            place.store(kept, 1, j, r);
        }
        for j in 0..place.vectors() {
            let (new, bias) = self.new.sum::<V, ONE>(place, [x, reset], 0, j);
            let new = new.add(bias).tanh();
            let (z, before): (V, V) = (place.load(kept, 0, j), place.load(h, 0, j));
            let after = one.sub(z).fma(new, z.mul(before));
            place.store(kept, 2, j, new);
            place.store(&mut block.h_after, 0, j, after);
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
        let Block { h, kept, dx, .. } = block;
        let (dh, slope) = (&mut block.dh, &mut block.slope);
        // Of `z` and `r`, and of `n`.
        let (slope, slope_new) = slope.split_at_mut(2 * place.vectors() * V::N);
        for j in 0..place.vectors() {
            let (z, a, d): (V, V, V) = (
                place.load(kept, 0, j),
                place.load(kept, 2, j),
                place.load(dh, 0, j),
            );
            let d = d.abs().lt(tiny, zero, d);
            let dz = d.fma(place.load::<V>(h, 0, j).sub(a), zero);
            let dn = d.fma(one.sub(z), zero);
            place.store(slope, 0, j, dz.mul(z).mul(one.sub(z)));
            place.store(slope_new, 0, j, dn.mul(one.sub(a.mul(a))));
            place.store(dh, 0, j, d.mul(z));
        }
        for j in 0..place.vectors() {
            let q = self.new.of_state::<V, ONE>(slope_new, j);
            let r: V = place.load(kept, 1, j);
            let d = q.fma(place.load(h, 0, j), zero);
            place.store(slope, 1, j, d.mul(r).mul(one.sub(r)));
            let d = q.fma(r, place.load(dh, 0, j));
            place.store(dh, 0, j, d);
        }
        self.new.back::<V, ONE>(Into::Set, dx, slope_new);
        if state {
            self.gates.back_to_state::<V, ONE>(dh, slope);
        }
        self.gates.back::<V, ONE>(Into::Add, dx, slope);
    }
}
