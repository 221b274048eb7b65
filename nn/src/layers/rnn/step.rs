//! One step of an RNN layer. The tangent of the state is `dh' = (1 - h'^2) (dx W + dh U)`.

use super::kernels::{Back, Forward};
use crate::autodiff::Params;
use crate::layers::recurrent::{
    GateWeights, InputTangent, PackedMap, StepEquations, StepMemory, StepRows, repeat,
};
use crate::numeric::Real;

/// The equations with packed weights.
pub struct RnnStep<T> {
    maps: [PackedMap<T>; 2],
    bias: Vec<T>,
}

impl<T: Real> RnnStep<T> {
    pub(super) fn new(params: &Params<T>, weights: &GateWeights) -> Self {
        let (maps, bias) = weights.of_a_step(params);
        RnnStep { maps, bias }
    }
}

impl<T: Real> StepEquations<T> for RnnStep<T> {
    fn maps(&self) -> [&PackedMap<T>; 2] {
        self.maps.each_ref()
    }

    fn forward(&mut self, memory: &mut StepMemory<T>, recurrent: &[T], x: &[T], copies: usize) {
        repeat(&mut memory.h, recurrent, copies);
        self.maps[0].add(&mut memory.h, x, memory.ones.len());
        T::launch(Forward {
            step: StepRows::single(memory.units, &memory.ones),
            bias: &self.bias,
            before: &memory.before.0,
            h: &mut memory.h,
        });
    }

    fn backward(&mut self, memory: &mut StepMemory<T>, dh: &mut [T], _: &mut [T], _: &mut [T]) {
        T::launch(Back {
            step: StepRows::single(memory.units, &memory.ones),
            h: &memory.h,
            dh,
            d: &mut memory.slope,
        });
    }

    fn tangent(&self, memory: &StepMemory<T>, of: &InputTangent<'_, T>) -> (Vec<T>, Vec<T>) {
        let pairs = memory.h.iter().zip(of.gates);
        let dh = pairs.map(|(h, p)| (T::ONE - *h * *h) * *p).collect();
        (dh, Vec::new())
    }
}
