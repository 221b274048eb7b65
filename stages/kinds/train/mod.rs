//! `train`: a model by name, fitted to rows.
//!
//! What the models are is in `stages/models/`, how they are trained in `stages/training/`: both are shared with
//! `adversarial-retrain`. Knows nothing of attacks.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use nn::batch::{Example, Target};
use store::{Params, Value};

use crate::contract::description::{Choice, Description, Inputs, Param, Port, Ports};
use crate::contract::determinism::{Determinism, Within, within};
use crate::contract::expected::{Blamed, Expected, ExpectedInputs, ExpectedOutputs, Mismatch};
use crate::contract::role::Role;
use crate::fingerprint::{self, Code};
use crate::models::entry::{Data, ModelKind, ModelTask};
use crate::models::loaded::Loaded;
use crate::params::complete::union;
use crate::params::settings;
use crate::params::settings::{Settings, failure};
use crate::tables::model_card::ModelCard;
use crate::tables::pairs;
use crate::tables::sequences::{self, Form, SequenceTable};
use crate::tables::vectors;
use crate::tables::{history, vocabulary, weights};
use crate::training::checkpoint::{self, PRETRAINED};
use crate::training::{Trained, TrainingData, classify, language, translate};
use crate::{Failure, Outputs, ParamError, Stage, Task, models, training};

/// The kind `train`.
pub struct Train;

static DESCRIPTION: LazyLock<Description> = LazyLock::new(|| {
    let names = format!("{}.", models::names(|_| true).join(", "));
    let own = [
        Param::text("model", "", names.leak()).required(),
        Param::text(
            "start",
            "",
            "A safetensors file that `ablate show --safetensors` wrote: training continues from its weights.",
        )
        .optional(),
        Param::text(
            PRETRAINED,
            "",
            "For transformer: a safetensors file of BERT's weights that training starts from, unless the input `pretrained` is connected.",
        )
        .optional(),
    ];
    let base: Vec<Param> = own
        .into_iter()
        .chain(training::PARAMS.iter().copied())
        .collect();
    Description {
        kind: "train",
        summary: "A model fitted to rows: a classifier, a language model or a sequence-to-sequence model.",
        params: union(&base, &models::choices()),
        seeded: true,
        role: Role::Model,
    }
});

impl Stage for Train {
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
                port("rows", "tokens", true),
                port("vectors", "vectors", false),
                port(PRETRAINED, "weights", false),
            ]),
            outputs: vec![
                port("weights", "weights", true),
                port("history", "history", true),
                port("model", "model", true),
            ],
        }
    }

    fn choices(&self) -> Vec<Choice> {
        models::choices()
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        models::check(params)?;
        let model = models::chosen(params)?;
        let spec = training::fit_spec(params, 0, model.entry().task.metric(), None)?;
        check_start(params, model)?;
        if spec.epochs == 0 && !params.contains_key("start") {
            let message = "`epochs` is 0, which is only allowed with `start`".to_owned();
            return Err(settings::wrong(
                "epochs",
                message,
                "train for at least one epoch",
            ));
        }
        match spec.epochs {
            0 => training::idle_all(params, "nothing is trained with epochs = 0")?,
            _ => training::idle(params, model)?,
        }
        if !model.by_gradient() && spec.epochs > 0 && params.contains_key("start") {
            let name = model.entry().name;
            let message =
                format!("`{name}` is fitted in one call, and cannot continue from weights");
            return Err(settings::wrong(
                "start",
                message,
                "epochs = 0 takes them as they are",
            ));
        }
        Ok(())
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        let weights = Expected {
            model: Some(models::expect(params, inputs)?),
            ..Expected::default()
        };
        if inputs.has(PRETRAINED) && models::chosen(params)?.entry().name != "transformer" {
            let message = "the input `pretrained` is for model = \"transformer\"";
            let at = Blamed::Input(PRETRAINED.to_owned());
            return Err(Mismatch::new(at, message, "leave it out"));
        }
        training::expect_splits(params, inputs)?;
        Ok([&[weights], &training::expected()[..]].concat())
    }

    fn files<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        let named = |param: &'static str| {
            let file = params.get(param).and_then(Value::as_text);
            file.map(|name| (param, name))
        };
        ["start", PRETRAINED]
            .into_iter()
            .filter_map(named)
            .collect()
    }

    fn draws(&self, params: &Params) -> bool {
        models::chosen(params).is_ok_and(|model| model.draws())
    }

    fn code(&self, params: &Params, _: &ExpectedInputs<'_>) -> Code {
        let model = models::chosen(params).map(|model| model.entry().file);
        fingerprint::with_chosen("train", model.ok().as_slice())
    }

    fn determinism(&self, _: &Params) -> Determinism {
        const ROUNDED: &[Within] = &[
            within("weights", "values", 1e-2),
            within("history", "*", 3e-2),
        ];
        Determinism::Rounding(ROUNDED)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let settings = Settings(task.params);
        let kind = models::chosen(task.params).map_err(failure)?.entry().task;
        let rows = rows(task)?;
        if rows.empty > 0 {
            let empty = rows.empty;
            task.watch.log(&format!(
                "{empty} texts without a token are read as one unknown word"
            ));
        }
        let vectors = task.inputs.get("vectors").map(vectors::read).transpose()?;
        let listed = task.inputs.get("vectors").and_then(vocabulary::listed);
        vocabulary::agree(rows.form.words(), listed.as_deref(), "vectors")?;
        let split = |param: &'static str| settings.text(param).unwrap_or(param);
        let examples = |split: &str| examples(kind, &rows, split);
        let train = examples(split("train"))?;
        if train.is_empty() {
            return Err(rows.no_split(split("train"), "train"));
        }
        let dev = examples(split("dev"))?;
        if dev.is_empty() && split("dev") != "dev" {
            return Err(rows.no_split(split("dev"), "dev"));
        }
        training::needs_dev(task.params, !dev.is_empty(), split("dev")).map_err(failure)?;
        let signals = matches!(rows.form, Form::Signals { .. });
        models::check_inputs(task.params, signals, vectors.is_some()).map_err(failure)?;
        let (classes, end) = match kind {
            ModelTask::Classify => (classes(&train, &dev)?, None),
            ModelTask::Language => (0, None),
            ModelTask::Translate => (0, Some(translate::end_token(&train)?)),
        };
        let spec = training::fit_spec(task.params, task.seed, kind.metric(), Some(train.len()));
        let spec = spec.map_err(failure)?;
        let model_data = Data {
            form: rows.form.clone(),
            classes,
            end,
            separator: rows.separator,
            vectors: vectors.as_ref().map(|v| (v.dim, weights::digest(&v.data))),
            seed: task.seed,
            epochs: spec.epochs,
        };
        let card = models::card(task.params, &model_data).map_err(failure)?;
        let pretrained = checkpoint::open(task)?;
        if let Some(bytes) = &pretrained {
            checkpoint::fits(&card, bytes)?;
        }
        let data = TrainingData {
            train: &train,
            dev: &dev,
            vectors: vectors.as_ref(),
            pretrained: pretrained.as_deref(),
            seed: task.seed,
        };
        let start = start(task, &card, vectors.as_ref())?;
        let trained = match &start {
            Some((loaded, table)) if spec.epochs == 0 => Trained {
                card: loaded.card.clone(),
                weights: table.clone(),
                history: Vec::new(),
                keep: spec.keep,
                metric: spec.metric,
            },
            start => {
                let start = start.as_ref().map(|(loaded, _)| loaded);
                match kind {
                    ModelTask::Classify => classify::train(&card, &data, &spec, start, task.watch)?,
                    ModelTask::Language => {
                        let bptt = settings.int("bptt").map_err(failure)?;
                        language::train(&card, &data, &spec, bptt, start, task.watch)?
                    }
                    ModelTask::Translate => {
                        translate::train(&card, &data, &spec, start, task.watch)?
                    }
                }
            }
        };
        let model = training::described(&trained, &data);
        Ok([
            ("history".to_owned(), history::write(&trained.history)),
            ("model".to_owned(), model),
            ("weights".to_owned(), trained.weights),
        ]
        .into())
    }
}

/// Refuses starting points that the model cannot have, and two of them.
fn check_start(params: &Params, model: &dyn ModelKind) -> Result<(), ParamError> {
    let name = model.entry().name;
    let given = |param: &str| params.contains_key(param);
    if given(PRETRAINED) && name != "transformer" {
        let message = format!("`{PRETRAINED}` is for model = \"transformer\", not `{name}`");
        return Err(settings::wrong(PRETRAINED, message, "leave it out"));
    }
    if given(PRETRAINED) && given("start") {
        let message = "`start` and `pretrained` are both given".to_owned();
        return Err(settings::wrong(PRETRAINED, message, "leave one out"));
    }
    let language = model.entry().task == ModelTask::Language;
    if language && given("weight_decay") {
        let message = format!("`weight_decay` does not apply to `{name}`");
        return Err(settings::wrong("weight_decay", message, "leave it out"));
    }
    if language && Settings(params).text("schedule") == Some("linear") {
        let message = format!("schedule = \"linear\" does not apply to `{name}`");
        let name = if given("warmup") {
            "warmup"
        } else {
            "schedule"
        };
        return Err(settings::wrong(name, message, "choose another schedule"));
    }
    Ok(())
}

/// The rows as the model reads them: pairs of texts in two sequences, in one, or not at all.
fn rows(task: &Task<'_>) -> Result<SequenceTable, Failure> {
    let model = models::chosen(task.params).map_err(failure)?;
    let table = &task.inputs["rows"];
    match model.entry().task {
        ModelTask::Translate => SequenceTable::read_pairs(table),
        _ if model.reads_pairs() => pairs::read_joined(table),
        _ => SequenceTable::read(table).map_err(|error| match sequences::are_pairs(table) {
            true => error.help(models::pairs_help()),
            false => error,
        }),
    }
}

/// The rows of a split as the task reads them.
fn examples(task: ModelTask, rows: &SequenceTable, split: &str) -> Result<Vec<Example>, Failure> {
    let places = rows.split(split);
    match task {
        ModelTask::Classify => rows.examples(&places),
        ModelTask::Language => Ok(language::examples(rows, &places)),
        ModelTask::Translate => translate::examples(rows, &places),
    }
}

/// How many classes there are to learn: what other splits hold decides nothing.
fn classes(train: &[Example], dev: &[Example]) -> Result<usize, Failure> {
    let most = |examples: &[Example]| {
        let labels = examples.iter().filter_map(|e| match e.target {
            Target::Class(label) => Some(label as usize + 1),
            _ => None,
        });
        labels.max().unwrap_or_default()
    };
    let classes = most(train);
    if classes < 2 {
        return Err(
            Failure::new("all training rows have the class 0: there is only one class")
                .help("check the labels, or draw rows of every class")
                .at("train"),
        );
    }
    if most(dev) > classes {
        return Err(Failure::new(format!(
            "a dev row has the label {}, but training rows have labels up to {}",
            most(dev) - 1,
            classes - 1
        ))
        .help("every class needs training rows")
        .at("dev"));
    }
    Ok(classes)
}

/// The model of the file that `start` names. It must be the one that the parameters describe.
fn start(
    task: &Task<'_>,
    card: &ModelCard,
    vectors: Option<&nn::linear::Vectors>,
) -> Result<Option<(Loaded, arrow::record_batch::RecordBatch)>, Failure> {
    let Some(name) = task.params.get("start").and_then(Value::as_text) else {
        return Ok(None);
    };
    let file = task.files.get(name.trim_start_matches("./"));
    let file = file.ok_or_else(|| Failure::new(format!("{name} is not a file")).at("start"))?;
    let bytes =
        std::fs::read(file.path).map_err(|e| Failure::new(format!("{name}: {e}")).at("start"))?;
    if store::Digest::of(&bytes) != file.digest {
        return Err(Failure::new(format!("{name} changed while the run was planned")).at("start"));
    }
    let table = weights::from_safetensors(&bytes).map_err(|e| e.at("start"))?;
    let loaded = Loaded::open(&table, vectors)?;
    vocabulary::agree(card.words(), loaded.card.words(), name).map_err(|e| e.at("start"))?;
    if !models::of(card)?.describes(card, &loaded.card) {
        return Err(Failure::new(format!(
            "{name} holds another model than the parameters describe"
        ))
        .help("give the parameters that it was trained with: they are in its metadata")
        .at("start"));
    }
    Ok(Some((loaded, table)))
}
