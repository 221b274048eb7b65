//! N Strongest Words Swap (P0): the words that speak most for the true class become words that
//! speak for another.
//!
//! The text's tokens are ranked by `phi[w | y] / phi[w | other]`, ties by earlier position; each of
//! the first `n` becomes a word drawn evenly and on its own from the `k` strongest of the other
//! class. Occurrences count, not words; a text shorter than `n` is changed everywhere.

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::candidates::class_words::{Opposed, STRONGEST};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack};
use crate::kinds::attack::trace::Trace;
use crate::models::sway::Sway;
use crate::params::settings::{Settings, failure};

const N: Param = Param::int("n", 1, 1, "How many words are swapped.");

/// The attack.
pub struct Swap;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    sway: Sway<'a>,
    opposed: Opposed,
    words: usize,
}

impl Attack for Swap {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "swap",
            file: "stages/kinds/attack/attacks/swap.rs",
            summary: "Replaces the strongest words of the true class by strong words of another.",
            details: "Occurrences count, not words; a text shorter than `n` is changed everywhere.",
            paper: "the paper of papers/p0_imdb_lstm",
            params: &[N, STRONGEST],
            changes: Changes::Words,
            needs: &["bayes", "vocab"],
            budget: |s| s.maybe_int("n").map_or(Budget::Unlimited, Budget::Words),
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
        let (opposed, sway) = Opposed::new("swap", context)?;
        Ok(Box::new(Prepared {
            context,
            sway,
            opposed,
            words: context.settings().int("n").map_err(failure)?,
        }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let one = |item: &Item<'_>| {
            let stream = self.context.stream("swap", item);
            let tokens = item.tokens()?;
            let mut places = self.sway.ranked(item.label, tokens);
            places.retain(|place| tokens[*place] != self.context.pad);
            let swap = |(k, place): (usize, usize)| {
                let new = self.opposed.draw(item.label, &stream, k as u64)?;
                Some(Edit::replace(place, tokens[place], new))
            };
            let places = places.into_iter().take(self.words).enumerate();
            Trace::of(item, places.filter_map(swap).collect())
        };
        items.iter().map(one).collect()
    }
}
