//! What attacks are put together from: a goal, words to draw from, moves, a search.

pub mod candidates;
pub mod goal;
pub mod moves;
pub mod online;
pub mod opposed;
pub mod search;
pub mod signs;
pub mod solver;
