//! Our side of training the LSTM: steps on IMDb, 250 tokens, 24 reviews, 64 units, frozen GloVe.

use std::path::Path;

use nn::batch::Example;
use nn::models::{LSTM, Model, Reads, RecurrentSpec};
use nn::objectives::Objective;
use nn::training::{Clip, Optimiser, Trainer};
use serde_json::{Value as Json, json};

use crate::data::{BATCH, STEPS, Texts, UNITS, floats, whole};
use crate::kinds::timed;
use crate::projection::DIM;

/// The steps that count, and their mean loss.
pub fn steps(dir: &Path) -> Result<Json, String> {
    let say = |error: nn::Error| error.to_string();
    let train = Texts::open(dir)?.examples(true);
    let order = whole(dir, "batches.u32")?;
    let vectors = floats(dir, "vectors.f32")?;
    let reads = Reads::Tokens {
        vocabulary: vectors.len() / DIM,
        dim: DIM,
        frozen: true,
    };
    let spec = RecurrentSpec {
        dropout: 0.25,
        forget_bias: 1.0,
        ..RecurrentSpec::new(&LSTM, reads, UNITS as usize, 2)
    };
    let model = Model::new(&spec).map_err(say)?;
    let mut params = model.init(1);
    let span = model.layout().find("embedding").ok_or("no vectors")?;
    let vectors = ndarray::ArrayView2::from_shape((span.rows, span.cols), &vectors);
    let vectors = vectors.map_err(|error| error.to_string())?;
    params.set(span, vectors).map_err(say)?;
    let mut trainer = Trainer::new(&model, params, Optimiser::ADAM, Clip::No, 1).map_err(say)?;
    let mut step = |rows: &[u32]| {
        let examples: Vec<&Example> = rows.iter().map(|row| &train[*row as usize]).collect();
        let step = trainer.step_on(&examples, &Objective::CrossEntropy, 1e-3);
        step.map(|step| step.loss).map_err(say)
    };
    let (warm, counted) = order.split_at(STEPS / 10 * BATCH);
    // Driven from inside the pool, as the engine does.
    let mut all = |part: &[u32]| -> Result<f64, String> {
        let mut sum = 0.0;
        rayon::scope(|_| {
            for rows in part.chunks_exact(BATCH) {
                sum += step(rows)?;
            }
            Ok(sum / (part.len() / BATCH) as f64)
        })
    };
    all(warm)?;
    timed(|| Ok(json!({ "loss": all(counted)? })))
}
