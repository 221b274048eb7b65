//! The table `coverage`: how much of a recurrent network's state space inputs have covered, after each of them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;
use nn::coverage::CoverageValue;

use super::schema::table;
use super::weights::with_metadata;

table!("coverage", "rnn-test", "A row for each metric and section after each input, in their order.", {
    METRIC = "metric": "string", "`HS` (hidden states that were the largest of their vector), `CS` (cell states), `G_i`, `G_n`, `G_f`, `G_o` (gates) or `DX` (hidden states above a threshold).";
    SECTION = "section": "int64", "The section of CS and G, from 0, the lowest, to 4; null for HS and DX.";
    INPUT = "input": "int64", "How many inputs were seen, from 1.";
    COVERED = "covered": "float64", "Covered elements by all elements, after that input.";
});

/// The values after each input as a table.
pub fn write(inputs: &[Vec<CoverageValue>]) -> RecordBatch {
    let numbered = inputs.iter().enumerate();
    let rows: Vec<(i64, &CoverageValue)> = numbered
        .flat_map(|(n, values)| values.iter().map(move |value| (n as i64 + 1, value)))
        .collect();
    let names = rows.iter().map(|(_, value)| value.metric.name());
    let sections = rows
        .iter()
        .map(|(_, value)| value.section.map(|s| s as i64));
    let numbers = rows.iter().map(|(n, _)| *n);
    let covered = rows.iter().map(|(_, value)| value.value);
    let columns: Vec<(&str, ArrayRef)> = vec![
        (METRIC, Arc::new(StringArray::from_iter_values(names))),
        (SECTION, Arc::new(Int64Array::from_iter(sections))),
        (INPUT, Arc::new(Int64Array::from_iter_values(numbers))),
        (COVERED, Arc::new(Float64Array::from_iter_values(covered))),
    ];
    with_metadata(columns, Metadata::default())
}
