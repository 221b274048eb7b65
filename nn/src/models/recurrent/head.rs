//! The classifier's head on one state: `z = relu(h A + a) B + b`, or `z = h B + b` without a hidden layer.

use crate::autodiff::Params;
use crate::layers::{Dense, PackedMap};
use crate::numeric::Real;
use crate::numeric::gemm::{Mat, gemm_packed_bias};

/// The head with its weights packed once.
pub(super) struct Head<T> {
    layers: Vec<(PackedMap<T>, Vec<T>)>,
    /// What each layer read last, and what the last one gave.
    values: Vec<Vec<T>>,
    /// The gradient on its way back, and room for the next one.
    slopes: [Vec<T>; 2],
}

impl<T: Real> Head<T> {
    /// Dense layers with ReLU between them.
    pub fn new<'d>(layers: impl Iterator<Item = &'d Dense>, params: &Params<T>) -> Self {
        let pack = |d: &Dense| {
            let bias = d.bias.map(|b| params.get(b).to_vec());
            let bias = bias.unwrap_or_else(|| vec![T::ZERO; d.weight.cols]);
            (PackedMap::new(params, d.weight), bias)
        };
        let layers: Vec<_> = layers.map(pack).collect();
        Head {
            values: vec![Vec::new(); layers.len() + 1],
            layers,
            slopes: Default::default(),
        }
    }

    /// The logits of hidden states (items, units).
    pub fn forward(&mut self, h: &[T], items: usize) -> &[T] {
        self.values[0].clear();
        self.values[0].extend_from_slice(h);
        for (k, (map, bias)) in self.layers.iter().enumerate() {
            let [x, y] = &mut self.values[k..k + 2] else {
                unreachable!("a value more than layers")
            };
            if k > 0 {
                let zero = T::ZERO;
                x.iter_mut()
                    .for_each(|x| *x = if *x < zero { zero } else { *x });
            }
            y.resize(items * bias.len(), T::ZERO);
            let rows = Mat::new(x, items, x.len() / items);
            gemm_packed_bias(y, rows, &map.straight, bias);
        }
        &self.values[self.layers.len()]
    }

    /// The gradient of `d . logits` with respect to the states of the last [`Head::forward`].
    pub fn backward(&mut self, d: &[T], items: usize) -> &[T] {
        let [slope, before] = &mut self.slopes;
        slope.clear();
        slope.extend_from_slice(d);
        for (k, ((map, _), read)) in self.layers.iter().zip(&self.values).enumerate().rev() {
            before.clear();
            before.resize(read.len(), T::ZERO);
            map.back(before, slope, items);
            if k > 0 {
                for (d, x) in before.iter_mut().zip(read) {
                    *d = if *x > T::ZERO { *d } else { T::ZERO };
                }
            }
            std::mem::swap(slope, before);
        }
        slope
    }
}
