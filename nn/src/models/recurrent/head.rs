//! The classifier's head on one state: `z = relu(h A + a) B + b`, or `z = h B + b` without a hidden layer.

use crate::autodiff::Params;
use crate::layers::{Dense, PackedMap};
use crate::numeric::Real;
use crate::numeric::gemm::{Mat, gemm_packed_bias};

/// The head with its weights packed once.
pub(super) struct Head<T> {
    layers: Vec<(PackedMap<T>, Vec<T>)>,
    /// What each layer read last.
    read: Vec<Vec<T>>,
}

impl<T: Real> Head<T> {
    /// Dense layers with ReLU between them.
    pub fn new<'d>(layers: impl Iterator<Item = &'d Dense>, params: &Params<T>) -> Self {
        let pack = |d: &Dense| {
            let bias = d.bias.map(|b| params.get(b).to_vec());
            let bias = bias.unwrap_or_else(|| vec![T::ZERO; d.weight.cols]);
            (PackedMap::new(params, d.weight), bias)
        };
        Head {
            layers: layers.map(pack).collect(),
            read: Vec::new(),
        }
    }

    /// The logits of hidden states (items, units).
    pub fn forward(&mut self, h: Vec<T>, items: usize) -> Vec<T> {
        self.read.clear();
        let mut x = h;
        for (k, (map, bias)) in self.layers.iter().enumerate() {
            if k > 0 {
                let zero = T::ZERO;
                x.iter_mut()
                    .for_each(|x| *x = if *x < zero { zero } else { *x });
            }
            let mut y = vec![T::ZERO; items * bias.len()];
            let rows = Mat::new(&x, items, x.len() / items);
            gemm_packed_bias(&mut y, rows, &map.straight, bias);
            self.read.push(std::mem::replace(&mut x, y));
        }
        x
    }

    /// The gradient of `d . logits` with respect to the states of the last [`Head::forward`].
    pub fn backward(&self, d: &[T], items: usize) -> Vec<T> {
        let mut d = d.to_vec();
        for (k, ((map, _), read)) in self.layers.iter().zip(&self.read).enumerate().rev() {
            let mut before = vec![T::ZERO; read.len()];
            map.back(&mut before, &d, items);
            if k > 0 {
                for (d, x) in before.iter_mut().zip(read) {
                    *d = if *x > T::ZERO { *d } else { T::ZERO };
                }
            }
            d = before;
        }
        d
    }
}
