//! Pairs of texts as classifiers read them: one sequence, the first text, a separator, the second text.
//!
//! Texts that `tokenize` framed by [CLS] and [SEP] are joined as BERT does, `[CLS] a [SEP] b [SEP]`. Others have
//! [PAD] between them: it has no other use in texts that are not padded, and every vocabulary has it.
//! Knows nothing of models.

use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;

use super::sequences::{Form, SequenceTable};
use crate::Failure;
use crate::contract::expected;

/// The metadata of tokens that has the id of [CLS], of pairs that have it.
pub const START: &str = "ablate.start";
/// The metadata of tokens that has the id of [SEP], of pairs that have it.
pub const SEPARATOR: &str = "ablate.separator";

/// The rows of a table, with the two texts of pairs joined into one sequence.
pub fn read_joined(table: &RecordBatch) -> Result<SequenceTable, Failure> {
    let mut rows = SequenceTable::read_pairs(table)?;
    let Some(second) = rows.second.take() else {
        return Ok(rows);
    };
    let (pad, filled) = match rows.form {
        Form::Tokens { pad, filled, .. } => (pad, filled),
        _ => {
            return Err(Failure::new("pairs of character grids are not supported")
                .help("tokenize with another scheme"));
        }
    };
    if filled {
        return Err(Failure::new(expected::PADDED_PAIRS).help(expected::PADDED_PAIRS_HELP));
    }
    let frame = special(table, START).zip(special(table, SEPARATOR));
    for (example, second) in rows.examples.iter_mut().zip(second) {
        if let (Sequence::Tokens(first), Sequence::Tokens(second)) = (&mut example.input, second) {
            join(first, &second, frame, pad);
        }
    }
    rows.separator = Some(frame.map_or(pad, |(_, separator)| separator));
    Ok(rows)
}

fn join(first: &mut Vec<u32>, second: &[u32], frame: Option<(u32, u32)>, pad: u32) {
    match frame {
        // The first text ends with the separator; a text without a token has lost its frame.
        Some((start, separator)) => {
            if first.last() != Some(&separator) {
                first.push(separator);
            }
            first.extend_from_slice(second.strip_prefix(&[start]).unwrap_or(second));
        }
        None => {
            first.push(pad);
            first.extend_from_slice(second);
        }
    }
}

fn special(table: &RecordBatch, key: &str) -> Option<u32> {
    let schema = table.schema();
    schema.metadata().get(key)?.parse().ok()
}

/// Refuses pairs for a model of single texts, and the other way round. Each is given by its separator.
pub fn agree(rows: Option<u32>, model: Option<u32>) -> Result<(), Failure> {
    let message = match (rows, model) {
        (Some(_), None) => "the rows are pairs of texts, but the model was trained on single texts",
        (None, Some(_)) => "the model was trained on pairs of texts, but the rows are single texts",
        (rows, model) if rows != model => {
            "the rows are pairs of texts with another separator than the model was trained on"
        }
        _ => return Ok(()),
    };
    Err(Failure::new(message).help("connect the rows that the train stage reads"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::trial::{tokens, with_second};

    fn ids(rows: &SequenceTable) -> Vec<&[u32]> {
        let input = rows.examples.iter().map(|example| &example.input);
        input
            .map(|input| match input {
                Sequence::Tokens(ids) => ids.as_slice(),
                _ => &[],
            })
            .collect()
    }

    fn pair() -> RecordBatch {
        let first = tokens(&[("train", 0, vec![5, 6]), ("train", 1, vec![7])]);
        with_second(&first, &[vec![8], vec![9, 10]])
    }

    #[test]
    fn padding_separates_the_texts() {
        let rows = read_joined(&pair()).unwrap();
        assert_eq!(ids(&rows), [&[5, 6, 0, 8][..], &[7, 0, 9, 10]]);
        assert_eq!(rows.separator, Some(0));
        assert!(rows.second.is_none());
    }

    #[test]
    fn texts_in_a_frame_are_joined_as_bert_does() {
        let first = tokens(&[("train", 0, vec![2, 5, 3]), ("train", 1, vec![])]);
        let table = with_second(&first, &[vec![2, 8, 9, 3], vec![2, 8, 3]]);
        let schema = table.schema();
        let mut metadata = schema.metadata().clone();
        metadata.insert(START.to_owned(), "2".to_owned());
        metadata.insert(SEPARATOR.to_owned(), "3".to_owned());
        let schema = schema.as_ref().clone().with_metadata(metadata);
        let table = table.with_schema(schema.into()).unwrap();
        let rows = read_joined(&table).unwrap();
        assert_eq!(ids(&rows), [&[2, 5, 3, 8, 9, 3][..], &[1, 3, 8, 3]]);
        assert_eq!(rows.separator, Some(3));
    }

    #[test]
    fn single_texts_stay_as_they_are() {
        let rows = read_joined(&tokens(&[("train", 0, vec![5, 6])])).unwrap();
        assert_eq!(ids(&rows), [&[5, 6]]);
        assert_eq!(rows.separator, None);
    }

    #[test]
    fn models_of_one_text_and_of_two_are_told_apart() {
        assert!(agree(None, None).is_ok() && agree(Some(0), Some(0)).is_ok());
        for (rows, model) in [(Some(0), None), (None, Some(0)), (Some(0), Some(3))] {
            assert!(agree(rows, model).is_err(), "{rows:?} {model:?}");
        }
    }
}
