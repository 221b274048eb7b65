//! How much of a recurrent network's state space rows cover, one after the other (RNN-Test's metrics).
//!
//! Any recurrent network and any rows that it reads, also a model in a program of the user that answers its states:
//! each row starts from the model's own first state. Steps are counted up to those of the longest row.

use ndarray::Array2;
use nn::batch::{Example, Target};
use nn::coverage::{Coverage, CoverageSpec, GateSource};
use nn::victim::{Neural, Victim};

use crate::models::entry::ModelTask;
use crate::models::loaded::Loaded;
use crate::models::{self, failure as refused};
use crate::params::settings::Settings;
use crate::tables::coverage;
use crate::tables::pairs;
use crate::tables::sequences::SequenceTable;
use crate::tables::vectors;
use crate::training::translate;
use crate::{Failure, Outputs, Task};

/// Rows that are looked at together: what is kept does not grow with their number.
const GROUP: usize = 64;

/// The table `coverage`.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let settings = Settings(task.params);
    let connected = task.inputs.get("vectors").map(vectors::read).transpose()?;
    let loaded = Loaded::open(&task.inputs["victim"], connected.as_ref())?;
    let split = settings.text("split").unwrap_or("train");
    let examples = examples(task, &loaded, split)?;
    if let Some((model, params)) = loaded.network() {
        let victim = Neural::new(model, params).map_err(refused)?;
        return covered(task, &victim, &examples);
    }
    let loaded = loaded.started(task)?;
    let outputs = covered(task, loaded.subject()?.victim(), &examples)?;
    loaded.finish(task.watch)?;
    Ok(outputs)
}

/// What the states of rows cover, one after the other.
fn covered(task: &Task<'_>, victim: &dyn Victim, examples: &[Example]) -> Result<Outputs, Failure> {
    let settings = Settings(task.params);
    let steps = examples.iter().map(|example| example.input.len()).max();
    let mut covered = Coverage::new(CoverageSpec {
        steps: steps.unwrap_or(0),
        top_fraction: settings.maybe_float("top_fraction").unwrap_or(0.0),
        threshold: settings.maybe_float("threshold").unwrap_or(0.5),
        gate_source: GateSource::Real,
    });
    let mut values = Vec::with_capacity(examples.len());
    for group in examples.chunks(GROUP) {
        let rows: Vec<&Example> = group.iter().collect();
        for layers in victim.states(&rows).map_err(refused)? {
            // Real gates are not read off the input.
            covered
                .record(&layers, &Array2::default((0, 0)))
                .map_err(refused)?;
            values.push(covered.values());
        }
        if task.watch.stopped() {
            return Err(Failure::stopped());
        }
        task.watch
            .progress(values.len() as u64, examples.len() as u64);
    }
    Ok([("coverage".to_owned(), coverage::write(&values))].into())
}

/// The rows of a split as the model reads them.
fn examples(task: &Task<'_>, loaded: &Loaded, split: &str) -> Result<Vec<Example>, Failure> {
    let table = &task.inputs["rows"];
    let kind = models::of(&loaded.card)?.entry().task;
    let rows = match kind {
        ModelTask::Translate => SequenceTable::read_pairs(table)?,
        _ => pairs::read_joined(table)?,
    };
    let places = rows.split(split);
    if places.is_empty() {
        return Err(rows.no_split(split, "split"));
    }
    match kind {
        ModelTask::Translate => translate::examples(&rows, &places),
        _ => {
            let unlabelled = |row: &usize| Example {
                input: rows.examples[*row].input.clone(),
                target: Target::None,
            };
            Ok(places.iter().map(unlabelled).collect())
        }
    }
}
