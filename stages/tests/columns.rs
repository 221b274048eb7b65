//! Nobody but `tables/` spells a column of its tables. Names of two words are looked for everywhere; names of one word,
//! which mean other things too, where a column is read or written. Names that are also a parameter, a port or a metric
//! are left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::STAGES;
use crate::contract::description::Inputs;
use crate::kinds::evaluate::metrics::METRICS;
use crate::tables::TABLES;

/// Columns that are not also the name of something else.
fn columns() -> BTreeSet<&'static str> {
    let all = TABLES.iter().flat_map(|table| table.columns);
    let mut columns: BTreeSet<&str> = all.map(|column| column.name).collect();
    for kind in STAGES {
        columns.remove(kind.describe().kind);
        for param in kind.describe().params {
            columns.remove(param.name);
        }
        let ports = kind.ports(&store::Params::new());
        let (Inputs::Any(inputs) | Inputs::Named(inputs)) = ports.inputs;
        for port in inputs.iter().chain(&ports.outputs) {
            columns.remove(port.name.as_str());
        }
    }
    for metric in METRICS {
        columns.remove(metric.entry().name);
    }
    // Any table of numbers has it.
    columns.remove("value");
    columns
}

/// The sources of a folder, without tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if ["tests", "target", "tables"].contains(&name.as_str()) => {}
            true => sources(&path, found),
            false if name.ends_with(".rs") && name != "tests.rs" && name != "fuzz.rs" => {
                found.push(path);
            }
            false => {}
        }
    }
}

fn spells(line: &str, column: &str) -> bool {
    let said = |before: &str, after: &str| line.contains(&format!("{before}\"{column}\"{after}"));
    match column.contains('_') {
        true => said("", ""),
        false => {
            let read = said("column_by_name(", ")") || said("table[", "]");
            read || said("(", ", Arc::new(") || said("(", ".to_owned(), Arc::new(")
        }
    }
}

#[test]
fn no_column_is_spelt_outside_of_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(root, &mut files);
    sources(&root.join("../src"), &mut files);
    let columns = columns();
    for needed in ["predicted_before", "p_after", "words_changed", "best_epoch"] {
        assert!(columns.contains(needed), "{needed} is looked for");
    }
    let mut spelt = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (n, line) in code.lines().enumerate() {
            let comment = line.trim_start().starts_with("//");
            for column in columns.iter().filter(|_| !comment) {
                if spells(line, column) {
                    let file = file.strip_prefix(root).unwrap_or(&file).display();
                    spelt.push(format!("{file}:{}: \"{column}\"", n + 1));
                }
            }
        }
    }
    assert!(
        spelt.is_empty(),
        "columns of tables: take their names from stages/tables\n{}",
        spelt.join("\n")
    );
}
