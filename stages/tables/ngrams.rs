//! A language model as a table: a row for each n-gram. Knows nothing of texts or attacks.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Builder, Int32Builder, Int64Builder, ListBuilder};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use nn::ngrams::{Gram, KneserNey};

use super::schema::table;
use crate::Failure;
use crate::tables::vocabulary;
use crate::tables::weights::with_metadata;

table!("ngrams", "ngrams", "A row for each n-gram, by order, context and token.", {
    ORDER = "order": "int32", "How many tokens it has.";
    CONTEXT = "context": "list of int32", "The ids of all but the last.";
    TOKEN = "token": "int32", "The id of the last.";
    COUNT = "count": "int64", "How often it occurs, or after how many different tokens, as Kneser-Ney counts.";
    SHARE = "share": "float64", "Its discounted share of its context.";
});

/// The metadata key of the token that marks the beginning of a text.
const START: &str = "ablate.start";
/// The metadata key of the number of tokens.
const SIZE: &str = "ablate.vocab_size";

/// `order, context, token, count, share`, by order, context and token.
pub fn write(model: &KneserNey, words: &str, start: u32) -> RecordBatch {
    let (mut orders, mut tokens) = (Int32Builder::new(), Int32Builder::new());
    let mut contexts = ListBuilder::new(Int32Builder::new());
    let (mut counts, mut shares) = (Int64Builder::new(), Float64Builder::new());
    for order in 1..=model.order() {
        for gram in model.grams(order) {
            orders.append_value(order as i32);
            for token in &gram.context {
                contexts.values().append_value(*token as i32);
            }
            contexts.append(true);
            tokens.append_value(gram.token as i32);
            counts.append_value(gram.count as i64);
            shares.append_value(gram.share);
        }
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        (ORDER, Arc::new(orders.finish())),
        (CONTEXT, Arc::new(contexts.finish())),
        (TOKEN, Arc::new(tokens.finish())),
        (COUNT, Arc::new(counts.finish())),
        (SHARE, Arc::new(shares.finish())),
    ];
    let facts = [
        (vocabulary::KEY, words.to_owned()),
        (START, start.to_string()),
        (SIZE, model.vocabulary().to_string()),
    ];
    let facts = facts.map(|(key, value)| (key.to_owned(), value));
    with_metadata(columns, facts.into_iter().collect())
}

/// The model, and the digest of the vocabulary that its tokens belong to.
pub fn read(table: &RecordBatch) -> Result<(KneserNey, String), Failure> {
    let wrong = || {
        Failure::new("the input `language` is not a table of n-grams")
            .help("connect the output `ngrams` of an ngrams stage")
    };
    let schema = table.schema();
    let fact = |key: &str| schema.metadata().get(key).cloned().ok_or_else(wrong);
    let number = |key: &str| fact(key)?.parse::<usize>().map_err(|_| wrong());
    let column = |name: &str| table.column_by_name(name).ok_or_else(wrong);
    let orders = column(ORDER)?.as_primitive_opt::<Int32Type>();
    let tokens = column(TOKEN)?.as_primitive_opt::<Int32Type>();
    let counts = column(COUNT)?.as_primitive_opt::<Int64Type>();
    let shares = column(SHARE)?.as_primitive_opt::<Float64Type>();
    let contexts = column(CONTEXT)?.as_list_opt::<i32>();
    let (Some(orders), Some(tokens), Some(counts), Some(shares), Some(contexts)) =
        (orders, tokens, counts, shares, contexts)
    else {
        return Err(wrong());
    };
    let before = contexts.values().as_primitive_opt::<Int32Type>();
    let before = before.ok_or_else(wrong)?.values();
    let mut grams: Vec<Vec<Gram>> = Vec::new();
    for (row, ends) in contexts.value_offsets().windows(2).enumerate() {
        let order = usize::try_from(orders.value(row)).map_err(|_| wrong())?;
        if order == 0 || order > grams.len() + 1 || order < grams.len() {
            return Err(wrong());
        }
        if order > grams.len() {
            grams.push(Vec::new());
        }
        let context = &before[ends[0] as usize..ends[1] as usize];
        grams[order - 1].push(Gram {
            context: context.iter().map(|token| *token as u32).collect(),
            token: tokens.value(row) as u32,
            count: counts.value(row) as u64,
            share: shares.value(row),
        });
    }
    let model = KneserNey::from_grams(number(SIZE)?, number(START)? as u32, &grams);
    Ok((
        model.map_err(|error| Failure::new(error.to_string()))?,
        fact(vocabulary::KEY)?,
    ))
}
