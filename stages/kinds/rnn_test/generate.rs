//! The search: one position of each input is replaced by the token nearest to embedding plus scaled gradient.
//!
//! ```text
//! for each input x, in the order of rows:
//!     t = a random position; g = gradient of the objective at the embedding of x_t
//!     for scale in scales: q = embedding(x_t) + scale * g; w = nearest embedding to q; stop if w is not x_t
//!     x'_t = w; the states of x' are added to the coverage
//! ```
//! Inputs are searched in groups. Only the random strategy looks at what earlier inputs have covered: there a group is
//! one input. Coverage is added up in the order of inputs, so the number of threads changes nothing.

use nn::Stream;
use nn::batch::{Example, Sequence, Target};
use nn::coverage::{Coverage, CoverageValue, GateSource, Strategy};
use nn::victim::{Neural, Observed};
use rayon::prelude::*;

use super::nearest::{Embeddings, Found};
use super::objective::{Guide, add_direct, objective};
use super::resumable::{Resumed, save};
use super::settings::{FallBack, Orientation, Scales, TestSettings};
use crate::models::entry::ModelTask;
use crate::models::failure;
use crate::tables::generated::{By, GeneratedRow};
use crate::{Failure, Watch};

/// Inputs that are searched together.
const GROUP: usize = 32;

/// An input to be changed.
#[derive(Clone, Debug)]
pub struct Item {
    /// What names it.
    pub id: String,
    /// The tokens.
    pub input: Vec<u32>,
    /// What should be predicted.
    pub target: Vec<u32>,
    /// The position to change, and those to fall back to, in order.
    pub positions: Vec<usize>,
    /// Its random numbers.
    pub stream: Stream,
}

impl Item {
    /// The input as it is, or another one, with the target.
    fn example(&self, input: &[u32]) -> Example {
        Example {
            input: Sequence::Tokens(input.to_vec()),
            target: Target::Tokens(self.target.clone()),
        }
    }
}

/// What is tested, and how.
pub struct Generator<'a> {
    /// The model.
    pub victim: &'a Neural<'a>,
    /// Its embeddings.
    pub embeddings: &'a Embeddings<'a>,
    /// The parameters.
    pub settings: &'a TestSettings,
    /// What happens where the gradient changes nothing.
    pub fall_back: FallBack,
    /// What the model does.
    pub task: ModelTask,
    /// The factors of the gradient.
    pub scales: Scales,
}

/// What came of it: a row for each input, and the coverage after each that was changed.
pub struct Made {
    pub rows: Vec<GeneratedRow>,
    pub coverage: Vec<Vec<CoverageValue>>,
}

/// A replacement at a position.
struct Change {
    position: usize,
    /// How many positions were tried.
    tried: usize,
    token: u32,
    by: By,
    found: Option<Found>,
}

impl Generator<'_> {
    /// Searches all inputs.
    pub fn run(&self, items: &[Item], watch: &dyn Watch) -> Result<Made, Failure> {
        let steps = items.iter().map(|item| item.input.len()).max();
        let mut covered = Coverage::new(nn::coverage::CoverageSpec {
            steps: steps.unwrap_or(0),
            ..self.settings.coverage
        });
        let carried = |g: nn::coverage::Guidance| g.strategy == Strategy::Random;
        let group = match self.settings.guidance.is_some_and(carried) {
            true => 1,
            false => GROUP,
        };
        let mut made = Made {
            rows: Vec::with_capacity(items.len()),
            coverage: Vec::with_capacity(items.len()),
        };
        let resumed = Resumed::read(watch, |n, row| {
            items.get(n).is_some_and(|item| {
                row.id == item.id && row.original == item.input && row.target == item.target
            })
        });
        let mut known = resumed.rows.chunks(group);
        for items_of_group in items.chunks(group) {
            let news = made.rows.len() > resumed.rows.len();
            if watch.stopped() {
                if news {
                    save(watch, resumed.times, &made.rows);
                }
                return Err(Failure::stopped());
            }
            if news && watch.checkpoint_due() {
                save(watch, resumed.times, &made.rows);
            }
            // Rows are saved after whole groups.
            match known
                .next()
                .filter(|rows| rows.len() == items_of_group.len())
            {
                Some(rows) => self.recall(items_of_group, rows, &mut covered, &mut made)?,
                None => self.group(items_of_group, &mut covered, &mut made)?,
            }
            watch.progress(made.rows.len() as u64, items.len() as u64);
        }
        watch.work("inputs", items.len() as u64);
        Ok(made)
    }

    /// Searches a group, and adds what it made.
    fn group(
        &self,
        items: &[Item],
        covered: &mut Coverage,
        made: &mut Made,
    ) -> Result<(), Failure> {
        let originals: Vec<Example> = items.iter().map(|i| i.example(&i.input)).collect();
        let originals: Vec<&Example> = originals.iter().collect();
        let (before, changes) = match self.settings.orientation {
            Orientation::Random => {
                let losses = self.victim.observe(&originals).map_err(failure)?;
                let losses = losses.iter().map(|seen| seen.losses.sum());
                let drawn = items.iter().map(|item| self.drawn(item, By::Random));
                (losses.collect(), drawn.collect())
            }
            _ => self.by_gradient(items, &originals, covered)?,
        };
        let mut rows: Vec<GeneratedRow> = items
            .iter()
            .zip(before)
            .zip(changes)
            .map(|((item, before), change)| self.row(item, before, change))
            .collect();
        self.observe_changed(items, &mut rows, covered, &mut made.coverage)?;
        made.rows.extend(rows);
        Ok(())
    }

    /// Adds rows that are known already, and what they cover.
    fn recall(
        &self,
        items: &[Item],
        known: &[GeneratedRow],
        covered: &mut Coverage,
        made: &mut Made,
    ) -> Result<(), Failure> {
        let mut rows = known.to_vec();
        self.observe_changed(items, &mut rows, covered, &mut made.coverage)?;
        made.rows.extend(rows);
        Ok(())
    }

    /// The losses of inputs, and the change that the gradient leads to.
    #[allow(clippy::type_complexity, reason = "two lists of one use")]
    fn by_gradient(
        &self,
        items: &[Item],
        originals: &[&Example],
        covered: &Coverage,
    ) -> Result<(Vec<f64>, Vec<Option<Change>>), Failure> {
        let choose = |place: usize, seen: &Observed| {
            let item = &items[place];
            let guide = self.guide(item, covered);
            objective(
                self.settings,
                seen,
                item.positions[0],
                self.cost(item),
                &guide,
            )
        };
        let passes = self.victim.observe_and_differentiate(originals, choose);
        let passes = passes.map_err(failure)?;
        let changes: Vec<Option<Change>> = items
            .par_iter()
            .zip(&passes)
            .map(|(item, (seen, gradient))| {
                let at = |position: usize| {
                    let mut row = gradient.input.row(position).to_vec();
                    if self.settings.coverage.gate_source == GateSource::Authors {
                        add_direct(&self.guide(item, covered), seen, position, &mut row);
                    }
                    self.follow(item, position, row)
                };
                let others = match self.fall_back {
                    FallBack::None => &item.positions[..1],
                    _ => &item.positions[..],
                };
                let numbered = others.iter().enumerate();
                let followed = numbered.into_iter().find_map(|(n, position)| {
                    let change = at(*position)?;
                    Some(Change {
                        tried: n + 1,
                        ..change
                    })
                });
                followed.or_else(|| match self.fall_back {
                    FallBack::None => None,
                    _ => self.drawn(item, By::FallBack),
                })
            })
            .collect();
        let losses = passes.iter().map(|(seen, _)| seen.losses.sum()).collect();
        Ok((losses, changes))
    }

    /// The weight of the summed loss, as TensorFlow's sequence loss has it: a sum for language models, a mean for
    /// others.
    fn cost(&self, item: &Item) -> f64 {
        match self.task {
            ModelTask::Translate => 1.0 / item.target.len() as f64,
            _ => 1.0,
        }
    }

    /// What coverage looks at.
    fn guide<'c>(&self, item: &Item, covered: &'c Coverage) -> Guide<'c> {
        Guide {
            guidance: self.settings.guidance(self.task, item.input.len()),
            covered,
            stream: item.stream.item(GUIDANCE),
        }
    }

    /// The first change along the gradient at a position.
    fn follow(&self, item: &Item, position: usize, mut gradient: Vec<f32>) -> Option<Change> {
        if self.settings.restricted {
            let square: f64 = gradient.iter().map(|g| f64::from(*g) * f64::from(*g)).sum();
            let length = square.sqrt();
            gradient
                .iter_mut()
                .for_each(|g| *g = (f64::from(*g) / length) as f32);
        }
        let own = item.input[position];
        let found = self.embeddings.along(own, &gradient, self.scales.each())?;
        Some(Change {
            position,
            tried: 1,
            token: found.token,
            by: By::Gradient,
            found: Some(found),
        })
    }

    /// A random other token at the first position.
    fn drawn(&self, item: &Item, by: By) -> Option<Change> {
        let position = item.positions[0];
        let others: Vec<u32> = self.embeddings.allowed().to_vec();
        let others: Vec<u32> = others
            .into_iter()
            .filter(|token| *token != item.input[position])
            .collect();
        let draw = |n: usize| item.stream.below(REPLACEMENT, n);
        let tried = match by {
            By::FallBack => item.positions.len(),
            _ => 1,
        };
        (!others.is_empty()).then(|| Change {
            position,
            tried,
            token: others[draw(others.len())],
            by,
            found: None,
        })
    }

    fn row(&self, item: &Item, before: f64, change: Option<Change>) -> GeneratedRow {
        let mut adversarial = item.input.clone();
        if let Some(change) = &change {
            adversarial[change.position] = change.token;
        }
        let by = change.as_ref().map(|change| change.by);
        let position = change.as_ref().map_or(item.positions[0], |c| c.position);
        let tried = change.as_ref().map_or(1, |change| change.tried);
        let found = change.and_then(|change| change.found);
        let backward = u64::from(self.settings.orientation != Orientation::Random);
        GeneratedRow {
            id: item.id.clone(),
            by,
            position,
            tried,
            scale: found.as_ref().map(|found| found.scale),
            l2: found.as_ref().map(|found| found.l2),
            point: found.map(|found| found.point),
            original: item.input.clone(),
            adversarial,
            target: item.target.clone(),
            loss: [before, before],
            passes: [1 + u64::from(by.is_some()), backward],
            predictions: None,
            undone: [false, false],
        }
    }

    /// Asks the model about the changed inputs, and adds them to the coverage in their order.
    fn observe_changed(
        &self,
        items: &[Item],
        rows: &mut [GeneratedRow],
        covered: &mut Coverage,
        values: &mut Vec<Vec<CoverageValue>>,
    ) -> Result<(), Failure> {
        let changed: Vec<usize> = (0..rows.len()).filter(|n| rows[*n].by.is_some()).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let examples = changed
            .iter()
            .map(|n| items[*n].example(&rows[*n].adversarial));
        let examples: Vec<Example> = examples.collect();
        let examples: Vec<&Example> = examples.iter().collect();
        let seen = self.victim.observe(&examples).map_err(failure)?;
        for (n, seen) in changed.into_iter().zip(seen) {
            rows[n].loss[1] = seen.losses.sum();
            covered.record(&seen.layers, &seen.input).map_err(failure)?;
            values.push(covered.values());
        }
        Ok(())
    }
}

/// The random numbers of an input: its position, its replacement, the states that coverage takes.
pub const POSITION: u64 = 0;
const REPLACEMENT: u64 = 1;
const GUIDANCE: u64 = 2;
