//! The weights of a GRU layer.

use crate::autodiff::{Init, Layout};
use crate::layers::dense::Dense;
use crate::layers::recurrent::GateWeights;

/// Places of the weights.
#[derive(Clone, Copy, Debug)]
pub struct GruWeights {
    /// `W`, `U` and `b`: the gates `z` and `r`.
    pub gates: GateWeights,
    /// `Wn`, `Un` and `bn`: the candidate state `n`.
    pub new: GateWeights,
}

impl GruWeights {
    /// Weights start as `init`, biases at zero.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        // Both sets are laid out part by part: stored weights are in this order.
        let sets = [("", 2 * units), ("_new", units)];
        let mut maps = |part: &str, rows| {
            sets.map(|(set, columns)| {
                layout.add_map(&format!("{name}.{part}{set}"), rows, columns, init)
            })
        };
        let (input, recurrent) = (maps("input", inputs), maps("recurrent", units));
        let [gates, new] = [0, 1].map(|k| {
            let (set, columns) = sets[k];
            let zero = Init::Constant(0.0);
            let bias = layout.add(&format!("{name}.bias{set}"), 1, columns, zero);
            GateWeights {
                input: Dense {
                    weight: input[k],
                    bias: Some(bias),
                },
                recurrent: recurrent[k],
            }
        });
        GruWeights { gates, new }
    }
}
