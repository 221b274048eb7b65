//! Which vocabulary token ids mean. The ids of two vocabularies look the same, so that rows carry the
//! digest of theirs, a trained model that of the rows it learnt from, and every kind that puts two
//! tables together compares them.

use arrow::array::{Array, AsArray};
use arrow::record_batch::RecordBatch;
use store::Digest;

use crate::Failure;

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
    let tokens = table.column_by_name("token")?.as_string_opt::<i32>()?;
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
