//! Language models: the next token of one long text, read in windows with carried states (Zaremba et al. 2014).

use nn::batch::{Example, Sequence, Target};
use nn::training::{Event, FitSpec, StreamSpec, fit_stream, resume_stream};

use super::data::TrainingData;
use super::epochs::{Epochs, perplexity};
use super::network;
use super::resumable::{self, Pause, Paused};
use super::trained::Trained;
use crate::models::entry::not_a_model;
use crate::models::loaded::Loaded;
use crate::tables::model_card::ModelCard;
use crate::tables::sequences::SequenceTable;
use crate::tables::weights;
use crate::{Failure, Watch};

/// The rows at these places, one after the other: labels are not read.
pub fn examples(rows: &SequenceTable, places: &[usize]) -> Vec<Example> {
    let unlabelled = |row: &usize| Example {
        input: rows.examples[*row].input.clone(),
        target: Target::None,
    };
    places.iter().map(unlabelled).collect()
}

/// Trains the network of a card on the training rows as one text, with gradients over `bptt` tokens.
pub fn train(
    card: &ModelCard,
    data: &TrainingData<'_>,
    spec: &FitSpec,
    bptt: usize,
    start: Option<&Loaded>,
    watch: &dyn Watch,
) -> Result<Trained, Failure> {
    let model = network::build(card)?;
    let model = model.ok_or_else(|| not_a_model("it is not a network".to_owned()))?;
    let (text, dev) = (text(data.train), text(data.dev));
    // Every row of the batch needs a token and its successor.
    if text.len() < 2 * spec.batch {
        let (tokens, batch) = (text.len(), spec.batch);
        return Err(Failure::new(format!(
            "the training text has {tokens} tokens, too few for a batch size of {batch}"
        ))
        .help("lower `batch`, or train on more text")
        .at("batch"));
    }
    // A single token has no successor to measure.
    let dev = if dev.len() > 1 { dev } else { Vec::new() };
    let predicted = text.len() / spec.batch - 1;
    let stream = StreamSpec {
        epochs: spec.epochs,
        batch: spec.batch,
        steps: bptt,
        optimiser: spec.optimiser,
        rate: spec.rate,
        schedule: spec.schedule,
        clip: spec.clip,
        metric: spec.metric,
        patience: spec.patience,
        keep: spec.keep,
        seed: spec.seed,
    };
    let windows = predicted.div_ceil(bptt);
    let mut epochs = Epochs::new(watch, windows * spec.epochs);
    let record = |epochs: &mut Epochs<'_>, event: &Event| {
        epochs.record(&per_token(event, windows, predicted), perplexity)
    };
    let start = network::initial(&model, data, start)?;
    let params = resumable::run(&mut epochs, Pause::AnyStep, record, |from, tell| {
        let start = start.clone();
        let fitted = match from {
            None => fit_stream(&model, start, &text, &dev, &stream, tell)?,
            Some(from) => resume_stream(&model, start, &text, &dev, &stream, from, tell)?,
        };
        Ok(Paused {
            outcome: fitted.params,
            stopped: fitted.stopped,
            checkpoint: fitted.checkpoint,
        })
    })?;
    let tensors = network::tensors(card, &model, &params);
    Ok(Trained {
        card: card.clone(),
        weights: weights::table(card, &tensors),
        history: epochs.history,
        keep: spec.keep,
        metric: spec.metric,
    })
}

/// All tokens of the rows, one row after the other.
fn text(rows: &[Example]) -> Vec<u32> {
    let tokens = rows.iter().filter_map(|row| match &row.input {
        Sequence::Tokens(ids) => Some(ids),
        _ => None,
    });
    tokens.flatten().copied().collect()
}

/// An epoch's loss is summed over a window's steps; per token it compares with dev and across `bptt`.
fn per_token(event: &Event, windows: usize, predicted: usize) -> Event {
    let mut event = event.clone();
    if let Event::Epoch { loss, .. } = &mut event {
        *loss *= windows as f64 / predicted as f64;
    }
    event
}
