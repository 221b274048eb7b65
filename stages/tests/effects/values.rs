//! Another value for every parameter of every kind, one that has an effect wherever the parameter has one. Knows
//! nothing of how they are tried.

use store::Value;

use crate::contract::description::Range;
use crate::kinds::attack::attacks::ATTACKS;
use crate::models::MODELS;
use crate::tests::trial;
use crate::tests::trial::text;

/// Parameters with their values.
pub type Settings = Vec<(&'static str, Value)>;
/// Another value for a parameter, beside settings that both have, and some that only it has.
pub struct Other {
    pub value: Value,
    pub with: Settings,
    pub also: Settings,
}

fn other(value: Value) -> Vec<Other> {
    under(value, Vec::new())
}

fn under(value: Value, with: Settings) -> Vec<Other> {
    let also = Vec::new();
    vec![Other { value, with, also }]
}

fn without_own_word() -> Settings {
    vec![("own_word", Value::Bool(false))]
}

pub fn int(n: i64) -> Value {
    Value::Int(n)
}

pub fn float(x: f64) -> Value {
    Value::Float(x)
}

pub fn yes() -> Value {
    Value::Bool(true)
}

pub fn entries(all: &[(&str, Value)]) -> Value {
    Value::Table(trial::params(all))
}

/// Values that no default has and that have an effect, wherever the parameter has one.
pub fn others(kind: &str, choice: &str, param: &str) -> Vec<Other> {
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
        ("tokenize", "add_special_tokens") => other(Value::Bool(choice != "word-piece")),
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
        ("evaluate", "split") if choice == "translation" => other(text("train")),
        ("evaluate", "split") => other(text("test")),
        ("evaluate", "table") => other(text("fig")),
        ("evaluate", "strongest") => other(int(2)),
        ("evaluate", "pairs") => {
            let pair = entries(&[("word", text("film")), ("edited", text("fjlm"))]);
            other(Value::List(vec![pair]))
        }
        ("evaluate", "top_fraction") => other(float(0.5)),
        ("evaluate", "threshold") => other(float(0.9)),
        ("misspell", "text") => other(text("another")),
        ("misspell", "noise") => other(float(0.6)),
        ("train", "reversed") => other(yes()),
        ("rnn-test", "orientation") => other(text("cost")),
        ("rnn-test", "coverage") => other(text("G_o")),
        ("rnn-test", "strategy") => other(text("random")),
        // With more states than there are, those of gates' highest and lowest sections would cancel out.
        ("rnn-test", "refill") => under(
            Value::Bool(false),
            vec![
                ("coverage", text("DX")),
                ("strategy", text("random")),
                ("states", int(10_000)),
            ],
        ),
        ("rnn-test", "states") => other(int(3)),
        ("rnn-test", "ranks") => other(int(8)),
        ("rnn-test", "swap_hc" | "restricted") => other(yes()),
        ("rnn-test", "scale_first") => other(float(0.5)),
        ("rnn-test", "scale_step") => under(float(0.7), vec![("scale_first", float(0.1))]),
        ("rnn-test", "scale_last") => under(
            float(0.2),
            vec![("scale_first", float(0.1)), ("scale_step", float(0.1))],
        ),
        ("rnn-test", "split") => other(text("dev")),
        ("rnn-test", "items") => other(int(3)),
        ("rnn-test", "window") => other(int(6)),
        ("rnn-test", "fall_back") => other(text("input")),
        ("rnn-test", "top_fraction") => other(float(0.5)),
        ("rnn-test", "threshold") => other(float(0.9)),
        ("rnn-test", "gate_source") => other(text("authors")),
        ("evaluate", "dims") => other(Value::List(vec![int(8)])),
        ("evaluate", "samples") => other(int(3)),
        ("evaluate", "by") => other(text("again")),
        ("evaluate", "beam") => other(int(4)),
        ("keyword-detector", "keyword") => other(text("d")),
        (_, "place") => other(text("random")),
        (_, "replace") => other(text("nearest")),
        (_, "max_candidates") => other(int(1)),
        (_, "attention_layer") => under(text("last"), vec![("place", text("attention-max"))]),
        (_, "attention_of") => under(text("all-tokens"), vec![("place", text("attention-min"))]),
        ("attack", "split") => other(text("dev")),
        ("attack", "items") => other(int(3)),
        ("attack", "among") => other(text("correct")),
        ("attack", "label") => other(int(1)),
        ("attack", "repeats") => other(int(2)),
        ("attack", "traces") => other(int(2)),
        (_, "attack") => other(text(if choice == "none" { "swap" } else { "none" })),
        (_, "strongest") => other(int(1)),
        (_, "n") => other(int(3)),
        // Of all candidates, some other word is always enough.
        (_, "max_words") if choice == "replace-words" => {
            under(int(1), vec![("max_candidates", int(3))])
        }
        (_, "max_words") => other(int(1)),
        (_, "direction") => other(text("gradient")),
        (_, "jacobian") => other(text("once")),
        (_, "rule") => other(text("random")),
        // A word that is a candidate for its own place is nearest to itself: these reviews would keep all their words.
        (_, "nearest_to") => under(text("original"), without_own_word()),
        (_, "similarity") if choice == "word-mapping" => under(float(0.9), without_own_word()),
        (_, "alpha") if choice == "word-mapping" => under(float(0.02), without_own_word()),
        (_, "iterations") if choice == "word-mapping" => under(int(1), without_own_word()),
        (_, "candidates") => other(int(1)),
        (_, "own_word") => other(Value::Bool(false)),
        (_, "similarity") => other(float(0.9)),
        (_, "edits") => other(Value::List(vec![text("flip")])),
        (_, "beam") => other(int(1)),
        (_, "budget") => other(float(0.1)),
        (_, "confidence") => other(float(0.9)),
        (_, "mode") => other(text("one-shot")),
        (_, "unit") => under(text("slots"), vec![("budget", float(0.12))]),
        (_, "cumulative") => other(text("raw")),
        (_, "keep_last_pad") => {
            let inserts = Value::List(vec![text("insert")]);
            under(yes(), vec![("edits", inserts)])
        }
        (_, "queries") => other(int(3)),
        (_, "max_flips") => other(int(1)),
        (_, "cosine_of") => other(text("pretrained")),
        (_, "same_part_of_speech") if choice == "pwws" => other(yes()),
        (_, "sentence_similarity") => other(float(0.999)),
        (_, "max_characters") => other(int(1)),
        (_, "population") => other(int(3)),
        (_, "generations") => other(int(1)),
        (_, "max_share") => other(float(1.0)),
        (_, "score") => other(text("replace-1")),
        (_, "typo") => other(text("insert")),
        (_, "same_part_of_speech" | "keep_stop_words" | "other_lexeme") => {
            other(Value::Bool(false))
        }
        (_, "probes") => other(int(2)),
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
        (_, "starts") => other(text("noise")),
        (_, "penalty") => other(float(50.0)),
        (_, "rate") => other(float(0.5)),
        (_, "mix") => other(text("batch")),
        (_, "items") => other(int(3)),
        (_, "share") => under(float(0.2), vec![("mix", text("batch"))]),
        (_, "epsilon") => under(float(3.0), vec![("mix", text("noise"))]),
        (_, "scale") => under(text("embedding"), vec![("mix", text("noise"))]),
        (_, "normalise") => under(Value::Bool(false), vec![("mix", text("noise"))]),
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
        (_, "warmup") => other(float(0.5)),
        (_, "weight_decay") => other(float(0.5)),
        (_, "pieces") => other(yes()),
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
        (_, "dev_checks") => {
            let mut with = match kind {
                "train" => vec![("epochs", int(12)), ("learning_rate", float(0.2))],
                _ => vec![("epochs", int(5)), ("learning_rate", float(0.5))],
            };
            // The best of all checks may be at the end of an epoch: how soon patience ends then differs.
            with.push(("patience", int(1)));
            under(int(3), with)
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
        (_, "segments") => other(Value::Bool(false)),
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
pub fn elsewhere(kind: &str, param: &str) -> bool {
    const ELSEWHERE: [(&str, &str); 6] = [
        ("train", "start"),
        ("train", "pretrained"),
        ("tokenize", "vocab_file"),
        ("embed", "file"),
        ("embed", "tensor"),
        ("dataset", "source"),
    ];
    // Those of programs of the user: tests/external_attack.rs.
    let attacks = ["attack", "adversarial-retrain"].contains(&kind);
    let owned = |program: bool| {
        let mut entries = ATTACKS.iter().map(|attack| attack.entry());
        entries.any(|entry| {
            entry.program == program && entry.params.iter().any(|known| known.name == param)
        })
    };
    ELSEWHERE.contains(&(kind, param)) || (attacks && owned(true) && !owned(false))
}

pub fn cell(metric: &str, row: &str, col: &str) -> Value {
    let names = [
        ("from", "x"),
        ("metric", metric),
        ("table", "t"),
        ("row", row),
        ("col", col),
    ];
    entries(&names.map(|(name, value)| (name, text(value))))
}
