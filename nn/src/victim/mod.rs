//! What attacks see of a model: answers, gradients of the input, states, attention, and the cost.
//!
//! [`Neural`] is a network under attack; bags of words are victims too, with less to show.

mod beam;
mod interface;
mod neural;
mod observed;
mod per_item;
mod substitutions;
mod suffix_gradients;

pub use crate::models::Queries;
pub use beam::beam_search;
pub use interface::{Gradient, LayerAttention, LayerStates, LayerVectors, Substituted, Victim};
pub use neural::Neural;
pub use observed::Observed;
pub use substitutions::Remembered;
pub use suffix_gradients::Suffix;
