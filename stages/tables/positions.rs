//! The table `positions`: what one example of an attack does to each token in each layer.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::table;
use super::weights::with_metadata;

table!("positions", "evaluate", "With `measure = \"changes\"`: a row for each layer and token of an example that an attack changed.", {
    ID = "id": "string", "The id of the example.";
    SUCCESS = "success": "bool", "Whether the attack succeeded.";
    LAYER = "layer": "int64", "The layer, from 1; 0 is what a transformer's first layer reads.";
    POSITION = "position": "int64", "The token, from 0.";
    CHANGED = "changed": "bool", "Whether the token was replaced.";
    BEFORE = "before": "string", "The token before.";
    AFTER = "after": "string", "The token after.";
    CHANGE = "change": "float64", "The L2 norm of the change of its vector.";
    SHARE = "share": "float64", "The same, divided by the largest change of a replaced token in that layer.";
    ATTENTION_BEFORE = "attention_before": "float64", "The attention that it gets in that layer, as the mean over heads: that of the first token, or of the pooling layer; null for layer 0.";
    ATTENTION_AFTER = "attention_after": "float64", "The same after.";
});

/// One row.
pub struct PositionRow<'a> {
    /// What names the example.
    pub id: &'a str,
    /// Whether the attack succeeded.
    pub success: bool,
    /// The layer.
    pub layer: usize,
    /// The token.
    pub position: usize,
    /// The token before and after, in words.
    pub words: [String; 2],
    /// Whether it was replaced.
    pub changed: bool,
    /// The L2 norm of its change.
    pub change: f64,
    /// The same, as a share of the largest change of a replaced token.
    pub share: f64,
    /// The attention that it gets, before and after.
    pub attention: Option<[f64; 2]>,
}

/// The rows as a table.
pub fn write(rows: &[PositionRow<'_>]) -> RecordBatch {
    let text = |get: &dyn Fn(&PositionRow<'_>) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(get)))
    };
    let flag = |get: &dyn Fn(&PositionRow<'_>) -> bool| -> ArrayRef {
        Arc::new(BooleanArray::from_iter(
            rows.iter().map(|row| Some(get(row))),
        ))
    };
    let int = |get: &dyn Fn(&PositionRow<'_>) -> usize| -> ArrayRef {
        let each = rows.iter().map(|row| get(row) as i64);
        Arc::new(Int64Array::from_iter_values(each))
    };
    let float = |get: &dyn Fn(&PositionRow<'_>) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(rows.iter().map(get)))
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        (ID, text(&|row| row.id.to_owned())),
        (SUCCESS, flag(&|row| row.success)),
        (LAYER, int(&|row| row.layer)),
        (POSITION, int(&|row| row.position)),
        (CHANGED, flag(&|row| row.changed)),
        (BEFORE, text(&|row| row.words[0].clone())),
        (AFTER, text(&|row| row.words[1].clone())),
        (CHANGE, float(&|row| Some(row.change))),
        (SHARE, float(&|row| Some(row.share))),
        (ATTENTION_BEFORE, float(&|row| Some(row.attention?[0]))),
        (ATTENTION_AFTER, float(&|row| Some(row.attention?[1]))),
    ];
    with_metadata(columns, Metadata::default())
}
