//! Linear maps of a block. Sums are those of `numeric::gemm`, term by term.

use super::block::Place;
use crate::autodiff::Params;
use crate::layers::recurrent::GateWeights;
use crate::numeric::Real;
use crate::numeric::gemm::Into;
use crate::numeric::simd::Lanes;
use ndarray::ArrayView2;

/// Zeros after the last number, for a whole vector.
pub(super) const WHOLE: usize = 16;

/// A weight, rows contiguous, as it is and transposed.
pub(super) struct Map<T> {
    pub terms: usize,
    pub outputs: usize,
    /// Terms come in groups of this many, as vectors of a single item have them.
    group: usize,
    /// (terms, outputs), and zeros to the end of the last whole vector.
    by_term: Vec<T>,
    /// (outputs, terms)
    by_output: Vec<T>,
}

impl<T: Real> Map<T> {
    pub fn new(weight: ArrayView2<'_, T>, group: usize) -> Self {
        let mut by_term: Vec<T> = weight.iter().copied().collect();
        by_term.resize(by_term.len() + WHOLE, T::ZERO);
        Map {
            terms: weight.nrows(),
            outputs: weight.ncols(),
            group,
            by_term,
            by_output: weight.t().iter().copied().collect(),
        }
    }

    /// One vector of `x W`: of many items that of an output, of a single one those from an output on.
    #[inline(always)]
    pub fn of<V: Lanes<T = T>, const ONE: bool>(&self, x: &[T], output: usize) -> V {
        let mut sum = V::splat(T::ZERO);
        if ONE {
            let mut from = output;
            for first in 0..self.terms / self.group {
                for x in &x[first * V::N..][..self.group] {
                    sum = V::splat(*x).fma(V::load(&self.by_term[from..][..V::N]), sum);
                    from += self.outputs;
                }
            }
        } else {
            let weights = &self.by_output[output * self.terms..][..self.terms];
            for (x, w) in x.chunks_exact(V::N).zip(weights) {
                sum = V::load(x).fma(V::splat(*w), sum);
            }
        }
        sum
    }

    /// `y = 0 + x W` or `y += x W`
    #[inline(always)]
    fn put<V: Lanes<T = T>, const ONE: bool>(&self, into: Into, y: &mut [T], x: &[T]) {
        let each = if ONE { V::N } else { 1 };
        let outputs = (0..self.outputs).step_by(each);
        for (output, y) in outputs.zip(y.chunks_exact_mut(V::N)) {
            let start = match into {
                Into::Set => V::splat(T::ZERO),
                Into::Add => V::load(y),
            };
            start.add(self.of::<V, ONE>(x, output)).store(y);
        }
    }
}

/// From input and state to gates, and back.
pub struct NarrowGates<T> {
    input: Map<T>,
    recurrent: Map<T>,
    input_back: Map<T>,
    recurrent_back: Map<T>,
    /// With zeros for a whole vector at the end.
    bias: Vec<T>,
}

impl<T: Real> NarrowGates<T> {
    /// Copies weights.
    pub fn new(params: &Params<T>, weights: &GateWeights) -> Self {
        let maps = [weights.input.weight, weights.recurrent].map(|span| {
            let weight = params.view(span);
            let back = Map::new(weight.t(), span.cols.min(weights.units()));
            (Map::new(weight, span.rows), back)
        });
        let [(input, input_back), (recurrent, recurrent_back)] = maps;
        let mut bias = weights.input.bias_in(params).to_vec();
        bias.resize(bias.len() + WHOLE, T::ZERO);
        NarrowGates {
            input,
            recurrent,
            input_back,
            recurrent_back,
            bias,
        }
    }

    /// Numbers of an input.
    pub fn inputs(&self) -> usize {
        self.input.terms
    }

    /// One vector of `x W + h U`, and of the bias.
    #[inline(always)]
    pub fn sum<V: Lanes<T = T>, const ONE: bool>(
        &self,
        place: Place<ONE>,
        [x, h]: [&[T]; 2],
        gate: usize,
        vector: usize,
    ) -> (V, V) {
        let output = gate * place.units + vector;
        let sum = self.recurrent.of::<V, ONE>(h, output);
        let sum = sum.add(self.input.of::<V, ONE>(x, output));
        let bias = if ONE {
            V::load(&self.bias[output..][..V::N])
        } else {
            V::splat(self.bias[output])
        };
        (sum, bias)
    }

    /// `dx = d W^T` or `dx += d W^T`
    #[inline(always)]
    pub fn back<V: Lanes<T = T>, const ONE: bool>(&self, into: Into, dx: &mut [T], d: &[T]) {
        self.input_back.put::<V, ONE>(into, dx, d);
    }

    /// `dh += d U^T`
    #[inline(always)]
    pub fn back_to_state<V: Lanes<T = T>, const ONE: bool>(&self, dh: &mut [T], d: &[T]) {
        self.recurrent_back.put::<V, ONE>(Into::Add, dh, d);
    }

    /// One vector of `d U^T`.
    #[inline(always)]
    pub fn of_state<V: Lanes<T = T>, const ONE: bool>(&self, d: &[T], vector: usize) -> V {
        self.recurrent_back.of::<V, ONE>(d, vector)
    }
}
