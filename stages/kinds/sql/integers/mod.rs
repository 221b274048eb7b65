//! Integers in SQL are signed, have 64 bits, and never wrap.
//!
//! polars counts in unsigned 32 bits and lets arithmetic wrap, so that
//! `COUNT(a) - COUNT(b)` of one and two is 4294967295. Two passes over its plan mend that:
//! [`signed`] widens what counts, before types are settled; [`checked`] replaces the operations
//! that could overflow, once every type is known. Floats are left exactly as polars has them.

mod arithmetic;
mod checked;
mod signed;
#[cfg(test)]
mod tests;

pub use arithmetic::OVERFLOW;
pub use checked::check;
pub use signed::widen;
