//! All weights of a model in one flat buffer, so that an optimiser or a file is one loop.
//!
//! Layers hold [`Span`]s, names for parts of the buffer; the numbers live in [`Params`].
//! Frozen weights (pre-trained word vectors) live in a second buffer that no gradient covers.

use crate::error::same;
use crate::gemm::Mat;
use crate::{Error, Real, Result, Stream};

/// How a weight starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// The same number everywhere.
    Constant(f64),
    /// Uniform in [-a, a].
    Uniform(f64),
    /// Normal with this standard deviation, cut at two deviations.
    Truncated(f64),
    /// Uniform in [-a, a], `a = sqrt(6 / (rows + columns))` (Glorot).
    Glorot,
}

/// A named part of the flat buffer: `rows x cols`, rows contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: usize,
    /// Rows; inputs of a linear map.
    pub rows: usize,
    /// Columns; outputs of a linear map.
    pub cols: usize,
    frozen: bool,
    /// Where a shard keeps its gradient; none for those that are computed for all shards at once.
    shard: Option<usize>,
}

/// Linear maps from this size on have no gradient buffer of their own in a shard.
const LARGE: usize = 1 << 17;

/// Weights of a model: 4 GiB, and with gradients and Adam's moments 16.
const MOST: usize = 1 << 30;

impl Span {
    /// Numbers in it.
    pub fn len(&self) -> usize {
        // Far too many rather than a few after an overflow: [`Layout::check`] refuses them.
        self.rows.saturating_mul(self.cols)
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether training leaves it alone.
    pub fn frozen(&self) -> bool {
        self.frozen
    }
    /// Its place in a shard's gradient.
    pub(crate) fn in_shard(&self) -> Option<std::ops::Range<usize>> {
        self.shard.map(|at| at..at + self.len())
    }
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.len()
    }
}

/// Collects the spans of a model while its layers are made.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    entries: Vec<(String, Span, Init)>,
    trained: usize,
    frozen: usize,
    in_shard: usize,
    large: Vec<Span>,
}

impl Layout {
    /// Adds a trained weight of any use.
    pub fn add(&mut self, name: &str, rows: usize, cols: usize, init: Init) -> Span {
        self.push(name, rows, cols, init, true)
    }

    /// Adds the weight of a linear map, whose gradient comes from [`Grads::product`](crate::grads::Grads::product) only.
    pub fn add_map(&mut self, name: &str, rows: usize, cols: usize, init: Init) -> Span {
        let span = self.push(name, rows, cols, init, rows.saturating_mul(cols) < LARGE);
        if span.shard.is_none() {
            self.large.push(span);
        }
        span
    }

    /// Adds a table, whose gradient comes from [`Grads::table`](crate::grads::Grads::table) only.
    pub fn add_table(&mut self, name: &str, rows: usize, cols: usize, init: Init) -> Span {
        self.push(name, rows, cols, init, false)
    }

    fn push(&mut self, name: &str, rows: usize, cols: usize, init: Init, in_shard: bool) -> Span {
        let span = Span {
            start: self.trained,
            rows,
            cols,
            frozen: false,
            shard: in_shard.then_some(self.in_shard),
        };
        self.trained = self.trained.saturating_add(span.len());
        let counted = if in_shard { span.len() } else { 0 };
        self.in_shard = self.in_shard.saturating_add(counted);
        self.entries.push((name.to_string(), span, init));
        span
    }

    /// Refuses more numbers than a machine could hold with their gradients and moments.
    pub(crate) fn check(&self) -> Result<()> {
        let all = self.trained.saturating_add(self.frozen);
        if all > MOST {
            return Err(Error::Shape {
                what: "the weights of a model",
                expected: format!("at most {MOST} numbers"),
                got: all.to_string(),
            });
        }
        Ok(())
    }

    /// Adds a weight that training leaves alone; it starts at zero until [`Params::set`].
    pub fn add_frozen(&mut self, name: &str, rows: usize, cols: usize) -> Span {
        let span = Span {
            start: self.frozen,
            rows,
            cols,
            frozen: true,
            shard: None,
        };
        self.frozen = self.frozen.saturating_add(span.len());
        self.entries
            .push((name.to_string(), span, Init::Constant(0.0)));
        span
    }

    /// Names and shapes, in the order of the buffer.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Span)> {
        self.entries.iter().map(|(n, s, _)| (n.as_str(), *s))
    }

    /// The span of that name.
    pub fn find(&self, name: &str) -> Option<Span> {
        self.entries().find(|(n, _)| *n == name).map(|(_, s)| s)
    }

    /// Linear maps so large that shards share what is made of them.
    pub(crate) fn large(&self) -> &[Span] {
        &self.large
    }

    /// Numbers in a shard's gradient.
    pub fn in_shard(&self) -> usize {
        self.in_shard
    }

    /// Trained numbers.
    pub fn trained(&self) -> usize {
        self.trained
    }

    /// Fresh weights: number `i` of weight `w` depends on (seed, `w`, `i`) only, so that
    /// adding a layer leaves the start of the others unchanged.
    pub fn init<T: Real>(&self, seed: u64) -> Params<T> {
        let mut params = Params {
            trained: vec![T::ZERO; self.trained],
            frozen: vec![T::ZERO; self.frozen],
        };
        for (name, span, init) in &self.entries {
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
                    std * inside.expect("a normal number falls inside two deviations")
                }
            };
            for (i, w) in params.get_mut(*span).iter_mut().enumerate() {
                *w = T::of(draw(i as u64));
            }
        }
        params
    }
}

/// The weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Params<T> {
    /// What training changes.
    pub trained: Vec<T>,
    /// What it does not.
    pub frozen: Vec<T>,
}

impl<T: Real> Params<T> {
    /// The numbers of one weight.
    pub fn get(&self, span: Span) -> &[T] {
        if span.frozen {
            &self.frozen[span.range()]
        } else {
            &self.trained[span.range()]
        }
    }

    /// The same, to change.
    pub fn get_mut(&mut self, span: Span) -> &mut [T] {
        if span.frozen {
            &mut self.frozen[span.range()]
        } else {
            &mut self.trained[span.range()]
        }
    }

    /// One weight as a matrix.
    pub fn mat(&self, span: Span) -> Mat<'_, T> {
        Mat::new(self.get(span), span.rows, span.cols)
    }

    /// Replaces one weight.
    pub fn set(&mut self, span: Span, values: &[T]) -> Result<()> {
        same("weight", span.len(), values.len())?;
        crate::error::finite("weight", values)?;
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
        same("trained weights", layout.trained, self.trained.len())?;
        same("frozen weights", layout.frozen, self.frozen.len())
    }
}
