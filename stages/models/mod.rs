//! The models that stages train, one file each, listed in [`MODELS`]: parameters, card, loading.

mod char_cnn;
mod embedding;
pub mod entry;
pub mod external;
mod gru;
pub mod keyword_detector;
mod kim_cnn;
pub mod loaded;
mod lstm;
mod lstm_lm;
mod naive_bayes;
mod recurrent;
mod rnn;
mod seq2seq;
mod svm;
pub mod sway;
mod transformer;
mod transformer_seq2seq;

use nn::models::Model;
use store::Params;

use crate::contract::description::Choice;
use crate::contract::expected::{
    ExpectedInputs, ExpectedModel, ExpectedRows, Mismatch, PAIRS_HELP,
};
use crate::params::settings::{self, Settings};
use crate::tables::model_card::ModelCard;
use crate::tables::sequences::Form;
use crate::{Failure, ParamError};
pub use entry::failure;
use entry::{Data, ModelEntry, ModelKind, ModelTask, VectorUse, too_large};

/// Every model. To add one: a file, a `mod` line above and an entry here.
pub static MODELS: &[&dyn ModelKind] = &[
    &lstm::Lstm,
    &gru::Gru,
    &rnn::Rnn,
    &kim_cnn::KimCnn,
    &char_cnn::CharCnn,
    &transformer::Transformer,
    &naive_bayes::NaiveBayes,
    &svm::Svm,
    &lstm_lm::LstmLm,
    &seq2seq::Seq2seq,
    &transformer_seq2seq::TransformerSeq2seq,
];

/// Models that are not trained here.
pub static OUTSIDE: &[&dyn ModelKind] = &[&external::External, &keyword_detector::KeywordDetector];

/// The model of that name.
pub fn find(name: &str) -> Option<&'static dyn ModelKind> {
    let mut all = MODELS.iter().chain(OUTSIDE).copied();
    all.find(|model| model.entry().name == name)
}

/// The model of a card.
pub fn of(card: &ModelCard) -> Result<&'static dyn ModelKind, Failure> {
    let name = card.model();
    find(&name).ok_or_else(|| entry::not_a_model(format!("there is no model `{name}`")))
}

/// All models, for a kind that trains one: `model = "lstm"`.
pub fn choices() -> Vec<Choice> {
    let choice = |entry: ModelEntry| Choice {
        selector: "model",
        name: entry.name,
        summary: entry.summary,
        params: entry.params,
    };
    MODELS.iter().map(|model| choice(model.entry())).collect()
}

/// The names of models that a test selects, for help and messages.
pub fn names(selected: impl Fn(&dyn ModelKind) -> bool) -> Vec<&'static str> {
    let selected = MODELS.iter().filter(|model| selected(**model));
    selected.map(|model| model.entry().name).collect()
}

/// The names of the models that can be read one step after the other with their default parameters.
pub fn recurrent_names() -> Vec<&'static str> {
    names(|model| model.steps(Settings(&Params::new())))
}

/// What to do about pairs of texts for a model that reads one.
pub fn pairs_help() -> String {
    let names = names(|model| model.reads_pairs());
    format!("choose one of {}, or {PAIRS_HELP}", names.join(", "))
}

/// The model that completed parameters name.
pub fn chosen(params: &Params) -> Result<&'static dyn ModelKind, ParamError> {
    let name = Settings(params).text("model").unwrap_or_default();
    let trained = find(name).filter(|_| name != external::NAME);
    trained.ok_or_else(|| settings::unknown("model", name, names(|_| true).into_iter()))
}

/// Looks at the parameters of the model that is chosen.
pub fn check(params: &Params) -> Result<(), ParamError> {
    // Any data will do to find a wrong number; what depends on data is found when it is there.
    let grid = (chosen(params)?.entry().fits)(ExpectedRows::Grid);
    let data = Data {
        form: match grid {
            true => Form::Chars {
                vocabulary: 100,
                width: 20,
                pad: 0,
                unknown: 1,
                words: String::new(),
            },
            false => Form::Tokens {
                vocabulary: 100,
                pad: 0,
                unknown: 1,
                words: String::new(),
                filled: false,
            },
        },
        classes: 2,
        end: Some(1),
        separator: Some(0),
        vectors: Some((50, String::new())),
        seed: 0,
        epochs: 1,
    };
    card(params, &data).map(drop)
}

/// Numbers in one tensor, at most: a page of a stored table has less than 2 GiB.
const LARGEST: usize = 500_000_000;

/// The card of the model that the parameters name. A model that cannot be made, or whose weights could not be
/// stored, is an error.
pub fn card(params: &Params, data: &Data) -> Result<ModelCard, ParamError> {
    let model = chosen(params)?;
    readable(&model.entry(), &data.form)?;
    let sized = |error: ParamError| match error.param {
        "" => too_many(params, &error.message),
        _ => error,
    };
    let card = model.card(Settings(params), data).map_err(sized)?;
    let Some(Ok(spec)) = model.network(&card) else {
        return Ok(card);
    };
    let network = Model::new(spec.as_ref()).map_err(|error| sized(too_large(&error)))?;
    let mut tensors = network.layout().entries();
    match tensors.find(|(_, span)| span.len() > LARGEST) {
        Some((name, span)) => {
            let (rows, cols) = (span.rows, span.cols);
            let message = format!(
                "`{name}` of the model would be {rows} x {cols} numbers, which are too many to store"
            );
            Err(too_many(params, &message))
        }
        None => Ok(card),
    }
}

/// A model of too many weights, blamed on the sizes that were chosen.
fn too_many(params: &Params, message: &str) -> ParamError {
    let sizes = [
        "units",
        "hidden",
        "inner",
        "attention",
        "dim",
        "kernels",
        "layers",
        "positions",
    ];
    let own = chosen(params).map(|model| model.entry().params);
    let own = own.unwrap_or_default();
    // The error points at a size that was written.
    let written = sizes.into_iter().filter(|size| {
        let default = own.iter().find(|param| param.name == *size);
        let default = default.and_then(|param| param.presence.default());
        params
            .get(*size)
            .is_some_and(|given| Some(given) != default.as_ref())
    });
    let written: Vec<&'static str> = written.collect();
    let help = match written.is_empty() {
        true => "choose a smaller model".to_owned(),
        false => format!("lower {}", written.join(", ")),
    };
    let blamed = written.first().copied().unwrap_or("model");
    settings::wrong(blamed, message.to_owned(), help)
}

/// Refuses rows that the model does not read.
fn readable(entry: &ModelEntry, form: &Form) -> Result<(), ParamError> {
    let (name, rows) = (entry.name, form.rows());
    if (entry.fits)(rows) {
        return Ok(());
    }
    let padded = rows == ExpectedRows::Tokens { padded: true };
    if padded && (entry.fits)(ExpectedRows::Tokens { padded: false }) {
        let message = format!("`{name}` would read the padding of these rows as text");
        let help = "connect rows of a tokenize stage without `pad`";
        return Err(settings::wrong("model", message, help));
    }
    let message = format!("the model `{name}` reads {}", entry.reads);
    let help = "tokenize with another scheme, or choose another model";
    Err(settings::wrong("model", message, help))
}

/// Refuses parameters that the connected inputs leave without an effect, and features without their vectors.
/// `signals`: whether the rows are signals, as far as that is known.
pub fn check_inputs(params: &Params, signals: bool, vectors: bool) -> Result<(), ParamError> {
    let model = chosen(params)?;
    let entry = model.entry();
    let idle = |name: &str, why: &str| {
        let param = entry.params.iter().find(|param| param.name == name);
        settings::idle(params, param, || why.to_owned())
    };
    if signals {
        for param in ["vectors", "dim"] {
            idle(param, "signals are read as they are, without word vectors")?;
        }
    }
    if !vectors {
        let why = "it is for connected word vectors, the input `vectors`";
        idle("vectors", why)?;
    }
    if vectors && entry.vectors == VectorUse::Embedding {
        idle("dim", "the dimension is that of the connected vectors")?;
    }
    // What reads vectors by its parameters, and cannot make its own, needs them.
    let needs = entry.vectors == VectorUse::Own;
    if needs && !vectors && model.keeps_vectors_outside(Settings(params), signals) {
        let features = Settings(params).text("features").unwrap_or_default();
        let message = format!("features = \"{features}\" needs the input `vectors`");
        let help = "connect it to an embed stage, or leave `features` out";
        return Err(settings::wrong("features", message, help));
    }
    Ok(())
}

/// What the pipeline file says of the weights of the model that the parameters name; or which inputs do not fit it.
pub fn expect(params: &Params, inputs: &ExpectedInputs<'_>) -> Result<ExpectedModel, Mismatch> {
    let model = chosen(params)?;
    let entry = model.entry();
    let name = entry.name;
    match entry.task {
        ModelTask::Translate => {}
        _ if model.reads_pairs() => inputs.joinable("rows")?,
        _ => inputs.one_text("rows").map_err(|mismatch| Mismatch {
            help: Some(pairs_help()),
            ..mismatch
        })?,
    }
    inputs.hold(
        "rows",
        &format!("the model `{name}`"),
        entry.reads,
        entry.fits,
    )?;
    let rows = inputs.of("rows").and_then(|rows| rows.rows);
    let signals = rows == Some(ExpectedRows::Signals);
    let vectors = inputs.has("vectors");
    check_inputs(params, signals, vectors)?;
    let settings = Settings(params);
    Ok(ExpectedModel {
        name: name.to_owned(),
        outside_vectors: vectors && model.keeps_vectors_outside(settings, signals),
        gradients: model.by_gradient(),
        attends: model.attends(settings),
        steps: model.steps(settings),
        states: model.recurrent(),
        reads: rows,
        classes: inputs.of("rows").and_then(|rows| rows.classes),
        stage: None,
    })
}

/// The sources of the models that may come in by these ports, for the code of a kind that loads them: those that
/// the plan knows, or all of them.
pub fn files(inputs: &ExpectedInputs<'_>, ports: &[&str]) -> Vec<&'static str> {
    let mut files = Vec::new();
    for port in ports.iter().filter(|port| inputs.has(port)) {
        let known = inputs.of(port).and_then(|weights| weights.model.as_ref());
        match known.and_then(|model| find(&model.name)) {
            Some(model) => files.push(model.entry().file),
            None => files.extend(MODELS.iter().chain(OUTSIDE).map(|model| model.entry().file)),
        }
    }
    files.sort_unstable();
    files.dedup();
    files
}
