//! Which vocabulary token ids mean. The ids of two vocabularies look the same, so that rows carry the
//! digest of theirs, a trained model that of the rows it learnt from, and every kind that puts two
//! tables together compares them.

use arrow::array::{Array, AsArray, Int32Array, StringArray};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use store::Digest;

use super::schema::table;
use crate::Failure;

table!("vocab", "tokenize", "A row for each token, in the order of ids.", {
    ID = "id": "int32", "Its id, from 0.";
    TOKEN = "token": "string", "The token.";
    COUNT = "count": "int64", "How often it occurs in the training split.";
});

/// The metadata key of the digest, in the output `tokens` of a tokenize stage.
pub const KEY: &str = "ablate.vocab";

/// The digest of a vocabulary: its tokens in the order of their ids.
pub fn digest<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> String {
    let mut bytes = Vec::new();
    for token in tokens {
        // With its length a list has one reading only.
        bytes.extend_from_slice(&(token.len() as u64).to_le_bytes());
        bytes.extend_from_slice(token);
    }
    Digest::of(&bytes).to_string()
}

/// The digest of the tokens that a table of words or vectors lists; none if it lists none.
pub fn listed(table: &RecordBatch) -> Option<String> {
    let tokens = table.column_by_name(TOKEN)?.as_string_opt::<i32>()?;
    (tokens.null_count() == 0).then(|| digest(tokens.iter().flatten().map(str::as_bytes)))
}

/// Refuses an input whose ids mean other words than those of the rows.
pub fn agree(rows: Option<&str>, theirs: Option<&str>, port: &str) -> Result<(), Failure> {
    agreed("rows", rows, port, theirs)
}

/// The same for two inputs of any names.
pub fn agreed(
    one: &str,
    rows: Option<&str>,
    other: &str,
    theirs: Option<&str>,
) -> Result<(), Failure> {
    match (rows, theirs) {
        (Some(rows), Some(theirs)) if rows != theirs => Err(Failure::new(format!(
            "`{one}` and `{other}` number their words by different vocabularies, {} and {}",
            &rows[..rows.len().min(12)],
            &theirs[..theirs.len().min(12)]
        ))
        .help("make both from one tokenize stage, or connect its `vocab` to the other one")),
        _ => Ok(()),
    }
}

/// The token that stands for nothing: its vector is always zero.
pub const PAD: &str = "[PAD]";
/// The token that stands for words that are not in the vocabulary.
pub const UNKNOWN: &str = "[UNK]";

/// Names that only special tokens have: no word of a text has one of them.
pub const SPECIAL: [&str; 7] = [PAD, UNKNOWN, "[EOS]", "[GO]", "[CLS]", "[SEP]", "[MASK]"];

/// The output `vocab` of a tokenize stage.
pub struct Vocab {
    /// The tokens; the id of each is its place.
    pub tokens: StringArray,
    /// How often each is in the training split.
    pub counts: Option<Vec<i64>>,
}

impl Vocab {
    /// Reads the table, which must count its ids from 0.
    pub fn read(table: &RecordBatch) -> Result<Vocab, Failure> {
        let tokens = words(table, "vocab")?;
        let ids = table
            .column_by_name(ID)
            .and_then(|c| c.as_primitive_opt::<Int32Type>());
        let in_order = |ids: &Int32Array| ids.values().iter().copied().eq(0..ids.len() as i32);
        if !ids.is_some_and(in_order) {
            return Err(Failure::new(
                "the vocabulary's column `id` is not 0, 1, 2, … as 32-bit integers",
            )
            .help("connect the output `vocab` of a tokenize stage"));
        }
        let counts = table.column_by_name(COUNT);
        let counts = counts.and_then(|c| c.as_primitive_opt::<Int64Type>());
        Ok(Vocab {
            tokens,
            counts: counts.map(|counts| counts.values().to_vec()),
        })
    }

    /// The place of a token.
    pub fn place(&self, token: &str) -> Option<usize> {
        self.tokens.iter().position(|known| known == Some(token))
    }
}

/// The column `token` or `word` of a table.
pub fn words(table: &RecordBatch, port: &str) -> Result<StringArray, Failure> {
    let found = table
        .column_by_name(TOKEN)
        .or_else(|| table.column_by_name("word"))
        .and_then(|column| column.as_string_opt::<i32>());
    match found {
        Some(words) if words.null_count() == 0 => Ok(words.clone()),
        _ => Err(Failure::new(format!(
            "the input `{port}` has no column `token` or `word` of strings without nulls"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_and_another_order_are_another_vocabulary() {
        let of = |words: &[&str]| digest(words.iter().map(|word| word.as_bytes()));
        let same = of(&["a", "bc"]);
        for other in [&["bc", "a"][..], &["ab", "c"], &["a", "bc", ""], &["a"]] {
            assert_ne!(same, of(other), "{other:?}");
        }
    }

    #[test]
    fn disagreement_names_both() {
        assert!(agree(Some("x"), None, "vocab").is_ok());
        assert!(agree(Some("x"), Some("x"), "vocab").is_ok());
        let error = agree(Some("aaaaaaaaaaaaaaaa"), Some("b"), "vocab").unwrap_err();
        assert_eq!(
            error.message,
            "`rows` and `vocab` number their words by different vocabularies, aaaaaaaaaaaa and b"
        );
    }
}
