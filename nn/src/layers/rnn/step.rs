//! One step of an RNN layer. The tangent of the state is `dh' = (1 - h'^2) (dx W + dh U)`.

use super::kernels::{Back, Forward};
use crate::autodiff::Params;
use crate::layers::recurrent::{
    GateWeights, InputTangent, StepBias, StepEquations, StepMap, StepMemory, StepRows, repeat,
};
use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// The equations with packed weights.
pub struct RnnStep<T> {
    maps: [StepMap<T>; 2],
    bias: StepBias<T>,
}

impl<T: Real> RnnStep<T> {
    pub(super) fn new(params: &Params<T>, weights: &GateWeights, columns: bool) -> Self {
        let (maps, bias) = weights.of_a_step(params, columns);
        RnnStep { maps, bias }
    }
}

impl<T: Real> StepEquations<T> for RnnStep<T> {
    fn maps(&self) -> [&StepMap<T>; 2] {
        self.maps.each_ref()
    }

    #[inline(always)]
    fn forward<V: Lanes<T = T>>(
        &mut self,
        memory: &mut StepMemory<T>,
        recurrent: &[T],
        x: &[T],
        copies: usize,
    ) {
        let beside = memory.beside();
        repeat(&mut memory.h, recurrent, copies);
        self.maps[0].add::<V>(&mut memory.h, x, memory.items);
        Forward {
            step: StepRows::single(memory.row, &memory.ones),
            bias: self.bias.of(beside),
            before: &memory.before.0,
            h: &mut memory.h,
        }
        .run::<V>();
    }

    #[inline(always)]
    fn backward<V: Lanes<T = T>>(
        &mut self,
        memory: &mut StepMemory<T>,
        dh: &mut [T],
        _: &mut [T],
        _: &mut [T],
    ) {
        Back {
            step: StepRows::single(memory.row, &memory.ones),
            h: &memory.h,
            dh,
            d: &mut memory.slope,
        }
        .run::<V>();
    }

    fn tangent(&self, memory: &StepMemory<T>, of: &InputTangent<'_, T>) -> (Vec<T>, Vec<T>) {
        let h = memory.first(&memory.h);
        let pairs = h.iter().zip(of.gates);
        let dh = pairs.map(|(h, p)| (T::ONE - *h * *h) * *p).collect();
        (dh, Vec::new())
    }
}
