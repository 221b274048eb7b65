//! Attacks, models and metrics are listed, in the files that they say, with a summary and help. A forgotten one is a failing
//! test that says what to type.

use std::path::Path;

use crate::kinds::attack::attacks::ATTACKS;
use crate::kinds::evaluate::metrics::METRICS;
use crate::models::MODELS;

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
    for entry in ATTACKS.iter().map(|attack| attack.entry()) {
        let (name, file) = (entry.name, entry.file);
        if !files.iter().any(|known| known == file) {
            forgotten.push(format!(
                "`{name}` says that it is in {file}, which is not there"
            ));
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
fn every_model_is_listed_and_documented() {
    let mut forgotten = Vec::new();
    for entry in MODELS.iter().map(|model| model.entry()) {
        let (name, file) = (entry.name, entry.file);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        if !path.exists() {
            forgotten.push(format!(
                "`{name}` says that it is in {file}, which is not there"
            ));
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
fn every_metric_is_listed_and_documented() {
    let mut forgotten = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kinds/evaluate/metrics");
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: Vec<String> = names
        .filter(|name| {
            ![
                "mod.rs",
                "entry.rs",
                "rows.rs",
                "option.rs",
                "class_counts.rs",
            ]
            .contains(&name.as_str())
        })
        .map(|name| format!("stages/kinds/evaluate/metrics/{name}"))
        .collect();
    for file in &files {
        if !METRICS.iter().any(|metric| metric.entry().file == file) {
            let module = file.rsplit('/').next().unwrap().trim_end_matches(".rs");
            forgotten.push(format!(
                "{file} is not in METRICS: add `mod {module};` and its type to \
                 stages/kinds/evaluate/metrics/mod.rs, with `file: \"{file}\"` in its entry"
            ));
        }
    }
    for entry in METRICS.iter().map(|metric| metric.entry()) {
        let (name, file) = (entry.name, entry.file);
        if !files.iter().any(|known| known == file) {
            forgotten.push(format!(
                "`{name}` says that it is in {file}, which is not there"
            ));
        }
        if entry.summary.is_empty() || entry.rows.is_empty() || entry.columns.is_empty() {
            forgotten.push(format!("`{name}` needs a summary, rows and columns"));
        }
    }
    assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
}
