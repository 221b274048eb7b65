//! Every parameter of every kind, choice by choice: one that is accepted changes the result, or it is refused by a
//! message that names it. `command` is not among them: what its parameters do is its program's business, and they
//! are in its key like all others.

mod grounds;
mod values;
mod walk;

use std::collections::BTreeSet;

use arrow::array::StringArray;
use arrow::record_batch::RecordBatch;
use store::Value;

use crate::Stage;
use crate::kinds::adversarial_retrain::AdversarialRetrain;
use crate::kinds::attack::AttackStage;
use crate::kinds::attack::tests::characters::Characters;
use crate::kinds::attack::tests::words;
use crate::kinds::dataset::Dataset;
use crate::kinds::embed::Embed;
use crate::kinds::evaluate::Evaluate;
use crate::kinds::keyword_detector::{self, KeywordDetector};
use crate::kinds::misspell::Misspell;
use crate::kinds::ngrams::Ngrams;
use crate::kinds::rnn_test::RnnTest;
use crate::kinds::rnn_test::tests::TestedText;
use crate::kinds::sql::Sql;
use crate::kinds::table::Table;
use crate::kinds::tokenize::Tokenize;
use crate::kinds::train::Train;
use crate::models::MODELS;
use crate::tests::trial;
use crate::tests::trial::{grids, listed, signals, text, waves};
use crate::training;
use grounds::{Words, attacks, written};
use values::{Settings, cell, entries, float, int};
use walk::{Ground, all, walk, walk_all};

#[test]
fn parameters_of_training() {
    let rows = words::table(&words::reviews()[..90]);
    let vectors = words::table_of_vectors();
    let second: Vec<Vec<i32>> = (0..90).map(|n| vec![2 + n % 5, 3]).collect();
    let pairs = trial::with_second(&rows, &second);
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
        if name == "transformer" {
            let inputs = vec![("rows", pairs.clone())];
            grounds.push((name, ground(format!("{name} on pairs"), &plain, inputs)));
        }
    }
    walk_all(grounds);
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
    let spelt = Characters::new(60, 7);
    let pair = entries(&[("word", text("good")), ("edited", text("gopd"))]);
    let pairs = Value::List(vec![pair]);
    let language = TestedText::new().inputs;
    let dims = Value::List(vec![int(4), int(16)]);
    let replaced = [("attack", text("replace-word")), ("place", text("random"))];
    let replaced = trial::run(&AttackStage, &inputs, &replaced, 3).unwrap()["examples"].clone();
    let inside = vec![
        ("victim", words.lstm.clone()),
        ("vectors", words.vectors.clone()),
        ("vocab", words.vocab.clone()),
        ("language", words.language.clone()),
        ("examples", replaced),
    ];
    let perturbed = vec![
        ("victim", language[0].1.clone()),
        ("generated", generated(&language)),
    ];
    let by = vec![("measure", text("perturbations")), ("by", text("method"))];
    let mut grounds = vec![
        ground("perturbations", by, perturbed),
        ground("coverage", measure("coverage"), language[..2].to_vec()),
        ground("perplexity", measure("perplexity"), language[..2].to_vec()),
        ground("changes", measure("changes"), inside),
        ground(
            "translation",
            vec![("measure", text("translation")), ("split", text("dev"))],
            translator(),
        ),
        ground(
            "attention-bound",
            vec![("measure", text("attention-bound")), ("dims", dims)],
            Vec::new(),
        ),
        ground("cells", vec![("cells", cells)], vec![("x", examples)]),
        ground("pca", measure("pca"), vec![("rows", words.rows.clone())]),
        ground(
            "words",
            measure("words"),
            vec![("bayes", bayes), ("vocab", vocab)],
        ),
        ground(
            "neighbours",
            vec![("measure", text("neighbours")), ("pairs", pairs)],
            vec![
                ("victim", spelt.victim),
                ("vocab", spelt.vocab),
                ("words", spelt.words),
            ],
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

/// What `rnn-test` makes of a text, with two columns that could be axes.
fn generated(language: &[(&'static str, RecordBatch)]) -> RecordBatch {
    let inputs: Vec<(&str, &RecordBatch)> = language.iter().map(|(p, t)| (*p, t)).collect();
    let made = trial::run(&RnnTest, &inputs, &[("orientation", text("state"))], 9).unwrap();
    let made = &made["generated"];
    let names = std::sync::Arc::new(StringArray::from(vec!["state"; made.num_rows()]));
    let schema = made.schema();
    let own = schema.fields().iter().map(|field| field.name().as_str());
    let own = own.zip(made.columns().iter().cloned());
    let all = own.chain([("method", names.clone() as _), ("again", names as _)]);
    let all = all.map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(all).unwrap()
}

/// A model that reverses letters, its rows and its vocabulary.
fn translator() -> Vec<(&'static str, RecordBatch)> {
    let rows = trial::reversals(80);
    let given = [
        ("model", text("seq2seq")),
        ("units", int(6)),
        ("dim", int(5)),
        ("epochs", int(3)),
    ];
    let victim = trial::run(&Train, &[("rows", &rows)], &given, 3).unwrap()["weights"].clone();
    let words = ["[PAD]", "[UNK]", "[EOS]", "a", "b", "c", "d", "e"].map(str::to_owned);
    let vocab = listed(words.to_vec());
    vec![("victim", victim), ("rows", rows), ("vocab", vocab)]
}

#[test]
fn parameters_of_keyword_detectors() {
    let mut inputs = translator();
    inputs.retain(|(port, _)| *port != "rows");
    inputs.push(("rows", keyword_detector::tests::sources()));
    let ground = Ground {
        name: "keyword-detector".to_owned(),
        stage: &KeywordDetector as &dyn Stage,
        base: vec![("keyword", text("c"))],
        inputs,
        walks: all,
    };
    walk_all(vec![("", ground)]);
}

#[test]
fn parameters_of_misspellings() {
    let base = vec![("noise", float(0.3))];
    let inputs = vec![("rows", written())];
    let walks: fn(&str) -> bool = all;
    let (name, stage) = ("misspell".to_owned(), &Misspell as &dyn Stage);
    let ground = Ground {
        name,
        stage,
        base,
        inputs,
        walks,
    };
    walk_all(vec![("", ground)]);
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

#[test]
fn parameters_of_test_generation() {
    let inputs = TestedText::new().inputs;
    let ground = |name: &str, base: Settings| Ground {
        name: name.to_owned(),
        stage: &RnnTest as &dyn Stage,
        base,
        inputs: inputs.clone(),
        walks: all,
    };
    let base = |name: &str, value: &str| {
        let mut base: Settings = vec![("orientation", text("none")), ("coverage", text("CS"))];
        base.retain(|(known, _)| *known != name && value != "random");
        base.push((
            if name == "orientation" {
                "orientation"
            } else {
                "coverage"
            },
            text(value),
        ));
        base
    };
    let spelling = Ground {
        inputs: TestedText::spelling().inputs,
        walks: |param| param == "fall_back",
        ..ground("spelling", base("orientation", "cost"))
    };
    walk_all(vec![
        ("", spelling),
        ("", ground("state", base("orientation", "state"))),
        ("", ground("decision", base("orientation", "decision"))),
        ("", ground("DX", base("coverage", "DX"))),
        ("", ground("gates", base("coverage", "G_f"))),
        ("", ground("random", base("orientation", "random"))),
    ]);
}
