//! A dense layer with few inputs and outputs, row after row. Sums are those of `numeric::gemm`, term by term.

use super::UNITS;
use super::map::{Map, WHOLE};
use crate::autodiff::Params;
use crate::layers::Dense;
use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// The weights of a dense layer.
pub struct NarrowDense<T> {
    map: Map<T>,
    back: Map<T>,
    /// With zeros for a whole vector at the end.
    bias: Vec<T>,
}

impl<T: Real> NarrowDense<T> {
    /// Copies weights; nothing if a row does not fit a vector.
    pub fn new(layer: &Dense, params: &Params<T>) -> Option<Self> {
        let (inputs, outputs) = (layer.weight.rows, layer.weight.cols);
        if inputs.max(outputs) > UNITS {
            return None;
        }
        let weight = params.view(layer.weight);
        let mut bias = layer.bias.map_or_else(Vec::new, |b| params.get(b).to_vec());
        bias.resize(outputs + WHOLE, T::ZERO);
        Some(NarrowDense {
            map: Map::new(weight, inputs),
            back: Map::new(weight.t(), outputs),
            bias,
        })
    }

    /// `y = x W + b`
    pub fn forward(&self, y: &mut [T], x: &[T]) {
        let (start, map) = (&self.bias, &self.map);
        T::launch(Rows { start, map, y, x });
    }

    /// `dx = dy W^T`
    pub fn back(&self, dx: &mut [T], dy: &[T]) {
        let (start, map) = (&[T::ZERO; WHOLE], &self.back);
        let (y, x) = (dx, dy);
        T::launch(Rows { start, map, y, x });
    }
}

/// Every row of `x` through a map, added to the start.
struct Rows<'a, T> {
    start: &'a [T],
    map: &'a Map<T>,
    y: &'a mut [T],
    x: &'a [T],
}

impl<T: Real> Kernel<T> for Rows<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let start = V::load(&self.start[..V::N]);
        let rows = self.x.chunks_exact(self.map.terms);
        for (y, x) in self.y.chunks_exact_mut(self.map.outputs).zip(rows) {
            start.add(self.map.of::<V, true>(x, 0)).store(y);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::{Init, Layout};
    use crate::numeric::gemm::{Into, Mat, gemm, gemm_bias};
    use crate::numeric::simd::{CHOSEN, available};

    fn noise<T: Real>(numbers: usize, frequency: f64) -> Vec<T> {
        let number = |i| T::of((i as f64 * frequency + 0.3).sin());
        (0..numbers).map(number).collect()
    }

    fn agree<T: Real>(inputs: usize, outputs: usize, items: usize) {
        let mut layout = Layout::default();
        let layer = Dense::new(&mut layout, "d", inputs, outputs, Init::Uniform(0.7));
        let mut params: Params<T> = Params::init(&layout, 3);
        // The bias starts at zero, which hides it.
        let d = noise::<T>(params.trained.len(), 0.37);
        params.trained.iter_mut().zip(d).for_each(|(x, d)| *x += d);
        let narrow = NarrowDense::new(&layer, &params).expect("few numbers");
        let (x, dy) = (noise(items * inputs, 1.3), noise(items * outputs, 0.9));
        let [mut y, mut all] = [0, 1].map(|_| vec![T::ZERO; items * outputs]);
        narrow.forward(&mut y, &x);
        let (weight, bias) = (params.mat(layer.weight), layer.bias_in(&params));
        gemm_bias(&mut all, Mat::new(&x, items, inputs), weight, bias);
        assert!(
            T::same_bits(&y, &all),
            "{inputs} to {outputs}, {items} rows"
        );
        let [mut dx, mut all] = [0, 1].map(|_| vec![T::ZERO; items * inputs]);
        narrow.back(&mut dx, &dy);
        let dy = Mat::new(&dy, items, outputs);
        gemm(Into::Add, &mut all, dy, weight.t());
        assert!(
            T::same_bits(&dx, &all),
            "{inputs} to {outputs}, {items} rows"
        );
    }

    #[test]
    fn a_narrow_dense_layer_has_the_bits_of_the_product() {
        for isa in available() {
            CHOSEN.set(Some(isa));
            for (inputs, outputs) in (1..=UNITS).flat_map(|i| (1..=UNITS).map(move |o| (i, o))) {
                for items in [1, 2, 7, 33] {
                    agree::<f32>(inputs, outputs, items);
                    agree::<f64>(inputs, outputs, items);
                }
            }
            CHOSEN.set(None);
        }
    }
}
