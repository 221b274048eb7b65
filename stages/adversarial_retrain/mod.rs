//! `adversarial-retrain`: a model trained again, on its own weaknesses too.
//!
//! Mixes adversarial rows into training and measures what that was worth: the accuracy of the old
//! and the new model on clean rows, and on rows that the attack made against each of them.
//! Attacks by the code of `attack`, trains by the code of `train`.

mod lessons;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;
use nn::batch::{Example, Target};
use store::{Params, Value};

use crate::attack::{self, Among, Armoury, Outcome};
use crate::describe::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::determinism::{Determinism, Within, within};
use crate::fingerprint::{self, Code};
use crate::settings::{self, Settings, failure};
use crate::training::{self, Lesson, Trained};
use crate::victim::{Loaded, vectors};
use crate::weights::{Card, with_metadata};
use crate::{Failure, Outputs, ParamError, Stage, Task};
use lessons::{Mix, Regenerated};

/// The kind `adversarial-retrain`.
pub struct AdversarialRetrain;

const MIXES: &[(&str, Mix)] = &[
    ("append", Mix::Append),
    ("batch", Mix::Batch),
    ("epoch", Mix::Epoch),
];

static DESCRIPTION: LazyLock<Description> = LazyLock::new(|| {
    let param = |name, ty, presence, help| Param {
        name,
        ty,
        presence,
        help,
    };
    let default = Presence::Default;
    let own = [
        param(
            "attack",
            Type::Text,
            Presence::Required,
            "The attack to learn from: none, tack-on, swap, jsma, word-mapping, gradient-sign, fixed-point, dynamic or optimal-control.",
        ),
        param(
            "mix",
            Type::Text,
            default(|| Value::Text("append".into())),
            "append (once, against the old model), epoch or batch (against the model of the moment).",
        ),
        param(
            "items",
            Type::Int,
            default(|| Value::Int(1000)),
            "For append and epoch: training rows that are attacked, drawn by seed and id; 0 for all.",
        ),
        param(
            "share",
            Type::Float,
            default(|| Value::Float(0.5)),
            "For batch: the share of a batch's rows that are attacked and added to it.",
        ),
        param(
            "from",
            Type::Text,
            default(|| Value::Text("scratch".into())),
            "scratch (fresh weights) or weights (go on from the old model).",
        ),
        param(
            "test",
            Type::Text,
            default(|| Value::Text("test".into())),
            "The split that both models are measured on.",
        ),
        param(
            "test_items",
            Type::Int,
            default(|| Value::Int(0)),
            "How many of its rows are attacked; 0 for all.",
        ),
    ];
    let base: Vec<Param> = own
        .into_iter()
        .chain(training::PARAMS.iter().copied())
        .collect();
    Description {
        kind: "adversarial-retrain",
        summary: "A model trained again with adversarial rows, and its accuracies before and after.",
        params: settings::union(&base, &attack::params()),
        seeded: true,
    }
});

impl Stage for AdversarialRetrain {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, _: &Params) -> Ports {
        let port = |name: &'static str, holds, required| Port {
            name: name.to_owned(),
            holds,
            required,
        };
        Ports {
            inputs: Inputs::Named(vec![
                port("weights", "weights", true),
                port("rows", "tokens", true),
                port("vectors", "vectors", false),
                port("vocab", "vocab", false),
                port("bayes", "weights", false),
                port("language", "ngrams", false),
            ]),
            outputs: vec![
                port("weights", "weights", true),
                port("history", "history", true),
                port("model", "model", true),
                port("comparison", "comparison", true),
            ],
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        attack::check(params)?;
        let s = Settings(params);
        s.one_of("mix", MIXES)?;
        s.one_of("from", &[("scratch", ()), ("weights", ())])?;
        s.whole("items", 1000, 0)?;
        s.whole("test_items", 0, 0)?;
        s.number("share", 0.5, 1e-6, 1.0)?;
        // A setting without an effect would be taken for one that has it.
        let idle = match s.one_of("mix", MIXES)? {
            Mix::Batch => ("items", "append or epoch"),
            Mix::Append | Mix::Epoch => ("share", "batch"),
        };
        let default = DESCRIPTION.params.iter().find(|p| p.name == idle.0);
        settings::idle(params, default, || format!("it is for mix = {}", idle.1))?;
        training::idle(params, "")?;
        training::spec(params, 0).map(drop)
    }

    fn code(&self, params: &Params) -> Code {
        let name = Settings(params).text("attack").unwrap_or_default();
        fingerprint::narrowed("adversarial-retrain", |source| attack::counts(source, name))
    }

    fn determinism(&self, _: &Params) -> Determinism {
        const ROUNDED: &[Within] = &[within("weights", "values", 1e-2), within("*", "*", 3e-2)];
        Determinism::Rounding(ROUNDED)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let old = Armoury::open(task)?;
        let settings = Settings(task.params);
        let test = settings.text("test").unwrap_or("test");
        let limit = settings.whole("test_items", 0, 0).map_err(failure)?;
        let places = old.places((test, "test"), limit, task.seed, Among::default())?;
        let all = old.places((test, "test"), 0, task.seed, Among::default())?;
        let before = Side {
            name: "before",
            clean: old.accuracy(&all)?,
            attacked: old.attack(&places, task.params, task.seed, task.watch)?,
        };
        let trained = retrain(task, &old)?;
        let connected = task.inputs.get("vectors").map(vectors).transpose()?;
        let new = Loaded::open(&trained.weights, connected.as_ref())?;
        let new = Armoury::with(task, new, connected)?;
        let after = Side {
            name: "after",
            clean: new.accuracy(&all)?,
            attacked: new.attack(&places, task.params, task.seed, task.watch)?,
        };
        let rows = old.rows.split(settings.text("train").unwrap_or("train"));
        let lesson = Lesson {
            train: &old.rows.examples(&rows)?,
            dev: &[],
            vectors: None,
            seed: task.seed,
        };
        Ok([
            (
                "comparison".to_owned(),
                comparison(&[before, after], all.len()),
            ),
            ("history".to_owned(), training::history(&trained.history)),
            ("model".to_owned(), training::model(&trained, &lesson)),
            ("weights".to_owned(), trained.weights),
        ]
        .into())
    }
}

/// Trains the old model's architecture on clean and adversarial rows.
fn retrain(task: &Task<'_>, old: &Armoury) -> Result<Trained, Failure> {
    let settings = Settings(task.params);
    let mix = settings.one_of("mix", MIXES).map_err(failure)?;
    let items = settings.whole("items", 1000, 0).map_err(failure)?;
    let share = settings.number("share", 0.5, 1e-6, 1.0).map_err(failure)?;
    let spec = training::spec(task.params, task.seed).map_err(failure)?;
    let split = |param: &'static str| settings.text(param).unwrap_or(param);
    let mut train = old.rows.examples(&old.rows.split(split("train")))?;
    if train.is_empty() {
        return Err(old.rows.no_split(split("train"), "train"));
    }
    let dev = old.rows.examples(&old.rows.split(split("dev")))?;
    let network = matches!(old.card(), Card::Network { .. });
    if mix == Mix::Append {
        let places = old.places(
            (split("train"), "train"),
            items,
            task.seed,
            Among::default(),
        )?;
        let outcomes = old.attack(&places, task.params, task.seed, task.watch)?;
        train.extend(outcomes.into_iter().map(adversarial));
    } else if !network {
        return Err(
            Failure::new("this model is trained in one go, not batch by batch")
                .help("choose mix = \"append\"")
                .at("mix"),
        );
    }
    let connected = task.inputs.get("vectors").map(vectors).transpose()?;
    let lesson = Lesson {
        train: &train,
        dev: &dev,
        vectors: connected.as_ref(),
        seed: task.seed,
    };
    let goes_on = settings.text("from") == Some("weights");
    if goes_on && !network {
        return Err(
            Failure::new("this model is trained in one go, and cannot go on from weights")
                .help("choose from = \"scratch\"")
                .at("from"),
        );
    }
    let start = goes_on.then_some(old.loaded());
    if mix == Mix::Append || !network {
        return training::train(old.card(), &lesson, &spec, start, task.watch);
    }
    let mut lessons = Regenerated::new(task, old, mix, items, share)?;
    training::train_with(old.card(), &lesson, &spec, start, &mut lessons, task.watch)
        .map_err(|failure| lessons.blame(failure))
}

/// An attacked row as an example with its true class.
fn adversarial(outcome: Outcome) -> Example {
    Example {
        target: Target::Class(outcome.label),
        input: outcome.trace.input,
    }
}

/// One model's numbers.
struct Side {
    name: &'static str,
    clean: f64,
    attacked: Vec<Outcome>,
}

/// `model, clean_accuracy, clean_items, attacked_accuracy, success_rate, items`
fn comparison(sides: &[Side], clean_items: usize) -> RecordBatch {
    let count =
        |side: &Side, test: fn(&Outcome) -> bool| side.attacked.iter().filter(|o| test(o)).count();
    // Of nothing there is no share: null, as in the summary of an attack, and not NaN.
    let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
    let float = |get: &dyn Fn(&Side) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(sides.iter().map(get)))
    };
    let whole = |get: &dyn Fn(&Side) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(sides.iter().map(get)))
    };
    let names = StringArray::from_iter_values(sides.iter().map(|side| side.name));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("model", Arc::new(names)),
        ("clean_accuracy", float(&|side| Some(side.clean))),
        ("clean_items", whole(&|_| clean_items as i64)),
        (
            "attacked_accuracy",
            float(&|side| share(count(side, Outcome::right_after), side.attacked.len())),
        ),
        (
            "success_rate",
            float(&|side| share(count(side, Outcome::success), count(side, Outcome::tried))),
        ),
        ("items", whole(&|side| side.attacked.len() as i64)),
    ];
    with_metadata(columns, Metadata::default())
}
