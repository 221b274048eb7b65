//! What a loop over numbers is, whatever the vectors are.

use super::lanes::Lanes;

/// A loop over numbers, written once for every vector width.
///
/// Mark `run` and what it calls `#[inline(always)]`: it is compiled inside a function that
/// enables the instruction set, and loses it where it is not inlined. Closures cannot be
/// marked, so kernels have none.
pub trait Kernel<T> {
    /// What the loop returns.
    type Out;
    /// The loop itself.
    fn run<V: Lanes<T = T>>(self) -> Self::Out;
}
