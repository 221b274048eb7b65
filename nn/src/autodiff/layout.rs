//! The names, shapes and places of a model's weights in one flat buffer.
//!
//! Layers hold [`Span`]s, names for parts of the buffer. Frozen weights (pre-trained word vectors) live in a second
//! buffer that no gradient covers. Knows none of the numbers.

use crate::error::{Error, Result};

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
    pub(super) frozen: bool,
    /// Where a shard keeps its gradient; none for those that are computed for all shards at once.
    shard: Option<usize>,
}

/// Linear maps from this size on have no gradient buffer in a shard.
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
    pub(super) entries: Vec<(String, Span, Init)>,
    trained: usize,
    pub(super) frozen: usize,
    in_shard: usize,
    large: Vec<Span>,
}

impl Layout {
    /// Adds a trained weight of any use.
    pub fn add(&mut self, name: &str, rows: usize, cols: usize, init: Init) -> Span {
        self.push(name, rows, cols, init, true)
    }

    /// Adds the weight of a linear map, whose gradient comes from `Grads::product` only.
    pub fn add_map(&mut self, name: &str, rows: usize, cols: usize, init: Init) -> Span {
        let span = self.push(name, rows, cols, init, rows.saturating_mul(cols) < LARGE);
        if span.shard.is_none() {
            self.large.push(span);
        }
        span
    }

    /// Adds a table, whose gradient comes from `Grads::table` only.
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
                expected: format!("at most {MOST} values"),
                got: all.to_string(),
            });
        }
        Ok(())
    }

    /// Adds a weight that training leaves alone; it starts at zero until `Params::set`.
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
}
