//! The parts of READMEs that are made from entries: attacks, models, metrics and the columns of tables. A new one is a file and
//! a line in a list; its README follows by `UPDATE_DOCS=1 cargo test --workspace reference`.

use std::fmt::Write;
use std::path::Path;

use crate::contract::description::{Choice, Param};
use crate::kinds::attack::attacks::{self, ATTACKS};
use crate::kinds::evaluate::metrics::METRICS;
use crate::kinds::evaluate::metrics::option::MetricOption;
use crate::models::{self, MODELS};
use crate::tables::TABLES;
use crate::tables::schema::TableSchema;

/// Replaces a part of a README, or says that it is not current.
fn current(folder: &str, part: &str, fresh: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("kinds")
        .join(folder)
        .join("README.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let marks = [
        format!("<!-- {part}: made by a test -->\n"),
        format!("<!-- end of {part} -->\n"),
    ];
    let parts = text.split_once(&marks[0]);
    let parts = parts.and_then(|(before, rest)| Some((before, rest.split_once(&marks[1])?.1)));
    let Some((before, after)) = parts else {
        panic!(
            "stages/kinds/{folder}/README.md lacks the lines\n{}",
            marks.concat()
        );
    };
    let fresh = [before, &marks[0], fresh, &marks[1], after].concat();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &fresh).unwrap();
        return;
    }
    assert!(
        text == fresh,
        "stages/kinds/{folder}/README.md is old: UPDATE_DOCS=1 cargo test --workspace reference"
    );
}

/// The parameters of choices: a row for each that has one default and one meaning.
fn parameters(choices: &[Choice]) -> String {
    let mut rows: Vec<(Param, Vec<&str>)> = Vec::new();
    for choice in choices {
        for param in choice.params {
            let same = |row: &&mut (Param, Vec<&str>)| {
                let default = |param: &Param| param.presence.default();
                row.0.name == param.name
                    && row.0.help == param.help
                    && default(&row.0) == default(param)
            };
            match rows.iter_mut().find(same) {
                Some((_, names)) => names.push(choice.name),
                None => rows.push((*param, vec![choice.name])),
            }
        }
    }
    let mut text = "| parameter | type | default | of | |\n|---|---|---|---|---|\n".to_owned();
    for (param, names) in rows {
        let default = param.presence.default();
        let default = default.map_or("none".to_owned(), |value| format!("`{value}`"));
        let help = param.help.replace('|', "\\|");
        let (name, ty, names) = (param.name, param.holds(), names.join(", "));
        writeln!(text, "| `{name}` | {ty} | {default} | {names} | {help} |").unwrap();
    }
    text
}

#[test]
fn the_reference_of_attacks_is_current() {
    let mut text =
        "| attack | what it does | changes | models | needs | file |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for attack in ATTACKS {
        let entry = attack.entry();
        let needs: Vec<String> = entry.needs.iter().map(|n| format!("`{n}`")).collect();
        let link = entry.file.strip_prefix("stages/kinds/attack/").unwrap();
        writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | [{link}]({link}) |",
            entry.name,
            [entry.summary, entry.details].join(" ").trim(),
            entry.changes.name(),
            entry.victims.name(),
            needs.join(", "),
        )
        .unwrap();
    }
    writeln!(text, "\n{}", parameters(&attacks::choices()).trim_end()).unwrap();
    current("attack", "attacks", &text);
}

#[test]
fn the_reference_of_models_is_current() {
    let mut text = "| model | what it is | reads | file |\n|---|---|---|---|\n".to_owned();
    for model in MODELS {
        let entry = model.entry();
        let name = entry.file.rsplit('/').next().unwrap();
        let link = format!("[{name}](../../models/{name})");
        let (name, what) = (entry.name, entry.summary);
        writeln!(text, "| `{name}` | {what} | {} | {link} |", entry.reads).unwrap();
    }
    writeln!(text, "\n{}", parameters(&models::choices()).trim_end()).unwrap();
    current("train", "models", &text);
}

#[test]
fn the_reference_of_metrics_is_current() {
    let mut text = "| metric | | `n` counts | reads | file |\n|---|---|---|---|---|\n".to_owned();
    for metric in METRICS {
        let entry = metric.entry();
        let link = entry.file.strip_prefix("stages/kinds/evaluate/").unwrap();
        let columns: Vec<String> = entry.columns.iter().map(|c| format!("`{c}`")).collect();
        let option = |option: &MetricOption| {
            let MetricOption {
                name,
                default,
                help,
                ..
            } = option;
            format!(" The cell may set `{name}`, {help} (default: {default}).")
        };
        let options: String = metric.options().iter().map(option).collect();
        let what = [entry.summary, &options].concat();
        let (name, rows, columns) = (entry.name, entry.rows, columns.join(", "));
        writeln!(
            text,
            "| `{name}` | {what} | {rows} | {columns} | [{link}]({link}) |"
        )
        .unwrap();
    }
    current("evaluate", "metrics", &text);
}

/// A table's columns.
fn columns(table: &TableSchema) -> String {
    let mut text = format!("`{}`: {}\n\n", table.name, table.summary);
    text.push_str("| column | type | |\n|---|---|---|\n");
    for column in table.columns {
        let only = column.only.map(|which| format!(" Only for {which}."));
        let (name, ty, help) = (column.name, column.ty, column.help);
        let only = only.unwrap_or_default();
        writeln!(text, "| `{name}` | {ty} | {help}{only} |").unwrap();
    }
    text
}

#[test]
fn the_reference_of_tables_is_current() {
    let mut makers: Vec<&str> = TABLES.iter().map(|table| table.made_by).collect();
    makers.dedup();
    for maker in makers {
        let made = TABLES.iter().filter(|table| table.made_by == maker);
        let text: Vec<String> = made.map(|table| columns(table)).collect();
        current(&maker.replace('-', "_"), "tables", &text.join("\n"));
    }
}
