//! What the file tells of an attack before it runs: which inputs it needs, and whether model, rows and attack
//! fit together. Shared with `adversarial-retrain`. Decides no result.

use std::mem::discriminant;

use store::{Params, Value};

use super::attacks::{find, listed, transfer};
use super::context::KNOWN_WORDS_FROM;
use super::entry::{Attack, Changes, Victims};
use super::known_words;
use crate::contract::expected::{
    Blamed, Expected, ExpectedInputs, ExpectedModel, ExpectedOutputs, ExpectedRows, Mismatch,
    has_class,
};
use crate::contract::follow::{Follow, Takes};
use crate::models;
use crate::models::entry::ModelTask;
use crate::models::external;
use crate::params::settings::Settings;
use crate::tables::{by_confidence, estimates, summary, traces};

/// Refuses inputs that do not fit the attack or each other, and the lack of one that it needs.
pub fn inputs(params: &Params, inputs: &ExpectedInputs<'_>) -> Result<(), Mismatch> {
    let name = Settings(params).text("attack").unwrap_or_default();
    let Some(attack) = find(name) else {
        return Ok(());
    };
    let entry = attack.entry();
    let needed = entry.needed(Settings(params));
    if let Some(port) = needed.into_iter().find(|port| !inputs.has(port)) {
        let message = format!("the attack `{name}` needs the input `{port}`");
        // The first output of a tokenize stage is not its words.
        let output = match port {
            "vocab" | known_words::PORT => ".vocab",
            _ => "",
        };
        let help = format!(
            "connect it to {}: inputs = {{ {port} = \"STAGE{output}\" }}",
            maker(port)
        );
        return Err(Mismatch::new(Blamed::Param("attack"), message, help));
    }
    if let Some(victim) = model(inputs, "victim").filter(|it| it.name == external::NAME) {
        external_fits(attack, victim, inputs)?;
    }
    match entry.pairs || entry.changes == Changes::Nothing {
        true => inputs.joinable("rows")?,
        false => inputs.one_text("rows")?,
    }
    let fits: fn(ExpectedRows) -> bool = match entry.changes {
        Changes::Nothing => |rows| rows != ExpectedRows::Texts,
        Changes::Words | Changes::WordEdits => |rows| matches!(rows, ExpectedRows::Tokens { .. }),
        Changes::Characters => |rows| matches!(rows, ExpectedRows::Grid),
        Changes::Numbers => |rows| rows == ExpectedRows::Signals,
    };
    let reads = match entry.changes {
        Changes::Nothing => "tokens or signals",
        Changes::Words | Changes::WordEdits => "tokens",
        Changes::Characters => "words of characters",
        Changes::Numbers => "signals",
    };
    inputs.hold("rows", &format!("the attack `{name}`"), reads, fits)?;
    inputs.same_texts("vocab")?;
    inputs.same_texts(known_words::PORT)?;
    classes(params, inputs)?;
    if let Some(bayes) = model(inputs, "bayes").filter(|model| model.name != "naive-bayes") {
        let message = format!("the input `bayes` is the model `{}`", bayes.called());
        let help = "connect a train stage with model = \"naive-bayes\"";
        return Err(Mismatch::new(
            Blamed::Input("bayes".to_owned()),
            message,
            help,
        ));
    }
    match model(inputs, "victim") {
        Some(victim) => {
            attackable(attack, victim, inputs)?;
            attends(attack, params, victim)
        }
        None => Ok(()),
    }
}

/// Refuses a model without attention, if the attack looks at it.
fn attends(attack: &dyn Attack, params: &Params, victim: &ExpectedModel) -> Result<(), Mismatch> {
    let settings = Settings(params);
    let Some(param) = attack.attends_by(settings).filter(|_| !victim.attends) else {
        return Ok(());
    };
    let model = victim.called();
    let value = settings.text(param).unwrap_or_default();
    let message = format!("{param} = \"{value}\" looks at attention, and `{model}` has none");
    let help = match victim.name.as_str() {
        external::NAME => format!(
            "serve attention and set attention = true in the external-model stage, or choose another `{param}`"
        ),
        _ => format!(
            "connect a transformer, or a recurrent network that was trained with `attention`, or choose another `{param}`"
        ),
    };
    Err(Mismatch::new(Blamed::Param(param), message, help))
}

/// Refuses what a model in a program of the user cannot be asked, and classes that naive Bayes has not counted.
fn external_fits(
    attack: &dyn Attack,
    victim: &ExpectedModel,
    inputs: &ExpectedInputs<'_>,
) -> Result<(), Mismatch> {
    let (entry, stage) = (attack.entry(), victim.called());
    if entry.changes == Changes::Characters {
        let message = format!(
            "the attack `{}` changes characters, and `{stage}` is sent the words of a vocabulary, in which every misspelt word is [UNK]",
            entry.name
        );
        let others =
            listed(|other| other.victims == Victims::All && other.changes == Changes::Words);
        let help = format!("choose {others}");
        return Err(Mismatch::new(Blamed::Param("attack"), message, help));
    }
    let counted = model(inputs, "bayes").and_then(|bayes| bayes.classes);
    match victim.classes.zip(counted) {
        Some((classes, counted)) if classes > counted => {
            let message = format!(
                "`{stage}` predicts {classes} classes, and `bayes` has counted words of {counted}"
            );
            let help = format!(
                "correct `classes` of `{stage}`, or connect a naive Bayes that was trained on rows of all its classes"
            );
            let blamed = Blamed::Input("bayes".to_owned());
            Err(Mismatch::new(blamed, message, help))
        }
        _ => Ok(()),
    }
}

/// Refuses classes that rows or model do not have.
fn classes(params: &Params, inputs: &ExpectedInputs<'_>) -> Result<(), Mismatch> {
    let class = |param: &str| params.get(param).and_then(Value::as_int);
    let of_rows = inputs.of("rows").and_then(|rows| rows.classes);
    has_class("label", class("label"), of_rows)?;
    let of_model = model(inputs, "victim").and_then(|model| model.classes);
    has_class("target", class("target"), of_model)
}

/// Refuses a model that the attack cannot use, or that cannot be used without more inputs.
fn attackable(
    attack: &dyn Attack,
    victim: &ExpectedModel,
    inputs: &ExpectedInputs<'_>,
) -> Result<(), Mismatch> {
    let name = attack.entry().name;
    let model = victim.called();
    let blamed = || Blamed::Input("victim".to_owned());
    let recurrent = || {
        format!(
            "connect a train stage with model = \"{}\"",
            models::recurrent_names().join("\", \"")
        )
    };
    let task = models::find(&victim.name).map(|kind| kind.entry().task);
    if task.is_some_and(|task| task != ModelTask::Classify) {
        let message = format!("the model `{model}` is not a classifier");
        let help = "connect `victim` to a model that predicts classes";
        return Err(Mismatch::new(blamed(), message, help));
    }
    match attack.entry().victims {
        Victims::Networks if !victim.gradients => {
            let message = format!("the attack `{name}` needs gradients, but `{model}` has none");
            let others = listed(|entry| {
                entry.victims == Victims::All && entry.changes == attack.entry().changes
            });
            let help = match victim.name.as_str() {
                external::NAME => format!(
                    "serve gradients and set gradients = true in the external-model stage, or choose {others}"
                ),
                _ => format!("connect `victim` to a network, or choose {others}"),
            };
            return Err(Mismatch::new(blamed(), message, help));
        }
        Victims::Recurrent if !models::recurrent_names().contains(&victim.name.as_str()) => {
            let message =
                format!("the attack `{name}` needs a recurrent network, and `victim` is `{model}`");
            return Err(Mismatch::new(blamed(), message, recurrent()));
        }
        Victims::Recurrent if !victim.steps => {
            let message = format!(
                "the attack `{name}` follows a sequence as it arrives, and this `{model}` needs the whole sequence"
            );
            let help = "train without `bidirectional` and `attention`";
            return Err(Mismatch::new(blamed(), message, help));
        }
        _ => {}
    }
    if victim.outside_vectors && !inputs.has("vectors") {
        let message = format!("`{model}` reads word vectors that are not among its weights");
        let help = "connect the input `vectors` to what the train stage read";
        return Err(Mismatch::new(blamed(), message, help));
    }
    let rows = inputs.of("rows").and_then(|rows| rows.rows);
    let kinds = victim.reads.zip(rows);
    // Padding is not another kind of row.
    match kinds.filter(|(reads, rows)| discriminant(reads) != discriminant(rows)) {
        Some((reads, rows)) => {
            let message = format!(
                "`{model}` was trained on {}, and `rows` are {}",
                reads.name(),
                rows.name()
            );
            let help = "connect the rows that the train stage reads, or rows of the same kind";
            Err(Mismatch::new(
                Blamed::Input("rows".to_owned()),
                message,
                help,
            ))
        }
        None => Ok(()),
    }
}

/// Refuses traces of what has none.
pub fn check_traces(inputs: &ExpectedInputs<'_>) -> Result<(), Mismatch> {
    let rows = inputs.of("rows").and_then(|rows| rows.rows);
    if let Some(rows) = rows.filter(|rows| *rows != ExpectedRows::Signals) {
        let message = format!(
            "`traces` is only for signals, but `rows` are {}",
            rows.name()
        );
        return Err(Mismatch::new(
            Blamed::Param("traces"),
            message,
            "leave it out",
        ));
    }
    match model(inputs, "victim").filter(|model| !model.steps) {
        Some(model) => {
            let name = model.called();
            let message = format!(
                "`traces` follow a recurrent network step by step, and this `{name}` has no steps"
            );
            let help = "leave it out, or train \"lstm\", \"gru\" or \"rnn\" without `bidirectional` and `attention`";
            Err(Mismatch::new(Blamed::Param("traces"), message, help))
        }
        None => Ok(()),
    }
}

/// What is known of the outputs.
pub fn outputs(params: &Params) -> ExpectedOutputs {
    // Signals have more columns than words: metrics are what people take of examples.
    let examples = Expected {
        examples: true,
        ..Expected::default()
    };
    let by_confidence = Expected {
        axes: vec![by_confidence::CONFIDENCE.to_owned()],
        ..examples.clone()
    };
    // In the order of the ports.
    let settings = Settings(params);
    let traced = settings.maybe_int("traces").unwrap_or_default() > 0;
    let more = [
        (traced, traces::SCHEMA.expected()),
        (by_confidence::is_made(settings), by_confidence),
        (estimates::is_made(settings), estimates::SCHEMA.expected()),
    ];
    let more = more.into_iter().filter(|(made, _)| *made);
    let mut outputs = vec![examples, summary::SCHEMA.expected()];
    outputs.extend(more.map(|(_, table)| table));
    outputs
}

fn model<'a>(inputs: &'a ExpectedInputs<'_>, port: &str) -> Option<&'a ExpectedModel> {
    inputs.of(port).and_then(|weights| weights.model.as_ref())
}

/// What makes the table of a port.
fn maker(port: &str) -> &'static str {
    match port {
        "bayes" => "a train stage with model = \"naive-bayes\"",
        "vocab" => "the tokenize stage (its output `vocab`)",
        "language" => "an ngrams stage",
        known_words::PORT => KNOWN_WORDS_FROM,
        "lemmas" => "a dataset stage with name = \"wordnet-lemmas\"",
        "synonyms" => "a dataset stage with name = \"counterfit\" or \"wordnet\"",
        "vectors" => "an embed stage",
        transfer::PORT => "an attack stage on another model",
        _ => "the stage that makes it",
    }
}

/// Rows and vectors are those that the victim was trained on; the words of the rows come from where the rows do, if
/// the attack changes words: its edits are then written in words.
pub fn follows(params: &Params) -> Vec<Follow> {
    let name = Settings(params).text("attack").unwrap_or_default();
    let changes_words = find(name).is_some_and(|attack| {
        let changes = attack.entry().changes;
        !matches!(changes, Changes::Nothing | Changes::Numbers)
    });
    let trained_on = |port: &'static str| Follow {
        port,
        of: "victim",
        takes: Takes::Input(port),
    };
    let vocab = Follow {
        port: "vocab",
        of: "rows",
        takes: Takes::Output("vocab"),
    };
    let words = changes_words.then_some(vocab);
    [trained_on("rows"), trained_on("vectors")]
        .into_iter()
        .chain(words)
        .collect()
}

/// Inputs that neither this attack nor a victim of this kind looks at.
pub fn unread(params: &Params, inputs: &ExpectedInputs<'_>) -> Vec<&'static str> {
    let name = Settings(params).text("attack").unwrap_or_default();
    let Some(attack) = find(name) else {
        return Vec::new();
    };
    let needs = attack.entry().needed(Settings(params));
    let own = [
        "bayes",
        "language",
        "lemmas",
        known_words::PORT,
        "synonyms",
        transfer::PORT,
    ];
    let mut unread: Vec<&'static str> = own
        .into_iter()
        .filter(|port| !needs.contains(port))
        .collect();
    if !attack.entry().takes_candidates || needs.contains(&"synonyms") {
        unread.push("candidates");
    }
    if matches!(attack.entry().changes, Changes::Nothing | Changes::Numbers) {
        unread.push("vocab");
    }
    // Networks that read tokens are given the vectors that they began with, whether they keep them or not.
    let reads_vectors = |model: &ExpectedModel| model.outside_vectors || model.gradients;
    if !needs.contains(&"vectors")
        && model(inputs, "victim").is_some_and(|model| !reads_vectors(model))
    {
        unread.push("vectors");
    }
    unread
}
