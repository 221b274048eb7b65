//! `ngrams`: a language model of texts, by counting.
//!
//! Kneser-Ney's model is `nn`'s, its table is `grams`; this reads texts and says how well it does on
//! those that it has not seen. Knows nothing of who will ask it.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use nn::ngrams::{KneserNey, MOST_ORDER};
use rayon::prelude::*;
use store::Params;

use crate::contract::description::{Description, Inputs, Param, Port, Ports, Range};
use crate::contract::expected::{
    Expected, ExpectedInputs, ExpectedOutputs, ExpectedRows, Mismatch,
};
use crate::models::failure as refused;
use crate::params::settings::{Settings, failure, wrong};
use crate::tables::ngrams;
use crate::tables::sequences::{Form, SequenceTable};
use crate::tables::weights::with_metadata;
use crate::{Failure, Outputs, ParamError, Role, Stage, Task};

/// The kind `ngrams`.
pub struct Ngrams;

static DESCRIPTION: Description = Description {
    kind: "ngrams",
    summary: "An n-gram language model with Kneser-Ney smoothing.",
    params: &[
        Param {
            range: Range::Ints(1, MOST_ORDER as i64),
            ..Param::int("order", 5, 1, "Maximum n-gram length, from 1 to 5.")
        },
        Param::int(
            "min_count",
            1,
            1,
            "N-grams of three words and more that occur less often are pruned.",
        ),
        Param::text("train", "train", "The split that is counted."),
    ],
    seeded: false,
    role: Role::Other,
};

impl Stage for Ngrams {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, _: &Params) -> Ports {
        let port = |name: &str, holds| Port {
            name: name.to_owned(),
            holds,
            required: true,
        };
        Ports {
            inputs: Inputs::Named(vec![port("rows", "tokens")]),
            outputs: vec![port("ngrams", "ngrams"), port("stats", "stats")],
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        let order = Settings(params).int("order")?;
        let least = Settings(params).int("min_count")?;
        if least > 1 && order < 3 {
            let message = format!("`min_count` would have no effect with order = {order}");
            let help = "leave it out: n-grams of one and two words are all kept";
            return Err(wrong("min_count", message, help));
        }
        Ok(())
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        inputs.one_text("rows")?;
        let words = |rows| matches!(rows, ExpectedRows::Tokens { .. });
        inputs.hold("rows", "`ngrams`", "tokens", words)?;
        let train = Settings(params).text("train").unwrap_or("train");
        inputs.has_split("rows", "train", train)?;
        let stats = Expected::of_columns(&["split", "texts", "tokens", "perplexity"]);
        Ok(vec![Expected::default(), stats])
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let settings = Settings(task.params);
        let rows = SequenceTable::read(&task.inputs["rows"])?;
        let Form::Tokens {
            vocabulary,
            pad,
            words,
            ..
        } = &rows.form
        else {
            return Err(
                Failure::new("n-grams are counted on words, and these rows have none")
                    .help("connect the output `tokens` of a tokenize stage of words"),
            );
        };
        let train = settings.text("train").unwrap_or("train");
        let places = rows.split(train);
        if places.is_empty() {
            return Err(rows.no_split(train, "train"));
        }
        let texts: Vec<&[u32]> = rows.examples.iter().map(|e| text(&e.input, *pad)).collect();
        let counted: Vec<&[u32]> = places.iter().map(|row| texts[*row]).collect();
        let order = settings.int("order").map_err(failure)?;
        let least = settings.int("min_count").map_err(failure)? as u64;
        // No text contains padding, so it can mark where one begins.
        let model = KneserNey::fit(&counted, *vocabulary, *pad, order, least).map_err(refused)?;
        let table = ngrams::write(&model, words, *pad);
        Ok(Outputs::from([
            ("ngrams".to_owned(), table),
            ("stats".to_owned(), stats(&model, &rows, &texts, train)),
        ]))
    }
}

/// The words of a text, without what fills it up.
fn text(input: &Sequence, pad: u32) -> &[u32] {
    match input {
        Sequence::Tokens(ids) => {
            let end = ids.iter().position(|id| *id == pad).unwrap_or(ids.len());
            &ids[..end]
        }
        _ => &[],
    }
}

/// `split, texts, tokens, perplexity`; that of the split which was counted would only flatter.
fn stats(model: &KneserNey, rows: &SequenceTable, texts: &[&[u32]], train: &str) -> RecordBatch {
    let mut names: Vec<&str> = rows.splits.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let (mut counts, mut tokens, mut perplexities) = (Vec::new(), Vec::new(), Vec::new());
    for name in &names {
        let places = rows.split(name);
        counts.push(places.len() as i64);
        let words: usize = places.iter().map(|row| texts[*row].len()).sum();
        tokens.push(words as i64);
        let surprise = |row: &usize| -> f64 {
            let text = texts[*row];
            let at = |k: usize| model.probabilities(&text[..k], &text[k..=k])[0];
            (0..text.len()).map(|k| -libm::log(at(k))).sum()
        };
        perplexities.push((*name != train && words > 0).then(|| {
            // One sum a text, added in the order of texts: the same bits on any number of threads.
            let each: Vec<f64> = places.par_iter().map(surprise).collect();
            libm::exp(each.iter().sum::<f64>() / words as f64)
        }));
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("split", Arc::new(StringArray::from(names))),
        ("texts", Arc::new(Int64Array::from(counts))),
        ("tokens", Arc::new(Int64Array::from(tokens))),
        ("perplexity", Arc::new(Float64Array::from(perplexities))),
    ];
    with_metadata(columns, Metadata::default())
}
