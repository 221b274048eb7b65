//! The weights of an RNN layer.

use crate::autodiff::{Init, Layout, Span};

/// Places of the weights.
#[derive(Clone, Copy, Debug)]
pub struct RnnWeights {
    /// (inputs, units)
    pub input: Span,
    /// (units, units)
    pub recurrent: Span,
    /// (1, units)
    pub bias: Span,
    /// Hidden units.
    pub units: usize,
}

impl RnnWeights {
    /// Weights start as `init`, the bias at zero.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        RnnWeights {
            input: layout.add_map(&format!("{name}.input"), inputs, units, init),
            recurrent: layout.add_map(&format!("{name}.recurrent"), units, units, init),
            bias: layout.add(&format!("{name}.bias"), 1, units, Init::Constant(0.0)),
            units,
        }
    }
}
