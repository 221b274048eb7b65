//! How a command ends early.

use crate::diagnostic::{Diagnostic, Problems};

/// Why a command ends early.
pub enum Exit {
    /// What the user wrote is wrong: code 2.
    Wrong(Problems),
    /// The store failed: code 1.
    Store(store::Error),
    /// The command cannot do what it should: code 1.
    Failed(Diagnostic),
    /// Ends with this code; everything is already printed.
    Code(u8),
}

impl From<Problems> for Exit {
    fn from(problems: Problems) -> Exit {
        Exit::Wrong(problems)
    }
}

impl From<Diagnostic> for Exit {
    fn from(diagnostic: Diagnostic) -> Exit {
        Exit::Wrong(Problems::plain(diagnostic))
    }
}

impl From<store::Error> for Exit {
    fn from(error: store::Error) -> Exit {
        Exit::Store(error)
    }
}
