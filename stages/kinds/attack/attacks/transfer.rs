//! Transfer (Szegedy et al. 2014, "Intriguing properties of neural networks"): texts that an attack on another model
//! made, given to this one. Asks this model nothing.
//!
//! ```text
//! x = the row with the same id in `examples`, as the other attack left it
//! ```
//!
//! Rows that the other attack left alone are left alone here too. Only attacks that replace words: a row whose length
//! changed has no edits that could be listed, and is refused.

use std::collections::BTreeMap;

use nn::batch::Sequence;

use crate::Failure;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Changes, PreparedAttack};
use crate::kinds::attack::trace::Trace;
use crate::tables::examples::{self, Examples};

/// The input that it takes texts from.
pub const PORT: &str = "examples";

/// The attack.
pub struct Transfer;

struct Prepared<'a> {
    examples: Examples<'a>,
    /// The place of each id.
    places: BTreeMap<&'a str, usize>,
}

impl Attack for Transfer {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "transfer",
            file: "stages/kinds/attack/attacks/transfer.rs",
            summary: "Takes the texts that an attack on another model made, and asks this model about them.",
            details: "Only the rows that are in `examples` are attacked. Both models must read the same tokens, and the other attack must replace words.",
            paper: "Szegedy et al. 2014, Intriguing properties of neural networks",
            changes: Changes::Words,
            needs: &[PORT],
            ..AttackEntry::PLAIN
        }
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let table = context.task.and_then(|task| task.inputs.get(PORT));
        let table = table.ok_or_else(|| {
            Failure::new("the attack `transfer` needs the input `examples`")
                .help("connect it to an attack stage on another model")
        })?;
        let examples = Examples::read(table)?;
        let places = (0..examples.len()).map(|n| (examples.id(n), n)).collect();
        Ok(Box::new(Prepared { examples, places }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        items.iter().map(|item| self.transferred(item)).collect()
    }
}

impl Prepared<'_> {
    fn transferred(&self, item: &Item<'_>) -> Result<Trace, Failure> {
        let wrong = |what: &str| Failure::new(format!("the row with the id {} {what}", item.id));
        let n = self.places.get(item.id).copied();
        let n = n.ok_or_else(|| wrong("is not in the input `examples`"))?;
        let stored = |name: &str| match self.examples.sequence(name, n, item.input) {
            Some(Sequence::Tokens(ids)) => Ok(ids),
            _ => Err(
                wrong(&format!("has no tokens `{name}` in the input `examples`"))
                    .help("connect an attack that replaces words"),
            ),
        };
        let (before, after) = (stored(examples::ORIGINAL)?, stored(examples::ADVERSARIAL)?);
        let tokens = item.tokens()?;
        if before != tokens {
            return Err(wrong("is another text in the input `examples`").help(
                "both models must read the same rows: the same tokenize stage, the same split",
            ));
        }
        if after.len() != tokens.len() {
            return Err(wrong("has another length in the input `examples`")
                .help("texts with inserted or deleted words cannot be transferred"));
        }
        if !self.examples.flag(examples::ATTACKED, n)? {
            return Ok(Trace::untouched(item));
        }
        Trace::of(item, Edit::replacements(tokens, &after))
    }
}
