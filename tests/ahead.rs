//! Whatever the file decides is checked before anything runs: the whole message, and nothing left behind.

use crate::lab::Lab;

/// Reviews, tokens, a network, counts and signals with a network of their own.
const BASE: &str = include_str!("pipelines/ahead.toml");

/// The message for the base with more stages.
#[track_caller]
fn wrong(more: &str) -> String {
    let lab = Lab::new(&format!("{BASE}{more}"));
    for command in ["plan", "run"] {
        let printed = lab.ablate(&[command]);
        assert_eq!(
            printed.code, 2,
            "{command}: {}\n{}",
            printed.stdout, printed.stderr
        );
        assert_eq!(printed.stdout, "", "{command}");
    }
    assert!(!lab.path(".ablate").exists(), "nothing is left behind");
    lab.ablate(&["plan"]).stderr
}

#[test]
fn the_base_is_right() {
    Lab::new(BASE).ablate(&["plan"]).good();
}

macro_rules! case {
    ($name:ident, $more:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(wrong($more));
        }
    };
}

case!(
    an_attack_without_counts,
    r#"
[stage.a]
kind = "attack"
inputs = { victim = "lstm", rows = "tokens", vocab = "tokens.vocab" }
attack = "tack-on"
"#
);
case!(
    an_attack_of_an_axis_without_a_vocabulary,
    r#"
[stage.some]
kind = "sql"
inputs = { t = "tokens" }
query = "SELECT * FROM t"

[stage.a]
kind = "attack"
inputs = { victim = "lstm", rows = "some", bayes = "bayes" }
attack = "${attack}"

[axes]
attack = ["none", "swap"]
"#
);
case!(
    retraining_without_counts,
    r#"
[stage.a]
kind = "adversarial-retrain"
inputs = { victim = "lstm", rows = "tokens", vocab = "tokens.vocab" }
attack = "swap"
epochs = 1
"#
);
case!(
    counts_that_are_no_counts,
    r#"
[stage.a]
kind = "attack"
inputs = { victim = "lstm", rows = "tokens", vocab = "tokens.vocab", bayes = "lstm" }
attack = "swap"
"#
);
case!(
    gradients_of_counts,
    r#"
[stage.a]
kind = "attack"
inputs = { victim = "bayes", rows = "tokens" }
attack = "jsma"
"#
);
case!(
    signals_for_an_attack_on_words,
    r#"
[stage.a]
kind = "attack"
inputs = { victim = "gru", rows = "waves" }
attack = "jsma"
"#
);
case!(
    words_for_a_model_of_signals,
    r#"
[stage.a]
kind = "attack"
inputs = { victim = "gru", rows = "tokens" }
attack = "none"
"#
);
case!(
    traces_of_words,
    r#"
[stage.a]
kind = "attack"
inputs = { victim = "lstm", rows = "tokens" }
attack = "none"
traces = 2
"#
);
case!(
    a_split_that_is_not_there,
    r#"
[stage.a]
kind = "attack"
inputs = { victim = "lstm", rows = "tokens" }
attack = "none"
split = "tset"
"#
);
case!(
    signals_for_a_model_of_words,
    r#"
[stage.m]
kind = "train"
inputs = { rows = "waves" }
model = "svm"
"#
);
case!(
    texts_that_are_not_tokenized,
    r#"
[stage.m]
kind = "train"
inputs = { rows = "reviews" }
model = "svm"
"#
);
case!(
    a_dimension_beside_vectors,
    r#"
[stage.v]
kind = "embed"
inputs = { vocab = "tokens.vocab" }
source = "random"

[stage.m]
kind = "train"
inputs = { rows = "tokens", vectors = "v" }
model = "lstm"
dim = 8
"#
);
case!(
    patience_without_a_dev_split,
    r#"
[stage.own]
kind = "dataset"
name = "reviews-grammar"
splits = ["train", "test"]

[stage.t]
kind = "tokenize"
inputs = { rows = "own" }
scheme = "words"

[stage.m]
kind = "train"
inputs = { rows = "t" }
model = "lstm"
patience = 2
"#
);
case!(
    batches_of_a_model_without_batches,
    r#"
[stage.a]
kind = "adversarial-retrain"
inputs = { victim = "bayes", rows = "tokens" }
attack = "none"
mix = "batch"
"#
);
case!(
    a_class_that_rows_do_not_have,
    r#"
[stage.a]
kind = "attack"
inputs = { victim = "bayes", rows = "tokens" }
attack = "none"
label = 9
"#
);
case!(
    attention_of_a_model_that_has_none,
    r#"
[stage.a]
kind = "attack"
inputs = { victim = "lstm", rows = "tokens", vocab = "tokens.vocab" }
attack = "replace-word"
place = "attention-max"
"#
);
case!(
    a_target_that_the_model_does_not_have,
    r#"
[stage.m]
kind = "train"
inputs = { rows = "waves" }
model = "gru"

[stage.a]
kind = "attack"
inputs = { victim = "m", rows = "waves" }
attack = "gradient-sign"
target = 7
"#
);
case!(
    a_cell_from_nowhere,
    r#"
[stage.e]
kind = "evaluate"
inputs = { swap = "swap" }
cells = [{ from = "swpa", metric = "accuracy", table = "t", row = "r", col = "c" }]
"#
);
case!(
    a_metric_that_examples_do_not_have,
    r#"
[stage.e]
kind = "evaluate"
inputs = { swap = "swap" }
cells = [{ from = "swap", metric = "acuracy", table = "t", row = "r", col = "c" }]
"#
);
case!(
    a_column_that_a_model_does_not_have,
    r#"
[stage.e]
kind = "evaluate"
inputs = { m = "lstm.model" }
cells = [{ from = "m", metric = "test_accuracy", table = "t", row = "r", col = "c" }]
"#
);
case!(
    a_name_with_an_axis_that_is_not_there,
    r#"
[stage.e]
kind = "evaluate"
inputs = { swap = "swap" }
cells = [{ from = "swap", metric = "accuracy", table = "t", row = "{model}", col = "c" }]
"#
);
case!(
    confusion_without_classes,
    r#"
[stage.e]
kind = "evaluate"
inputs = { swap = "swap" }
cells = [{ from = "swap", metric = "confusion", table = "t", row = "{true}", col = "c" }]
"#
);
case!(
    the_best_by_a_column_that_is_not_there,
    r#"
[axes]
units = [2, 3]

[stage.m]
kind = "train"
inputs = { rows = "tokens" }
model = "lstm"
units = "${units}"

[stage.a]
kind = "attack"
inputs = { victim = "m", rows = "tokens" }
select = { over = ["units"], metric = "m.model", column = "dev_acuracy", best = "max" }
attack = "none"
"#
);
case!(
    word_piece_without_a_vocabulary,
    r#"
[stage.t]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "word-piece"
"#
);
case!(
    too_many_units,
    r#"
[stage.m]
kind = "train"
inputs = { rows = "tokens" }
model = "lstm"
units = 100000
"#
);

case!(
    weights_that_could_not_be_stored,
    r#"
[stage.m]
kind = "train"
inputs = { rows = "tokens" }
model = "lstm"
units = 12000
"#
);

/// A file whose second text alone decides the label.
fn pairs(more: &str) -> Lab {
    let lab = Lab::new(&format!(
        r#"
[stage.pairs]
kind = "dataset"
source = {{ csv = "pairs.csv", text = "a", text_b = "b", label = "same" }}

[stage.tokens]
kind = "tokenize"
inputs = {{ rows = "pairs" }}
scheme = "words"
{more}"#
    ));
    let row = |n: usize| format!("one of {n},{},{}\n", ["yes", "no"][n % 2], n % 2);
    let rows: String = (0..40).map(row).collect();
    lab.write("pairs.csv", &format!("a,b,same\n{rows}"));
    lab
}

#[test]
fn pairs_of_texts_are_refused_wherever_the_second_would_be_ignored() {
    for (reader, more) in [
        ("rows", "kind = \"train\"\nmodel = \"svm\"\n"),
        ("rows", "kind = \"ngrams\"\n"),
        ("rows", "kind = \"evaluate\"\nmeasure = \"pca\"\n"),
    ] {
        let lab = pairs(&format!(
            "[stage.x]\n{more}inputs = {{ {reader} = \"tokens\" }}\n"
        ));
        let printed = lab.ablate(&["run"]);
        assert_eq!(printed.code, 2, "{more}{}", printed.stderr);
        let message =
            "the rows are pairs of texts, and the second text (column `ids_b`) would be ignored";
        assert!(printed.stderr.contains(message), "{}", printed.stderr);
        assert!(!lab.path(".ablate").exists());
    }
    let lab = pairs(
        "[stage.v]\nkind = \"embed\"\nsource = \"skip-gram\"\ninputs = { vocab = \"tokens.vocab\", tokens = \"tokens\" }\n",
    );
    assert_eq!(lab.ablate(&["plan"]).code, 2);
    // A table made by SQL is not foreseen: then the stage refuses it before it learns anything.
    let lab = pairs(
        "[stage.again]\nkind = \"sql\"\ninputs = { p = \"pairs\" }\nquery = \"SELECT * FROM p\"\n[stage.t]\nkind = \"tokenize\"\ninputs = { rows = \"again\" }\nscheme = \"words\"\n[stage.x]\nkind = \"train\"\ninputs = { rows = \"t\" }\nmodel = \"svm\"\n",
    );
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 1, "{}", printed.stderr);
    insta::assert_snapshot!(printed.stderr);
}

#[test]
fn joined_pairs_are_learnt_from() {
    let lab = pairs(
        "[stage.joined]\nkind = \"sql\"\ninputs = { t = \"pairs\" }\nquery = \"SELECT id, split, label, text || ' ' || text_b AS text FROM t\"\n[stage.t]\nkind = \"tokenize\"\ninputs = { rows = \"joined\" }\nscheme = \"words\"\n[stage.x]\nkind = \"train\"\ninputs = { rows = \"t\" }\nmodel = \"svm\"\n",
    );
    assert_eq!(lab.run().printed.code, 0);
    let model = &lab.rows("x.model")[0];
    assert_eq!(model["train_accuracy"], 1.0, "{model}");
}
