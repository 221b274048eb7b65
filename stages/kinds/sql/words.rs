//! polars' errors in our words: one or two lines, and the name that was probably meant.

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use polars::error::PolarsError;

use super::integers::OVERFLOW;
use crate::Failure;

/// Why the query failed, and what to do about it.
pub fn explain(error: &PolarsError, inputs: &BTreeMap<String, RecordBatch>) -> Failure {
    let text = innermost(error).to_string();
    // What follows the first paragraph is polars' plan, of no use to who wrote the SQL.
    let first = text.split("\n\n").next().unwrap_or_default().trim();
    let first = first.lines().take(2).collect::<Vec<_>>().join("\n");
    let failure = match missing_table(&first) {
        Some(table) => {
            let known: Vec<&str> = inputs.keys().map(String::as_str).collect();
            Failure::new(format!("no input is named `{table}`")).help(meant(
                table,
                &known,
                &list_tables(&known),
            ))
        }
        None => match missing_column(innermost(error), &first) {
            Some(column) => {
                let mut known: Vec<String> = Vec::new();
                for table in inputs.values() {
                    known.extend(table.schema().fields().iter().map(|f| f.name().clone()));
                }
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                Failure::new(format!("no column is named `{column}`")).help(meant(
                    &column,
                    &known,
                    &list_columns(inputs),
                ))
            }
            None if first.starts_with(OVERFLOW) => Failure::new(first).help(
                "integers have 64 bits: where an approximate number will do, use CAST(… AS DOUBLE)",
            ),
            None => Failure::new(first),
        },
    };
    failure.at("query")
}

fn innermost(error: &PolarsError) -> &PolarsError {
    match error {
        PolarsError::Context { error, .. } | PolarsError::ExprContext { error, .. } => {
            innermost(error)
        }
        other => other,
    }
}

fn missing_table(message: &str) -> Option<&str> {
    message.strip_prefix("relation '")?.split('\'').next()
}

fn missing_column(error: &PolarsError, message: &str) -> Option<String> {
    let known = matches!(
        error,
        PolarsError::ColumnNotFound(_) | PolarsError::SchemaFieldNotFound(_)
    );
    if !known && !message.starts_with("no column named '") {
        return None;
    }
    // The message quotes the name, or is the name.
    let quoted = message.split(['"', '\'', '`']).nth(1).map(str::to_owned);
    quoted.or_else(|| (!message.contains(' ')).then(|| message.to_owned()))
}

fn meant(name: &str, known: &[&str], listing: &str) -> String {
    match crate::contract::nearest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? {listing}"),
        None => listing.to_owned(),
    }
}

fn list_tables(known: &[&str]) -> String {
    match known {
        [] => "the stage has no inputs: add inputs = { t = \"stage\" }".to_owned(),
        _ => format!("the inputs are {}", known.join(", ")),
    }
}

fn list_columns(inputs: &BTreeMap<String, RecordBatch>) -> String {
    let table = |(name, table): (&String, &RecordBatch)| {
        let schema = table.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        format!("`{name}` has {}", columns.join(", "))
    };
    inputs.iter().map(table).collect::<Vec<_>>().join("; ")
}
