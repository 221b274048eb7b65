//! Sequence to sequence: the second text of a row from the first, by teacher forcing.

use nn::batch::{Example, Sequence, Target};
use nn::training::FitSpec;

use super::data::TrainingData;
use super::epochs::perplexity;
use super::network::{self, Fit, NoExtra};
use super::resumable::Pause;
use super::trained::Trained;
use crate::models::entry::not_a_model;
use crate::models::loaded::Loaded;
use crate::tables::model_card::ModelCard;
use crate::tables::sequences::SequenceTable;
use crate::{Failure, Watch};

/// The rows at these places: the first text is read, the second is produced.
pub fn examples(rows: &SequenceTable, places: &[usize]) -> Result<Vec<Example>, Failure> {
    let second = rows.second.as_ref().ok_or_else(|| {
        Failure::new("the rows have no second text to produce (column `ids_b`)")
            .help("give the tokenize stage rows with a source `text` and a target `text_b`")
    })?;
    let example = |row: &usize| match &second[*row] {
        Sequence::Tokens(target) => Ok(Example {
            input: rows.examples[*row].input.clone(),
            target: Target::Tokens(target.clone()),
        }),
        _ => Err(Failure::new("the second text is not a sequence of tokens")),
    };
    places.iter().map(example).collect()
}

/// The token that ends every target, and occurs nowhere else in one: decoding stops at it.
pub fn end_token(examples: &[Example]) -> Result<u32, Failure> {
    let mut end = None;
    for example in examples {
        let Target::Tokens(target) = &example.target else {
            continue;
        };
        let (last, before) = target
            .split_last()
            .ok_or_else(|| Failure::new("a target has no tokens"))?;
        if end.is_some_and(|end| end != *last) || before.contains(last) {
            return Err(not_ended());
        }
        end = Some(*last);
    }
    end.ok_or_else(not_ended)
}

fn not_ended() -> Failure {
    Failure::new("the targets do not all end with the same end token")
        .help("tokenize with eos = true, so that every text ends with [EOS]")
}

/// Trains the network of a card from new initial weights, or from the weights of `start`.
pub fn train(
    card: &ModelCard,
    data: &TrainingData<'_>,
    spec: &FitSpec,
    start: Option<&Loaded>,
    watch: &dyn Watch,
) -> Result<Trained, Failure> {
    let model = network::build(card)?;
    let model = model.ok_or_else(|| not_a_model("it is not a network".to_owned()))?;
    let fit = Fit {
        spec,
        start,
        shown: perplexity,
        pause: Pause::AnyStep,
        watch,
    };
    fit.run(card, &model, data, &mut NoExtra)
}
