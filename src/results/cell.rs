//! One cell of a table, by what its row and column are called. Knows nothing of where the table comes from.

use arrow::array::{Array, ArrayRef};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, nearest};

/// A cell by what its row and column are called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellFilter {
    /// Columns with the values that the row has in them.
    pub filters: Vec<(String, String)>,
    /// The column; `None` for `value`, or the only one that no filter names.
    pub column: Option<String>,
}

/// A cell that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The row, counted from 0.
    pub row: usize,
    /// The column.
    pub column: String,
    /// What stands there, at full precision.
    pub value: String,
}

/// Finds a cell in a table.
pub fn cell(table: &RecordBatch, wanted: &CellFilter) -> Result<Cell, Diagnostic> {
    let schema = table.schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let column = |name: &str| {
        table.column_by_name(name).ok_or_else(|| {
            Diagnostic::new(format!("the table has no column `{name}`"))
                .maybe_help(nearest(name, names.iter().copied()))
                .help(format!("columns: {}", names.join(", ")))
        })
    };
    let mut rows: Vec<usize> = (0..table.num_rows()).collect();
    for (name, value) in &wanted.filters {
        let texts = texts(column(name)?);
        let left: Vec<usize> = rows
            .iter()
            .copied()
            .filter(|n| texts[*n] == *value)
            .collect();
        if left.is_empty() {
            let mut known: Vec<&str> = rows.iter().map(|n| texts[*n].as_str()).collect();
            known.sort_unstable();
            known.dedup();
            let near = nearest(value, known.iter().copied());
            known.truncate(12);
            return Err(Diagnostic::new(format!("no row has {name}={value}"))
                .maybe_help(near)
                .help(format!("values of {name}: {}", known.join(", "))));
        }
        rows = left;
    }
    let chosen = match &wanted.column {
        Some(name) => name.as_str(),
        None if names.contains(&"value") => "value",
        None => {
            let filtered = |name: &&str| wanted.filters.iter().all(|(n, _)| n != *name);
            let rest: Vec<&str> = names.iter().copied().filter(filtered).collect();
            match rest[..] {
                [only] => only,
                _ => {
                    return Err(Diagnostic::new("the column is ambiguous").help(format!(
                        "name one after the brackets: .{}",
                        rest.join(", .")
                    )));
                }
            }
        }
    };
    let array = column(chosen)?;
    let [row] = rows[..] else {
        let other = names.iter().find(|name| {
            wanted.filters.iter().all(|(n, _)| n != *name) && **name != chosen && {
                let texts = table.column_by_name(name).map(texts).unwrap_or_default();
                rows.iter().any(|n| texts[*n] != texts[rows[0]])
            }
        });
        let hint = other.map(|name| format!("add a filter on `{name}`"));
        return Err(Diagnostic::new(format!("{} rows match", rows.len())).maybe_help(hint));
    };
    Ok(Cell {
        row,
        column: chosen.to_owned(),
        value: texts(array).swap_remove(row),
    })
}

/// Every value of a column as text, floats with all the digits that tell them apart.
pub fn texts(array: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::default().with_null("null");
    match ArrayFormatter::try_new(array.as_ref(), &options) {
        Ok(format) => (0..array.len())
            .map(|n| format.value(n).to_string())
            .collect(),
        Err(_) => vec!["?".to_owned(); array.len()],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, StringArray};

    use super::*;
    use crate::results::reference;

    fn table() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("row", Arc::new(StringArray::from(vec!["nb", "nb", "a, b"]))),
            ("col", Arc::new(StringArray::from(vec!["x", "y", "x"]))),
            (
                "value",
                Arc::new(Float64Array::from(vec![0.1, 0.25, 1.0 / 3.0])),
            ),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn ask(text: &str) -> Result<Cell, String> {
        let parts = reference::parse(text).map_err(|d| d.title().to_owned())?;
        let wanted = CellFilter {
            filters: parts.filters,
            column: parts.after_brackets.map(str::to_owned),
        };
        cell(&table(), &wanted).map_err(|d| d.title().to_owned())
    }

    #[test]
    fn a_cell_is_a_row_and_a_column() {
        let found = ask("r[row=nb, col=y]").unwrap();
        assert_eq!((found.row, found.column.as_str()), (1, "value"));
        assert_eq!(found.value, "0.25");
        assert_eq!(ask("r[row=\"a, b\"]").unwrap().value, "0.3333333333333333");
        assert_eq!(ask("r[row=\"a, b\"].col").unwrap().value, "x");
    }

    #[test]
    fn what_is_not_one_cell_is_refused() {
        assert_eq!(ask("r[row=nb]").unwrap_err(), "2 rows match");
        assert_eq!(ask("r[row=no]").unwrap_err(), "no row has row=no");
        assert_eq!(
            ask("r[raw=nb]").unwrap_err(),
            "the table has no column `raw`"
        );
    }
}
