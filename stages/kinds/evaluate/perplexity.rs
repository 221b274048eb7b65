//! The perplexity of a language model on a split, read as one text with carried states.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use nn::batch::Sequence;
use nn::training::evaluate_stream;

use crate::models::entry::ModelTask;
use crate::models::loaded::Loaded;
use crate::models::{self, failure as refused};
use crate::params::settings::Settings;
use crate::tables::sequences::SequenceTable;
use crate::tables::vocabulary;
use crate::tables::weights::with_metadata;
use crate::{Failure, Outputs, Task};

/// The columns of the output.
pub const COLUMNS: [&str; 4] = ["split", "tokens", "loss", "perplexity"];

/// Tokens that are read at once: no number depends on it.
const STEPS: usize = 64;

/// `split, tokens, loss, perplexity`.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let loaded = Loaded::open(&task.inputs["victim"], None)?;
    let entry = models::of(&loaded.card)?.entry();
    let network = loaded
        .network()
        .filter(|_| entry.task == ModelTask::Language);
    let (model, params) = network.ok_or_else(|| {
        Failure::new(format!(
            "the model `{}` is not a language model",
            entry.name
        ))
        .help("connect a train stage with model = \"lstm-lm\"")
    })?;
    let rows = SequenceTable::read(&task.inputs["rows"])?;
    vocabulary::agreed("victim", loaded.card.words(), "rows", rows.form.words())?;
    let split = Settings(task.params).text("split").unwrap_or("train");
    let places = rows.split(split);
    let tokens = places
        .iter()
        .filter_map(|row| match &rows.examples[*row].input {
            Sequence::Tokens(ids) => Some(ids),
            _ => None,
        });
    let text: Vec<u32> = tokens.flatten().copied().collect();
    if text.len() < 2 {
        return Err(rows.no_split(split, "split"));
    }
    let measured = evaluate_stream(model, params, &text, STEPS).map_err(refused)?;
    let arrays: [ArrayRef; 4] = [
        Arc::new(StringArray::from(vec![split])),
        Arc::new(Int64Array::from(vec![text.len() as i64 - 1])),
        Arc::new(Float64Array::from(vec![measured.loss])),
        Arc::new(Float64Array::from(vec![libm::exp(measured.loss)])),
    ];
    let columns = COLUMNS.into_iter().zip(arrays).collect();
    let table = with_metadata(columns, Metadata::default());
    Ok([("perplexity".to_owned(), table)].into())
}
