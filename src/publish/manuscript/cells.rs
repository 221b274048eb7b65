//! The numbers that a pipeline computed: every float in its small result tables, each with the
//! reference that names it. Knows nothing of texts.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::record_batch::RecordBatch;

use stages::Role;

use crate::plan::{Plan, Source};
use crate::results::cell::texts;

/// A computed number.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// What names it: `results[row=lstm,col=clean]`.
    pub reference: String,
    /// Its value.
    pub value: f64,
}

/// Tables with more rows are data, not results.
const MOST: usize = 2000;

/// The outputs whose numbers people write about: those of stages that give results, and those that no stage reads.
pub fn outputs(plan: &Plan<'_>) -> Vec<Source> {
    let mut read = vec![false; plan.instances.len()];
    for instance in &plan.instances {
        instance
            .sources()
            .for_each(|source| read[source.instance] = true);
    }
    let mut found = Vec::new();
    for (n, instance) in plan.instances.iter().enumerate() {
        if plan.decl(n).kind.role() == Role::Results || !read[n] {
            found.extend((0..instance.outputs.len()).map(|output| Source {
                instance: n,
                output,
            }));
        }
    }
    found
}

/// The numbers of a table that is called so.
pub fn of_table(name: &str, table: &RecordBatch) -> Vec<Known> {
    if table.num_rows() > MOST {
        return Vec::new();
    }
    let schema = table.schema();
    let labels: Vec<(String, Vec<String>)> = schema
        .fields()
        .iter()
        .zip(table.columns())
        .filter(|(field, _)| is_label(field.data_type()))
        .map(|(field, column)| (field.name().clone(), texts(column)))
        .collect();
    let keys = fewest(&labels, table.num_rows());
    let mut found = Vec::new();
    for (field, column) in schema.fields().iter().zip(table.columns()) {
        // A column of the paper's own numbers was not computed.
        if !field.data_type().is_floating() || field.name().starts_with("paper") {
            continue;
        }
        let suffix = match field.name().as_str() {
            "value" => String::new(),
            name => format!(".{name}"),
        };
        for row in 0..table.num_rows() {
            let Some(value) = number(column, row) else {
                continue;
            };
            let filters = keys.iter().map(|at| {
                let (name, values) = &labels[*at];
                format!("{name}={}", quoted(&values[row]))
            });
            let filters = filters.collect::<Vec<_>>().join(",");
            let reference = match (filters.is_empty(), suffix.is_empty()) {
                // A table of one row without labels cannot be referred to by row.
                (true, _) => continue,
                _ => format!("{}{suffix}", with(name, &filters)),
            };
            found.push(Known { reference, value });
        }
    }
    found
}

/// `stage[axis=1]` and more filters: `stage[axis=1,row=a]`.
fn with(name: &str, filters: &str) -> String {
    match name.strip_suffix(']') {
        Some(open) => format!("{open},{filters}]"),
        None => format!("{name}[{filters}]"),
    }
}

fn quoted(value: &str) -> String {
    match value.contains([',', '=', ']']) {
        true => format!("\"{value}\""),
        false => value.to_owned(),
    }
}

fn is_label(kind: &DataType) -> bool {
    kind.is_integer()
        || matches!(
            kind,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Boolean
        )
}

/// The fewest first columns, without those that are the same everywhere, that tell all rows apart;
/// all of them if even they do not.
fn fewest(labels: &[(String, Vec<String>)], rows: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    let groups = |chosen: &[usize]| {
        let mut seen = std::collections::BTreeSet::new();
        for row in 0..rows {
            let key: Vec<&str> = chosen
                .iter()
                .map(|at| labels[*at].1[row].as_str())
                .collect();
            seen.insert(key);
        }
        seen.len()
    };
    let mut apart = 1;
    for at in 0..labels.len() {
        if apart >= rows && !chosen.is_empty() {
            break;
        }
        let more = [&chosen[..], &[at]].concat();
        let now = groups(&more);
        if now > apart || rows == 1 && chosen.is_empty() {
            chosen = more;
            apart = now;
        }
    }
    chosen
}

fn number(column: &ArrayRef, row: usize) -> Option<f64> {
    let double = cast(&column.slice(row, 1), &DataType::Float64).ok()?;
    let double = double.as_primitive::<Float64Type>();
    Some(double.value(0)).filter(|value| double.is_valid(0) && value.is_finite())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, StringArray};

    use super::*;

    #[test]
    fn a_cell_is_named_by_what_tells_its_row_apart() {
        let text = |all: [&str; 3]| Arc::new(StringArray::from(all.to_vec())) as ArrayRef;
        let number = |all: [f64; 3]| Arc::new(Float64Array::from(all.to_vec())) as ArrayRef;
        let table = RecordBatch::try_from_iter(vec![
            ("paper", text(["p", "p", "p"])),
            ("row", text(["a", "a", "b, c"])),
            ("col", text(["x", "y", "x"])),
            ("value", number([0.1, 0.2, 0.3])),
            ("error", number([0.01, f64::NAN, 0.03])),
            ("paper_value", number([9.1, 9.2, 9.3])),
        ])
        .unwrap();
        let found: Vec<(String, f64)> = of_table("results", &table)
            .into_iter()
            .map(|known| (known.reference, known.value))
            .collect();
        let expected = [
            ("results[row=a,col=x]", 0.1),
            ("results[row=a,col=y]", 0.2),
            ("results[row=\"b, c\",col=x]", 0.3),
            ("results[row=a,col=x].error", 0.01),
            ("results[row=\"b, c\",col=x].error", 0.03),
        ];
        assert_eq!(
            found,
            expected.map(|(name, value)| (name.to_owned(), value))
        );
    }
}
