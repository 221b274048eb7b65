//! The table `traces` of an attack: a row for each number of each step.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Builder, Int32Builder, Int64Builder, StringBuilder};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::table;
use super::weights::with_metadata;

table!("traces", "attack", "A row for each number of each step of the first rows, with `traces`.", {
    ID = "id": "string", "The id of the row.";
    LABEL = "label": "int64", "Its true class.";
    RUN = "run": "string", "`nominal`, over the row as it was, or `attacked`, over the adversarial one.";
    STEP = "step": "int64", "0 before the first sample, then 1, 2, ….";
    SERIES = "series": "string", "`x`, `d`, `state`, `p`, `measure`, `slack`, `error` or `bound`: see below.";
    CHANNEL = "channel": "int32", "Which number of the series, from 0.";
    VALUE = "value": "float64", "The number.";
});

/// One number of one step.
pub struct TraceNumber {
    /// `nominal` or `attacked`.
    pub run: &'static str,
    /// 0 before the first sample, then 1, 2, …
    pub step: usize,
    /// What it is.
    pub series: &'static str,
    /// Which number of it.
    pub channel: usize,
    /// The number.
    pub value: f64,
}

/// Items with their numbers as a table.
pub fn write(items: &[(&str, u32, Vec<TraceNumber>)]) -> RecordBatch {
    let (mut ids, mut labels) = (StringBuilder::new(), Int64Builder::new());
    let (mut runs, mut steps) = (StringBuilder::new(), Int64Builder::new());
    let (mut series, mut channels) = (StringBuilder::new(), Int32Builder::new());
    let mut values = Float64Builder::new();
    for (id, label, numbers) in items {
        for number in numbers {
            ids.append_value(id);
            labels.append_value((*label).into());
            runs.append_value(number.run);
            steps.append_value(number.step as i64);
            series.append_value(number.series);
            channels.append_value(number.channel as i32);
            values.append_value(number.value);
        }
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        (ID, Arc::new(ids.finish())),
        (LABEL, Arc::new(labels.finish())),
        (RUN, Arc::new(runs.finish())),
        (STEP, Arc::new(steps.finish())),
        (SERIES, Arc::new(series.finish())),
        (CHANNEL, Arc::new(channels.finish())),
        (VALUE, Arc::new(values.finish())),
    ];
    with_metadata(columns, Metadata::default())
}
