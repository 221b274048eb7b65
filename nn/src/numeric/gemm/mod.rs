//! The matrix product behind every layer: `C = A B`, `C += A B`, or `C = A B + bias`.
//!
//! `A` is (m, k), `B` is (k, n), both with any strides; `C` is (m, n).
//! Each element of `C` is summed over `k` in blocks of 256, in order, one fused
//! multiply-add after the other. So a row of the result has the same bits whatever the
//! other rows are, how many there are, and whether `B` was packed beforehand: a text
//! classified alone gets exactly the logits it gets in a batch.
//!
//! One thread: callers cut the work into shards whose number depends on the data only.

mod kernel;
mod matrix;
mod pack;
mod product;
pub(crate) use matrix::KC as BLOCK;
pub use matrix::{Into, Mat};
pub use pack::Packed;
pub use product::{gemm, gemm_bias, gemm_packed, gemm_packed_bias, gemm_strided};

#[cfg(test)]
mod tests;
