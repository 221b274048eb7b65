//! Classifiers of pairs of texts, end to end: trained, measured, re-checked; and refused where the second text
//! would be ignored.

use crate::lab::Lab;

const PIPELINE: &str = include_str!("pipelines/pairs.toml");

/// Either sentence alone says nothing: who ignores one is right in a third of the cases.
#[test]
fn a_relation_between_two_texts_is_learned_measured_and_replayed() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    let results = lab.rows("results");
    let value = |row: &str, col: &str| {
        let cell = results
            .iter()
            .find(|cell| cell["row"] == row && cell["col"] == col);
        cell.unwrap()["value"].as_f64().unwrap()
    };
    // With 150 rows, 0.5 is four standard errors above chance.
    for (model, least) in [("gru", 0.8), ("transformer", 0.5)] {
        let accuracy = value(model, "test");
        assert!(accuracy > least, "{model}: {accuracy}");
    }
    assert!(value("gru", "contradiction") > 0.5);
    let printed = lab.ablate(&["replay"]).good().stdout;
    assert!(printed.contains("gru-test"), "{printed}");
    // A second run finds everything stored.
    lab.run().ran([]);
}

#[test]
fn what_would_ignore_the_second_text_is_refused_before_anything_runs() {
    let refused = |from: &str, to: &str| {
        let lab = Lab::new(PIPELINE);
        lab.edit(from, to);
        let printed = lab.ablate(&["plan"]);
        assert_eq!(printed.code, 2, "{}", printed.stdout);
        printed.stderr
    };
    let ignored = "the second text (column `ids_b`) would be ignored";
    let bayes = refused(
        "model = \"gru\"\nunits = 32\ndim = 16\nepochs = 18\nlearning_rate = 0.02",
        "model = \"naive-bayes\"",
    );
    assert!(bayes.contains(ignored), "{bayes}");
    assert!(
        bayes.contains("choose one of lstm, gru, rnn, transformer, or join both texts"),
        "{bayes}"
    );
    let jsma = refused(
        "inputs = { victim = \"gru\", rows = \"tokens\" }\nattack = \"none\"",
        "inputs = { victim = \"gru\", rows = \"tokens\" }\nattack = \"jsma\"",
    );
    assert!(jsma.contains(ignored), "{jsma}");
    let padded = refused(
        "scheme = \"words\"",
        "scheme = \"words\"\nmax_len = 12\npad = true",
    );
    assert!(
        padded.contains("pairs of padded texts cannot be joined into one sequence"),
        "{padded}"
    );
}

/// A model of pairs does not read single texts, nor the other way round: found by what the model's card says.
#[test]
fn models_of_pairs_and_of_single_texts_are_not_mixed_up() {
    let lab = Lab::new(PIPELINE);
    lab.edit("epochs = 18", "epochs = 1");
    lab.edit(
        "[stage.tokens]",
        "[stage.first]\nkind = \"sql\"\ninputs = { t = \"sentences\" }\nquery = \"SELECT id, split, label, text FROM t\"\n\n[stage.single]\nkind = \"tokenize\"\ninputs = { rows = \"first\", vocab = \"tokens.vocab\" }\nscheme = \"words\"\n\n[stage.tokens]",
    );
    lab.edit(
        "inputs = { victim = \"gru\", rows = \"tokens\"",
        "inputs = { victim = \"gru\", rows = \"single\"",
    );
    let printed = lab.ablate(&["run", "gru-test"]);
    assert_eq!(printed.code, 1);
    let message = "the model was trained on pairs of texts, but the rows are single texts";
    assert!(printed.stderr.contains(message), "{}", printed.stderr);
    // And a model of single texts on pairs.
    lab.edit(
        "inputs = { rows = \"tokens\" }\nmodel = \"gru\"",
        "inputs = { rows = \"single\" }\nmodel = \"gru\"",
    );
    lab.edit(
        "inputs = { victim = \"gru\", rows = \"single\"",
        "inputs = { victim = \"gru\", rows = \"tokens\"",
    );
    let printed = lab.ablate(&["run", "gru-test"]);
    assert_eq!(printed.code, 1);
    let message = "the rows are pairs of texts, but the model was trained on single texts";
    assert!(printed.stderr.contains(message), "{}", printed.stderr);
}
