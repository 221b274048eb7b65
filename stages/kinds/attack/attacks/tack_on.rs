//! Tack-On Adversarial Word (P0): the first word of a text becomes one that speaks for another class.
//!
//! `x[0] = a word drawn evenly from the k that speak most for the other class`. It replaces; nothing
//! is put before the text. With more than two classes the other one is drawn evenly.

use crate::Failure;
use crate::kinds::attack::candidates::class_words::{Opposed, STRONGEST};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack};
use crate::kinds::attack::trace::Trace;
use crate::params::settings::Settings;

/// The attack.
pub struct TackOn;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    opposed: Opposed,
}

impl Attack for TackOn {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "tack-on",
            file: "stages/kinds/attack/attacks/tack_on.rs",
            summary: "Replaces the first word by one of the strongest words of another class.",
            details: "Nothing is inserted.",
            paper: "the paper of papers/p0_imdb_lstm",
            params: &[STRONGEST],
            changes: Changes::Words,
            needs: &["bayes", "vocab"],
            budget: |_| Budget::Words(1),
            ..AttackEntry::PLAIN
        }
    }

    fn draws(&self, _: Settings<'_>) -> bool {
        true
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let (opposed, _) = Opposed::new("tack-on", context)?;
        Ok(Box::new(Prepared { context, opposed }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let one = |item: &Item<'_>| {
            let stream = self.context.stream("tack-on", item);
            let old = item.tokens()?[0];
            let text = old != self.context.pad;
            let new = self.opposed.draw(item.label, &stream, 0).filter(|_| text);
            let edit = new.map(|new| Edit::replace(0, old, new));
            Trace::of(item, edit.into_iter().collect())
        };
        items.iter().map(one).collect()
    }
}
