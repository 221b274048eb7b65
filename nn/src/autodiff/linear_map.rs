//! Products with a weight, packed beforehand or not: the bits are the same.

use super::layout::Span;
use super::params::Params;
use super::values::Values;
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, gemm, gemm_bias, gemm_packed, gemm_packed_bias};

/// `y = x W` or, with a bias, `y = x W + b`.
pub(crate) fn map<T: Real>(
    values: &Values<T>,
    params: &Params<T>,
    weight: Span,
    bias: Option<Span>,
    x: Mat<T>,
    y: &mut [T],
) {
    let packed = values.packed(weight).map(|p| p.0);
    match (packed, bias.map(|b| params.get(b))) {
        (None, None) => gemm(Into::Set, y, x, params.mat(weight)),
        (None, Some(bias)) => gemm_bias(y, x, params.mat(weight), bias),
        (Some(packed), None) => gemm_packed(Into::Set, y, x, packed),
        (Some(packed), Some(bias)) => gemm_packed_bias(y, x, packed, bias),
    }
}

/// `dx += dy W^T`
pub(crate) fn map_back<T: Real>(
    values: &Values<T>,
    params: &Params<T>,
    weight: Span,
    dy: Mat<T>,
    dx: &mut [T],
) {
    match values.packed(weight) {
        None => gemm(Into::Add, dx, dy, params.mat(weight).t()),
        Some((_, turned)) => gemm_packed(Into::Add, dx, dy, turned),
    }
}
