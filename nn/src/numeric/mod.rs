//! Numbers: the type [`Real`], named random streams, sums over rows, matrix products, vector instructions.
//! Knows nothing of gradients, layers or models.

mod argmax;
mod arrays;
mod cosines;
mod finite;
#[allow(unsafe_code, reason = "the micro-kernel reads without bounds checks")]
pub mod gemm;
mod inner_product_search;
mod lines;
mod random;
mod real;
mod rows;
#[allow(unsafe_code, reason = "vector instructions, after a check at run time")]
pub mod simd;

pub use argmax::argmax;
pub(crate) use arrays::{flat, flat_rows, rows as into_rows, view_rows};
pub use cosines::Cosines;
pub(crate) use finite::finite;
pub use inner_product_search::{BestRow, Dictionary, similar};
pub use lines::Lines;
pub use random::Stream;
pub use real::{PerPrecision, Real};
pub(crate) use rows::Dot;
pub use rows::{dot, max, scaled_softmax, shares, softmax, sum_of_squares, total};
