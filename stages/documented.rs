//! Attacks and models are listed and named in the READMEs of their kinds. A forgotten one is a
//! failing test that says what to type.

use std::path::Path;

use crate::attack::ATTACKS;
use crate::models::MODELS;

fn here(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Sources of the kind `attack` that are no attacks.
const NO_ATTACKS: [&str; 11] = [
    "armoury.rs",
    "live.rs",
    "mod.rs",
    "report.rs",
    "expect.rs",
    "scene.rs",
    "signals.rs",
    "tests.rs",
    "texts.rs",
    "theory.rs",
    "traces.rs",
];

#[test]
fn every_attack_is_listed_and_documented() {
    let mut forgotten = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("attack");
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = names
        .filter(|name| name.ends_with(".rs") && !NO_ATTACKS.contains(&name.as_str()))
        .collect();
    files.sort();
    for file in &files {
        if !ATTACKS.iter().any(|attack| attack.entry().file == file) {
            let module = file.trim_end_matches(".rs");
            forgotten.push(format!(
                "stages/attack/{file} is not in ATTACKS: add `mod {module};` and its type to \
                 stages/attack/mod.rs, with `file: \"{file}\"` in its entry"
            ));
        }
    }
    let readme = here("attack/README.md");
    let retrain = here("adversarial_retrain/README.md");
    for entry in ATTACKS.iter().map(|attack| attack.entry()) {
        let (name, file) = (entry.name, entry.file);
        if !files.iter().any(|known| known == file) {
            forgotten.push(format!(
                "`{name}` says that it is in {file}, which is not there"
            ));
        }
        if !readme.contains(&format!("| `{name}` |")) || !readme.contains(&format!("({file})")) {
            forgotten.push(format!(
                "stages/attack/README.md has no row `| `{name}` | … | [{file}]({file}) |` among its attacks"
            ));
        }
        for (kind, text) in [("attack", &readme), ("adversarial_retrain", &retrain)] {
            if !text.contains(&format!("`\"{name}\"`")) {
                forgotten.push(format!(
                    "stages/{kind}/README.md does not name `\"{name}\"` at the parameter `attack`"
                ));
            }
        }
        if entry.summary.is_empty() || entry.params.iter().any(|p| p.help.is_empty()) {
            forgotten.push(format!(
                "`{name}` needs a summary and a help line for each parameter"
            ));
        }
    }
    assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
}

#[test]
fn every_model_is_documented() {
    let readme = here("train/README.md");
    let mut forgotten = Vec::new();
    for model in MODELS {
        let name = model.name;
        if !readme.contains(&format!("`\"{name}\"`")) {
            forgotten.push(format!(
                "stages/train/README.md does not name `\"{name}\"` at the parameter `model`"
            ));
        }
        let (_, models) = readme.split_once("## Models").expect("a section on models");
        if !models.contains(&format!("`{name}`")) {
            forgotten.push(format!(
                "stages/train/README.md has no `{name}` in the table of its section Models"
            ));
        }
    }
    assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
}
