//! The gradient of the weights from one shard of a batch, and the sum over shards.
//!
//! Small weights have a dense buffer per shard. The gradient of a large linear map, `x^T dy`, is
//! remembered as its two factors, which are on the tape anyway, and computed once for all
//! shards; the gradient of a table of vectors is remembered as the rows that were used.

use super::layout::{Layout, Span};
use super::values::{Values, Var};
use crate::numeric::Real;
use crate::numeric::gemm::{Into, Mat, gemm_strided};

/// Some rows of a value on the tape.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The value.
    pub var: Var,
    /// Rows to skip.
    pub skip: usize,
    /// Rows to use.
    pub rows: usize,
}

impl Rows {
    /// All rows.
    pub fn all<T: Real>(values: &Values<T>, var: Var) -> Self {
        Rows {
            var,
            skip: 0,
            rows: values.shape(var).rows(),
        }
    }

    pub(super) fn mat<'a, T: Real>(&self, values: &'a Values<T>) -> Mat<'a, T> {
        let dim = values.shape(self.var).dim;
        Mat::new(&values.get(self.var)[self.skip * dim..], self.rows, dim)
    }
}

/// The gradient of the weights from one shard.
#[derive(Clone, Debug, Default)]
pub struct Grads<T> {
    pub(super) flat: Vec<T>,
    pub(super) products: Vec<(Span, Rows, Rows)>,
    pub(super) tables: Vec<(Span, Vec<u32>, Var)>,
    wanted: bool,
}

impl<T: Real> Grads<T> {
    /// All zero, for weights of this layout.
    pub fn reset(&mut self, layout: &Layout) {
        self.forget();
        self.wanted = true;
        self.flat.resize(layout.in_shard(), T::ZERO);
    }

    /// No gradient of weights is wanted.
    pub fn forget(&mut self) {
        self.wanted = false;
        self.products.clear();
        self.tables.clear();
        self.flat.clear();
    }

    /// Whether the gradient of this weight is wanted.
    pub fn wants(&self, span: Span) -> bool {
        self.wanted && !span.frozen()
    }

    /// The gradient of one weight, to add to.
    pub fn get(&mut self, span: Span) -> &mut [T] {
        &mut self.flat[span
            .in_shard()
            .expect("a weight with a gradient buffer in each shard")]
    }

    /// Adds `x^T dy`, the gradient of a linear map. Both stay on the tape until it is reset.
    pub fn product(&mut self, values: &Values<T>, span: Span, x: Rows, dy: Rows) {
        if !self.wants(span) || x.rows == 0 {
            return;
        }
        if span.in_shard().is_none() {
            self.products.push((span, x, dy));
        } else {
            gemm_strided(
                Into::Add,
                self.get(span),
                span.cols,
                x.mat(values).t(),
                dy.mat(values),
            );
        }
    }

    /// Adds rows of `dy` to the rows `ids` of a table. `dy` stays on the tape until it is reset.
    pub fn table(&mut self, span: Span, ids: &[u32], dy: Var) {
        if self.wants(span) {
            self.tables.push((span, ids.to_vec(), dy));
        }
    }

    /// Adds the sum of the columns of `dy`: the gradient of a bias.
    pub fn bias(&mut self, span: Span, dy: &[T]) {
        if self.wants(span) {
            let to = self.get(span);
            for row in dy.chunks_exact(to.len()) {
                for (t, d) in to.iter_mut().zip(row) {
                    *t += *d;
                }
            }
        }
    }
}
