//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A guard even after a panic: nothing in this crate is left half changed by one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
