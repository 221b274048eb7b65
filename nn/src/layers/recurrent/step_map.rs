//! A linear map of one step, for items as rows or as columns.

use super::column_map::ColumnMap;
use super::packed_map::PackedMap;
use crate::autodiff::{Params, Span};
use crate::numeric::Real;
use crate::numeric::gemm::Into;
use crate::numeric::simd::{Kernel, Lanes};

/// A weight.
pub enum StepMap<T> {
    /// For rows, (items, numbers).
    Rows(PackedMap<T>),
    /// For columns, (numbers, items).
    Columns(ColumnMap<T>),
}

impl<T: Real> StepMap<T> {
    /// Copies a weight.
    pub fn new(params: &Params<T>, span: Span, columns: bool) -> Self {
        match columns {
            true => StepMap::Columns(ColumnMap::new(params, span)),
            false => StepMap::Rows(PackedMap::new(params, span)),
        }
    }

    /// `y = x W`, in the memory of `y`.
    #[inline(always)]
    pub fn set<V: Lanes<T = T>>(&self, y: &mut Vec<T>, x: &[T], items: usize) {
        match self {
            StepMap::Rows(map) => map.set(y, x, items),
            StepMap::Columns(map) => {
                y.resize(items * map.outputs(), T::ZERO);
                map.times(Into::Set, y, x, items).run::<V>();
            }
        }
    }

    /// `y += x W`
    #[inline(always)]
    pub fn add<V: Lanes<T = T>>(&self, y: &mut [T], x: &[T], items: usize) {
        match self {
            StepMap::Rows(map) => map.add(y, x, items),
            StepMap::Columns(map) => map.times(Into::Add, y, x, items).run::<V>(),
        }
    }

    /// `dx = dy W^T`, in the memory of `dx`.
    #[inline(always)]
    pub fn transposed<V: Lanes<T = T>>(&self, dx: &mut Vec<T>, dy: &[T], items: usize) {
        match self {
            StepMap::Rows(map) => map.transposed(dx, dy, items),
            StepMap::Columns(map) => {
                dx.resize(items * map.inputs(), T::ZERO);
                map.times_turned(Into::Set, dx, dy, items).run::<V>();
            }
        }
    }

    /// `dx += dy W^T`
    #[inline(always)]
    pub fn back<V: Lanes<T = T>>(&self, dx: &mut [T], dy: &[T], items: usize) {
        match self {
            StepMap::Rows(map) => map.back(dx, dy, items),
            StepMap::Columns(map) => map.times_turned(Into::Add, dx, dy, items).run::<V>(),
        }
    }

    /// `y = x W` or `y += x W` of a single item, outside of kernels.
    pub fn of_one(&self, into: Into, y: &mut Vec<T>, x: &[T]) {
        match (self, into) {
            (StepMap::Rows(map), Into::Set) => map.set(y, x, 1),
            (StepMap::Rows(map), Into::Add) => map.add(y, x, 1),
            (StepMap::Columns(map), _) => {
                y.resize(map.outputs(), T::ZERO);
                T::launch(map.times(into, y, x, 1));
            }
        }
    }
}
