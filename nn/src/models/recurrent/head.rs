//! The classifier's head on one state: `z = relu(h A + a) B + b`, or `z = h B + b` without a hidden layer.

use crate::autodiff::Params;
use crate::layers::narrow::NarrowDense;
use crate::layers::{Dense, PackedMap};
use crate::numeric::Real;
use crate::numeric::gemm::{Mat, gemm_packed_bias};

/// The head with its weights packed once.
pub(super) struct Head<T> {
    layers: Vec<Layer<T>>,
    /// What each layer gave last.
    values: Vec<Vec<T>>,
    /// The gradient on its way back, and room for the next one.
    slopes: [Vec<T>; 2],
}

/// One dense layer.
struct Layer<T> {
    inputs: usize,
    outputs: usize,
    map: LayerMap<T>,
}

enum LayerMap<T> {
    Narrow(NarrowDense<T>),
    Packed(PackedMap<T>, Vec<T>),
}

impl<T: Real> Layer<T> {
    fn new(dense: &Dense, params: &Params<T>) -> Self {
        let (inputs, outputs) = (dense.weight.rows, dense.weight.cols);
        let packed = || {
            let bias = dense.bias.map(|b| params.get(b).to_vec());
            let bias = bias.unwrap_or_else(|| vec![T::ZERO; outputs]);
            LayerMap::Packed(PackedMap::new(params, dense.weight), bias)
        };
        let map = NarrowDense::new(dense, params).map_or_else(packed, LayerMap::Narrow);
        Layer {
            inputs,
            outputs,
            map,
        }
    }

    fn forward(&self, y: &mut Vec<T>, x: &[T], items: usize) {
        y.resize(items * self.outputs, T::ZERO);
        match &self.map {
            LayerMap::Narrow(map) => map.forward(y, x),
            LayerMap::Packed(map, bias) => {
                gemm_packed_bias(y, Mat::new(x, items, self.inputs), &map.straight, bias);
            }
        }
    }

    fn back(&self, dx: &mut Vec<T>, dy: &[T], items: usize) {
        dx.clear();
        dx.resize(items * self.inputs, T::ZERO);
        match &self.map {
            LayerMap::Narrow(map) => map.back(dx, dy),
            LayerMap::Packed(map, _) => map.back(dx, dy, items),
        }
    }
}

impl<T: Real> Head<T> {
    /// Dense layers with ReLU between them.
    pub fn new<'d>(layers: impl Iterator<Item = &'d Dense>, params: &Params<T>) -> Self {
        let layers: Vec<_> = layers.map(|dense| Layer::new(dense, params)).collect();
        Head {
            values: vec![Vec::new(); layers.len()],
            layers,
            slopes: Default::default(),
        }
    }

    /// The logits of hidden states (items, units), to be read or to be replaced for [`Head::backward`].
    pub fn forward(&mut self, h: &[T], items: usize) -> &mut [T] {
        for (k, layer) in self.layers.iter().enumerate() {
            let (before, after) = self.values.split_at_mut(k);
            let x = before.last_mut().map_or(h, |x| {
                let zero = T::ZERO;
                x.iter_mut()
                    .for_each(|x| *x = if *x < zero { zero } else { *x });
                x
            });
            layer.forward(&mut after[0], x, items);
        }
        self.values.last_mut().map_or(&mut [], |logits| logits)
    }

    /// The gradient of `d . logits` with respect to the states of the last [`Head::forward`], whose logits have been
    /// replaced by `d`.
    pub fn backward(&mut self, items: usize) -> &[T] {
        let [slope, before] = &mut self.slopes;
        let mut d = self.values.last();
        for (k, layer) in self.layers.iter().enumerate().rev() {
            let dy = d.take().unwrap_or(slope);
            layer.back(before, dy, items);
            if k > 0 {
                for (d, x) in before.iter_mut().zip(&self.values[k - 1]) {
                    *d = if *x > T::ZERO { *d } else { T::ZERO };
                }
            }
            std::mem::swap(slope, before);
        }
        slope
    }
}
