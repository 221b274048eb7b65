//! JSMA for texts (P0, after Papernot et al. 2016): word by word from the end, each replaced by the
//! word of the whole dictionary that pushes the logit of the predicted class down most.
//!
//! ```text
//! y = argmax f(x);  i = last token, the one before, ...
//! while argmax f(x) == y and fewer than M words are changed:
//!     p = -sign(d z_y / d e_{x[i]})                    # or -gradient; of x as it is, or as it was
//!     x[i] = argmax over z in D, z != x[i], of (e_z - e_{x[i]}) . p
//! ```
//!
//! Rows that the model gets wrong before are left alone: they count as errors already.

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack, Victims};
use crate::kinds::attack::goals::Goal;
use crate::kinds::attack::search::greedy::{Jacobian, walk};
use crate::kinds::attack::search::moves::{Direction, Steepest};
use crate::kinds::attack::trace::Trace;
use crate::params::settings::failure;

const MAX_WORDS: Param = Param::int(
    "max_words",
    35,
    1,
    "The maximum number of words that are replaced.",
);
const DIRECTION: Param = Param::choice(
    "direction",
    &["sign", "gradient"],
    "sign (follow the sign of the gradient) or gradient (the gradient itself).",
);

const JACOBIAN: Param = Param::choice(
    "jacobian",
    &["each-step", "once"],
    "each-step (computed again after every word) or once (computed for the original text only).",
);

const JACOBIANS: &[(&str, Jacobian)] =
    &[("each-step", Jacobian::EachStep), ("once", Jacobian::Once)];

const DIRECTIONS: &[(&str, Direction)] =
    &[("sign", Direction::Sign), ("gradient", Direction::Gradient)];

/// The attack.
pub struct Jsma;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    steepest: Steepest,
    jacobian: Jacobian,
    words: usize,
}

impl Attack for Jsma {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "jsma",
            file: "stages/kinds/attack/attacks/jsma.rs",
            summary: "Replaces words one by one, starting from the end, guided by the sign of the gradient.",
            details: "Each becomes the word of the whole vocabulary that lowers the logit of the predicted class most, until the prediction changes or `max_words` are changed. No place is changed twice. Rows that the model misclassifies are left alone.",
            paper: "the paper of papers/p0_imdb_lstm, after Papernot et al. 2016",
            params: &[MAX_WORDS, DIRECTION, JACOBIAN],
            changes: Changes::Words,
            victims: Victims::Networks,
            budget: |s| {
                s.maybe_int("max_words")
                    .map_or(Budget::Unlimited, Budget::Words)
            },
            ..AttackEntry::PLAIN
        }
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let settings = context.settings();
        let direction = settings.one_of("direction", DIRECTIONS).map_err(failure)?;
        context.gradients("jsma")?;
        Ok(Box::new(Prepared {
            context,
            steepest: Steepest::new(context.vectors("jsma")?, direction, &context.special)?,
            jacobian: settings.one_of("jacobian", JACOBIANS).map_err(failure)?,
            words: settings.int("max_words").map_err(failure)?,
        }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let right: Vec<Item<'_>> = items.iter().filter(|i| i.right()).cloned().collect();
        let text = |tokens: &[u32], place: &usize| tokens[*place] != self.context.pad;
        let from_the_end = |tokens: &[u32]| {
            let places = (0..tokens.len()).rev();
            places.filter(|place| text(tokens, place)).collect()
        };
        let goal = |item: &Item<'_>| Goal::untargeted(item.predicted());
        let walked = walk(
            self.context,
            &right,
            goal,
            from_the_end,
            self.words,
            (&self.steepest, self.jacobian),
        )?;
        let mut walked = walked.into_iter();
        let trace = |item: &Item<'_>| match item.right() {
            true => walked.next().unwrap_or_else(|| Trace::untouched(item)),
            false => Trace::untouched(item),
        };
        Ok(items.iter().map(trace).collect())
    }
}
