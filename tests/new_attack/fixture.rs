//! An attack for a test: puts copies of a word before every text, another word for every item.

use arrow::array::Array;

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::{Change, Edit};
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack};
use crate::kinds::attack::search::ordered::Carried;
use crate::kinds::attack::trace::Trace;
use crate::params::settings::failure;

const COPIES: Param = Param::int("copies", 2, 1, "How many copies of a word are put in.");
const TURN: &str = "turn";

pub struct Fixture;

struct Prepared {
    copies: usize,
    words: u32,
    turn: Carried<u32>,
}

impl Attack for Fixture {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "fixture",
            file: "stages/kinds/attack/attacks/fixture.rs",
            summary: "Puts copies of a word before the text.",
            params: &[COPIES],
            changes: Changes::WordEdits,
            needs: &["vocab"],
            budget: |s| {
                let copies = s.maybe_int("copies");
                copies.map_or(Budget::Unlimited, Budget::Words)
            },
            counters: &[TURN],
            ordered: true,
            ..AttackEntry::PLAIN
        }
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        Ok(Box::new(Prepared {
            copies: context.settings().int("copies").map_err(failure)?,
            words: context.words("fixture")?.len() as u32,
            turn: Carried::new(0),
        }))
    }
}

impl PreparedAttack for Prepared {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let one = |item: &Item<'_>| {
            let turn = self.turn.with(|turn| {
                *turn += 1;
                *turn
            });
            // The first two are padding and the unknown token.
            let new = 2 + turn % (self.words - 2);
            let change = Change::Insert { new };
            let edit = Edit::Word {
                position: 0,
                change,
            };
            let mut trace = Trace::of(item, vec![edit; self.copies])?;
            trace.count(TURN, turn.into());
            Ok(trace)
        };
        items.iter().map(one).collect()
    }
}
