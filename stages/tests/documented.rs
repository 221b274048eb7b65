//! Attacks and models are listed and named in the READMEs of their kinds. A forgotten one is a
//! failing test that says what to type.

use std::path::Path;

use crate::kinds::attack::attacks::ATTACKS;
use crate::models::MODELS;

fn here(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_attack_is_listed_and_documented() {
    let mut forgotten = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kinds/attack/attacks");
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = names
        .filter(|name| name != "mod.rs")
        .map(|name| format!("stages/kinds/attack/attacks/{name}"))
        .collect();
    files.sort();
    for file in &files {
        if !ATTACKS.iter().any(|attack| attack.entry().file == file) {
            let module = file.rsplit('/').next().unwrap().trim_end_matches(".rs");
            forgotten.push(format!(
                "{file} is not in ATTACKS: add `mod {module};` and its type to \
                 stages/kinds/attack/attacks/mod.rs, with `file: \"{file}\"` in its entry"
            ));
        }
    }
    let readme = here("kinds/attack/README.md");
    let retrain = here("kinds/adversarial_retrain/README.md");
    for entry in ATTACKS.iter().map(|attack| attack.entry()) {
        let (name, file) = (entry.name, entry.file);
        let link = file.strip_prefix("stages/kinds/attack/").unwrap();
        if !files.iter().any(|known| known == file) {
            forgotten.push(format!(
                "`{name}` says that it is in {file}, which is not there"
            ));
        }
        if !readme.contains(&format!("| `{name}` |")) || !readme.contains(&format!("({link})")) {
            forgotten.push(format!(
                "stages/kinds/attack/README.md has no row `| `{name}` | … | [{link}]({link}) |` among its attacks"
            ));
        }
        for (kind, text) in [("attack", &readme), ("adversarial_retrain", &retrain)] {
            if !text.contains(&format!("`\"{name}\"`")) {
                forgotten.push(format!(
                    "stages/kinds/{kind}/README.md does not name `\"{name}\"` at the parameter `attack`"
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
    let readme = here("kinds/train/README.md");
    let mut forgotten = Vec::new();
    for model in MODELS {
        let name = model.entry().name;
        if !readme.contains(&format!("`\"{name}\"`")) {
            forgotten.push(format!(
                "stages/kinds/train/README.md does not name `\"{name}\"` at the parameter `model`"
            ));
        }
        let (_, models) = readme.split_once("## Models").expect("a section on models");
        if !models.contains(&format!("`{name}`")) {
            forgotten.push(format!(
                "stages/kinds/train/README.md has no `{name}` in the table of its section Models"
            ));
        }
    }
    assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
}
