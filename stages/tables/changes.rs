//! The table `changes`: what one example of an attack does inside the model.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;

use super::schema::table;
use super::weights::with_metadata;

table!("changes", "evaluate", "With `measure = \"changes\"`: a row for each example that an attack changed.", {
    ID = "id": "string", "The id of the example.";
    SUCCESS = "success": "bool", "Whether the attack succeeded.";
    SENTENCE_L1 = "sentence_l1": "float64", "The L1 distance between the vectors that the classifier's head reads, before and after.";
    RELATIVE_CHANGE = "relative_change": "float64", "The L2 norm of that change, divided by the L2 norm of the vector before.";
    COSINE = "cosine": "float64", "Cosine of the vectors before and after.";
    ATTENTION_CHANGE = "attention_change": "float64", "The total variation distance between the first layer's attention before and after: that of the first token, or of the pooling layer; null without attention.";
    PERPLEXITY_BEFORE = "perplexity_before": "float64", "The perplexity of the text before, by the input `language`; null without it.";
    PERPLEXITY_AFTER = "perplexity_after": "float64", "The same after.";
});

/// One row.
pub struct ChangeRow<'a> {
    /// What names the example.
    pub id: &'a str,
    /// Whether the attack succeeded.
    pub success: bool,
    /// L1 distance of the sentence's vectors.
    pub sentence_l1: f64,
    /// Relative L2 distance of them.
    pub relative_change: f64,
    /// The cosine of the vectors before and after.
    pub cosine: f64,
    /// Total variation distance of attention.
    pub attention_change: Option<f64>,
    /// Perplexity before and after.
    pub perplexity: Option<[f64; 2]>,
}

/// The rows as a table.
pub fn write(rows: &[ChangeRow<'_>]) -> RecordBatch {
    let float = |get: &dyn Fn(&ChangeRow<'_>) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(rows.iter().map(get)))
    };
    let ids = StringArray::from_iter_values(rows.iter().map(|row| row.id));
    let flags = BooleanArray::from_iter(rows.iter().map(|row| Some(row.success)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        (ID, Arc::new(ids)),
        (SUCCESS, Arc::new(flags)),
        (SENTENCE_L1, float(&|row| Some(row.sentence_l1))),
        (RELATIVE_CHANGE, float(&|row| Some(row.relative_change))),
        (COSINE, float(&|row| Some(row.cosine))),
        (ATTENTION_CHANGE, float(&|row| row.attention_change)),
        (PERPLEXITY_BEFORE, float(&|row| Some(row.perplexity?[0]))),
        (PERPLEXITY_AFTER, float(&|row| Some(row.perplexity?[1]))),
    ];
    with_metadata(columns, Metadata::default())
}
