//! A linear map for columns: (numbers, items), the same number of all items side by side.
//!
//! Sums are those of `numeric::gemm`, term by term, so the bits are those of rows.

use crate::autodiff::{Params, Span};
use crate::numeric::Real;
use crate::numeric::gemm::{BLOCK, Into};
use crate::numeric::simd::{Kernel, Lanes};

/// A weight, as it is and transposed, rows contiguous.
pub struct ColumnMap<T> {
    inputs: usize,
    straight: Vec<T>,
    turned: Vec<T>,
}

impl<T: Real> ColumnMap<T> {
    /// The most terms of a sum: `numeric::gemm` cuts longer ones into blocks.
    pub const TERMS: usize = BLOCK;

    /// Copies a weight.
    pub fn new(params: &Params<T>, span: Span) -> Self {
        let weight = params.view(span);
        ColumnMap {
            inputs: span.rows,
            straight: weight.iter().copied().collect(),
            turned: weight.t().iter().copied().collect(),
        }
    }

    /// Numbers of an input.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers of an output.
    pub fn outputs(&self) -> usize {
        self.straight.len() / self.inputs
    }

    /// `y = x W` or `y += x W`
    #[inline(always)]
    pub fn times<'a>(
        &'a self,
        into: Into,
        y: &'a mut [T],
        x: &'a [T],
        items: usize,
    ) -> Product<'a, T> {
        Product {
            into,
            y,
            by_term: &self.straight,
            by_output: &self.turned,
            x,
            items,
        }
    }

    /// The same with `W^T`.
    #[inline(always)]
    pub fn times_turned<'a>(
        &'a self,
        into: Into,
        y: &'a mut [T],
        x: &'a [T],
        items: usize,
    ) -> Product<'a, T> {
        Product {
            into,
            y,
            by_term: &self.turned,
            by_output: &self.straight,
            x,
            items,
        }
    }
}

/// The product of columns `x` (terms, items) and a weight, `y` (outputs, items); several items fill whole vectors.
pub struct Product<'a, T> {
    into: Into,
    y: &'a mut [T],
    /// The weight, (terms, outputs).
    by_term: &'a [T],
    /// The weight, (outputs, terms).
    by_output: &'a [T],
    x: &'a [T],
    items: usize,
}

impl<T: Real> Kernel<T> for Product<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        if self.items == 1 {
            self.of_one::<V>();
        } else {
            self.of_many::<V>();
        }
    }
}

impl<T: Real> Product<'_, T> {
    /// Vectors of outputs.
    #[inline(always)]
    fn of_one<V: Lanes<T = T>>(self) {
        let outputs = self.y.len();
        for (i, y) in self.y.chunks_mut(V::N).enumerate() {
            let at = i * V::N..i * V::N + y.len();
            let mut sum = V::splat(T::ZERO);
            for (x, w) in self.x.iter().zip(self.by_term.chunks_exact(outputs)) {
                sum = V::splat(*x).fma(V::load(&w[at.clone()]), sum);
            }
            store(self.into, sum, y);
        }
    }

    /// Vectors of items.
    #[inline(always)]
    fn of_many<V: Lanes<T = T>>(self) {
        let (items, terms) = (self.items, self.x.len() / self.items);
        let outputs = self.by_output.chunks_exact(terms);
        for (w, y) in outputs.zip(self.y.chunks_exact_mut(items)) {
            for (i, y) in y.chunks_exact_mut(V::N).enumerate() {
                let mut sum = V::splat(T::ZERO);
                for (w, x) in w.iter().zip(self.x.chunks_exact(items)) {
                    sum = V::load(&x[i * V::N..][..V::N]).fma(V::splat(*w), sum);
                }
                store(self.into, sum, y);
            }
        }
    }
}

#[inline(always)]
fn store<V: Lanes>(into: Into, sum: V, y: &mut [V::T]) {
    let sum = match into {
        Into::Set => sum,
        Into::Add => V::load(y).add(sum),
    };
    sum.store(y);
}
