//! Places that must exist before an objective looks there.

use crate::error::{Error, Result};

/// `got`, or an error unless it is below a limit.
pub(super) fn below(what: &'static str, got: usize, below: usize) -> Result<usize> {
    if got < below {
        Ok(got)
    } else {
        Err(Error::Range {
            what,
            item: 0,
            got,
            below,
        })
    }
}
