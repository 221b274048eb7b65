//! No attack: what the model says of the rows as they are. The column "clean" of every table.

use super::scene::{Item, Scene, Trace};
use super::{Attack, Changes, Entry, Ready, Victims};
use crate::Failure;

/// Leaves every row as it is.
pub struct None;

impl Attack for None {
    fn entry(&self) -> Entry {
        Entry {
            name: "none",
            file: "none.rs",
            summary: "Leaves every row as it is: clean accuracy.",
            params: &[],
            changes: Changes::Nothing,
            victims: Victims::All,
            needs: &[],
        }
    }

    fn ready<'a>(&self, _: &'a Scene<'a>) -> Result<Box<dyn Ready + 'a>, Failure> {
        Ok(Box::new(None))
    }
}

impl Ready for None {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        Ok(items.iter().map(Trace::untouched).collect())
    }
}
