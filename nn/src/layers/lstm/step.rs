//! One step of an LSTM layer. The tangent of the state is, with `p = dx W + dh U`,
//! `[di df do] = s (1 - s) p`, `dg = (1 - g^2) p`, `dc' = df c + f dc + di g + i dg`,
//! `dh' = do tanh(c') + o (1 - tanh(c')^2) dc'`.

use super::kernels::{Back, Forward};
use crate::autodiff::Params;
use crate::layers::recurrent::{
    GateWeights, InputTangent, StepBias, StepEquations, StepMap, StepMemory, StepRows, repeat,
};
use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// The equations with packed weights.
pub struct LstmStep<T> {
    maps: [StepMap<T>; 2],
    bias: StepBias<T>,
    tanh_c: Vec<T>,
}

impl<T: Real> LstmStep<T> {
    pub(super) fn new(params: &Params<T>, weights: &GateWeights, columns: bool) -> Self {
        let (maps, bias) = weights.of_a_step(params, columns);
        LstmStep {
            maps,
            bias,
            tanh_c: Vec::new(),
        }
    }
}

impl<T: Real> StepEquations<T> for LstmStep<T> {
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
        let (n, items, beside) = (memory.units, memory.items, memory.beside());
        memory.c.resize(items * n, T::ZERO);
        self.tanh_c.resize(items * n, T::ZERO);
        repeat(&mut memory.gates, recurrent, copies);
        self.maps[0].add::<V>(&mut memory.gates, x, items);
        Forward {
            step: StepRows::single(memory.row, &memory.ones),
            bias: self.bias.of(beside),
            g: &mut memory.gates,
            h_before: &memory.before.0,
            c_before: &memory.before.1,
            h: &mut memory.h,
            c: &mut memory.c,
            tanh_c: &mut self.tanh_c,
        }
        .run::<V>();
    }

    #[inline(always)]
    fn backward<V: Lanes<T = T>>(
        &mut self,
        memory: &mut StepMemory<T>,
        dh: &mut [T],
        dc: &mut [T],
        _: &mut [T],
    ) {
        Back {
            step: StepRows::single(memory.row, &memory.ones),
            gates: &memory.gates,
            tanh_c: &self.tanh_c,
            c_before: &memory.before.1,
            extra: None,
            dh,
            dc,
            d: &mut memory.slope,
        }
        .run::<V>();
    }

    fn tangent(&self, memory: &StepMemory<T>, of: &InputTangent<'_, T>) -> (Vec<T>, Vec<T>) {
        let (p, dc) = (of.gates, of.dc);
        let (n, one) = (memory.units, T::ONE);
        let [gates, c, tanh_c] =
            [&memory.gates, &memory.before.1, &self.tanh_c].map(|v| memory.first(v));
        let mut dc_new = vec![T::ZERO; dc.len()];
        let mut unit = |j: usize| {
            let [i, f, g, o] = [0, 1, 2, 3].map(|k| gates[k * n + j]);
            let sigmoid = |k: usize, s: T| s * (one - s) * p[k * n + j];
            let dg = (one - g * g) * p[2 * n + j];
            let squashed = tanh_c[j];
            dc_new[j] = sigmoid(1, f) * c[j] + f * dc[j] + sigmoid(0, i) * g + i * dg;
            sigmoid(3, o) * squashed + o * (one - squashed * squashed) * dc_new[j]
        };
        let dh_new = (0..n).map(&mut unit).collect();
        (dh_new, dc_new)
    }
}
