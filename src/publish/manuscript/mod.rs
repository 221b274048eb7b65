//! Numbers in a manuscript beside numbers in the store. [`numbers`] finds what is written,
//! [`cells`] what was computed, [`lint`] compares them, [`render`] fills references in.

pub mod cells;
pub mod lint;
pub mod numbers;
pub mod render;
