//! Joining two values of the same rows: concatenated, or added.
//!
//! `concat`: `y[row] = [a[row], b[row]]`; backward cuts `dy` in two.
//! `sum`: `y = a + b`; backward hands `dy` to both.

use crate::autodiff::{Tape, Var};
use crate::layers::slices::add;
use crate::numeric::Real;

/// Rows of `a` followed by rows of `b`.
pub fn concat<T: Real>(tape: &mut Tape<T>, a: Var, b: Var) -> Var {
    let (sa, sb) = (tape.shape(a), tape.shape(b));
    let y = tape.output(sa.with_dim(sa.dim + sb.dim), &[a, b], false);
    let mut out = tape.take(y);
    for (row, to) in out.chunks_exact_mut(sa.dim + sb.dim).enumerate() {
        to[..sa.dim].copy_from_slice(&tape.get(a)[row * sa.dim..][..sa.dim]);
        to[sa.dim..].copy_from_slice(&tape.get(b)[row * sb.dim..][..sb.dim]);
    }
    tape.put(y, out);
    tape.record_output(y, move |tape, _, _, dy| {
        let (whole, cut) = (tape.shape(y).dim, tape.shape(a).dim);
        for (v, part) in [(a, 0..cut), (b, cut..whole)] {
            tape.add_grad_with(v, |_, d| {
                for (to, from) in d.chunks_exact_mut(part.len()).zip(dy.chunks_exact(whole)) {
                    add(to, &from[part.clone()]);
                }
            });
        }
    });
    y
}

/// `a + b`
pub fn sum<T: Real>(tape: &mut Tape<T>, a: Var, b: Var) -> Var {
    let shape = tape.shape(a);
    let y = tape.output(shape, &[a, b], false);
    let mut out = tape.take(y);
    for ((y, a), b) in out.iter_mut().zip(tape.get(a)).zip(tape.get(b)) {
        *y = *a + *b;
    }
    tape.put(y, out);
    tape.record_output(y, move |tape, _, _, dy| {
        for v in [a, b] {
            tape.add_grad(v, dy);
        }
    });
    y
}
