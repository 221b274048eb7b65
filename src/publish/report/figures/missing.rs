//! Why a table cannot be drawn as was spec.

use arrow::record_batch::RecordBatch;

pub(super) fn no_column(table: &RecordBatch, name: &str, kind: &str) -> String {
    let schema = table.schema();
    let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let kind = if kind.is_empty() {
        String::new()
    } else {
        format!(" {kind}")
    };
    format!(
        "its table has no column `{name}`{kind}; it has {}",
        known.join(", ")
    )
}
