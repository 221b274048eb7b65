//! Inputs of a language model: consecutive windows of a text, each read from the zero state.

use nn::Stream;
use nn::batch::Sequence;

use super::generate::{Item, POSITION};
use crate::Failure;
use crate::tables::sequences::SequenceTable;

/// The first windows of a split, all rows being one text. The target of a token is the token after it.
pub fn windows(
    rows: &SequenceTable,
    split: &str,
    window: usize,
    count: usize,
    seed: u64,
) -> Result<Vec<Item>, Failure> {
    let places = rows.split(split);
    if places.is_empty() {
        return Err(rows.no_split(split, "split"));
    }
    let tokens = places
        .iter()
        .filter_map(|row| match &rows.examples[*row].input {
            Sequence::Tokens(ids) => Some(ids),
            _ => None,
        });
    let text: Vec<u32> = tokens.flatten().copied().collect();
    let windows = text.len().saturating_sub(1) / window;
    if windows == 0 {
        let tokens = text.len();
        return Err(Failure::new(format!(
            "the split `{split}` has {tokens} tokens, too few for a window of {window} and the token after it"
        ))
        .help("lower `window`, or connect more text")
        .at("split"));
    }
    let count = if count == 0 {
        windows
    } else {
        count.min(windows)
    };
    let stream = Stream::new(seed, "rnn-test");
    let item = |n: usize| {
        let from = n * window;
        let stream = stream.item(n as u64);
        // Not the first: it has no state before it.
        let position = 1 + stream.below(POSITION, window - 1);
        Item {
            id: format!("{split}/{n}"),
            input: text[from..from + window].to_vec(),
            target: text[from + 1..from + window + 1].to_vec(),
            positions: vec![position],
            stream,
        }
    };
    Ok((0..count).map(item).collect())
}
