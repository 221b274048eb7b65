//! A few rows times four vectors of columns, summed in registers: the inner loop of layers that do more with a sum
//! than store it. Sums are those of `numeric::gemm`, term by term.

use crate::numeric::Real;
use crate::numeric::simd::Lanes;

/// Columns of one of the four vectors, or of two where vectors are half as wide.
pub(in crate::layers) const UNITS: usize = 16;
/// Numbers of one term of the sum: four vectors.
pub(in crate::layers) const TERM: usize = 4 * UNITS;

/// As many rows as there are registers for: 32 of 16 lanes, or 16 of 8.
#[inline(always)]
pub(in crate::layers) fn rows_of<V: Lanes>() -> usize {
    if V::N == 16 { 6 } else { 2 }
}

/// `sums[r][k] += sum_p rows[r][p] terms[p][k]`, where vector `k` of a term starts at `lane` of its [`UNITS`].
#[inline(always)]
pub(in crate::layers) fn add_terms<V: Lanes, const M: usize>(
    sums: &mut [[V; 4]; M],
    rows: [&[V::T]; M],
    terms: &[V::T],
    lane: usize,
) where
    V::T: Real,
{
    let length = terms.len() / TERM;
    let rows = rows.map(|row| &row[..length]);
    for (p, term) in (0..length).zip(terms.chunks_exact(TERM)) {
        let mut right = [V::splat(V::T::ZERO); 4];
        for (k, right) in right.iter_mut().enumerate() {
            *right = V::load(&term[k * UNITS + lane..][..V::N]);
        }
        for (row, sums) in rows.iter().zip(sums.iter_mut()) {
            let left = V::splat(row[p]);
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = left.fma(right, *sum);
            }
        }
    }
}
