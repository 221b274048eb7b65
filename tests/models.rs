//! Weights leave as safetensors files and come back.

use crate::lab::Lab;

/// A network with vectors of its own, one over frozen vectors, and counts.
const PIPELINE: &str = include_str!("pipelines/models.toml");

fn export(lab: &Lab, stage: &str) -> String {
    let file = format!("{stage}.safetensors");
    let printed = lab.ablate(&["show", stage, "--safetensors", &file]).good();
    let bytes = std::fs::metadata(lab.path(&file)).unwrap().len();
    assert_eq!(
        printed.stdout,
        format!("{stage}.weights: {bytes} bytes in {file}\n")
    );
    file
}

#[test]
fn weights_come_back_from_a_safetensors_file_bit_by_bit() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    let before = lab.digests();
    for stage in ["own", "frozen", "bayes", "svm"] {
        export(&lab, stage);
    }
    lab.edit(
        "units = 3\ndim = 4\nepochs = 2",
        "units = 3\ndim = 4\nepochs = 0\nstart = \"own.safetensors\"",
    );
    lab.edit(
        "units = 3\nepochs = 2",
        "units = 3\nepochs = 0\nstart = \"./frozen.safetensors\"",
    );
    lab.edit(
        "\"naive-bayes\"",
        "\"naive-bayes\"\nepochs = 0\nstart = \"bayes.safetensors\"",
    );
    lab.edit(
        "epochs = 5",
        "epochs = 0\nstart = \"svm.safetensors\"\nseed = 8",
    );
    lab.run().ran(["own", "frozen", "bayes", "svm"]);
    let after = lab.digests();
    for stage in ["own", "frozen", "bayes", "svm"] {
        let output = format!("{stage}.weights");
        assert_eq!(before[&output], after[&output], "{stage}");
    }
    assert!(lab.rows("own.history").is_empty(), "nothing was trained");

    // With epochs it goes on: two epochs from fresh weights would be as before.
    lab.edit(
        "epochs = 0\nstart = \"own.safetensors\"",
        "epochs = 2\nstart = \"own.safetensors\"",
    );
    lab.run().ran(["own"]);
    assert_ne!(lab.digests()["own.weights"], before["own.weights"]);

    // What is fitted in one call would leave `start` unread: it says so.
    lab.edit(
        "epochs = 0\nstart = \"svm.safetensors\"",
        "epochs = 5\nstart = \"svm.safetensors\"",
    );
    let printed = lab.ablate(&["plan"]);
    assert_eq!(printed.code, 2);
    assert!(
        printed
            .stderr
            .contains("`svm` is fitted in one call, and cannot continue from weights"),
        "{}",
        printed.stderr
    );
}

#[test]
fn the_file_is_part_of_the_key_and_must_hold_the_model_asked_for() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    let file = export(&lab, "own");
    lab.edit(
        "units = 3\ndim = 4\nepochs = 2",
        "units = 3\ndim = 4\nepochs = 0\nstart = \"own.safetensors\"",
    );
    lab.run().ran(["own"]);
    lab.edit("units = 3\ndim = 4", "units = 5\ndim = 4");
    let printed = lab.ablate(&["run", "own"]);
    assert_eq!(printed.code, 1);
    assert!(
        printed
            .stderr
            .contains("own.safetensors holds another model than the parameters describe"),
        "{}",
        printed.stderr
    );
    // Other bytes, another key, and no guess at what they might mean.
    lab.edit("units = 5\ndim = 4", "units = 3\ndim = 4");
    std::fs::write(lab.path(&file), b"no tensors").unwrap();
    let printed = lab.ablate(&["run", "own"]);
    assert_eq!(printed.code, 1);
    assert!(
        printed.stderr.contains("not a safetensors file of ablate"),
        "{}",
        printed.stderr
    );
}

#[test]
fn what_cannot_be_exported_is_refused_with_a_next_step() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    let no_weights = lab.ablate(&["show", "tokens", "--safetensors", "t.safetensors"]);
    assert_eq!(no_weights.code, 2);
    assert!(
        no_weights
            .stderr
            .starts_with("error: `tokens.tokens` has no weights\n"),
        "{}",
        no_weights.stderr
    );
    assert!(!lab.path("t.safetensors").exists());

    let file = export(&lab, "own");
    let there = std::fs::read(lab.path(&file)).unwrap();
    let again = lab.ablate(&["show", "bayes", "--safetensors", &file]);
    assert_eq!(again.code, 2);
    assert_eq!(
        again.stderr,
        "error: `own.safetensors` already exists\n |\n \
         = help: pipelines may depend on it: give another name, or remove it first\n"
    );
    assert_eq!(
        std::fs::read(lab.path(&file)).unwrap(),
        there,
        "it is left alone"
    );

    let nowhere = lab.ablate(&["show", "own", "--safetensors", "no/folder.safetensors"]);
    assert_eq!(nowhere.code, 2);
    assert!(
        nowhere
            .stderr
            .starts_with("error: cannot write `no/folder.safetensors`: "),
        "{}",
        nowhere.stderr
    );

    lab.edit(
        "[stage.reviews]",
        "[axes]\nunits = [2, 3]\n\n[stage.reviews]",
    );
    lab.edit("units = 3\ndim = 4", "units = \"${units}\"\ndim = 4");
    lab.run();
    let many = lab.ablate(&["show", "own", "--safetensors", "many.safetensors"]);
    assert_eq!(many.code, 2);
    assert_eq!(
        many.stderr,
        "error: `own` has 2 instances\n |\n \
         = help: a file holds one: ablate show 'own[units=2].weights' --safetensors FILE\n"
    );
    let one = [
        "show",
        "own[units=3].weights",
        "--safetensors",
        "one.safetensors",
        "--json",
    ];
    let printed: serde_json::Value = serde_json::from_str(&lab.ablate(&one).good().stdout).unwrap();
    assert_eq!(printed["file"], "one.safetensors");
    // The same weights are the same file.
    assert_eq!(std::fs::read(lab.path("one.safetensors")).unwrap(), there);
    // No stray temporary file.
    let hidden = std::fs::read_dir(lab.dir()).unwrap();
    let hidden: Vec<_> = hidden
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.starts_with(".tmp"))
        .collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}
