//! NaN and infinity in an input, found before they spoil a result.

use super::real::Real;
use crate::error::{Error, Result};

/// An error at the first number that is NaN or infinite.
#[inline]
pub(crate) fn finite<T: Real>(what: &'static str, data: &[T]) -> Result<()> {
    // Without a way out in the middle the compiler takes many numbers at once.
    if data.iter().fold(true, |all, x| all & x.is_finite()) {
        return Ok(());
    }
    not_finite(what, data)
}

#[cold]
fn not_finite<T: Real>(what: &'static str, data: &[T]) -> Result<()> {
    match data.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => Err(Error::NotFinite {
            what,
            index,
            got: data[index].to_f64(),
        }),
    }
}
