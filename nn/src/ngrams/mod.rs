//! Language models that count.

mod kneser_ney;
pub use kneser_ney::{Gram, KneserNey, MOST as MOST_ORDER};
