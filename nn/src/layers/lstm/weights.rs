//! The weights of an LSTM layer.

use crate::autodiff::{Init, Layout, Span};

/// Places of the weights.
#[derive(Clone, Copy, Debug)]
pub struct LstmWeights {
    /// (inputs, 4 units)
    pub input: Span,
    /// (units, 4 units)
    pub recurrent: Span,
    /// (1, 4 units)
    pub bias: Span,
    /// Hidden units.
    pub units: usize,
}

impl LstmWeights {
    /// Weights start as `init`, biases at zero.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        LstmWeights {
            input: layout.add_map(&format!("{name}.input"), inputs, 4 * units, init),
            recurrent: layout.add_map(&format!("{name}.recurrent"), units, 4 * units, init),
            bias: layout.add(&format!("{name}.bias"), 1, 4 * units, Init::Constant(0.0)),
            units,
        }
    }
}
