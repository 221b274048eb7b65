//! An attack on one sequence while it arrives, outside of a pipeline: a sample in, a sample out.
//! Constant time and memory, however long it goes on.

use arrow::record_batch::RecordBatch;
use ndarray::ArrayView2;
use nn::stepping::{Aim, Goal, Online, Rule};
use store::Params;

use super::attacks::{self, find};
use super::entry::Begun;
use crate::Failure;
use crate::kinds::attack::online::Settled;
use crate::models::failure as refused;
use crate::models::loaded::Loaded;
use crate::params::settings::{Settings, failure};

/// A model and an attack with its parameters.
pub struct AttackStream {
    loaded: Loaded,
    params: Params,
}

/// Whether the parameters name the class to reach, so that a label has no effect.
pub fn has_target(params: &Params) -> bool {
    params.contains_key("target")
}

/// Sequences that advance together, sample by sample.
pub struct StreamRun<'a> {
    online: Online<'a, f32, Box<dyn Rule<f32>>>,
}

impl AttackStream {
    /// From the table `weights` of a train stage, and the checked parameters of an attack stage.
    pub fn open(weights: &RecordBatch, params: Params) -> Result<AttackStream, Failure> {
        // Whether there is a rule at all comes first: weights that read words cannot even be opened here.
        rule(Settings(&params))?;
        let loaded = Loaded::open(weights, None)?;
        Ok(AttackStream { loaded, params })
    }

    /// A new sequence, before its first sample. Without a target in the parameters it shall leave
    /// the class `label`.
    pub fn start(&self, label: Option<u32>) -> Result<StreamRun<'_>, Failure> {
        self.start_many(&[label])
    }

    /// The same with a sequence for each label. They share matrix products and nothing else.
    pub fn start_many(&self, labels: &[Option<u32>]) -> Result<StreamRun<'_>, Failure> {
        let settings = Settings(&self.params);
        let name = settings.text("attack").unwrap_or_default();
        let (rule, linf) = rule(settings)?;
        let (model, weights) = self.loaded.network().ok_or_else(|| {
            Failure::new(format!("the attack `{name}` needs a recurrent network"))
        })?;
        let settled = Settled::read(settings, linf).map_err(failure)?;
        settled.known(model.outputs())?;
        let goal = |label: &Option<u32>| {
            let aim = match (settled.target(), label) {
                (Some(class), _) => Aim::Reach(class as usize),
                (None, Some(class)) if *class as usize >= model.outputs() => {
                    let classes = model.outputs();
                    return Err(Failure::new(format!(
                        "the label is {class}, but the model has {classes} classes"
                    ))
                    .help(format!("it must be at most {}", classes - 1)));
                }
                (None, Some(class)) => Aim::Leave(*class as usize),
                (None, None) => {
                    return Err(Failure::new(
                        "there is no goal: neither a label nor a target class is given",
                    )
                    .help("pass the true class with --label CLASS, or set `target` in the stage"));
                }
            };
            let threshold = settled.threshold();
            Ok(Goal { aim, threshold })
        };
        let goals = labels.iter().map(goal).collect::<Result<_, _>>()?;
        let online = Online::new(model, weights, rule, goals, settled.limits);
        Ok(StreamRun {
            online: online.map_err(refused)?,
        })
    }
}

/// The rule of an attack that has one.
fn rule(settings: Settings<'_>) -> Result<Begun, Failure> {
    let name = settings.text("attack").unwrap_or_default();
    let begun = match find(name) {
        Some(attack) => attack.rule(settings)?,
        None => None,
    };
    begun.ok_or_else(|| {
        Failure::new(format!(
            "the attack `{name}` does not perturb samples as they arrive"
        ))
        .help(format!("choose {}", attacks::listed(|entry| entry.streams)))
    })
}

impl StreamRun<'_> {
    /// Numbers in a sample.
    pub fn width(&self) -> usize {
        self.online.width()
    }

    /// What the model is to read in place of this sample of each sequence (sequences, numbers).
    pub fn push(&mut self, sample: &[f32]) -> Result<Vec<f32>, Failure> {
        let rows = sample.len() / self.width().max(1);
        let sample = ArrayView2::from_shape((rows, self.width()), sample);
        let sample = sample.map_err(|_| {
            let width = self.width();
            Failure::new(format!("a sample has {width} numbers"))
        })?;
        let moved = self.online.push(sample).map_err(refused)?;
        Ok(moved.into_raw_vec_and_offset().0)
    }

    /// What the classifier would say if the sequence ended here.
    pub fn probabilities(&mut self) -> Result<Vec<f32>, Failure> {
        let all = self.online.probabilities().map_err(refused)?;
        Ok(all.into_raw_vec_and_offset().0)
    }
}
