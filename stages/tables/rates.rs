//! The table `rates` of a test generation: one row for all inputs.
//!
//! `pp = exp(total loss / total tokens)`, `pp_i` is the mean of the inputs' own. Inputs without an adversarial one
//! count with their original loss (R-4.8 of P4).

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::generated::{By, GeneratedRow, PredictionRow};
use super::schema::table;
use super::weights::with_metadata;

table!("rates", "rnn-test", "One row.", {
    ITEMS = "items": "int64", "How many inputs were tried.";
    FOUND = "found": "int64", "For how many an adversarial input was found.";
    GEN_RATE = "gen_rate": "float64", "Their share.";
    ORIENT_RATE = "orient_rate": "float64", "The share of those found that are by the gradient, and not by a random replacement.";
    PP_BEFORE = "pp_before": "float64", "Perplexity of all targets given the originals.";
    PP = "pp": "float64", "Perplexity given the adversarial inputs, and the original where none was found.";
    PP_I_BEFORE = "pp_i_before": "float64", "The mean of each original's own perplexity.";
    PP_I = "pp_i": "float64", "The same of adversarial inputs.";
    MEAN_L2 = "mean_l2": "float64", "The mean L2 norm of scaled gradients; null if there are none.";
    WER_LEV_BEFORE = "wer_lev_before": "float64", "The mean number of character edits between prediction and target, before.", only "sequence-to-sequence models";
    WER_LEV = "wer_lev": "float64", "The same after.", only "sequence-to-sequence models";
    WER_BEFORE = "wer_before": "float64", "The mean word error rate, before.", only "sequence-to-sequence models";
    WER = "wer": "float64", "The same after.", only "sequence-to-sequence models";
    BLEU_BEFORE = "bleu_before": "float64", "The mean BLEU-4 of characters, before.", only "sequence-to-sequence models";
    BLEU = "bleu": "float64", "The same after.", only "sequence-to-sequence models";
    SUC_RATE = "suc_rate": "float64", "Of the inputs found, the share that lost a correction.", only "sequence-to-sequence models";
    SUC_RATE_LITERAL = "suc_rate_literal": "float64", "Of the inputs found, the share in whose prediction a misspelt word reappeared.", only "sequence-to-sequence models";
});

/// The row as a table.
pub fn write(rows: &[GeneratedRow]) -> RecordBatch {
    let found: Vec<&GeneratedRow> = rows.iter().filter(|row| row.by.is_some()).collect();
    let share = |part: usize, all: usize| (all > 0).then(|| part as f64 / all as f64);
    let by = |by: By| found.iter().filter(|row| row.by == Some(by)).count();
    let lengths: Vec<f64> = found.iter().filter_map(|row| row.l2).collect();
    let float = |x: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![x])) };
    let int = |n: usize| -> ArrayRef { Arc::new(Int64Array::from(vec![n as i64])) };
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (ITEMS, int(rows.len())),
        (FOUND, int(found.len())),
        (GEN_RATE, float(share(found.len(), rows.len()))),
        (ORIENT_RATE, float(share(by(By::Gradient), found.len()))),
        (PP_BEFORE, float(perplexity(rows, 0))),
        (PP, float(perplexity(rows, 1))),
        (PP_I_BEFORE, float(mean(&own_perplexities(rows, 0)))),
        (PP_I, float(mean(&own_perplexities(rows, 1)))),
        (MEAN_L2, float(mean(&lengths))),
    ];
    if rows.first().is_some_and(|row| row.predictions.is_some()) {
        let of = |k: usize, get: fn(&PredictionRow) -> f64| {
            let all = rows.iter().filter_map(|row| row.predictions.as_ref());
            float(mean(&all.map(|both| get(&both[k])).collect::<Vec<_>>()))
        };
        let undone = |k: usize| {
            let undone = found.iter().filter(|row| row.undone[k]).count();
            float(share(undone, found.len()))
        };
        columns.extend([
            (WER_LEV_BEFORE, of(0, |p| p.wer_lev)),
            (WER_LEV, of(1, |p| p.wer_lev)),
            (WER_BEFORE, of(0, |p| p.wer)),
            (WER, of(1, |p| p.wer)),
            (BLEU_BEFORE, of(0, |p| p.bleu)),
            (BLEU, of(1, |p| p.bleu)),
            (SUC_RATE, undone(0)),
            (SUC_RATE_LITERAL, undone(1)),
        ]);
    }
    with_metadata(columns, Metadata::default())
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn perplexity(rows: &[GeneratedRow], k: usize) -> Option<f64> {
    let tokens: usize = rows.iter().map(|row| row.target.len()).sum();
    let loss: f64 = rows.iter().map(|row| row.loss[k]).sum();
    (tokens > 0).then(|| libm::exp(loss / tokens as f64))
}

fn own_perplexities(rows: &[GeneratedRow], k: usize) -> Vec<f64> {
    let own = rows.iter().filter(|row| !row.target.is_empty());
    own.map(|row| libm::exp(row.loss[k] / row.target.len() as f64))
        .collect()
}
