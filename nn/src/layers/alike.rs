//! Rows that all items of a batch share, computed once and copied.
//!
//! An attack asks about a thousand texts that differ in one place. A row of a product has the same bits whatever the
//! other rows are, so at every other place one row will do for all. Only where no gradient is wanted.

use crate::autodiff::{Params, Span, Tape, Var, Want, map};
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

/// At which steps all items of a value have the same row.
pub(in crate::layers) struct Alike(Vec<bool>);

impl Alike {
    /// Looks; nothing is alike where a gradient is wanted, or where there is one item.
    pub fn of<T: Real>(tape: &Tape<T>, x: Var) -> Self {
        let shape = tape.shape(x);
        if tape.want() != Want::NOTHING || shape.batch < 2 || shape.dim == 0 {
            return Alike(vec![false; shape.time]);
        }
        let steps = tape.get(x).chunks_exact(shape.batch * shape.dim);
        Alike(steps.map(|step| rows_equal(step, shape.dim)).collect())
    }

    /// Whether all items have the same row at step `t`.
    pub fn at(&self, t: usize) -> bool {
        self.0[t]
    }

    /// Whether there is such a step.
    pub fn any(&self) -> bool {
        self.0.contains(&true)
    }
}

/// Whether all rows have the bits of the first.
pub(in crate::layers) fn rows_equal<T: Real>(rows: &[T], dim: usize) -> bool {
    let (first, others) = rows.split_at(dim);
    others.chunks_exact(dim).all(|row| T::same_bits(row, first))
}

/// The first row becomes all rows.
pub(in crate::layers) fn spread<T: Copy>(rows: &mut [T], dim: usize) {
    let (first, others) = rows.split_at_mut(dim);
    for row in others.chunks_exact_mut(dim) {
        row.copy_from_slice(first);
    }
}

/// `y = x W` or, with a bias, `y = x W + b`, for every row of a value.
pub(in crate::layers) fn map_steps<T: Real>(
    tape: &Tape<T>,
    params: &Params<T>,
    weight: Span,
    bias: Option<Span>,
    x: Var,
    y: &mut [T],
) {
    let (shape, rows, alike) = (tape.shape(x), tape.get(x), Alike::of(tape, x));
    if !alike.any() {
        let rows = Mat::new(rows, shape.rows(), shape.dim);
        return map(tape, params, weight, bias, rows, y);
    }
    let items = |t: usize| if alike.at(t) { 1 } else { shape.batch };
    let mut distinct = Vec::new();
    for (t, step) in rows.chunks_exact(shape.batch * shape.dim).enumerate() {
        distinct.extend_from_slice(&step[..items(t) * shape.dim]);
    }
    let count = distinct.len() / shape.dim;
    let mut mapped = vec![T::ZERO; count * weight.cols];
    let distinct = Mat::new(&distinct, count, shape.dim);
    map(tape, params, weight, bias, distinct, &mut mapped);
    let mut left = &mapped[..];
    for (t, step) in y.chunks_exact_mut(shape.batch * weight.cols).enumerate() {
        let (own, others) = left.split_at(items(t) * weight.cols);
        step[..own.len()].copy_from_slice(own);
        if alike.at(t) {
            spread(step, weight.cols);
        }
        left = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::{Init, Layout, Shape};

    #[test]
    fn shared_rows_give_the_bits_of_a_product_of_all_rows() {
        let mut layout = Layout::default();
        let weight = layout.add_map("weight", 5, 7, Init::Glorot);
        let bias = layout.add("bias", 1, 7, Init::Uniform(0.3));
        let params: Params<f32> = Params::init(&layout, 1);
        let shape = Shape::new(4, 3, 5);
        let mut x: Vec<f32> = (0..shape.len()).map(|i| (i as f32 * 0.7).sin()).collect();
        for shared in [0, 2, 3] {
            spread(&mut x[shared * 15..(shared + 1) * 15], 5);
        }
        // Zeros of two signs are two rows: nothing must be said of bits that were not compared.
        (x[0], x[5]) = (0.0, -0.0);
        let outcome = |want: Want| {
            let mut tape = Tape::default();
            tape.reset(want);
            let x = tape.input(shape, &x);
            let alike: Vec<bool> = (0..4).map(|t| Alike::of(&tape, x).at(t)).collect();
            let mut y = vec![f32::NAN; shape.rows() * 7];
            map_steps(&tape, &params, weight, Some(bias), x, &mut y);
            (alike, y.iter().map(|y| y.to_bits()).collect::<Vec<_>>())
        };
        let (shared, once) = outcome(Want::NOTHING);
        let (none, all) = outcome(Want::INPUT);
        assert_eq!(shared, [false, false, true, true]);
        assert_eq!(none, [false; 4]);
        assert_eq!(once, all);
    }
}
