//! The tables `tokens` and `vocab`, from shards and a vocabulary.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array, ListArray, StringArray};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Metadata, Schema};
use arrow::record_batch::RecordBatch;
use rayon::prelude::*;

use super::rows::Rows;
use super::scan::Shard;
use super::settings::{SCHEMES, Settings};
use super::vocab::Vocabulary;
use crate::Failure;
use crate::tables::{pairs, vocabulary};

/// The tokens of one column of text.
pub struct Ids {
    /// The ids of each row, special tokens and the padding inside a grid included.
    pub ids: Vec<i32>,
    /// Where each row begins, and where the last one ends.
    pub offsets: Vec<i32>,
    /// Ids of each row, without the padding of `pad`.
    pub kept: Vec<i32>,
    /// Tokens of each row before it was cut, without special tokens (words, for a grid).
    pub lengths: Vec<u32>,
}

/// Turns the numbers of the shards of one column into ids, by a table for each reader: padding first, then the id of
/// each number.
pub fn ids(
    shards: Vec<Shard>,
    tables: &[Vec<i32>],
    vocab: &Vocabulary,
    settings: &Settings,
) -> Result<Ids, Failure> {
    let id_of = |mark: Option<&str>| {
        mark.map(|mark| {
            let id = vocab.tokens.find(mark.as_bytes());
            id.expect("special tokens were looked up with the vocabulary") as i32
        })
    };
    let (before, after) = (id_of(settings.before), id_of(settings.after));
    let marks = usize::from(before.is_some()) + usize::from(after.is_some());
    let (mut offsets, mut lengths, mut end) = (vec![0], Vec::new(), 0_usize);
    let mut kept = Vec::new();
    // What a row takes, given the ids of its text.
    let room = |ids: usize| match settings.pad {
        Some(most) => most * settings.width,
        None => ids + marks,
    };
    for shard in &shards {
        let mut from = 0;
        for to in &shard.ends {
            end += room(to - from);
            kept.push((to - from + marks) as i32);
            from = *to;
            let end = i32::try_from(end).map_err(|_| too_many())?;
            offsets.push(end);
        }
        lengths.extend_from_slice(&shard.lengths);
    }
    let mut ids = vec![vocab.pad as i32; end];
    let mut rest = &mut ids[..];
    let mut work = Vec::with_capacity(shards.len());
    for shard in shards {
        let size = match settings.pad {
            Some(_) => shard.ends.len() * room(0),
            None => shard.ends.last().unwrap_or(&0) + shard.ends.len() * marks,
        };
        let (mine, others) = rest.split_at_mut(size);
        work.push((shard, mine));
        rest = others;
    }
    work.into_par_iter().for_each(|(shard, mut out)| {
        let (mut numbers, mut from) = (shard.numbers.read(), 0);
        for to in &shard.ends {
            let (row, rest) = out.split_at_mut(room(to - from));
            let row = &mut row[..to - from + marks];
            out = rest;
            let mut at = 0;
            if let Some(before) = before {
                row[0] = before;
                at = 1;
            }
            numbers.fill(&mut row[at..at + to - from], &tables[shard.reader]);
            if let (Some(after), Some(last)) = (after, row.last_mut()) {
                *last = after;
            }
            from = *to;
        }
    });
    Ok(Ids {
        ids,
        offsets,
        kept,
        lengths,
    })
}

fn too_many() -> Failure {
    Failure::new("one table holds at most 2,147,483,647 token ids, and these texts have more")
        .help("truncate texts with `max_len`, or split the data over several tokenize stages")
        .at("max_len")
}

/// `id, split, label, ids, len`, and `ids_b, len_b` for a second text.
pub fn tokens(
    rows: &Rows,
    columns: Vec<Ids>,
    metadata: Vec<(String, String)>,
    settings: &Settings,
) -> RecordBatch {
    let mut made: Vec<(String, ArrayRef)> = Vec::new();
    for (name, column) in &rows.carried {
        made.push(((*name).to_owned(), column.clone()));
    }
    for (n, column) in columns.into_iter().enumerate() {
        let suffix = if n == 0 { "" } else { "_b" };
        let lengths = column.kept.iter().map(|n| n / settings.width as i32);
        let lengths = Int32Array::from_iter_values(lengths);
        let list = ListArray::new(
            Arc::new(Field::new("item", DataType::Int32, true)),
            OffsetBuffer::new(ScalarBuffer::from(column.offsets)),
            Arc::new(Int32Array::from(column.ids)),
            None,
        );
        made.push((format!("ids{suffix}"), Arc::new(list)));
        made.push((format!("len{suffix}"), Arc::new(lengths)));
    }
    batch(made, metadata)
}

/// `id, token, count`: how often each token is among the kept ones of the training split.
pub fn vocab(vocab: &Vocabulary, counts: Vec<i64>, metadata: Vec<(String, String)>) -> RecordBatch {
    let tokens = vocab
        .tokens
        .iter()
        .map(|token| std::str::from_utf8(token).expect("tokens are cut between characters"));
    let ids = Int32Array::from_iter_values(0..vocab.tokens.len() as i32);
    let made: Vec<(String, ArrayRef)> = vec![
        (vocabulary::ID.to_owned(), Arc::new(ids)),
        (
            vocabulary::TOKEN.to_owned(),
            Arc::new(StringArray::from_iter_values(tokens)),
        ),
        (
            vocabulary::COUNT.to_owned(),
            Arc::new(Int64Array::from(counts)),
        ),
    ];
    batch(made, metadata)
}

/// What a reader must know of the ids, in the tables themselves.
pub fn metadata(vocab: &Vocabulary, settings: &Settings) -> Vec<(String, String)> {
    let scheme = SCHEMES
        .iter()
        .find(|(_, scheme)| *scheme == settings.scheme);
    let (scheme, _) = scheme.expect("every scheme is in the list");
    let pair = |key: &str, value: String| (format!("ablate.{key}"), value);
    let mut known = vec![
        (
            vocabulary::KEY.to_owned(),
            vocabulary::digest(vocab.tokens.iter()),
        ),
        pair("scheme", (*scheme).to_owned()),
        pair("pad", vocab.pad.to_string()),
        pair("unknown", vocab.unknown.to_string()),
        pair("vocab_size", vocab.tokens.len().to_string()),
        pair("word_width", settings.width.to_string()),
    ];
    if settings.pad.is_some() {
        known.push(pair("filled", "true".to_owned()));
    }
    known
}

/// What joins the two texts of pairs, in their tokens alone: the ids of [CLS] and [SEP], if texts have them.
pub fn pair_marks(rows: &Rows, vocab: &Vocabulary, settings: &Settings) -> Vec<(String, String)> {
    // A text that ends with [EOS] is not framed, whatever its scheme.
    if rows.texts.len() < 2 || settings.before.is_none() {
        return Vec::new();
    }
    let marks = [
        (pairs::START, settings.before),
        (pairs::SEPARATOR, settings.after),
    ];
    let id = |mark: Option<&str>| vocab.tokens.find(mark?.as_bytes());
    let marks = marks.into_iter();
    marks
        .filter_map(|(key, mark)| Some((key.to_owned(), id(mark)?.to_string())))
        .collect()
}

/// A table of columns that may be null, with metadata.
pub fn batch(columns: Vec<(String, ArrayRef)>, metadata: Vec<(String, String)>) -> RecordBatch {
    let fields = columns.iter();
    let fields: Vec<Field> = fields
        .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
        .collect();
    let schema = Schema::new(fields).with_metadata(metadata.into_iter().collect::<Metadata>());
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(schema), columns).expect("columns of one length")
}
