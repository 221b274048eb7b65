//! The input `tokens` as a corpus, refused where skip-gram could not learn from it.

use std::ops::Range;

use arrow::array::{Array, AsArray, Int32Array};
use arrow::datatypes::Int32Type;
use arrow::record_batch::RecordBatch;

use super::super::settings::Settings;
use crate::contract::expected;
use crate::tables::sequences;
use crate::tables::vocabulary;
use crate::tables::vocabulary::Vocab;
use crate::{Failure, Task};

/// The texts of the training split.
pub fn read(task: &Task<'_>, settings: &Settings, vocab: &Vocab) -> Result<Texts, Failure> {
    let table = task
        .inputs
        .get("tokens")
        .ok_or_else(|| Failure::new("the input `tokens` is missing"))?;
    let of_tokens = table.schema().metadata().get(vocabulary::KEY).cloned();
    let of_vocab = task.inputs.get("vocab").and_then(vocabulary::listed);
    vocabulary::agreed("tokens", of_tokens.as_deref(), "vocab", of_vocab.as_deref())?;
    if table.column_by_name(sequences::SECOND).is_some() {
        return Err(Failure::new(expected::pairs(sequences::SECOND)).help(expected::PAIRS_HELP));
    }
    let (ids, texts) = texts(table, &settings.train)?;
    let size = vocab.tokens.len() as i32;
    if let Some(id) = ids.values().iter().find(|id| !(0..size).contains(*id)) {
        return Err(Failure::new(format!(
            "the tokens have the id {id}, but the vocabulary ends at {}",
            size - 1
        ))
        .help("connect `tokens` and `vocab` of one tokenize stage"));
    }
    if table
        .schema()
        .metadata()
        .get("ablate.word_width")
        .is_some_and(|w| w != "1")
    {
        return Err(
            Failure::new("skip-gram cannot learn from a grid of characters")
                .help("tokenize with another scheme"),
        );
    }
    if table.schema().metadata().contains_key("ablate.filled") {
        return Err(
            Failure::new("skip-gram would learn from the padding of these tokens")
                .help("connect a tokenize stage without `pad`"),
        );
    }
    Ok((ids, texts))
}

/// All ids, and where each text lies in them.
pub type Texts = (Int32Array, Vec<Range<usize>>);

/// The ids of all rows, and where the texts of one split lie.
fn texts(table: &RecordBatch, train: &str) -> Result<Texts, Failure> {
    let wrong = || {
        Failure::new("the input `tokens` has no columns `split` and `ids`")
            .help("connect the output `tokens` of a tokenize stage")
    };
    let split = table
        .column_by_name(sequences::SPLIT)
        .and_then(|c| c.as_string_opt::<i32>());
    let ids = table
        .column_by_name(sequences::IDS)
        .and_then(|c| c.as_list_opt::<i32>());
    let (split, ids) = split.zip(ids).ok_or_else(wrong)?;
    let values = ids
        .values()
        .as_primitive_opt::<Int32Type>()
        .ok_or_else(wrong)?;
    let offsets = ids.value_offsets();
    let texts: Vec<Range<usize>> = (0..ids.len())
        .filter(|row| split.value(*row) == train)
        .map(|row| offsets[row] as usize..offsets[row + 1] as usize)
        .collect();
    if texts.is_empty() {
        return Err(Failure::new(format!("no row has the split `{train}`")).at("train"));
    }
    Ok((values.clone(), texts))
}
