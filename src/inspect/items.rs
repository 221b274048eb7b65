//! Two tables with a row for each item, item by item: two classifiers, or two attacks, on the same data.
//!
//! Yes or no is compared by McNemar's test, other numbers by the paired bootstrap. Knows nothing of the terminal.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use nn::Stream;
use serde::Serialize;
use stages::tables::examples::{ID, LABEL, PREDICTED_AFTER, PREDICTED_BEFORE};

use crate::results::columns;
use crate::results::statistics::{McNemar, PairedDifference, mcnemar, mean, paired_bootstrap};

/// How often items are drawn for an interval.
pub const DRAWS: usize = 2_000;

/// A column of both tables, compared over the items that both have.
#[derive(Debug, Serialize)]
pub struct ComparedColumn {
    /// Its name.
    pub column: String,
    /// The mean of the first table; of yes or no, the share of yes.
    pub first: f64,
    /// The mean of the second.
    pub second: f64,
    /// First minus second, with its interval over items.
    pub difference: PairedDifference,
    /// If the column is yes or no.
    pub mcnemar: Option<McNemar>,
}

/// Compares all columns of numbers, or of yes or no, that both tables have; and whether predictions are correct. The
/// error is a sentence.
pub fn compare(tables: [&RecordBatch; 2]) -> Result<Vec<ComparedColumn>, String> {
    let first = rows_by_id(tables[0]).map_err(|why| format!("the first {why}"))?;
    let second = rows_by_id(tables[1]).map_err(|why| format!("the second {why}"))?;
    let pairs: Vec<[usize; 2]> = first
        .iter()
        .filter_map(|(id, row)| Some([*row, *second.get(id)?]))
        .collect();
    if pairs.is_empty() {
        return Err("they have no item in common".to_owned());
    }
    let [a, b] = tables.map(measures);
    let is_in_both = |(name, _): &&(String, Measure)| b.iter().any(|(other, _)| other == name);
    if !a.iter().any(|one| is_in_both(&one)) {
        return Err("no column of numbers, or of yes or no, is in both".to_owned());
    }
    let each = a.into_iter().filter_map(|(name, a)| {
        let (_, b) = b.iter().find(|(other, _)| *other == name)?;
        compared(name, &a, b, &pairs)
    });
    Ok(each.collect())
}

/// The row of each item.
fn rows_by_id(table: &RecordBatch) -> Result<BTreeMap<&str, usize>, String> {
    let ids = table.column_by_name(ID);
    let ids = ids.and_then(|ids| ids.as_string_opt::<i32>());
    let ids = ids.ok_or(format!("has no column `{ID}` of texts to pair rows by"))?;
    let mut rows = BTreeMap::new();
    for (row, id) in ids.iter().enumerate() {
        let id = id.unwrap_or_default();
        if rows.insert(id, row).is_some() {
            return Err(format!(
                "has several rows with the {ID} `{id}`, so rows cannot be paired: keep one of each item by an sql stage"
            ));
        }
    }
    Ok(rows)
}

/// What is measured of each item.
enum Measure {
    Flags(Vec<Option<bool>>),
    Numbers(Vec<Option<f64>>),
}

/// The columns that mean something item by item: labels and classes are names, not numbers.
fn measures(table: &RecordBatch) -> Vec<(String, Measure)> {
    let mut found = Vec::new();
    for (name, predicted) in [
        ("correct_before", PREDICTED_BEFORE),
        ("correct_after", PREDICTED_AFTER),
    ] {
        let classes = |name| columns::wholes(table, name);
        if let (Some(labels), Some(predicted)) = (classes(LABEL), classes(predicted)) {
            let each = labels.iter().zip(predicted);
            let correct = each.map(|(label, predicted)| Some((*label)? == predicted?));
            found.push((name.to_owned(), Measure::Flags(correct.collect())));
        }
    }
    for field in table.schema().fields() {
        let name = field.name().as_str();
        if [LABEL, PREDICTED_BEFORE, PREDICTED_AFTER].contains(&name) {
            continue;
        }
        let column = table.column_by_name(name).expect("a column of the schema");
        let measure = match field.data_type() {
            DataType::Boolean => Measure::Flags(column.as_boolean().iter().collect()),
            _ => match columns::numbers(table, name) {
                Some(numbers) => Measure::Numbers(numbers),
                None => continue,
            },
        };
        found.push((name.to_owned(), measure));
    }
    found
}

/// One column. Items that either table says nothing of are left out; a column that is the same in both tells nothing.
fn compared(
    column: String,
    a: &Measure,
    b: &Measure,
    pairs: &[[usize; 2]],
) -> Option<ComparedColumn> {
    let (first, second): (Vec<f64>, Vec<f64>) = match (a, b) {
        (Measure::Flags(a), Measure::Flags(b)) => {
            let each = pairs
                .iter()
                .filter_map(|[m, n]| Some((f64::from(a[*m]?), f64::from(b[*n]?))));
            each.unzip()
        }
        (Measure::Numbers(a), Measure::Numbers(b)) => {
            let each = pairs.iter().filter_map(|[m, n]| Some((a[*m]?, b[*n]?)));
            each.filter(|(a, b)| a.is_finite() && b.is_finite()).unzip()
        }
        _ => return None,
    };
    if first == second {
        return None;
    }
    let stream = Stream::new(1, "items of two tables");
    let difference = paired_bootstrap(&first, &second, DRAWS, stream)?;
    let flags = |numbers: &[f64]| numbers.iter().map(|x| *x > 0.5).collect::<Vec<bool>>();
    let yes_or_no = matches!(a, Measure::Flags(_));
    Some(ComparedColumn {
        column,
        first: mean(&first)?,
        second: mean(&second)?,
        mcnemar: yes_or_no.then(|| mcnemar(&flags(&first), &flags(&second))),
        difference,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray};

    use super::*;

    fn table(ids: &[&str], success: &[bool], queries: &[i64]) -> RecordBatch {
        let ids: ArrayRef = Arc::new(StringArray::from(ids.to_vec()));
        let success: ArrayRef = Arc::new(BooleanArray::from(success.to_vec()));
        let queries: ArrayRef = Arc::new(Int64Array::from(queries.to_vec()));
        RecordBatch::try_from_iter([(ID, ids), ("success", success), ("queries", queries)]).unwrap()
    }

    #[test]
    fn rows_are_paired_by_their_ids() {
        let a = table(
            &["p", "q", "r", "s"],
            &[true, true, true, false],
            &[9, 8, 7, 6],
        );
        // In another order, with one item that the first does not have.
        let b = table(
            &["s", "x", "q", "p", "r"],
            &[false, true, false, false, true],
            &[6, 1, 4, 5, 3],
        );
        let found = compare([&a, &b]).unwrap();
        let [success, queries] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((success.first, success.second), (0.75, 0.25));
        let test = success.mcnemar.as_ref().unwrap();
        assert_eq!((test.only_first, test.only_second), (2, 0));
        assert_eq!((queries.first, queries.second), (7.5, 4.5));
        assert_eq!(
            (queries.difference.mean, queries.difference.pairs),
            (3.0, 4)
        );
        assert!(queries.mcnemar.is_none());
    }

    #[test]
    fn what_cannot_be_paired_is_refused() {
        let a = table(&["p", "q"], &[true, false], &[1, 2]);
        let other = table(&["x", "y"], &[true, false], &[1, 2]);
        assert_eq!(
            compare([&a, &other]).unwrap_err(),
            "they have no item in common"
        );
        let twice = table(&["p", "p"], &[true, false], &[1, 2]);
        let why = compare([&a, &twice]).unwrap_err();
        assert!(
            why.starts_with("the second has several rows with the id `p`"),
            "{why}"
        );
        assert!(compare([&a, &a]).unwrap().is_empty(), "nothing differs");
    }
}
