//! The size of a value, and which gradients somebody asks for.

/// The size of a value: `time * batch` rows of `dim` numbers; row `t * batch + b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Steps; 1 for one vector an item.
    pub time: usize,
    /// Items.
    pub batch: usize,
    /// Numbers in a row.
    pub dim: usize,
}

impl Shape {
    /// A shape.
    pub fn new(time: usize, batch: usize, dim: usize) -> Self {
        Shape { time, batch, dim }
    }
    /// Rows.
    pub fn rows(&self) -> usize {
        self.time * self.batch
    }
    /// Numbers.
    pub fn len(&self) -> usize {
        self.rows() * self.dim
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The same rows with another number of columns.
    pub fn with_dim(self, dim: usize) -> Self {
        Shape { dim, ..self }
    }
}

/// Which gradients are wanted. Attacks never pay for those of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Want {
    /// Of the weights.
    pub weights: bool,
    /// Of the input vectors.
    pub input: bool,
}

impl Want {
    /// Only the forward pass.
    pub const NOTHING: Want = Want {
        weights: false,
        input: false,
    };
    /// What training wants.
    pub const WEIGHTS: Want = Want {
        weights: true,
        input: false,
    };
    /// What an attack wants.
    pub const INPUT: Want = Want {
        weights: false,
        input: true,
    };
    /// Both.
    pub const BOTH: Want = Want {
        weights: true,
        input: true,
    };
}
