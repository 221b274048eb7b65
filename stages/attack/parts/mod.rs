//! What attacks are put together from: a goal, a sway of words, moves, a search.

pub mod goal;
pub mod moves;
pub mod opposed;
pub mod search;
pub mod sway;
