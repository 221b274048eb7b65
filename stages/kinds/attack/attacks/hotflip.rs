//! HotFlip on characters: flips, inserts and deletes that the gradient promises the largest loss of.
//!
//! Paper: Ebrahimi et al. 2018, arXiv:1712.06751, sections 2 to 4.
//!
//! ```text
//! J = cross-entropy with the true class;  r = share of the characters, at least 1
//! beam = [(x, 0)]
//! at most r times:
//!     for each text of the beam: one forward, one backward; is it misclassified with the confidence? stop
//!         its best legal edits by s / sqrt(2 N): `candidates/estimates`
//!     beam = the best by the sum of s / sqrt(2 N) along the path, no text twice
//! ```
//!
//! `mode = "one-shot"` takes the best flip of every slot after one backward pass, and makes the r best of them at once:
//! what adversarial training does in every batch (section 5). It also changes rows that are misclassified already.
//!
//! Where the paper is silent: `N` counts slots whose character really changes; a slot that was edited moves with the
//! characters around it and is not edited again; of edits that make the same word only one is tried.

use ndarray::Array1;
use nn::batch::{Example, Sequence, Target};
use nn::objectives::Objective;
use nn::victim::{Gradient, Victim};
use rayon::prelude::*;
use store::Value;

use crate::contract::description::{Param, Presence, Type};
use crate::kinds::attack::candidates::characters::{
    BUDGET, CONFIDENCE, GridText, MODE, Spelling, budget, characters_in, random_flip, slots_used,
};
use crate::kinds::attack::candidates::estimates::{Estimate, Estimator, Operations};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack, Victims};
use crate::kinds::attack::goals::Goal;
use crate::kinds::attack::known_words;
use crate::kinds::attack::search::beam::{Beam, Look};
use crate::kinds::attack::trace::{Probe, Trace};
use crate::models::failure as refused;
use crate::params::settings::{self, Settings, failure};
use crate::tables::estimates;
use crate::tables::examples::{BACKWARD, FORWARD};
use crate::{Failure, ParamError};

const EDITS: Param = Param {
    name: "edits",
    ty: Type::Texts,
    presence: Presence::Default(|| {
        let all = KINDS.map(|kind| Value::Text(kind.to_owned()));
        Value::List(all.to_vec())
    }),
    help: "Which edits there are: flip, insert, delete.",
    ..Param::PLAIN
};
const BEAM: Param = Param::int(
    "beam",
    10,
    1,
    "The number of texts that are kept after each edit; 1 = greedy.",
)
.when("mode", &["search"]);
const UNIT: Param = Param::choice(
    "unit",
    &["operations", "slots"],
    "What the budget counts: operations, or character slots that they change.",
);
const CUMULATIVE: Param = Param::choice(
    "cumulative",
    &["normalised", "raw"],
    "What is added up along a path: normalised scores, or raw estimates.",
)
.when("mode", &["search"]);
const KEEP_LAST_PAD: Param = Param::flag(
    "keep_last_pad",
    false,
    "Whether a word always keeps a padding character at its end.",
);

const PROBES: Param = Param::int(
    estimates::PROBES,
    0,
    0,
    "How many random flips of each row to compare the estimate with the true change of the loss for, in the output `estimates`.",
);

const KINDS: [&str; 3] = ["flip", "insert", "delete"];

/// Texts whose gradients are held at a time.
const TEXTS: usize = 64;

/// The attack.
pub struct Hotflip;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    estimator: Estimator<'a>,
    one_shot: bool,
    beam: Beam,
    share: f64,
    slots: bool,
    raw: bool,
    confidence: f32,
    probes: usize,
}

impl Attack for Hotflip {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "hotflip",
            file: "stages/kinds/attack/attacks/hotflip.rs",
            summary: "Flips, inserts and deletes characters that the gradient promises the largest loss of.",
            details: "By a beam search over the normalised first-order estimates, or all at once. A new word is never a known one, no slot is edited twice, and words of one character are not deleted. Rows that the model misclassifies are left alone, unless all edits are made at once.",
            paper: "Ebrahimi et al. 2018, arXiv:1712.06751",
            params: &[
                EDITS,
                MODE,
                BEAM,
                BUDGET,
                UNIT,
                CONFIDENCE,
                CUMULATIVE,
                KEEP_LAST_PAD,
                PROBES,
            ],
            changes: Changes::Characters,
            victims: Victims::Networks,
            needs: &["vocab", known_words::PORT],
            budget: |s| match (s.maybe_float("budget"), s.text("unit")) {
                (Some(share), Some("slots")) => Budget::SlotShare(share),
                (Some(share), _) => Budget::CharacterShare(share),
                (None, _) => Budget::Unlimited,
            },
            ..AttackEntry::PLAIN
        }
    }

    fn check(&self, s: Settings<'_>) -> Result<(), ParamError> {
        let operations = operations(s)?;
        let only_flips = Operations {
            flip: true,
            ..Operations::default()
        };
        let one_shot = s.text("mode") == Some("one-shot");
        if one_shot && operations != only_flips {
            let message = "mode = \"one-shot\" makes flips only".to_owned();
            return Err(settings::wrong(
                "edits",
                message,
                "write edits = [\"flip\"]",
            ));
        }
        let flips = || "every flip changes one slot".to_owned();
        for param in [UNIT, CUMULATIVE] {
            if operations == only_flips {
                settings::idle(s.0, Some(&param), flips)?;
            }
        }
        if !operations.insert {
            settings::idle(s.0, Some(&KEEP_LAST_PAD), || {
                "nothing is inserted".to_owned()
            })?;
        }
        if s.text("cumulative") == Some("raw") && s.maybe_int("beam") == Some(1) {
            let message = "`cumulative` would have no effect with beam = 1".to_owned();
            return Err(settings::wrong("cumulative", message, "leave it out"));
        }
        Ok(())
    }

    fn draws(&self, s: Settings<'_>) -> bool {
        s.maybe_int(estimates::PROBES)
            .is_some_and(|probes| probes > 0)
    }

    fn asks_before(&self, s: Settings<'_>) -> bool {
        s.text("mode") != Some("one-shot")
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let s = context.settings();
        let (model, params) = context.network("hotflip")?.parts();
        let span = model.layout().find("characters").ok_or_else(|| {
            Failure::new("the attack `hotflip` needs a network that reads characters")
                .help("connect a train stage with model = \"char-cnn\"")
        })?;
        let keep_last_pad = s.flag("keep_last_pad").map_err(failure)?;
        let spelling = Spelling::new(context, "hotflip", keep_last_pad)?;
        let operations = operations(s).map_err(failure)?;
        Ok(Box::new(Prepared {
            context,
            estimator: Estimator::new(spelling, operations, params.view(span)),
            one_shot: s.text("mode") == Some("one-shot"),
            beam: Beam {
                width: s.maybe_int("beam").unwrap_or(1),
            },
            share: s.float("budget").map_err(failure)?,
            slots: s.text("unit") == Some("slots"),
            raw: s.text("cumulative") == Some("raw"),
            confidence: s.float("confidence").map_err(failure)? as f32,
            probes: s.int(estimates::PROBES).map_err(failure)?,
        }))
    }
}

/// The parameter `edits`: some of the three, each once.
fn operations(s: Settings<'_>) -> Result<Operations, ParamError> {
    let list = s.0.get("edits").and_then(Value::as_list).unwrap_or(&[]);
    let mut found = Operations::default();
    for name in list.iter().filter_map(Value::as_text) {
        let flag = match name {
            "flip" => &mut found.flip,
            "insert" => &mut found.insert,
            "delete" => &mut found.delete,
            other => return Err(settings::unknown("edits", other, KINDS.into_iter())),
        };
        if std::mem::replace(flag, true) {
            let message = format!("`edits` has `{name}` twice");
            return Err(settings::wrong("edits", message, "list each edit once"));
        }
    }
    if found == Operations::default() {
        let message = "`edits` is empty".to_owned();
        let help = "write which edits there are: edits = [\"flip\", \"insert\", \"delete\"]";
        return Err(settings::wrong("edits", message, help));
    }
    Ok(found)
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let mut traces = self.traces(items)?;
        for (item, trace) in items.iter().zip(&mut traces).filter(|_| self.probes > 0) {
            trace.probes = self.probes(item)?;
        }
        Ok(traces)
    }
}

impl Prepared<'_> {
    fn traces(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        if self.one_shot {
            return self.at_once(items);
        }
        let right: Vec<Item<'_>> = items.iter().filter(|i| i.right()).cloned().collect();
        let mut found = self.search(&right)?.into_iter();
        let trace = |item: &Item<'_>| match item.right() {
            true => found.next().unwrap_or_else(|| Trace::untouched(item)),
            false => Trace::untouched(item),
        };
        Ok(items.iter().map(trace).collect())
    }

    /// The best flip of a row and random ones: what the gradient promises of each, and what it does.
    fn probes(&self, item: &Item<'_>) -> Result<Vec<Probe>, Failure> {
        let gradient = self.gradients([(item.input, item.label)].into_iter())?;
        let gradient = gradient
            .first()
            .ok_or_else(|| Failure::new("no gradient"))?;
        let grid = GridText::new(item.input, &[], self.context.pad)?;
        let flips = self.estimator.best_flips(&grid, &gradient.input);
        let best = flips
            .iter()
            .max_by(|a, b| a.normalised.total_cmp(&b.normalised));
        let derivatives = self.estimator.derivatives(&grid, &gradient.input);
        let stream = self.context.stream("probes", item);
        let random = (0..self.probes).filter_map(|k| {
            let drawn = random_flip(&grid, &self.estimator.spelling, &stream.item(k as u64))?;
            let estimate = self.estimator.estimate(&grid, &derivatives, drawn)?;
            Some((Some(k), estimate))
        });
        let all: Vec<(Option<usize>, Estimate)> = best
            .map(|best| (None, *best))
            .into_iter()
            .chain(random)
            .collect();
        let flipped = |(_, estimate): &(Option<usize>, Estimate)| {
            let mut input = item.input.clone();
            estimate.edit.apply(&mut input)?;
            let target = Target::Class(item.label);
            Ok(Example { input, target })
        };
        let texts: Vec<Example> = all.iter().map(flipped).collect::<Result<_, Failure>>()?;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let network = self.context.network("hotflip")?;
        let losses = network.losses(&texts.iter().collect::<Vec<_>>());
        let losses = losses.map_err(refused)?.into_iter().zip(all);
        let probe = |(loss, (number, estimate)): (Array1<f64>, (Option<usize>, Estimate))| Probe {
            number,
            edit: estimate.edit,
            estimate: estimate.raw,
            change: loss.sum() - gradient.value,
        };
        Ok(losses.map(probe).collect())
    }

    /// The beam search, for all items together.
    fn search(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let goal = |item: &Item<'_>| Goal::confident(item.label, self.confidence);
        let budgets: Vec<usize> = items.iter().map(|item| self.budget(item)).collect();
        let look = |texts: &[(usize, &Sequence, &[Edit])]| {
            let mut looks = Vec::with_capacity(texts.len());
            for texts in texts.chunks(TEXTS) {
                looks.extend(self.look(items, &budgets, texts)?);
            }
            Ok(looks)
        };
        // An edit changes at least one slot, so that a budget of slots is one of steps too.
        let steps = |item: &Item<'_>| self.budget(item);
        self.beam.search(items, goal, steps, look)
    }

    fn look(
        &self,
        items: &[Item<'_>],
        budgets: &[usize],
        texts: &[(usize, &Sequence, &[Edit])],
    ) -> Result<Vec<Look>, Failure> {
        let asked = texts.iter().map(|(n, text, _)| (*text, items[*n].label));
        let gradients = self.gradients(asked)?;
        let looks = texts.par_iter().zip(gradients);
        let look = |((n, text, edits), gradient): (&(usize, &Sequence, &[Edit]), Gradient)| {
            let used = match self.slots {
                true => slots_used(items[*n].input, edits, self.context.pad)?,
                // As many operations as there are steps.
                false => 0,
            };
            let affordable = match self.slots {
                true => budgets[*n] - used,
                false => usize::MAX,
            };
            let grid = GridText::new(text, edits, self.context.pad)?;
            // The last look is not followed by an edit.
            let most = match edits.len() < budgets[*n] && affordable > 0 {
                true => self.beam.width,
                false => 0,
            };
            let best = match most {
                0 => Vec::new(),
                most => {
                    let gradient = &gradient.input;
                    self.estimator.best(&grid, gradient, most, affordable)
                }
            };
            let score = |e: Estimate| match self.raw {
                true => (e.raw, e.edit),
                false => (e.normalised, e.edit),
            };
            Ok(Look {
                logits: gradient.logits.into_raw_vec_and_offset().0,
                edits: best.into_iter().map(score).collect(),
            })
        };
        looks.map(look).collect()
    }

    /// The best flip of every slot, and of those the best, all at once.
    fn at_once(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let mut traces = Vec::with_capacity(items.len());
        for items in items.chunks(TEXTS) {
            let gradients = self.gradients(items.iter().map(|i| (i.input, i.label)))?;
            let made = items.par_iter().zip(gradients);
            let made = made.map(|(item, gradient)| self.flipped(item, &gradient));
            traces.extend(made.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(traces)
    }

    fn flipped(&self, item: &Item<'_>, gradient: &Gradient) -> Result<Trace, Failure> {
        let pad = self.context.pad;
        let grid = GridText::new(item.input, &[], pad)?;
        let mut flips = self.estimator.best_flips(&grid, &gradient.input);
        // Stable: of equals the first.
        flips.sort_by(|a, b| b.normalised.total_cmp(&a.normalised));
        let mut trace = Trace::of(item, Vec::new())?;
        for flip in flips {
            if trace.edits.len() == self.budget(item) {
                break;
            }
            // Another flip of the word may have made a known one of it.
            if self.estimator.spelling.allows(&trace.input, &flip.edit) {
                trace.edit(flip.edit)?;
            }
        }
        trace.count(FORWARD, 1);
        trace.count(BACKWARD, 1);
        Ok(trace)
    }

    fn gradients<'t>(
        &self,
        texts: impl Iterator<Item = (&'t Sequence, u32)>,
    ) -> Result<Vec<Gradient>, Failure> {
        let example = |(input, label): (&Sequence, u32)| Example {
            input: input.clone(),
            target: Target::Class(label),
        };
        let examples: Vec<Example> = texts.map(example).collect();
        let examples: Vec<&Example> = examples.iter().collect();
        let network = self.context.network("hotflip")?;
        let found = network.gradients(&examples, &Objective::CrossEntropy);
        found.map_err(refused)
    }

    fn budget(&self, item: &Item<'_>) -> usize {
        budget(characters_in(item.input, self.context.pad), self.share)
    }
}
