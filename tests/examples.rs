//! The example of every kind runs, and the READMEs of the kinds with fixed tables name their columns.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::lab::{Lab, text};

/// Folders of `stages/kinds/` that have an example.
fn kinds() -> Vec<PathBuf> {
    let stages = Path::new(env!("CARGO_MANIFEST_DIR")).join("stages/kinds");
    let entries = std::fs::read_dir(stages).unwrap();
    let mut kinds: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("example.toml").is_file())
        .collect();
    kinds.sort();
    kinds
}

/// Kinds whose outputs have the same columns whatever they read.
const FIXED: [&str; 4] = ["adversarial_retrain", "attack", "evaluate", "train"];

#[test]
fn every_example_runs() {
    let kinds = kinds();
    assert!(kinds.len() >= 10, "{kinds:?}");
    let mut forgotten = Vec::new();
    for folder in kinds {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let lab = Lab::new(&std::fs::read_to_string(folder.join("example.toml")).unwrap());
        let printed = lab.ablate(&["run"]);
        assert_eq!(
            printed.code, 0,
            "stages/kinds/{name}/example.toml: {}",
            printed.stderr
        );
        if FIXED.contains(&name) {
            forgotten.extend(undocumented(&lab, &folder, name));
        }
    }
    assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
}

/// Columns of the example's stages of this kind that its README does not name.
fn undocumented(lab: &Lab, folder: &Path, name: &str) -> Vec<String> {
    let mut readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    if name == "adversarial_retrain" {
        // Its README says that these tables are those of a train stage.
        readme += include_str!("../stages/kinds/train/README.md");
    }
    let kind = format!("\"{}\"", name.replace('_', "-"));
    let example = std::fs::read_to_string(lab.path("pipeline.toml")).unwrap();
    let of_kind = |stage: &str| {
        let stage = stage.split('[').next().unwrap();
        let (_, after) = example.split_once(&format!("[stage.{stage}]")).unwrap();
        after
            .split("[stage.")
            .next()
            .unwrap()
            .contains(&format!("kind = {kind}"))
    };
    let outputs = lab.digests();
    let outputs: Vec<&String> = outputs
        .keys()
        .filter(|output| of_kind(output.rsplit_once('.').unwrap().0))
        .collect();
    assert!(
        !outputs.is_empty(),
        "the example has no stage of kind {kind}"
    );
    let mut forgotten = Vec::new();
    for output in outputs {
        let shown = lab.ablate(&["show", output, "--json", "-n", "0"]).good();
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        for column in shown["columns"].as_array().unwrap() {
            let column = text(&column["name"]);
            if !readme.contains(&format!("`{column}`")) {
                forgotten.push(format!(
                    "stages/kinds/{name}/README.md does not name `{column}`, a column of {output}"
                ));
            }
        }
    }
    forgotten
}
