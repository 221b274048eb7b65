//! A result, or one cell of it, by the name that people write:
//! `stage`, `stage.output`, `stage[axis=value]`, `results[table=fig8,row=lstm,col=jsma]`,
//! `results[row=lstm].accuracy`. Knows nothing of what is cached.

use arrow::array::{Array, ArrayRef};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, nearest};
use crate::plan::{self, Plan, Source};

/// What was named: outputs of instances, and rows and a column of their tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The outputs, one for each instance.
    pub outputs: Vec<Source>,
    /// Which row, if one was asked for.
    pub cell: Option<Wanted>,
}

/// A cell by what its row and column are called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
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

/// Text taken apart: the stage, filters in brackets, and the names after dots.
struct Parts<'a> {
    stage: &'a str,
    before: Option<&'a str>,
    filters: Vec<(String, String)>,
    after: Option<&'a str>,
}

/// Finds what a text names in a plan.
pub fn find(plan: &Plan<'_>, text: &str) -> Result<Reference, Diagnostic> {
    let parts = take_apart(text)?;
    let stages = &plan.pipeline.stages;
    let Some(stage) = stages.iter().position(|stage| stage.name == parts.stage) else {
        // The usual error, with the nearest name.
        return plan::matching(plan, parts.stage).map(|_| unreachable!("it was not found"));
    };
    let first = &plan.instances[plan.of_stage[stage].start];
    let axes: Vec<&str> = first
        .point
        .iter()
        .map(|(axis, _)| plan.pipeline.axes[*axis].name.as_str())
        .collect();
    let (own, filters): (Vec<_>, Vec<_>) = parts
        .filters
        .into_iter()
        .partition(|(name, _)| axes.contains(&name.as_str()));
    let target = match own.is_empty() {
        true => parts.stage.to_owned(),
        false => {
            let each = own.iter().map(|(name, value)| format!("{name}={value}"));
            format!("{}[{}]", parts.stage, each.collect::<Vec<_>>().join(","))
        }
    };
    let instances = plan::matching(plan, &target)?;
    let is_output = |name: &str| first.outputs.iter().any(|known| known == name);
    let (output, column) = match (parts.before, parts.after) {
        (None, Some(name)) if is_output(name) => (Some(name), None),
        (None, None) => (None, None),
        // Without a row, what follows a dot can only be an output.
        (None, Some(name)) if filters.is_empty() => (Some(name), None),
        (before, column) => (before, column),
    };
    let output = match output {
        None => 0,
        Some(name) => first
            .outputs
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| {
                let known = first.outputs.iter().map(String::as_str);
                Diagnostic::new(format!("`{}` has no output `{name}`", parts.stage))
                    .maybe_help(nearest(name, known))
                    .help(format!("outputs: {}", first.outputs.join(", ")))
            })?,
    };
    let outputs: Vec<Source> = instances
        .into_iter()
        .map(|instance| Source { instance, output })
        .collect();
    let cell = (!filters.is_empty()).then(|| Wanted {
        filters,
        column: column.map(str::to_owned),
    });
    if cell.is_some() && outputs.len() > 1 {
        let labels = outputs.iter().take(6);
        let labels = labels.map(|source| plan.source_label(*source));
        return Err(Diagnostic::new(format!(
            "`{text}` has {} instances, and a cell is of one",
            outputs.len()
        ))
        .help(format!(
            "name its axes too: {}",
            labels.collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(Reference { outputs, cell })
}

fn take_apart(text: &str) -> Result<Parts<'_>, Diagnostic> {
    let wrong = |why: &str| {
        Diagnostic::new(format!("`{text}` names no result: {why}")).help(
            "write `stage`, `stage.output`, `stage[axis=value]` or `stage[column=value].column`",
        )
    };
    let (head, inside, tail) = match text.find('[') {
        None => (text, "", ""),
        Some(open) => {
            let close = text.rfind(']').filter(|close| *close > open);
            let close = close.ok_or_else(|| wrong("the bracket is not closed"))?;
            (&text[..open], &text[open + 1..close], &text[close + 1..])
        }
    };
    let (stage, before) = match head.split_once('.') {
        Some((stage, output)) => (stage, Some(output)),
        None => (head, None),
    };
    let after = match tail.strip_prefix('.') {
        Some("") => return Err(wrong("nothing follows the dot")),
        Some(name) => Some(name),
        None if tail.is_empty() => None,
        None => return Err(wrong("only `.column` may follow the bracket")),
    };
    let (before, after) = match (text.contains('['), before) {
        // `stage.output` without brackets: as if it followed them.
        (false, Some(name)) => (None, Some(name)),
        _ => (before, after),
    };
    let mut filters = Vec::new();
    for part in split_commas(inside) {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| wrong("each part in brackets is name=value"))?;
        let value = value.trim();
        let bare = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        filters.push((name.trim().to_owned(), bare.unwrap_or(value).to_owned()));
    }
    Ok(Parts {
        stage,
        before,
        filters,
        after,
    })
}

/// Cuts at commas that stand in no quotes.
fn split_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(&text[from..]);
    }
    parts
}

/// Finds a cell in a table.
pub fn cell(table: &RecordBatch, wanted: &Wanted) -> Result<Cell, Diagnostic> {
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
                .help(format!("{name} is one of: {}", known.join(", "))));
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
                    return Err(Diagnostic::new("which column is meant?").help(format!(
                        "write it after the bracket: one of .{}",
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
        let hint = other.map(|name| format!("say which `{name}` is meant too"));
        return Err(Diagnostic::new(format!("{} rows are so", rows.len())).maybe_help(hint));
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
        let parts = take_apart(text).map_err(|d| d.title().to_owned())?;
        let wanted = Wanted {
            filters: parts.filters,
            column: parts.after.map(str::to_owned),
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
    fn what_is_not_a_cell_is_said() {
        assert_eq!(ask("r[row=nb]").unwrap_err(), "2 rows are so");
        assert_eq!(ask("r[row=no]").unwrap_err(), "no row has row=no");
        assert_eq!(
            ask("r[raw=nb]").unwrap_err(),
            "the table has no column `raw`"
        );
        let wrong = ask("r[row").unwrap_err();
        assert_eq!(wrong, "`r[row` names no result: the bracket is not closed");
    }
}
