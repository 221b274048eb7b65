//! No attack: what the model says of the rows as they are. The column "clean" of every table.

use crate::Failure;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, PreparedAttack};
use crate::kinds::attack::trace::Trace;

/// Leaves every row as it is.
pub struct None;

impl Attack for None {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "none",
            file: "stages/kinds/attack/attacks/none.rs",
            summary: "Leaves every row as it is: clean accuracy.",
            budget: |_| Budget::Nothing,
            ..AttackEntry::PLAIN
        }
    }

    fn prepare<'a>(
        &self,
        _: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        Ok(Box::new(None))
    }
}

impl PreparedAttack for None {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        Ok(items.iter().map(Trace::untouched).collect())
    }
}
