//! One step of a GRU weights. The tangent of the state is, with `p = dx W + dh U`,
//! `[dz dr] = [z r] (1 - [z r]) p`, `dn = (1 - n^2) (dx Wn + (dr h + r dh) Un)`, `dh' = (1 - z) dn + z dh + dz (h - n)`.

use super::kernels::{BackGates, BackNew, Gates, New};
use super::weights::GruWeights;
use crate::autodiff::Params;
use crate::layers::recurrent::{
    InputTangent, PackedMap, StepEquations, StepMemory, StepRows, repeat,
};
use crate::numeric::Real;

/// The equations with packed weights.
pub struct GruStep<T> {
    maps: [PackedMap<T>; 2],
    maps_new: [PackedMap<T>; 2],
    bias: Vec<T>,
    bias_new: Vec<T>,
    /// `n`
    new: Vec<T>,
    /// `r h`
    reset: Vec<T>,
    slope_new: Vec<T>,
    slope_reset: Vec<T>,
}

impl<T: Real> GruStep<T> {
    pub(super) fn new(params: &Params<T>, weights: &GruWeights) -> Self {
        let (maps, bias) = weights.gates.of_a_step(params);
        let (maps_new, bias_new) = weights.new.of_a_step(params);
        GruStep {
            maps,
            maps_new,
            bias,
            bias_new,
            new: Vec::new(),
            reset: Vec::new(),
            slope_new: Vec::new(),
            slope_reset: Vec::new(),
        }
    }
}

impl<T: Real> StepEquations<T> for GruStep<T> {
    fn maps(&self) -> [&PackedMap<T>; 2] {
        self.maps.each_ref()
    }

    fn forward(&mut self, memory: &mut StepMemory<T>, recurrent: &[T], x: &[T], copies: usize) {
        let (n, items) = (memory.units, memory.ones.len());
        let (before, step) = (&memory.before.0[..], StepRows::single(n, &memory.ones));
        self.reset.resize(items * n, T::ZERO);
        repeat(&mut memory.gates, recurrent, copies);
        self.maps[0].add(&mut memory.gates, x, items);
        self.maps_new[0].set(&mut self.new, x, items);
        T::launch(Gates {
            step,
            bias: &self.bias,
            g: &mut memory.gates,
            before,
            q: &mut self.reset,
        });
        self.maps_new[1].add(&mut self.new, &self.reset, items);
        T::launch(New {
            step,
            bias: &self.bias_new,
            g: &memory.gates,
            a: &mut self.new,
            before,
            h: &mut memory.h,
        });
    }

    fn backward(&mut self, memory: &mut StepMemory<T>, dh: &mut [T], _: &mut [T], dx: &mut [T]) {
        let (n, items) = (memory.units, memory.ones.len());
        let (before, step) = (&memory.before.0[..], StepRows::single(n, &memory.ones));
        self.slope_new.resize(items * n, T::ZERO);
        T::launch(BackNew {
            step,
            g: &memory.gates,
            a: &self.new,
            before,
            more_g: None,
            more_a: None,
            dh,
            dg: &mut memory.slope,
            da: &mut self.slope_new,
        });
        self.maps_new[1].transposed(&mut self.slope_reset, &self.slope_new, items);
        T::launch(BackGates {
            step,
            g: &memory.gates,
            before,
            dq: &self.slope_reset,
            dh,
            dg: &mut memory.slope,
        });
        self.maps_new[0].back(dx, &self.slope_new, items);
    }

    fn tangent(&self, memory: &StepMemory<T>, of: &InputTangent<'_, T>) -> (Vec<T>, Vec<T>) {
        let (p, dh) = (of.gates, of.dh);
        let (n, one, g, h) = (memory.units, T::ONE, &memory.gates, &memory.before.0);
        let slope: Vec<T> = (0..2 * n).map(|j| g[j] * (one - g[j]) * p[j]).collect();
        let dq = (0..n).map(|j| slope[n + j] * h[j] + g[n + j] * dh[j]);
        let (dq, mut dn) = (dq.collect::<Vec<T>>(), Vec::new());
        self.maps_new[0].set(&mut dn, of.dx, 1);
        self.maps_new[1].add(&mut dn, &dq, 1);
        let new = &self.new;
        let unit = |j: usize| {
            let dn = (one - new[j] * new[j]) * dn[j];
            (one - g[j]) * dn + g[j] * dh[j] + slope[j] * (h[j] - new[j])
        };
        ((0..n).map(unit).collect(), Vec::new())
    }
}
