//! A linear map with its weight packed once, for products of a few rows at a time.

use crate::autodiff::{Params, Span};
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, Packed, gemm_packed};

/// A weight, as it is and transposed.
pub struct PackedMap<T> {
    /// `W`
    pub straight: Packed<T>,
    /// `W^T`
    pub turned: Packed<T>,
}

impl<T: Real> PackedMap<T> {
    /// Packs a weight.
    pub fn new(params: &Params<T>, span: Span) -> Self {
        let (mut straight, mut turned) = (Packed::default(), Packed::default());
        straight.pack(params.mat(span));
        turned.pack(params.mat(span).t());
        PackedMap { straight, turned }
    }

    /// `y = x W`, in the memory of `y`.
    pub fn set(&self, y: &mut Vec<T>, x: &[T], items: usize) {
        y.resize(items * self.straight.columns(), T::ZERO);
        let x = Mat::new(x, items, x.len() / items);
        gemm_packed(Into::Set, y, x, &self.straight);
    }

    /// `y += x W`
    pub fn add(&self, y: &mut [T], x: &[T], items: usize) {
        let x = Mat::new(x, items, x.len() / items);
        gemm_packed(Into::Add, y, x, &self.straight);
    }

    /// `dx = dy W^T`, in the memory of `dx`.
    pub fn transposed(&self, dx: &mut Vec<T>, dy: &[T], items: usize) {
        dx.resize(items * self.turned.columns(), T::ZERO);
        let dy = Mat::new(dy, items, dy.len() / items);
        gemm_packed(Into::Set, dx, dy, &self.turned);
    }

    /// `dx += dy W^T`
    pub fn back(&self, dx: &mut [T], dy: &[T], items: usize) {
        let dy = Mat::new(dy, items, dy.len() / items);
        gemm_packed(Into::Add, dx, dy, &self.turned);
    }
}
