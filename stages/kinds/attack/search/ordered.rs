//! Items in their order, with something carried from one to the next: coverage that inputs add up to, for one.
//!
//! The entry of such an attack says `ordered: true`. It is then called with one item at a time, in the order of rows,
//! so that what it carries is the same on any number of threads.

use std::sync::{Mutex, PoisonError};

/// What is carried from one item to the next.
#[derive(Debug, Default)]
pub struct Carried<S>(Mutex<S>);

impl<S> Carried<S> {
    /// Before the first item.
    pub fn new(state: S) -> Carried<S> {
        Carried(Mutex::new(state))
    }

    /// Looks at it, and changes it.
    pub fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        // Items come one at a time: nobody waits here, and a panic has ended the stage already.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::Carried;

    #[test]
    fn what_is_carried_adds_up() {
        let seen = Carried::new(Vec::new());
        let first = |item: &u32| {
            seen.with(|seen: &mut Vec<u32>| {
                let new = !seen.contains(item);
                seen.push(*item);
                new
            })
        };
        let firsts: Vec<bool> = [3, 4, 3, 5].iter().map(first).collect();
        assert_eq!(firsts, [true, true, false, true]);
    }
}
