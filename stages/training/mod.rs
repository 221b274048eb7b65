//! Training, for the kinds `train` and `adversarial-retrain`: settings, the call of `nn`, the tables.
//! Knows nothing of attacks.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;
use nn::batch::{Example, Target};
use nn::linear::Vectors;
use nn::models::Model;
use nn::training::{
    Clip, Event, ExtraExamples, FitSpec, Fitted, Flow, Keep, Optimiser, Schedule, fit_with,
};
use store::{Params, Value};

use crate::contract::description::Param;
use crate::contract::expected::{Expected, ExpectedInputs, Mismatch};
use crate::models::entry::{ModelKind, not_a_model};
use crate::models::failure;
use crate::models::loaded::{Loaded, accuracy};
use crate::params::settings;
use crate::params::settings::Settings;
use crate::tables::model_card::ModelCard;
use crate::tables::weights;
use crate::tables::weights::{Numbers, Tensor, with_metadata};
use crate::{Failure, ParamError, Watch, models};

/// The parameters of training, in either kind.
pub const PARAMS: &[Param] = &[
    Param::text("train", "train", "The split to train on."),
    Param::text(
        "dev",
        "dev",
        "The split that selects the best epoch; rows may lack it.",
    ),
    Param::int("epochs", 10, 0, "Maximum number of epochs."),
    Param::int("batch", 32, 1, "Batch size."),
    Param::flag(
        "balanced",
        false,
        "Whether each batch has equally many rows of each class.",
    ),
    Param::choice(
        "optimiser",
        &["adam", "sgd", "adadelta"],
        "adam, sgd or adadelta.",
    ),
    Param::float("learning_rate", 1e-3, (1e-12, 1e3), "Learning rate."),
    Param::float("momentum", 0.0, (0.0, 0.999), "Momentum, for sgd."),
    Param::float(
        "decay",
        1.0,
        (1e-3, 1.0),
        "The learning rate is multiplied by this after each epoch.",
    ),
    Param::float(
        "final_rate",
        1.0,
        (1e-12, 1e3),
        "The learning rate of the last epoch; it decays exponentially, epoch by epoch.",
    )
    .optional(),
    Param::float(
        "clip_norm",
        0.0,
        (0.0, 1e9),
        "Maximum norm of the gradient; 0 = off.",
    ),
    Param::float(
        "clip_value",
        0.0,
        (0.0, 1e9),
        "Maximum absolute value in the gradient; 0 = off.",
    ),
    Param::int(
        "patience",
        0,
        0,
        "Stop after this many epochs without a better dev accuracy; 0 = never.",
    ),
    Param::choice(
        "keep",
        &["best", "last"],
        "The epoch whose weights are kept: the one with the best dev accuracy (the last one if there is no dev split), or the last.",
    )
    .optional(),
    Param::int(
        "restarts",
        0,
        0,
        "For networks: train again from new initial weights, up to this many times, while dev accuracy stays below `accept`.",
    ),
    Param::float(
        "accept",
        0.0,
        (0.0, 1.0),
        "The dev accuracy that makes a restart unnecessary.",
    )
    .optional(),
    Param::int(
        "probe",
        1000,
        0,
        "Training rows, evenly sampled, whose accuracy is recorded in the history.",
    ),
];

/// The settings of a fit, from checked parameters.
pub fn spec(params: &Params, seed: u64) -> Result<FitSpec, ParamError> {
    let s = Settings(params);
    let momentum = s.float("momentum")?;
    let optimisers = [
        ("adam", Optimiser::ADAM),
        ("sgd", Optimiser::Sgd { momentum }),
        (
            "adadelta",
            Optimiser::Adadelta {
                rho: 0.95,
                eps: 1e-6,
            },
        ),
    ];
    let decay = s.float("decay")?;
    let norm = s.float("clip_norm")?;
    let value = s.float("clip_value")?;
    if norm > 0.0 && value > 0.0 {
        let message = "`clip_norm` and `clip_value` are both given".to_owned();
        return Err(settings::wrong("clip_value", message, "leave one out"));
    }
    let rate = s.float("learning_rate")?;
    let mut spec = FitSpec::new(s.int("epochs")?, s.int("batch")?, rate);
    spec.optimiser = s.one_of("optimiser", &optimisers)?;
    if decay < 1.0 {
        spec.schedule = Schedule::Step {
            epochs: 1,
            factor: decay,
        };
    }
    // The rate changes from one epoch to the next.
    let falling = [
        ("final_rate", params.contains_key("final_rate")),
        ("decay", decay < 1.0),
    ];
    if let (1, Some((name, _))) = (spec.epochs, falling.iter().find(|(_, given)| *given)) {
        let message = format!("`{name}` would have no effect in one epoch");
        return Err(settings::wrong(
            name,
            message,
            "leave it out, or train for more epochs",
        ));
    }
    if params.contains_key("final_rate") {
        if decay < 1.0 {
            let message = "`decay` and `final_rate` are both given".to_owned();
            return Err(settings::wrong("final_rate", message, "leave one out"));
        }
        let last = s.float("final_rate")?;
        if last > rate {
            let message = format!("`final_rate` is {last}");
            let help = format!("it is at most the learning rate, {rate}");
            return Err(settings::wrong("final_rate", message, help));
        }
        let falls = spec.epochs.saturating_sub(1).max(1) as f64;
        spec.schedule = Schedule::Step {
            epochs: 1,
            factor: libm::pow(last / rate, 1.0 / falls),
        };
    }
    spec.restarts = s.int("restarts")? as u32;
    spec.accept = s.maybe_float("accept").unwrap_or_default();
    if spec.restarts > 0 && !params.contains_key("accept") {
        let message = "`restarts` are given without `accept`".to_owned();
        let help = "write the dev accuracy that makes a restart unnecessary: accept = 0.9";
        return Err(settings::wrong("restarts", message, help));
    }
    if spec.restarts == 0 && params.contains_key("accept") {
        let message = "`accept` would have no effect without `restarts`".to_owned();
        let help = "leave it out, or say how often training may start again: restarts = 5";
        return Err(settings::wrong("accept", message, help));
    }
    spec.keep = match s.text("keep") {
        Some("last") => Keep::Last,
        _ => Keep::Best,
    };
    if spec.restarts > 0 && spec.keep == Keep::Last {
        let message = "`restarts` and keep = \"last\" are both given".to_owned();
        let help = "leave one out: attempts are compared by their best epochs";
        return Err(settings::wrong("keep", message, help));
    }
    spec.clip = match (norm > 0.0, value > 0.0) {
        (true, _) => Clip::Norm(norm),
        (_, true) => Clip::Value(value),
        _ => Clip::No,
    };
    spec.patience = s.int("patience")? as u32;
    spec.balanced = s.flag("balanced")?;
    spec.probe = s.int("probe")?;
    spec.seed = seed;
    Ok(spec)
}

/// Refuses settings of training that have no effect on the model.
pub fn idle(params: &Params, model: &dyn ModelKind) -> Result<(), ParamError> {
    let s = Settings(params);
    for param in PARAMS
        .iter()
        .filter(|param| !model.trains_with(s, param.name))
    {
        settings::idle(params, Some(param), || match param.name {
            "momentum" if model.by_gradient() => "it is for optimiser = \"sgd\"".to_owned(),
            "learning_rate" if model.trains_with(s, "epochs") => {
                "it is for steps = \"constant\"".to_owned()
            }
            _ => format!("`{}` is trained without it", model.entry().name),
        })?;
    }
    Ok(())
}

/// Refuses all settings of training but the splits.
pub fn idle_all(params: &Params, why: &str) -> Result<(), ParamError> {
    let learns = |param: &&Param| !["train", "dev", "epochs"].contains(&param.name);
    for param in PARAMS.iter().filter(learns) {
        settings::idle(params, Some(param), || why.to_owned())?;
    }
    Ok(())
}

/// Refuses settings that go by dev accuracy, where rows have no dev split.
pub fn needs_dev(params: &Params, dev: bool, split: &str) -> Result<(), ParamError> {
    let asked = |name: &&str| match params.get(*name) {
        Some(Value::Int(number)) => *number > 0,
        Some(Value::Text(keep)) => keep == "best",
        _ => false,
    };
    let names: [&'static str; 3] = ["patience", "restarts", "keep"];
    match names.into_iter().find(asked) {
        Some(name) if !dev => {
            let message =
                format!("`{name}` goes by dev accuracy, and no row has the split `{split}`");
            let help = "leave it out, or make a dev split in the dataset stage: split = [{ of = \"train\", into = \"dev\", share = 0.1 }]";
            Err(settings::wrong(name, message, help))
        }
        _ => Ok(()),
    }
}

/// Refuses splits that the rows cannot have.
pub fn expect_splits(params: &Params, inputs: &ExpectedInputs<'_>) -> Result<(), Mismatch> {
    let split = |param: &'static str| Settings(params).text(param).unwrap_or(param);
    inputs.has_split("rows", "train", split("train"))?;
    let known = inputs.has_split("rows", "dev", split("dev"));
    if split("dev") != "dev" {
        known?;
    } else if known.is_err() {
        needs_dev(params, false, "dev")?;
    }
    Ok(())
}

/// What is known of the tables `history` and `model`.
pub fn expected() -> [Expected; 2] {
    [HISTORY, MODEL].map(Expected::of_columns)
}

/// One line of a history.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Counted from 1: how often fresh weights were tried.
    pub attempt: i64,
    /// Counted from 1.
    pub epoch: i64,
    /// Steps taken so far.
    pub step: i64,
    /// Mean loss of the epoch's batches.
    pub loss: Option<f64>,
    /// Of the probed training rows.
    pub train_accuracy: Option<f64>,
    /// Of all dev rows.
    pub dev_loss: Option<f64>,
    /// Of all dev rows.
    pub dev_accuracy: Option<f64>,
}

/// A trained model.
pub struct Trained {
    /// What it is.
    pub card: ModelCard,
    /// `name, shape, values`
    pub weights: RecordBatch,
    /// Epoch by epoch.
    pub history: Vec<Line>,
    /// Which epoch's weights these are.
    pub keep: Keep,
}

/// What is learnt from.
pub struct Lesson<'a> {
    /// Rows to learn from.
    pub train: &'a [Example],
    /// Rows that choose the best epoch.
    pub dev: &'a [Example],
    /// Connected vectors.
    pub vectors: Option<&'a Vectors>,
    /// Names the order, the first weights and the dropout.
    pub seed: u64,
}

/// Trains the model of a card from its beginning, or a network from the weights of `start`.
pub fn train(
    card: &ModelCard,
    lesson: &Lesson<'_>,
    spec: &FitSpec,
    start: Option<&Loaded>,
    watch: &dyn Watch,
) -> Result<Trained, Failure> {
    train_with(card, lesson, spec, start, &mut NoMore, watch)
}

/// No rows but those that are there.
struct NoMore;

impl ExtraExamples for NoMore {}

/// As [`train`], with rows that a network gets while it learns.
pub fn train_with(
    card: &ModelCard,
    lesson: &Lesson<'_>,
    spec: &FitSpec,
    start: Option<&Loaded>,
    lessons: &mut dyn ExtraExamples,
    watch: &dyn Watch,
) -> Result<Trained, Failure> {
    let kind = models::of(card)?;
    match kind.network(card) {
        Some(network) => {
            let network = network.map_err(not_a_model)?;
            let model = Model::new(network.as_ref()).map_err(failure)?;
            let start = match start.and_then(Loaded::network) {
                Some((_, params)) => params.clone(),
                None => fresh(&model, lesson)?,
            };
            let (fitted, history) = fit(&model, start, lesson, spec, lessons, watch)?;
            let tensors = tensors(card, &model, &fitted.params);
            Ok(Trained {
                card: card.clone(),
                weights: weights::table(card, &tensors),
                history,
                keep: spec.keep,
            })
        }
        None => at_once(kind, card, lesson),
    }
}

/// First weights, with connected vectors in their place.
fn fresh(model: &Model, lesson: &Lesson<'_>) -> Result<nn::autodiff::Params<f32>, Failure> {
    let mut params = model.init(lesson.seed);
    if let (Some(span), Some(vectors)) = (model.layout().find("embedding"), lesson.vectors) {
        params.set(span, vectors.view()).map_err(|e| {
            failure(e).help("connect `vectors` made for the vocabulary of these tokens")
        })?;
    }
    Ok(params)
}

/// One epoch after the other, told to the user, stopped when the user says so.
fn fit(
    model: &Model,
    start: nn::autodiff::Params<f32>,
    lesson: &Lesson<'_>,
    spec: &FitSpec,
    lessons: &mut dyn ExtraExamples,
    watch: &dyn Watch,
) -> Result<(Fitted, Vec<Line>), Failure> {
    let steps = (lesson.train.len().div_ceil(spec.batch) * spec.epochs) as u64;
    let mut history = Vec::new();
    let mut tried = 1;
    let mut tell = |event: &Event| {
        match event {
            Event::Step { step, .. } => watch.progress(*step, steps.max(*step)),
            Event::Epoch {
                epoch,
                step,
                loss,
                train,
                dev,
            } => {
                let line = Line {
                    attempt: tried,
                    epoch: *epoch as i64 + 1,
                    step: *step as i64,
                    loss: Some(*loss),
                    train_accuracy: train.map(|e| e.accuracy),
                    dev_loss: dev.map(|e| e.loss),
                    dev_accuracy: dev.map(|e| e.accuracy),
                };
                let percent =
                    |x: Option<f64>| x.map_or("-".into(), |x| format!("{:.2}%", x * 100.0));
                watch.log(&format!(
                    "epoch {}: loss {loss:.4}, train {}, dev {}",
                    line.epoch,
                    percent(line.train_accuracy),
                    percent(line.dev_accuracy)
                ));
                history.push(line);
            }
            Event::Restart { attempt } => {
                tried = i64::from(*attempt) + 1;
                watch.log(&format!("restart {attempt}"));
            }
        }
        if watch.stopped() {
            Flow::Stop
        } else {
            Flow::Continue
        }
    };
    let (train, dev) = (lesson.train, lesson.dev);
    let fitted = fit_with(model, start, train, dev, spec, None, lessons, &mut tell);
    let fitted = fitted.map_err(failure)?;
    if fitted.stopped {
        return Err(Failure::stopped());
    }
    Ok((fitted, history))
}

/// The weights of a network that are its own: connected frozen vectors are not.
fn tensors(card: &ModelCard, model: &Model, params: &nn::autodiff::Params<f32>) -> Vec<Tensor> {
    let outside = card.vectors().is_some();
    let own = model.layout().entries();
    own.filter(|(_, span)| !(outside && span.frozen()))
        .map(|(name, span)| Tensor {
            name: name.to_owned(),
            shape: [span.rows, span.cols],
            numbers: Numbers::Single(params.get(span).to_vec()),
        })
        .collect()
}

/// Models that are fitted in one call: no batches, one line of history.
fn at_once(
    kind: &dyn ModelKind,
    card: &ModelCard,
    lesson: &Lesson<'_>,
) -> Result<Trained, Failure> {
    let (tensors, epochs) = kind.fit(card, lesson.train, lesson.vectors)?;
    let weights = weights::table(card, &tensors);
    // What is reported is what the stored weights say.
    let loaded = Loaded::open(&weights, lesson.vectors)?;
    let subject = loaded.subject()?;
    let measure = |examples: &[Example]| match examples.is_empty() {
        true => Ok(None),
        false => accuracy(subject.victim(), examples).map(Some),
    };
    let line = Line {
        attempt: 1,
        epoch: epochs as i64,
        step: (epochs * lesson.train.len()) as i64,
        train_accuracy: measure(lesson.train)?,
        dev_accuracy: measure(lesson.dev)?,
        ..Line::default()
    };
    Ok(Trained {
        card: card.clone(),
        weights,
        history: vec![line],
        keep: Keep::Best,
    })
}

/// The columns of the table `history`.
pub const HISTORY: &[&str] = &[
    "attempt",
    "epoch",
    "step",
    "loss",
    "train_accuracy",
    "dev_loss",
    "dev_accuracy",
];

/// The columns of the table `model`.
pub const MODEL: &[&str] = &[
    "model",
    "weights",
    "classes",
    "rows",
    "attempts",
    "epochs",
    "steps",
    "best_epoch",
    "train_accuracy",
    "dev_accuracy",
    "card",
];

/// Epoch by epoch, as [`HISTORY`] says.
pub fn history(lines: &[Line]) -> RecordBatch {
    let whole = |get: fn(&Line) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(lines.iter().map(get)))
    };
    let float = |get: fn(&Line) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(lines.iter().map(get)))
    };
    let columns = vec![
        ("attempt", whole(|l| l.attempt)),
        ("epoch", whole(|l| l.epoch)),
        ("step", whole(|l| l.step)),
        ("loss", float(|l| l.loss)),
        ("train_accuracy", float(|l| l.train_accuracy)),
        ("dev_loss", float(|l| l.dev_loss)),
        ("dev_accuracy", float(|l| l.dev_accuracy)),
    ];
    with_metadata(columns, Metadata::default())
}

/// The model card as a table of one row.
pub fn model(trained: &Trained, lesson: &Lesson<'_>) -> RecordBatch {
    let classes = lesson.train.iter().filter_map(|e| match e.target {
        Target::Class(label) => Some(i64::from(label) + 1),
        _ => None,
    });
    let numbers = weights::read(&trained.weights).map_or(0, |(_, tensors)| {
        tensors.values().map(|t| t.shape[0] * t.shape[1]).sum()
    });
    // The first of the best, as the fit itself chooses.
    let best = trained.history.iter().fold(None::<&Line>, |best, line| {
        match best.and_then(|b| b.dev_accuracy) {
            Some(old) if line.dev_accuracy.is_none_or(|new| new <= old) => best,
            _ => Some(line),
        }
    });
    let last = trained.history.last();
    let kept = match trained.keep {
        Keep::Best => best,
        Keep::Last => last,
    };
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text.to_owned()])) };
    let whole = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    let float = |x: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![x])) };
    let columns = vec![
        ("model", text(&trained.card.model())),
        ("weights", whole(numbers as i64)),
        ("classes", whole(classes.max().unwrap_or_default())),
        ("rows", whole(lesson.train.len() as i64)),
        ("attempts", whole(last.map_or(0, |l| l.attempt))),
        ("epochs", whole(last.map_or(0, |l| l.epoch))),
        ("steps", whole(last.map_or(0, |l| l.step))),
        ("best_epoch", whole(kept.map_or(0, |l| l.epoch))),
        ("train_accuracy", float(kept.and_then(|l| l.train_accuracy))),
        ("dev_accuracy", float(kept.and_then(|l| l.dev_accuracy))),
        ("card", text(trained.card.text())),
    ];
    with_metadata(columns, Metadata::default())
}
