//! `ablate predict` and `ablate attacks`.

use std::io::Write;
use std::process::Stdio;

use crate::lab::{CommandOutput, Lab};

const PIPELINE: &str = r#"
[pipeline]
name = "asked"
seed = 3

[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 200, dev = 20, test = 40 }

[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "words"
min_count = 2

[stage.vectors]
kind = "embed"
inputs = { vocab = "tokens.vocab" }
source = "random"
dim = 8

[stage.bayes]
kind = "train"
inputs = { rows = "tokens" }
model = "naive-bayes"

[stage.lstm]
kind = "train"
inputs = { rows = "tokens", vectors = "vectors" }
model = "lstm"
units = 6
epochs = 1

[stage.waves]
kind = "dataset"
name = "frequency"

[stage.gru]
kind = "train"
inputs = { rows = "waves" }
model = "gru"
units = 2
epochs = 1

[stage.clean]
kind = "attack"
inputs = { victim = "lstm" }
attack = "none"
"#;

fn piped(lab: &Lab, arguments: &[&str], input: &[u8]) -> CommandOutput {
    let mut command = lab.command(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    CommandOutput::of(child.wait_with_output().unwrap())
}

/// What the model says of a stored row is what it says of the same text on the command line.
#[test]
fn a_text_is_answered_as_the_stored_row_is() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    let rows = lab.rows("clean.examples");
    let texts = lab.rows("reviews");
    let text = |id: &serde_json::Value| {
        let row = texts.iter().find(|row| row["id"] == *id).unwrap();
        row["text"].as_str().unwrap().to_owned()
    };
    let mut csv = "n,text\n".to_owned();
    for (n, row) in rows.iter().enumerate() {
        csv.push_str(&format!(
            "{n},\"{}\"\n",
            text(&row["id"]).replace('"', "\"\"")
        ));
    }
    lab.write("reviews.csv", &csv);
    let printed = lab
        .ablate(&["predict", "lstm", "--csv", "reviews.csv", "--json"])
        .good()
        .stdout;
    assert_eq!(printed.lines().count(), rows.len());
    for (line, row) in printed.lines().zip(&rows) {
        let said: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(said["class"], row["predicted_after"]);
        assert_eq!(said["text"].as_str(), Some(text(&row["id"]).as_str()));
        let pairs = |value: &serde_json::Value| -> Vec<f32> {
            let list = value.as_array().unwrap();
            list.iter().map(|p| p.as_f64().unwrap() as f32).collect()
        };
        assert_eq!(pairs(&said["probabilities"]), pairs(&row["p_after"]));
    }
    let one = lab
        .ablate(&["predict", "bayes", "wonderful", "terrible"])
        .good();
    let lines: Vec<&str> = one.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with("1  [0.") && lines[0].contains("]  wonderful"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("0  [0."), "{lines:?}");
    let lines = piped(&lab, &["predict", "bayes"], b"wonderful\nterrible\n").good();
    assert_eq!(lines.stdout, one.stdout);
    // A text without a known word is a text of unknown words, and an empty one is none.
    let unread = lab
        .ablate(&["predict", "lstm", "", "terrible qqqqq"])
        .good()
        .stdout;
    assert!(
        unread.ends_with("  terrible qqqqq  (1 of 2 tokens unknown to the model)\n"),
        "{unread}"
    );
    let unknown = lab.ablate(&["attacks", "nosuch"]);
    assert_eq!(
        unknown.stderr,
        "error: no attack `nosuch`\n |\n = help: `ablate attacks` lists them all\n"
    );
}

#[test]
fn what_cannot_be_asked_is_said() {
    let lab = Lab::new(PIPELINE);
    let refused = |arguments: &[&str], message: &str| {
        let printed = lab.ablate(arguments);
        assert_ne!(printed.code, 0, "{arguments:?}");
        assert!(
            printed.stderr.contains(message),
            "{arguments:?}: {message}\n{}",
            printed.stderr
        );
    };
    lab.run_with(&["bayes"]);
    refused(&["predict", "lstm", "a"], "`lstm`");
    lab.run();
    refused(
        &["predict", "tokens", "a"],
        "`tokens` is of kind `tokenize`, which makes no model",
    );
    refused(&["predict", "gru", "a"], "`gru` does not read texts");
    refused(&["predict", "lstn", "a"], "lstm");
    lab.write("a.csv", "review\nfine\n");
    refused(
        &["predict", "lstm", "--csv", "a.csv"],
        "a.csv has no column `text`",
    );
    refused(
        &["predict", "lstm", "--csv", "no.csv"],
        "cannot read no.csv",
    );
    let binary = piped(&lab, &["predict", "lstm"], b"\xff\xfe\n");
    assert!(
        binary.stderr.contains("cannot read standard input"),
        "{}",
        binary.stderr
    );
    lab.edit("[stage.bayes]", "[axes]\nseed = [1, 2]\n\n[stage.bayes]");
    lab.edit("model = \"lstm\"", "model = \"lstm\"\nseed = \"${seed}\"");
    lab.run();
    refused(
        &["predict", "lstm", "a"],
        "name one: ablate predict 'lstm[seed=1]' 'a text'",
    );
    lab.ablate(&["predict", "lstm[seed=2]", "a"]).good();
}

/// A model in a program of its own is started for the question.
#[test]
fn an_external_model_is_asked_too() {
    if !std::path::Path::new("/usr/bin/python3").is_file() {
        println!("skipped: there is no /usr/bin/python3");
        return;
    }
    let external = r#"
[stage.mine]
kind = "external-model"
inputs = { rows = "tokens" }
run = ["/usr/bin/python3", "model.py"]
files = ["model.py"]
classes = 3
"#;
    let lab = Lab::new(&format!("{PIPELINE}{external}"));
    let model = "import ablate\nprint('loading')\nablate.serve(predict=lambda texts: [[0.25, 0.25, 0.5] for t in texts])\n";
    lab.write("model.py", model);
    lab.run_with(&["mine"]);
    let printed = lab.ablate(&["predict", "mine", "a wonderful film"]).good();
    assert_eq!(
        printed.stdout,
        "2  [0.2500, 0.2500, 0.5000]  a wonderful film  (1 of 3 tokens unknown to the model)\n"
    );
}

#[test]
fn attacks_are_listed_with_what_they_need() {
    let lab = Lab::new("");
    let listed = lab.ablate(&["attacks"]).good().stdout;
    let words = [
        "textfooler ",
        "paper: Jin et al. 2019, arXiv:1907.11932",
        "needs: vocab, synonyms, vectors; budget: unlimited",
        "needs: bayes, vocab; budget: at most 1 word",
        "external ",
    ];
    for words in words {
        assert!(listed.contains(words), "{words}\n{listed}");
    }
    let lines = lab.ablate(&["attacks", "--json"]).good().stdout;
    let names: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["name"].clone())
        .collect();
    assert!(names.len() >= 18, "{names:?}");
    let one = lab.ablate(&["attacks", "genetic"]).good().stdout;
    assert!(
        one.contains("budget: at most 20% of the words\n")
            && one.contains("population (an integer, default 60)"),
        "{one}"
    );
    let wrong = lab.ablate(&["attacks", "genetics"]);
    assert!(
        wrong.stderr.contains("no attack `genetics`") && wrong.stderr.contains("`genetic`"),
        "{}",
        wrong.stderr
    );
}
