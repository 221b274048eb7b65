//! All weights of a model in one flat buffer, so that an optimiser or a file is one loop.

use super::layout::{Init, Layout, Span};
use crate::error::{Result, same};
use crate::numeric::gemm::Mat;
use crate::numeric::{Real, Stream, finite};
use ndarray::{ArrayView2, ArrayViewMut2};

/// The weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Params<T> {
    /// What training changes.
    pub trained: Vec<T>,
    /// What it does not.
    pub frozen: Vec<T>,
}

impl<T: Real> Params<T> {
    /// Fresh weights: number `i` of weight `w` depends on (seed, `w`, `i`) only, so that
    /// adding a layer leaves the start of the others unchanged.
    pub fn init(layout: &Layout, seed: u64) -> Self {
        let mut params = Params {
            trained: vec![T::ZERO; layout.trained()],
            frozen: vec![T::ZERO; layout.frozen],
        };
        for (name, span, init) in &layout.entries {
            let stream = Stream::new(seed, &format!("init/{name}"));
            let draw = |i: u64| match *init {
                Init::Constant(c) => c,
                Init::Uniform(a) => a * (2.0 * stream.uniform(i) - 1.0),
                Init::Glorot => {
                    (6.0 / (span.rows + span.cols) as f64).sqrt() * (2.0 * stream.uniform(i) - 1.0)
                }
                Init::Truncated(std) => {
                    let inside = (0..)
                        .map(|retry| stream.item(i).normal(retry))
                        .find(|x| x.abs() <= 2.0);
                    std * inside.expect("a normal deviate falls within two standard deviations")
                }
            };
            for (i, w) in params.get_mut(*span).iter_mut().enumerate() {
                *w = T::of(draw(i as u64));
            }
        }
        params
    }

    /// The numbers of one weight, for kernels.
    pub(crate) fn get(&self, span: Span) -> &[T] {
        if span.frozen {
            &self.frozen[span.range()]
        } else {
            &self.trained[span.range()]
        }
    }

    /// The same, to change.
    pub(crate) fn get_mut(&mut self, span: Span) -> &mut [T] {
        if span.frozen {
            &mut self.frozen[span.range()]
        } else {
            &mut self.trained[span.range()]
        }
    }

    /// One weight, (rows, columns).
    pub fn view(&self, span: Span) -> ArrayView2<'_, T> {
        let shape = (span.rows, span.cols);
        ArrayView2::from_shape(shape, self.get(span)).expect("a span has whole rows")
    }

    /// The same, to change.
    pub fn view_mut(&mut self, span: Span) -> ArrayViewMut2<'_, T> {
        let shape = (span.rows, span.cols);
        ArrayViewMut2::from_shape(shape, self.get_mut(span)).expect("a span has whole rows")
    }

    /// One weight as a matrix for products.
    pub(crate) fn mat(&self, span: Span) -> Mat<'_, T> {
        Mat::new(self.get(span), span.rows, span.cols)
    }

    /// Replaces one weight, (rows, columns).
    pub fn set(&mut self, span: Span, values: ArrayView2<'_, T>) -> Result<()> {
        same("rows of a weight", span.rows, values.nrows())?;
        same("columns of a weight", span.cols, values.ncols())?;
        match values.as_slice() {
            Some(values) => self.set_flat(span, values),
            None => self.set_flat(span, &values.iter().copied().collect::<Vec<T>>()),
        }
    }

    /// Replaces one weight, row after row.
    pub(crate) fn set_flat(&mut self, span: Span, values: &[T]) -> Result<()> {
        same("weight", span.len(), values.len())?;
        finite("weight", values)?;
        self.get_mut(span).copy_from_slice(values);
        Ok(())
    }

    /// The same weights in the other precision.
    pub fn cast<U: Real>(&self) -> Params<U> {
        let cast = |v: &[T]| v.iter().map(|x| U::of(x.to_f64())).collect();
        Params {
            trained: cast(&self.trained),
            frozen: cast(&self.frozen),
        }
    }

    /// An error when the buffers do not belong to `layout`.
    pub fn check(&self, layout: &Layout) -> Result<()> {
        same("trained weights", layout.trained(), self.trained.len())?;
        same("frozen weights", layout.frozen, self.frozen.len())
    }
}
