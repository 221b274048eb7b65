//! The input table: which columns it must have, and what else is carried along.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;

use super::settings::Settings;
use crate::Failure;
use crate::tables::sequences;

/// The texts and what is known of each.
pub struct Rows {
    /// The columns of the output that are taken over as they are: id, split, label.
    pub carried: Vec<(&'static str, ArrayRef)>,
    /// The columns of text: their names, and the texts.
    pub texts: Vec<(String, StringArray)>,
    /// The names of the splits, in order.
    pub splits: Vec<String>,
    /// The split of each row.
    pub split: Vec<u32>,
    /// Which split the vocabulary comes from.
    pub train: u32,
}

impl Rows {
    /// The rows of a table with the columns split and text, and perhaps id, label and text_b.
    pub fn read(table: &RecordBatch, settings: &Settings) -> Result<Rows, Failure> {
        let split = strings(table, "split").map_err(|failure| {
            failure.help(
                "the vocabulary is made from one split: add the column, SELECT *, 'train' AS split",
            )
        })?;
        let mut texts = vec![(settings.text.clone(), strings(table, &settings.text)?)];
        let second = format!("{}_b", settings.text);
        if table.column_by_name(&second).is_some() {
            texts.push((second.clone(), strings(table, &second)?));
        }
        let splits: BTreeSet<&str> = split.iter().flatten().collect();
        let splits: Vec<String> = splits.into_iter().map(str::to_owned).collect();
        let place = |name: &str| splits.binary_search_by(|known| known.as_str().cmp(name));
        let Ok(train) = place(&settings.train) else {
            return Err(Failure::new(format!(
                "no row has the split `{}`, which the vocabulary is made from",
                settings.train
            ))
            .help(format!("splits: {}", splits.join(", ")))
            .at("train"));
        };
        let places = split.iter().flatten();
        let places = places.map(|name| place(name).expect("it was collected above") as u32);
        let id = table
            .column_by_name(sequences::ID)
            .cloned()
            .unwrap_or_else(|| {
                Arc::new(Int64Array::from_iter_values(0..table.num_rows() as i64)) as ArrayRef
            });
        let label = table.column_by_name(sequences::LABEL).cloned();
        Ok(Rows {
            split: places.collect(),
            train: train as u32,
            carried: [
                Some((sequences::ID, id)),
                Some((sequences::SPLIT, Arc::new(split.clone()) as ArrayRef)),
                label.map(|label| (sequences::LABEL, label)),
            ]
            .into_iter()
            .flatten()
            .collect(),
            texts,
            splits,
        })
    }
}

/// A column of strings without nulls.
pub fn strings(table: &RecordBatch, name: &str) -> Result<StringArray, Failure> {
    let Some(column) = table.column_by_name(name) else {
        let schema = table.schema();
        let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        return Err(Failure::new(format!("the input has no column `{name}`"))
            .help(format!("its columns: {}", known.join(", "))));
    };
    if *column.data_type() != DataType::Utf8 {
        return Err(Failure::new(format!(
            "the column `{name}` holds {}, not text",
            column.data_type()
        )));
    }
    if let Some(row) = (0..column.len()).find(|row| column.is_null(*row)) {
        return Err(
            Failure::new(format!("the column `{name}` is null in row {row}"))
                .help("leave such rows out: SELECT * … WHERE … IS NOT NULL"),
        );
    }
    Ok(column.as_string::<i32>().clone())
}
