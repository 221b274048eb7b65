//! Tidy results: every cell of a paper's table is one row,
//! `paper, table, row, col, seed, value, n, paper_value, profile`.
//!
//! A cell says which input and metric it comes from, and its names; `{axis}` in a name stands for
//! the value of a column, so that one line makes the cells of a whole axis.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use store::{Params, Value};

use super::coded::Coded;
use super::metrics;
use super::metrics::entry::Number;
use super::metrics::option::MetricOption;
use super::template::{fill, placeholders};
use crate::contract::nearest::nearest;
use crate::params::settings::{Settings, failure, unknown, wrong};
use crate::tables::examples;
use crate::tables::results::{self, COL, N, PaperValues, ROW, ResultRow, TABLE, VALUE};
use crate::{Failure, Outputs, ParamError, Task};

/// Where a number comes from and goes to.
pub struct Cell {
    pub from: String,
    pub metric: String,
    pub table: String,
    pub row: String,
    pub col: String,
    /// Columns with the values that rows must have, if only some rows are meant.
    pub only: BTreeMap<String, Vec<String>>,
    /// What it sets beside its metric.
    pub options: BTreeMap<String, i64>,
}

impl Cell {
    /// The placeholders in its names.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        let names = [&self.table, &self.row, &self.col];
        names.into_iter().flat_map(|name| placeholders(name))
    }

    /// Whether only rows with one value of this column are meant.
    pub fn fixes(&self, column: &str) -> bool {
        self.only
            .get(column)
            .is_some_and(|values| values.len() == 1)
    }
}

/// Checks the parameter `cells`, and that names of classes have somewhere to stand.
pub fn check(params: &Params) -> Result<(), ParamError> {
    let cells = read(params)?;
    let named = params.get("labels").and_then(Value::as_list);
    let classes = |name: &str| ["true", "predicted", "class"].contains(&name);
    let shown = cells.iter().flat_map(Cell::placeholders).any(classes);
    if named.is_some_and(|names| !names.is_empty()) && !shown {
        let message = "`labels` would have no effect here".to_owned();
        let help = "leave it out: no cell has {true}, {predicted} or {class} in its names";
        return Err(wrong("labels", message, help));
    }
    Ok(())
}

/// The parameter `cells`, checked.
pub fn read(params: &Params) -> Result<Vec<Cell>, ParamError> {
    const KEYS: [&str; 6] = ["from", "metric", "table", "row", "col", WHERE];
    let list = params.get("cells").and_then(Value::as_list).unwrap_or(&[]);
    if list.is_empty() {
        let message = "there are no `cells`".to_owned();
        let help = r#"write what to measure: [{ from = "swap", metric = "accuracy", table = "t", row = "lstm", col = "swap" }]"#;
        return Err(wrong("cells", message, help));
    }
    let cell = |(n, cell): (usize, &Value)| {
        let cell = cell.as_table();
        let metric = cell.and_then(|cell| cell.get("metric"));
        let metric = metric.and_then(Value::as_text).and_then(metrics::find);
        let own = metric.map_or(&[][..], |metric| metric.options());
        let mut options = BTreeMap::new();
        for (key, value) in cell.into_iter().flatten() {
            if let Some(option) = own.iter().find(|option| option.name == key) {
                options.insert(key.clone(), in_range(n, option, value)?);
            } else if !KEYS.contains(&key.as_str()) {
                let known = KEYS.into_iter().chain(own.iter().map(|option| option.name));
                let error = unknown("cells", key, known);
                let message = format!("cell {} has the key `{key}`", n + 1);
                return Err(ParamError { message, ..error });
            }
        }
        let text = |key: &str| {
            let value = cell.and_then(|cell| cell.get(key));
            let text = value.and_then(Value::as_text).map(str::to_owned);
            text.ok_or_else(|| {
                let message = format!("cell {} has no `{key}`, a string", n + 1);
                wrong("cells", message, format!("a cell has {}", KEYS.join(", ")))
            })
        };
        Ok(Cell {
            from: text("from")?,
            metric: text("metric")?,
            table: text("table")?,
            row: text("row")?,
            col: text("col")?,
            only: only(n, cell.and_then(|cell| cell.get(WHERE)))?,
            options,
        })
    };
    list.iter().enumerate().map(cell).collect()
}

/// The key of a cell that says which rows are meant.
const WHERE: &str = "where";

/// `where = { axis = "value", other = ["values"] }`.
fn only(n: usize, given: Option<&Value>) -> Result<BTreeMap<String, Vec<String>>, ParamError> {
    let form = "write where = { axis = \"value\" }, or a list of values";
    let bad = |message: String| wrong("cells", message, form);
    let Some(given) = given else {
        return Ok(BTreeMap::new());
    };
    let table = given.as_table();
    let table =
        table.ok_or_else(|| bad(format!("cell {} has a `where` that is not a table", n + 1)))?;
    let mut only = BTreeMap::new();
    for (column, value) in table {
        let values = value.as_list().unwrap_or(std::slice::from_ref(value));
        let texts = values.iter().map(|value| match value {
            Value::Text(text) => Some(text.clone()),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => Some(value.to_string()),
            _ => None,
        });
        let texts: Option<Vec<String>> = texts.collect();
        let texts = texts.filter(|texts| !texts.is_empty());
        let texts = texts.ok_or_else(|| {
            bad(format!(
                "`{column}` in the `where` of cell {} has no value",
                n + 1
            ))
        })?;
        only.insert(column.clone(), texts);
    }
    Ok(only)
}

/// The stages that cells are from, as far as they are written.
pub fn sources(params: &Params) -> Vec<(&'static str, String)> {
    let cells = params.get("cells").and_then(Value::as_list).unwrap_or(&[]);
    let from = cells
        .iter()
        .filter_map(|cell| cell.as_table()?.get("from")?.as_text());
    from.map(|from| ("cells", from.to_owned())).collect()
}

/// The value of an option of cell `n`.
fn in_range(n: usize, option: &MetricOption, value: &Value) -> Result<i64, ParamError> {
    let MetricOption {
        name, least, most, ..
    } = option;
    let given = value.as_int().filter(|x| (*least..=*most).contains(x));
    given.ok_or_else(|| {
        let message = format!(
            "`{name}` of cell {} must be an integer from {least} to {most}, not {value}",
            n + 1
        );
        wrong("cells", message, format!("it is {}", option.help))
    })
}

/// All cells, with the paper's values beside them.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let cells = read(task.params).map_err(failure)?;
    let labels = task.params.get("labels").and_then(Value::as_list);
    let labels: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(Value::as_text)
        .collect();
    let mut results = Vec::new();
    for (n, cell) in cells.iter().enumerate() {
        let table = task.inputs.get(&cell.from).ok_or_else(|| {
            let known = task.inputs.keys().map(String::as_str);
            failure(no_input(n, &cell.from, known))
        })?;
        results.extend(measured(cell, table, &labels)?);
    }
    let mut seen = BTreeSet::new();
    for r in &results {
        if !seen.insert((&r.table, &r.row, &r.col, r.seed)) {
            return Err(Failure::new(format!(
                "two numbers would be the cell {} / {} / {} of one seed",
                r.table, r.row, r.col
            ))
            .help("give them different names: {axis} in a name stands for an axis's value")
            .at("cells"));
        }
    }
    let printed = task.inputs.get("paper").map(paper_values).transpose()?;
    let table = tidy(task.params, &results, &printed.unwrap_or_default());
    Ok([("results".to_owned(), table)].into())
}

/// The error for a cell that comes from nowhere.
pub fn no_input<'a>(n: usize, from: &str, known: impl Iterator<Item = &'a str>) -> ParamError {
    let known: Vec<&str> = known.collect();
    let help = match nearest(from, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("inputs: {}", known.join(", ")),
    };
    let message = format!(
        "cell {} is from `{from}`, which is neither a stage nor an input",
        n + 1
    );
    wrong("cells", message, help)
}

/// The error for a metric that a table does not have.
pub fn no_metric<'a>(cell: &Cell, known: impl Iterator<Item = &'a str>) -> ParamError {
    let known: Vec<&str> = known.collect();
    let (from, metric) = (&cell.from, &cell.metric);
    let near = match nearest(metric, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    let message = format!("`{from}` has no metric `{metric}`");
    wrong(
        "cells",
        message,
        format!("{near}it has {}", known.join(", ")),
    )
}

/// The results of one line of `cells`.
fn measured(cell: &Cell, table: &RecordBatch, labels: &[&str]) -> Result<Vec<ResultRow>, Failure> {
    let schema = table.schema();
    let has = |name: &str| schema.field_with_name(name).is_ok();
    let on_examples = has(examples::PREDICTED_AFTER) && has(examples::SUCCESS);
    let metric = metrics::find(&cell.metric).filter(|_| on_examples);
    if let (None, Some(option)) = (metric, cell.options.keys().next()) {
        return Err(Failure::new(format!(
            "`{option}` would have no effect: `{}` is a column of `{}`",
            cell.metric, cell.from
        ))
        .help("leave it out: it is for metrics on the output `examples` of an attack")
        .at("cells"));
    }
    let filled = metric.map_or(&[][..], |metric| metric.entry().placeholders);
    let mut by: Vec<&str> = cell
        .placeholders()
        .filter(|name| !filled.contains(name))
        .collect();
    if has("seed") {
        by.push("seed");
    }
    let filters = cell.only.keys().map(String::as_str);
    if let Some(name) = by.iter().copied().chain(filters).find(|name| !has(name)) {
        return Err(Failure::new(format!("`{}` has no column `{name}`", cell.from))
            .help("{name} in a cell stands for the value of an axis that the input was collected over")
            .at("cells"));
    }
    if on_examples {
        let axes = schema.fields().iter().map(|f| f.name().as_str());
        let mut axes = axes.filter(|name| !examples::SCHEMA.has(name));
        if let Some(axis) = axes.find(|axis| !by.contains(axis) && !cell.fixes(axis)) {
            return Err(Failure::new(format!(
                "`{}` was collected over `{axis}`, and the cell would mix its values",
                cell.from
            ))
            .help(format!("put {{{axis}}} into a name of the cell"))
            .at("cells"));
        }
    }
    let mut results = Vec::new();
    for (values, places) in groups(table, &meant(cell, table)?, &by)? {
        let numbers = match metric {
            Some(metric) => metrics::measure(metric, table, &places, &cell.options)?,
            None => vec![column(cell, table, &places, by.contains(&"n"))?],
        };
        for number in numbers {
            let mut values = values.clone();
            for (placeholder, n) in &number.about {
                let text = match *placeholder {
                    "words" => n.to_string(),
                    "operation" => examples::operation_name(*n).to_owned(),
                    _ => class_name(labels, *n)?,
                };
                values.insert((*placeholder).to_owned(), text);
            }
            results.push(ResultRow {
                table: fill(&cell.table, &values),
                row: fill(&cell.row, &values),
                col: fill(&cell.col, &values),
                seed: values.get("seed").and_then(|seed| seed.parse().ok()),
                value: number.value,
                n: number.n,
            });
        }
    }
    Ok(results)
}

/// The name of a class: its number, if classes have no names. Some with names and some without would be a
/// list that is too short.
fn class_name(labels: &[&str], class: i64) -> Result<String, Failure> {
    let name = usize::try_from(class).ok().and_then(|n| labels.get(n));
    match (name, labels.len()) {
        (Some(name), _) => Ok((*name).to_owned()),
        (None, 0) => Ok(class.to_string()),
        (None, _) => Err(
            Failure::new(format!("`labels` has no name for the class {class}"))
                .help("give every class a name, in the order of their numbers from 0")
                .at("labels"),
        ),
    }
}

type Group = (BTreeMap<String, String>, Vec<usize>);

/// The rows that a cell is about.
fn meant(cell: &Cell, table: &RecordBatch) -> Result<Vec<usize>, Failure> {
    let mut rows: Vec<usize> = (0..table.num_rows()).collect();
    for (name, values) in &cell.only {
        let column = Coded::new(&table[name.as_str()]).ok_or_else(|| not_a_name(name))?;
        let wanted = column.texts.iter().map(|text| values.contains(text));
        let wanted: Vec<bool> = wanted.collect();
        rows.retain(|row| wanted[column.codes[*row]]);
    }
    Ok(rows)
}

/// Rows with equal values in some columns, in the order in which the values first appear. Collected tables have long
/// runs of equal values, and draws group millions of rows: a row like the one before is not looked up.
fn groups(table: &RecordBatch, rows: &[usize], by: &[&str]) -> Result<Vec<Group>, Failure> {
    let coded = by.iter().map(|name| {
        let column = Coded::new(&table[name]).ok_or_else(|| not_a_name(name))?;
        Ok((*name, column))
    });
    let columns: Vec<(&str, Coded)> = coded.collect::<Result<_, Failure>>()?;
    let mut groups: Vec<Group> = Vec::new();
    let mut known: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    let mut last: Option<(usize, usize)> = None;
    for &row in rows {
        let like = |other: usize| {
            let mut codes = columns.iter().map(|(_, column)| &column.codes);
            codes.all(|codes| codes[row] == codes[other])
        };
        let place = match last {
            Some((other, place)) if like(other) => place,
            _ => {
                let key = columns.iter().map(|(_, column)| column.codes[row]);
                *known.entry(key.collect()).or_insert_with(|| {
                    let values = columns
                        .iter()
                        .map(|(name, column)| ((*name).to_owned(), column.text(row).to_owned()));
                    groups.push((values.collect(), Vec::new()));
                    groups.len() - 1
                })
            }
        };
        groups[place].1.push(row);
        last = Some((row, place));
    }
    Ok(groups)
}

fn not_a_name(name: &str) -> Failure {
    Failure::new(format!(
        "the column `{name}` has nulls, or is neither strings nor numbers"
    ))
}

/// A number that a table has already: one row for each group, or it would have to be mixed. A column `n`
/// beside it is how many rows it was measured on, unless it is an axis that names the cell.
fn column(
    cell: &Cell,
    table: &RecordBatch,
    places: &[usize],
    n_is_a_name: bool,
) -> Result<Number, Failure> {
    let &[row] = places else {
        return Err(Failure::new(format!(
            "`{}` has {} rows for one cell of `{}`",
            cell.from,
            places.len(),
            cell.metric
        ))
        .help("only the examples of an attack may have several rows for one cell: select one with a sql stage")
        .at("cells"));
    };
    let Some(column) = table.column_by_name(&cell.metric) else {
        let schema = table.schema();
        let numbers = schema
            .fields()
            .iter()
            .filter(|f| f.data_type().is_numeric());
        return Err(failure(no_metric(cell, numbers.map(|f| f.name().as_str()))));
    };
    let value = match column.data_type() {
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => Some(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Int64 => Some(column.as_primitive::<Int64Type>().value(row) as f64),
        DataType::Int32 => Some(column.as_primitive::<Int32Type>().value(row).into()),
        other => {
            return Err(
                Failure::new(format!("`{}` holds {other}, not numbers", cell.metric)).at("cells"),
            );
        }
    };
    Ok(Number {
        value: value.filter(|_| column.is_valid(row)),
        n: match n_is_a_name || cell.metric == "n" {
            true => None,
            false => counted(table, row)?,
        },
        about: Vec::new(),
    })
}

/// What the column `n` says of a row: how many rows the number beside it was measured on. A table without
/// one does not say.
fn counted(table: &RecordBatch, row: usize) -> Result<Option<u64>, Failure> {
    let Some(column) = table.column_by_name(N) else {
        return Ok(None);
    };
    let counts = cast(column, &DataType::Int64).ok();
    let counts = counts.filter(|_| column.data_type().is_integer());
    let count = match counts.as_ref().map(|c| c.as_primitive::<Int64Type>()) {
        Some(counts) if counts.is_null(row) => return Ok(None),
        Some(counts) => u64::try_from(counts.value(row)).ok(),
        None => None,
    };
    count.map(Some).ok_or_else(|| {
        Failure::new("the column `n` does not hold numbers of rows")
            .help("`n` beside a cell's number says on how many rows it was measured: give the column another name, or count: COUNT(*) AS n")
            .at("cells")
    })
}

/// The paper's own numbers: `table, row, col, value`.
fn paper_values(table: &RecordBatch) -> Result<PaperValues, Failure> {
    let wrong = || Failure::new("the input `paper` has no columns table, row, col and value");
    let text = |name: &str| -> Result<Coded, Failure> {
        let column = table.column_by_name(name).ok_or_else(wrong)?;
        Coded::new(column).ok_or_else(wrong)
    };
    let names = [text(TABLE)?, text(ROW)?, text(COL)?];
    let values = table.column_by_name(VALUE).ok_or_else(wrong)?;
    let values = cast(values, &DataType::Float64)
        .ok()
        .filter(|_| values.data_type().is_numeric())
        .ok_or_else(|| wrong().help("values are numbers"))?;
    let values = values.as_primitive::<Float64Type>();
    let key = |row: usize| [0, 1, 2].map(|k: usize| names[k].text(row).to_owned());
    Ok((0..table.num_rows())
        .map(|row| (key(row), values.value(row)))
        .collect())
}

/// The results as a table.
pub fn tidy(params: &Params, results: &[ResultRow], printed: &PaperValues) -> RecordBatch {
    let text = |name| Settings(params).text(name).unwrap_or_default();
    results::write(text("paper"), text("profile"), results, printed)
}
