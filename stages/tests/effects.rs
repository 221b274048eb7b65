//! Every parameter of every kind, choice by choice: one that is accepted changes the result, or it is refused by a
//! message that names it. `command` is not among them: what its parameters do is its program's business, and they
//! are in its key like all others.

use std::collections::{BTreeMap, BTreeSet};

use arrow::record_batch::RecordBatch;
use store::{Params, Value};

use crate::contract::description::Range;
use crate::contract::expected::ExpectedInputs;
use crate::kinds::adversarial_retrain::AdversarialRetrain;
use crate::kinds::attack::AttackStage;
use crate::kinds::attack::attacks::ATTACKS;
use crate::kinds::attack::entry::Changes;
use crate::kinds::attack::tests::words;
use crate::kinds::dataset::Dataset;
use crate::kinds::embed::Embed;
use crate::kinds::evaluate::Evaluate;
use crate::kinds::ngrams::Ngrams;
use crate::kinds::sql::Sql;
use crate::kinds::table::Table;
use crate::kinds::tokenize::Tokenize;
use crate::kinds::train::Train;
use crate::models::MODELS;
use crate::tests::trial;
use crate::tests::trial::{grids, listed, signals, text, waves};
use crate::training;
use crate::{DataHome, Stage, Task};

type Settings = Vec<(&'static str, Value)>;
type Made = BTreeMap<String, Vec<u8>>;

/// A stage that runs, whose parameters are changed one by one.
struct Ground {
    name: String,
    stage: &'static dyn Stage,
    base: Settings,
    inputs: Vec<(&'static str, RecordBatch)>,
    /// Which of its parameters are changed here.
    walks: fn(&str) -> bool,
}

/// Another value for a parameter, beside settings that both have, and some that only it has.
struct Other {
    value: Value,
    with: Settings,
    also: Settings,
}

fn other(value: Value) -> Vec<Other> {
    under(value, Vec::new())
}

fn under(value: Value, with: Settings) -> Vec<Other> {
    let also = Vec::new();
    vec![Other { value, with, also }]
}

fn int(n: i64) -> Value {
    Value::Int(n)
}

fn float(x: f64) -> Value {
    Value::Float(x)
}

fn yes() -> Value {
    Value::Bool(true)
}

fn entries(all: &[(&str, Value)]) -> Value {
    Value::Table(trial::params(all))
}

/// Values that no default has and that have an effect, wherever the parameter has one.
fn others(kind: &str, choice: &str, param: &str) -> Vec<Other> {
    let sequences = ["lstm-lm", "seq2seq", "transformer-seq2seq"].contains(&choice);
    // Training that gets better and worse: which epoch is best depends on how it is measured.
    let wild = |value: &str| {
        let settings = [(5, 0.5), (12, 0.2), (15, 0.05), (8, 1.0)];
        let mut all = Vec::new();
        for (epochs, rate) in settings {
            let with = vec![("epochs", int(epochs)), ("learning_rate", float(rate))];
            all.extend(under(text(value), with));
        }
        all
    };
    match (kind, param) {
        ("tokenize", "scheme") => other(text(if choice == "chars" {
            "whitespace"
        } else {
            "chars"
        })),
        ("tokenize", "max_len") => other(int(3)),
        ("tokenize", "pad") => under(yes(), vec![("max_len", int(40))]),
        ("tokenize", "min_count") => other(int(5)),
        ("tokenize", "max_vocab") => other(int(3)),
        ("tokenize", "lowercase") => {
            let lower = ["words-punctuation", "word-piece"].contains(&choice);
            other(Value::Bool(!lower))
        }
        ("tokenize", "word_width") => other(int(5)),
        ("tokenize", "eos") => other(yes()),
        ("tokenize", "add_special_tokens") => other(Value::Bool(false)),
        ("tokenize", "text") => other(text("another")),
        ("tokenize", "train") => other(text("dev")),
        ("embed", "source") => other(text(if choice == "random" {
            "one-hot"
        } else {
            "random"
        })),
        ("embed", "dim") => other(int(7)),
        ("embed", "unknown") => other(text("the")),
        ("embed", "missing") => other(text("zero")),
        ("embed", "scale") => other(float(0.7)),
        ("embed", "window") => other(int(1)),
        ("embed", "negative") => other(int(2)),
        ("embed", "epochs") => other(int(2)),
        ("embed", "learning_rate") => other(float(0.1)),
        ("embed", "subsample") => other(float(0.0)),
        ("embed", "train") => other(text("dev")),
        ("ngrams", "order") => other(int(2)),
        ("ngrams", "min_count") => other(int(3)),
        ("ngrams", "train") => other(text("dev")),
        ("dataset", "name") => other(text("frequency")),
        ("dataset", "generate") => other(entries(&[("train", int(9))])),
        ("dataset", "split") => {
            let step = [
                ("of", text("train")),
                ("into", text("dev")),
                ("rows", int(5)),
            ];
            other(Value::List(vec![entries(&step)]))
        }
        ("dataset", "splits") => other(Value::List(vec![text("train")])),
        ("dataset", "balance") => other(yes()),
        ("dataset", "sample") => other(entries(&[("train", int(4))])),
        ("dataset", "encoding") => other(text("latin-1")),
        ("dataset", "source") => other(entries(&[("csv", text("a.csv")), ("text", text("a"))])),
        ("table", "rows") => other(Value::List(vec![entries(&[("x", int(1)), ("y", int(3))])])),
        ("table", "columns") => other(Value::List(vec![text("y")])),
        ("sql", "query") => other(text("SELECT y FROM t")),
        ("evaluate", "measure") => other(text(if choice == "pca" { "cells" } else { "pca" })),
        ("evaluate", "cells") => other(Value::List(vec![cell("accuracy", "r", "c")])),
        ("evaluate", "paper" | "profile") => other(text("P")),
        ("evaluate", "labels") => other(Value::List(vec![text("no"), text("yes")])),
        ("evaluate", "split") => other(text("test")),
        ("evaluate", "table") => other(text("fig")),
        ("evaluate", "strongest") => other(int(2)),
        ("attack", "split") => other(text("dev")),
        ("attack", "items") => other(int(3)),
        ("attack", "among") => other(text("correct")),
        ("attack", "label") => other(int(1)),
        ("attack", "repeats") => other(int(2)),
        ("attack", "traces") => other(int(2)),
        (_, "attack") => other(text(if choice == "none" { "swap" } else { "none" })),
        (_, "strongest") => other(int(1)),
        (_, "n") => other(int(3)),
        (_, "max_words") => other(int(1)),
        (_, "direction") => other(text("gradient")),
        (_, "rule") => other(text("random")),
        (_, "nearest_to") => other(text("original")),
        (_, "candidates") => other(int(1)),
        (_, "similarity") => other(float(0.9)),
        ("train", "tie_layers") => {
            let mut all = other(yes());
            all.extend(under(yes(), vec![("layers", int(2))]));
            all
        }
        ("train", "init") => other(float(0.3)),
        ("train", "bptt") => other(int(5)),
        ("train", "alpha") => other(float(0.01)),
        (_, "alpha") => other(float(0.02)),
        (_, "eps") => other(float(0.001)),
        (_, "target") => other(int(1)),
        (_, "threshold") => other(float(0.1)),
        (_, "clip01") => other(yes()),
        (_, "points") => under(int(1), vec![("alpha", float(8.0))]),
        (_, "v") => other(text("error")),
        (_, "iterations") => other(int(1)),
        (_, "rho") => other(float(0.5)),
        (_, "substeps") => other(int(2)),
        ("attack" | "adversarial-retrain", "start") => other(float(0.5)),
        (_, "penalty") => other(float(50.0)),
        (_, "rate") => other(float(0.5)),
        (_, "mix") => other(text("batch")),
        (_, "items") => other(int(3)),
        (_, "share") => under(float(0.2), vec![("mix", text("batch"))]),
        (_, "from") => other(text("weights")),
        (_, "test") => other(text("dev")),
        (_, "test_items") => other(int(3)),
        (_, "model") if choice == "seq2seq" => other(text("transformer-seq2seq")),
        (_, "model") if choice == "transformer-seq2seq" => other(text("seq2seq")),
        (_, "model") => other(text(if choice == "gru" { "rnn" } else { "gru" })),
        (_, "train") => other(text("dev")),
        (_, "dev") => other(text("test")),
        (_, "epochs") => other(int(3)),
        (_, "batch") => other(int(7)),
        (_, "balanced") => other(yes()),
        (_, "optimiser") => other(text("sgd")),
        (_, "learning_rate") => {
            let mut all = other(float(0.05));
            all.extend(under(float(0.05), vec![("steps", text("constant"))]));
            all
        }
        (_, "momentum") => {
            let mut all = other(float(0.5));
            all.extend(under(float(0.5), vec![("optimiser", text("sgd"))]));
            all
        }
        (_, "adam_beta1") => other(float(0.5)),
        (_, "adam_beta2") => other(float(0.9)),
        (_, "adam_epsilon") => other(float(0.1)),
        (_, "adadelta_rho") => under(float(0.5), vec![("optimiser", text("adadelta"))]),
        (_, "adadelta_epsilon") => under(float(0.1), vec![("optimiser", text("adadelta"))]),
        (_, "schedule") => other(text("step")),
        (_, "decay") => other(float(0.2)),
        (_, "decay_after") => {
            let three = vec![("schedule", text("step")), ("epochs", int(3))];
            under(int(2), three)
        }
        (_, "final_rate") => other(float(0.0001)),
        (_, "clip_norm") => other(float(0.01)),
        (_, "clip_value") => other(float(0.0001)),
        (_, "best") => wild(if sequences { "accuracy" } else { "loss" }),
        (_, "patience") => {
            let with = match kind {
                "train" => vec![("epochs", int(12)), ("learning_rate", float(0.2))],
                _ => vec![("epochs", int(5)), ("learning_rate", float(0.5))],
            };
            under(int(1), with)
        }
        (_, "keep") => wild("last"),
        (_, "restarts") => vec![Other {
            value: int(1),
            with: Vec::new(),
            also: vec![("accept", float(1.0))],
        }],
        (_, "accept") => {
            let mut all = other(float(0.5));
            let with = vec![("restarts", int(1)), ("accept", float(1.0))];
            all.extend(under(float(0.0), with));
            all
        }
        (_, "probe") => other(int(3)),
        (_, "units") => other(int(5)),
        (_, "layers") => other(int(2)),
        (_, "dropout") => other(float(0.5)),
        (_, "vectors") => other(text("trained")),
        (_, "dim") => other(int(6)),
        (_, "bidirectional" | "learned_state") => other(yes()),
        (_, "attention" | "hidden") => other(int(3)),
        (_, "forget_bias") => other(float(0.0)),
        (_, "kernels") => other(int(4)),
        (_, "heads") => other(int(1)),
        (_, "inner") => other(int(5)),
        (_, "positions") => other(int(30)),
        (_, "widths") => other(Value::List(vec![int(2), int(3)])),
        (_, "padding") => other(int(2)),
        (_, "max_norm") => other(float(0.01)),
        (_, "width") => other(int(3)),
        (_, "highways") => other(int(1)),
        (_, "pooler") => other(Value::Bool(true)),
        (_, "steps") => other(text("pegasos")),
        (_, "features") => other(text("mean")),
        (_, "bag") => other(text("count")),
        (_, "length") => {
            let mut all = other(int(3));
            all.extend(under(int(3), vec![("features", text("concatenated"))]));
            all
        }
        _ => by_range(choice, param),
    }
}

/// Another value for a parameter of an attack or a model of which nothing is said above.
fn by_range(choice: &str, param: &str) -> Vec<Other> {
    let attacks = ATTACKS.iter().map(|attack| attack.entry());
    let attacks = attacks.map(|entry| (entry.name, entry.params));
    let models = MODELS.iter().map(|model| model.entry());
    let models = models.map(|entry| (entry.name, entry.params));
    let mut own = attacks.chain(models).filter(|(name, _)| *name == choice);
    let found = own.find_map(|(_, params)| params.iter().find(|own| own.name == param));
    let Some(found) = found else {
        return Vec::new();
    };
    match (found.range, found.presence.default()) {
        (Range::Ints(_, most), Some(Value::Int(n))) if n < most => other(int(n + 1)),
        (Range::Ints(least, _), None) => other(int(least)),
        (Range::Floats(least, _), Some(Value::Float(x))) => other(float((least + x) / 2.0)),
        (Range::OneOf(all), default) => all
            .iter()
            .find(|value| default != Some(text(value)))
            .map_or(Vec::new(), |value| other(text(value))),
        (_, Some(Value::Bool(flag))) => other(Value::Bool(!flag)),
        _ => Vec::new(),
    }
}

/// Parameters that name files, which a stage without an engine has not: they are tested where there are some.
const ELSEWHERE: [(&str, &str); 5] = [
    ("train", "start"),
    ("tokenize", "vocab_file"),
    ("embed", "file"),
    ("embed", "tensor"),
    ("dataset", "source"),
];

fn cell(metric: &str, row: &str, col: &str) -> Value {
    let names = [
        ("from", "x"),
        ("metric", metric),
        ("table", "t"),
        ("row", row),
        ("col", col),
    ];
    entries(&names.map(|(name, value)| (name, text(value))))
}

/// What a stage makes of settings; or what it says of them.
fn made(ground: &Ground, settings: &[&Settings]) -> Result<Made, String> {
    let mut params = Params::new();
    for (name, value) in settings.iter().copied().flatten() {
        params.insert((*name).to_owned(), value.clone());
    }
    let told = |param: Option<&str>, message: String, help: Option<String>| {
        let param = param.map_or(String::new(), |param| format!(" [{param}]"));
        format!("{message}{param} ({})", help.unwrap_or_default())
    };
    let refused = |e: crate::ParamError| told(Some(e.param), e.message, e.help);
    let params = crate::complete(ground.stage, &params).map_err(refused)?;
    let ports = ground
        .inputs
        .iter()
        .map(|(port, _)| (*port, Default::default()));
    let expected = ground
        .stage
        .expect(&params, &ExpectedInputs(ports.collect()));
    let expected = expected.map_err(|e| told(None, format!("{} {:?}", e.message, e.at), e.help))?;
    let inputs = ground.inputs.iter();
    let task = Task {
        inputs: inputs
            .map(|(port, table)| ((*port).to_owned(), table.clone()))
            .collect(),
        params: &params,
        seed: 3,
        files: Default::default(),
        data: &DataHome::nowhere(),
        place: &crate::Place::default(),
        watch: &trial::Nobody,
    };
    let outputs = ground.stage.run(&task);
    let outputs = outputs.map_err(|e| told(e.param, e.message, e.help))?;
    for (port, expected) in ground.stage.ports(&params).outputs.iter().zip(expected) {
        if let (Some(columns), Some(table)) = (expected.columns, outputs.get(&port.name)) {
            let schema = table.schema();
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            assert_eq!(names, columns, "{}, output {}", ground.name, port.name);
        }
    }
    let bytes = outputs
        .into_iter()
        .map(|(name, table)| (name, store::encode(&table).unwrap()));
    Ok(bytes.collect())
}

/// Changes every parameter of a ground; what is wrong, and the parameters that have an effect.
fn walk(ground: &Ground, choice: &str) -> (Vec<String>, BTreeSet<&'static str>) {
    let description = ground.stage.describe();
    let (mut wrong, mut effective) = (Vec::new(), BTreeSet::new());
    let plain = made(ground, &[&ground.base]);
    let plain = plain.unwrap_or_else(|why| panic!("{}: {why}", ground.name));
    for param in description.params.iter().map(|param| param.name) {
        if !(ground.walks)(param) || ELSEWHERE.contains(&(description.kind, param)) {
            continue;
        }
        let others = others(description.kind, choice, param);
        if others.is_empty() {
            wrong.push(format!(
                "{}: give `{param}` another value in others()",
                ground.name
            ));
        }
        let mut idle = Vec::new();
        for Other { value, with, also } in others {
            let before = match with.is_empty() {
                true => Ok(plain.clone()),
                false => made(ground, &[&ground.base, &with]),
            };
            // What it is tried with is not for this choice.
            let Ok(before) = before else { continue };
            let changed = vec![(param, value.clone())];
            match made(ground, &[&ground.base, &with, &changed, &also]) {
                Ok(after) if after != before => drop(effective.insert(param)),
                Ok(_) => idle.push(format!(
                    "{}: `{param}` = {value} is accepted and has no effect",
                    ground.name
                )),
                Err(why) if why.contains(param) => {}
                Err(why) => wrong.push(format!(
                    "{}: `{param}` = {value} is refused without its name: {why}",
                    ground.name
                )),
            }
        }
        // Two epochs may be the best by chance: one try in which they differ is enough.
        let by_chance = ["best", "keep"].contains(&param) && effective.contains(param);
        wrong.extend(idle.into_iter().filter(|_| !by_chance));
    }
    (wrong, effective)
}

/// Walks grounds of one kind: nothing is wrong, and every parameter has an effect in one of them.
fn walk_all(grounds: Vec<(&str, Ground)>) {
    let (mut wrong, mut effective) = (Vec::new(), BTreeSet::new());
    let description = grounds[0].1.stage.describe();
    for (choice, ground) in &grounds {
        let (found, with) = walk(ground, choice);
        wrong.extend(found);
        effective.extend(with);
    }
    let excused = |param: &str| {
        let refused = [("dataset", "encoding")];
        ELSEWHERE.contains(&(description.kind, param))
            || refused.contains(&(description.kind, param))
    };
    for param in description.params.iter().map(|param| param.name) {
        if !effective.contains(param) && !excused(param) {
            wrong.push(format!(
                "`{param}` of {} has no effect in any ground",
                description.kind
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn all(_: &str) -> bool {
    true
}

/// The inputs that attacks on texts have.
struct Words {
    rows: RecordBatch,
    vocab: RecordBatch,
    vectors: RecordBatch,
    bayes: RecordBatch,
    lstm: RecordBatch,
    language: RecordBatch,
}

impl Words {
    fn new() -> Words {
        let rows = words::table(&words::reviews()[..150]);
        let vectors = words::table_of_vectors();
        let trained = |given: &[(&str, Value)], inputs: &[(&str, &RecordBatch)]| {
            trial::run(&Train, inputs, given, 3).unwrap()["weights"].clone()
        };
        let lstm = [
            ("model", text("lstm")),
            ("units", int(6)),
            ("epochs", int(4)),
            ("learning_rate", float(0.02)),
        ];
        let grams = trial::run(&Ngrams, &[("rows", &rows)], &[], 0).unwrap();
        Words {
            bayes: trained(&[("model", text("naive-bayes"))], &[("rows", &rows)]),
            lstm: trained(&lstm, &[("rows", &rows), ("vectors", &vectors)]),
            language: grams["ngrams"].clone(),
            vocab: listed(words::words()),
            rows,
            vectors,
        }
    }

    fn inputs(&self) -> Vec<(&'static str, RecordBatch)> {
        vec![
            ("victim", self.lstm.clone()),
            ("rows", self.rows.clone()),
            ("vectors", self.vectors.clone()),
            ("vocab", self.vocab.clone()),
            ("bayes", self.bayes.clone()),
            ("language", self.language.clone()),
        ]
    }
}

/// The inputs that attacks on signals have.
fn moving() -> Vec<(&'static str, RecordBatch)> {
    let rows = signals(&waves()[..90]);
    let given = [
        ("model", text("gru")),
        ("units", int(3)),
        ("epochs", int(4)),
    ];
    let weights = trial::run(&Train, &[("rows", &rows)], &given, 3).unwrap()["weights"].clone();
    vec![("victim", weights), ("rows", rows)]
}

#[test]
fn parameters_of_training() {
    let rows = words::table(&words::reviews()[..90]);
    let vectors = words::table_of_vectors();
    let mut grounds = Vec::new();
    for model in MODELS {
        let entry = model.entry();
        let name = entry.name;
        let has = |param: &str| entry.params.iter().any(|known| known.name == param);
        let mut base: Settings = vec![("model", text(name))];
        if model.by_gradient() {
            base.extend([("epochs", int(2)), ("batch", int(16))]);
            base.extend([("learning_rate", float(0.02)), ("dev", text("dev"))]);
        }
        let small = [
            ("units", 4),
            ("kernels", 3),
            ("heads", 2),
            ("inner", 6),
            ("positions", 40),
            ("bptt", 8),
        ];
        base.extend(
            small
                .into_iter()
                .filter(|(p, _)| has(p))
                .map(|(p, n)| (p, int(n))),
        );
        let rows = match name {
            "char-cnn" => grids(&trial::reviews()[..90]),
            "seq2seq" | "transformer-seq2seq" => trial::reversals(80),
            _ => rows.clone(),
        };
        let mut plain = base.clone();
        plain.extend(has("dim").then(|| ("dim", int(4))));
        let ground =
            |name: String, base: &Settings, inputs: Vec<(&'static str, RecordBatch)>| Ground {
                name,
                stage: &Train,
                base: base.clone(),
                inputs,
                walks: all,
            };
        grounds.push((
            name,
            ground(name.to_owned(), &plain, vec![("rows", rows.clone())]),
        ));
        if ["lstm", "kim-cnn", "svm"].contains(&name) {
            let inputs = vec![("rows", rows), ("vectors", vectors.clone())];
            grounds.push((name, ground(format!("{name} on vectors"), &base, inputs)));
        }
        if name == "gru" {
            let inputs = vec![("rows", signals(&waves()[..90]))];
            grounds.push((name, ground(format!("{name} on signals"), &base, inputs)));
        }
    }
    walk_all(grounds);
}

/// A ground for each attack of a kind, and two for the one that takes any rows.
fn attacks(
    stage: &'static dyn Stage,
    more: Settings,
    walks: fn(&str) -> fn(&str) -> bool,
) -> Vec<(&'static str, Ground)> {
    let (words, moving) = (Words::new(), moving());
    let mut grounds = Vec::new();
    for entry in ATTACKS.iter().map(|attack| attack.entry()) {
        let mut base = vec![("attack", text(entry.name))];
        base.extend(more.clone());
        if entry.name == "optimal-control" {
            base.push(("iterations", int(4)));
        }
        let mut add = |name: String, inputs| {
            let (base, walks) = (base.clone(), walks(entry.name));
            grounds.push((
                entry.name,
                Ground {
                    name,
                    stage,
                    base,
                    inputs,
                    walks,
                },
            ));
        };
        if entry.changes != Changes::Numbers {
            add(entry.name.to_owned(), words.inputs());
        }
        if entry.changes != Changes::Words {
            add(format!("{} on signals", entry.name), moving.clone());
        }
    }
    grounds
}

#[test]
fn parameters_of_attacks() {
    walk_all(attacks(&AttackStage, Vec::new(), |_| all));
}

#[test]
fn parameters_of_retraining() {
    // Those of training are the same under every attack, and one of them will do.
    fn of_attacks(param: &str) -> bool {
        training::PARAMS.iter().all(|known| known.name != param)
    }
    let small = vec![
        ("epochs", int(2)),
        ("batch", int(16)),
        ("learning_rate", float(0.02)),
        ("test_items", int(6)),
    ];
    walk_all(attacks(&AdversarialRetrain, small, |attack| match attack {
        "none" => all,
        _ => of_attacks,
    }));
}

/// Texts of two columns, with capitals, punctuation and splits.
fn written() -> RecordBatch {
    let row = |n: i64| {
        let split = ["train", "train", "dev", "test"][n as usize % 4];
        let words = [
            "The film was Good, really good!",
            "a bad Movie",
            "so the plot is fine. the the",
        ];
        let body = format!(
            "{} {}",
            words[n as usize % 3],
            ["extraordinarily", "dull"][n as usize % 2]
        );
        entries(&[
            ("id", int(n)),
            ("split", text(split)),
            ("label", int(n % 2)),
            ("text", text(&body)),
            ("another", text(words[(n as usize + 1) % 3])),
        ])
    };
    let rows = Value::List((0..16).map(row).collect());
    trial::run(&Table, &[], &[("rows", rows)], 0).unwrap()["rows"].clone()
}

#[test]
fn parameters_of_tokens() {
    let pieces = [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "good", "##s", "Good", "a",
    ];
    let mut grounds = Vec::new();
    for scheme in [
        "words",
        "words-punctuation",
        "whitespace",
        "char-grid",
        "chars",
        "word-piece",
    ] {
        let mut inputs = vec![("rows", written())];
        if scheme == "word-piece" {
            let vocab = listed(pieces.map(str::to_owned).to_vec());
            inputs.push(("vocab", vocab.project(&[1]).unwrap()));
        }
        grounds.push((
            scheme,
            Ground {
                name: scheme.to_owned(),
                stage: &Tokenize,
                base: vec![("scheme", text(scheme))],
                inputs,
                walks: all,
            },
        ));
    }
    walk_all(grounds);
}

#[test]
fn parameters_of_vectors_and_of_language() {
    let given = [("scheme", text("words"))];
    let tokens = trial::run(&Tokenize, &[("rows", &written())], &given, 0).unwrap();
    let (tokens, vocab) = (tokens["tokens"].clone(), tokens["vocab"].clone());
    let random = [("source", text("random")), ("dim", int(5))];
    let random = trial::run(&Embed, &[("vocab", &vocab)], &random, 9).unwrap()["vectors"].clone();
    // Vectors of some words: the others are missing.
    let known = random.slice(2, 5);
    let ground = |source: &'static str, inputs| {
        let mut base = vec![("source", text(source))];
        if source == "skip-gram" {
            base.push(("dim", int(5)));
        }
        let (name, stage) = (source.to_owned(), &Embed);
        (
            source,
            Ground {
                name,
                stage,
                base,
                inputs,
                walks: all,
            },
        )
    };
    walk_all(vec![
        ground("random", vec![("vocab", vocab.clone())]),
        ground("one-hot", vec![("vocab", vocab.clone())]),
        ground(
            "skip-gram",
            vec![("vocab", vocab.clone()), ("tokens", tokens.clone())],
        ),
        ground("vectors", vec![("vocab", vocab), ("vectors", known)]),
    ]);
    let name = "ngrams".to_owned();
    let (base, inputs) = (Vec::new(), vec![("rows", tokens)]);
    walk_all(vec![(
        "",
        Ground {
            name,
            stage: &Ngrams,
            base,
            inputs,
            walks: all,
        },
    )]);
}

#[test]
fn parameters_of_evaluation() {
    let words = Words::new();
    let examples = [("attack", text("swap"))];
    let inputs = words.inputs();
    let inputs: Vec<(&str, &RecordBatch)> = inputs.iter().map(|(p, t)| (*p, t)).collect();
    let examples = trial::run(&AttackStage, &inputs, &examples, 3).unwrap()["examples"].clone();
    let cells = Value::List(vec![cell("confusion", "{true}", "{predicted}")]);
    let ground = |choice: &'static str, base: Settings, inputs| {
        let (name, stage) = (choice.to_owned(), &Evaluate);
        (
            choice,
            Ground {
                name,
                stage,
                base,
                inputs,
                walks: |param| param != "measure",
            },
        )
    };
    let measure = |name: &str| vec![("measure", text(name))];
    let (bayes, vocab) = (words.bayes.clone(), words.vocab.clone());
    let mut grounds = vec![
        ground("cells", vec![("cells", cells)], vec![("x", examples)]),
        ground("pca", measure("pca"), vec![("rows", words.rows.clone())]),
        ground(
            "words",
            measure("words"),
            vec![("bayes", bayes), ("vocab", vocab)],
        ),
    ];
    // What is measured decides what is read: without other inputs it is refused, not without an effect.
    let (mut wrong, mut effective) = (Vec::new(), BTreeSet::from(["measure"]));
    for (choice, ground) in grounds.drain(..) {
        let (found, with) = walk(&ground, choice);
        wrong.extend(found);
        effective.extend(with);
    }
    let params = Evaluate.describe().params.iter().map(|param| param.name);
    wrong.extend(
        params
            .filter(|p| !effective.contains(p))
            .map(|p| format!("`{p}` has no effect")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn parameters_of_data() {
    let sizes = entries(&[("train", int(21)), ("dev", int(8)), ("test", int(8))]);
    let base = vec![("name", text("reviews-grammar")), ("generate", sizes)];
    let ground = |name: &str, stage, base, inputs| Ground {
        name: name.to_owned(),
        stage,
        base,
        inputs,
        walks: all,
    };
    walk_all(vec![(
        "",
        ground("dataset", &Dataset as &dyn Stage, base, Vec::new()),
    )]);
    let rows = Value::List(vec![entries(&[("x", int(1)), ("y", int(2))])]);
    let table = trial::run(&Table, &[], &[("rows", rows.clone())], 0).unwrap()["rows"].clone();
    let base = vec![("rows", rows)];
    walk_all(vec![(
        "",
        ground("table", &Table as &dyn Stage, base, Vec::new()),
    )]);
    let base = vec![("query", text("SELECT x FROM t"))];
    walk_all(vec![(
        "",
        ground("sql", &Sql as &dyn Stage, base, vec![("t", table)]),
    )]);
}
