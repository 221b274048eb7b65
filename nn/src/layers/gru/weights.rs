//! The weights of a GRU layer.

use crate::autodiff::{Init, Layout, Span};

/// Places of the weights.
#[derive(Clone, Copy, Debug)]
pub struct GruWeights {
    /// (inputs, 2 units)
    pub input: Span,
    /// (inputs, units)
    pub input_new: Span,
    /// (units, 2 units)
    pub recurrent: Span,
    /// (units, units)
    pub recurrent_new: Span,
    /// (1, 2 units)
    pub bias: Span,
    /// (1, units)
    pub bias_new: Span,
    /// Hidden units.
    pub units: usize,
}

impl GruWeights {
    /// Weights start as `init`, biases at zero.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        let mut map =
            |part: &str, rows, cols| layout.add_map(&format!("{name}.{part}"), rows, cols, init);
        GruWeights {
            input: map("input", inputs, 2 * units),
            input_new: map("input_new", inputs, units),
            recurrent: map("recurrent", units, 2 * units),
            recurrent_new: map("recurrent_new", units, units),
            bias: layout.add(&format!("{name}.bias"), 1, 2 * units, Init::Constant(0.0)),
            bias_new: layout.add(&format!("{name}.bias_new"), 1, units, Init::Constant(0.0)),
            units,
        }
    }
}
