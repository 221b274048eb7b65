//! What a translator attends to in the source while it writes its output (Hsieh et al. 2019, figure 3).

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;
use nn::batch::{Example, Sequence, Side, Target};
use nn::victim::{LayerAttention, Victim};

use crate::Failure;
use crate::models::failure as refused;
use crate::tables::weights::with_metadata;

/// The columns of the output `attention`.
pub const COLUMNS: [&str; 7] = [
    "id",
    "layer",
    "output_position",
    "output_word",
    "source_position",
    "source_word",
    "attention",
];

/// Translations whose attention is computed at once.
const BATCH: usize = 64;

/// One translation.
pub struct Translated<'a> {
    /// What names the row.
    pub id: &'a str,
    /// The tokens that were read.
    pub source: &'a [u32],
    /// The tokens that were written, the end included.
    pub output: Vec<u32>,
}

/// A row for each layer of the decoder, word of the output and word of the source; the mean over heads. The model is
/// forced to the outputs, so that it does not matter how they were found.
pub fn table(
    victim: &dyn Victim,
    translated: &[Translated<'_>],
    word: impl Fn(u32) -> String,
) -> Result<RecordBatch, Failure> {
    let (mut ids, mut words) = (Vec::new(), [Vec::new(), Vec::new()]);
    let (mut numbers, mut weights) = ([Vec::new(), Vec::new(), Vec::new()], Vec::new());
    for part in translated.chunks(BATCH) {
        let example = |one: &Translated<'_>| Example {
            input: Sequence::Tokens(one.source.to_vec()),
            target: Target::Tokens(one.output.clone()),
        };
        let examples: Vec<Example> = part.iter().map(example).collect();
        let attention = victim.attention(&examples.iter().collect::<Vec<_>>());
        for (one, layers) in part.iter().zip(attention.map_err(refused)?) {
            let to_source = layers.iter().filter(|layer| reads_source(layer));
            for (layer, attention) in to_source.enumerate() {
                let (heads, outputs, sources) = attention.weights.dim();
                for (output, source) in (0..outputs).flat_map(|o| (0..sources).map(move |s| (o, s)))
                {
                    let each = (0..heads).map(|head| attention.weights[[head, output, source]]);
                    weights.push(each.map(f64::from).sum::<f64>() / heads as f64);
                    ids.push(one.id);
                    words[0].push(word(one.output[output]));
                    words[1].push(word(one.source[source]));
                    let places = [layer as i64 + 1, output as i64, source as i64];
                    for (column, number) in numbers.iter_mut().zip(places) {
                        column.push(number);
                    }
                }
            }
        }
    }
    let [layers, outputs, sources] = numbers.map(Int64Array::from);
    let [output_words, source_words] = words.map(StringArray::from);
    let columns: [ArrayRef; 7] = [
        Arc::new(StringArray::from(ids)),
        Arc::new(layers),
        Arc::new(outputs),
        Arc::new(output_words),
        Arc::new(sources),
        Arc::new(source_words),
        Arc::new(Float64Array::from(weights)),
    ];
    let columns = COLUMNS.into_iter().zip(columns).collect();
    Ok(with_metadata(columns, Metadata::default()))
}

/// Whether it is the attention of the output to the source, and not of one of them to itself.
fn reads_source(layer: &LayerAttention) -> bool {
    layer.queries == Side::Target && layer.keys == Side::Source
}
