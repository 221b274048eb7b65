//! One step of an LSTM layer. The tangent of the state is, with `p = dx W + dh U`,
//! `[di df do] = s (1 - s) p`, `dg = (1 - g^2) p`, `dc' = df c + f dc + di g + i dg`,
//! `dh' = do tanh(c') + o (1 - tanh(c')^2) dc'`.

use super::kernels::{Back, Forward};
use crate::autodiff::Params;
use crate::layers::recurrent::{
    GateWeights, InputTangent, PackedMap, StepEquations, StepMemory, StepRows, repeat,
};
use crate::numeric::Real;

/// The equations with packed weights.
pub struct LstmStep<T> {
    maps: [PackedMap<T>; 2],
    bias: Vec<T>,
    tanh_c: Vec<T>,
}

impl<T: Real> LstmStep<T> {
    pub(super) fn new(params: &Params<T>, weights: &GateWeights) -> Self {
        let (maps, bias) = weights.of_a_step(params);
        LstmStep {
            maps,
            bias,
            tanh_c: Vec::new(),
        }
    }
}

impl<T: Real> StepEquations<T> for LstmStep<T> {
    fn maps(&self) -> [&PackedMap<T>; 2] {
        self.maps.each_ref()
    }

    fn forward(&mut self, memory: &mut StepMemory<T>, recurrent: &[T], x: &[T], copies: usize) {
        let (n, items) = (memory.units, memory.ones.len());
        memory.c.resize(items * n, T::ZERO);
        self.tanh_c.resize(items * n, T::ZERO);
        repeat(&mut memory.gates, recurrent, copies);
        self.maps[0].add(&mut memory.gates, x, items);
        T::launch(Forward {
            step: StepRows::single(n, &memory.ones),
            bias: &self.bias,
            g: &mut memory.gates,
            h_before: &memory.before.0,
            c_before: &memory.before.1,
            h: &mut memory.h,
            c: &mut memory.c,
            tanh_c: &mut self.tanh_c,
        });
    }

    fn backward(&mut self, memory: &mut StepMemory<T>, dh: &mut [T], dc: &mut [T], _: &mut [T]) {
        T::launch(Back {
            step: StepRows::single(memory.units, &memory.ones),
            gates: &memory.gates,
            tanh_c: &self.tanh_c,
            c_before: &memory.before.1,
            extra: None,
            dh,
            dc,
            d: &mut memory.slope,
        });
    }

    fn tangent(&self, memory: &StepMemory<T>, of: &InputTangent<'_, T>) -> (Vec<T>, Vec<T>) {
        let (p, dc) = (of.gates, of.dc);
        let (n, one, gates) = (memory.units, T::ONE, &memory.gates);
        let mut dc_new = vec![T::ZERO; dc.len()];
        let mut unit = |j: usize| {
            let [i, f, g, o] = [0, 1, 2, 3].map(|k| gates[k * n + j]);
            let sigmoid = |k: usize, s: T| s * (one - s) * p[k * n + j];
            let dg = (one - g * g) * p[2 * n + j];
            let squashed = self.tanh_c[j];
            dc_new[j] = sigmoid(1, f) * memory.before.1[j] + f * dc[j] + sigmoid(0, i) * g + i * dg;
            sigmoid(3, o) * squashed + o * (one - squashed * squashed) * dc_new[j]
        };
        let dh_new = (0..n).map(&mut unit).collect();
        (dh_new, dc_new)
    }
}
