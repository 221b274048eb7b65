//! The vocabulary: made from what was counted in the training split, or taken as given.

use std::cmp::Reverse;
use std::path::Path;

use arrow::array::Int32Array;
use arrow::record_batch::RecordBatch;
use rayon::prelude::*;
use store::Digest;

use super::interner::Interner;
use super::rows::strings;
use super::settings::{Scheme, Settings};
use super::token_counts::TokenCounts;
use crate::tables::vocabulary;
use crate::{Failure, SourceFile};

/// Tokens, each with its id, which is its place.
pub struct Vocabulary {
    /// The tokens.
    pub tokens: Interner,
    /// The id of padding.
    pub pad: u32,
    /// The id of a token that is not here.
    pub unknown: u32,
}

impl Vocabulary {
    /// The most frequent first; tokens seen equally often in the order of their bytes, so that
    /// nothing depends on where a token was seen first.
    pub fn count(seen: &TokenCounts, settings: &Settings) -> Vocabulary {
        let frequent = (0..seen.tokens.len() as u32).zip(&seen.counts);
        let frequent = frequent.filter(|(_, count)| **count >= settings.min_count);
        // A text's own `[PAD]` is not a special token, and gets no place in the vocabulary.
        let frequent = frequent.filter(|(n, _)| {
            let token = seen.tokens.get(*n);
            token.first() != Some(&b'[')
                || !Settings::MARKS.iter().any(|mark| mark.as_bytes() == token)
        });
        // Most ties are decided by the first bytes, without looking the tokens up.
        let mut order: Vec<(Reverse<u64>, u64, u32)> = frequent
            .map(|(n, count)| (Reverse(*count), beginning(seen.tokens.get(n)), n))
            .collect();
        order.par_sort_unstable_by(|a, b| {
            let apart = (a.0, a.1).cmp(&(b.0, b.1));
            apart.then_with(|| seen.tokens.get(a.2).cmp(seen.tokens.get(b.2)))
        });
        order.truncate(settings.max_vocab.unwrap_or(usize::MAX));
        let mut tokens = specials(settings);
        tokens.reserve(order.len());
        for (_, _, n) in order {
            tokens.intern(seen.tokens.get(n));
        }
        Vocabulary {
            tokens,
            pad: 0,
            unknown: 1,
        }
    }

    /// A vocabulary from a table with a column `token` or `word`. If the table has no padding
    /// and unknown token of its own (the words of pretrained vectors), they come first.
    pub fn from_table(table: &RecordBatch, settings: &Settings) -> Result<Vocabulary, Failure> {
        let column = match table.column_by_name(vocabulary::TOKEN) {
            Some(_) => vocabulary::TOKEN,
            None => "word",
        };
        let words = strings(table, column)?;
        if let Some(ids) = table.column_by_name(vocabulary::ID) {
            let ids = ids.as_any().downcast_ref::<Int32Array>();
            let in_order = |ids: &Int32Array| ids.values().iter().copied().eq(0..ids.len() as i32);
            if !ids.is_some_and(in_order) {
                return Err(Failure::new(
                    "the vocabulary's column `id` is not 0, 1, 2, … as 32-bit integers",
                )
                .help("take the output `vocab` of a tokenize stage as it is"));
            }
        }
        let has = |special: &str| words.iter().flatten().any(|word| word == special);
        let complete = has("[PAD]") && has("[UNK]");
        if !complete && settings.scheme == Scheme::WordPiece {
            return Err(incomplete("the vocabulary"));
        }
        let tokens = match complete {
            true => Interner::new(),
            false => specials(settings),
        };
        Vocabulary::of(tokens, words.iter().flatten(), settings)
    }

    /// A vocabulary from a file with one token per line, such as BERT's `vocab.txt`.
    pub fn from_file(
        name: &str,
        file: SourceFile<'_>,
        settings: &Settings,
    ) -> Result<Vocabulary, Failure> {
        let text = read_text(name, file.path, file.digest)?;
        // BERT's readers take a line as it is, but for its end.
        let lines = || text.lines().map(|line| line.trim_end_matches('\r'));
        let has = |special: &str| lines().any(|line| line == special);
        if !has("[PAD]") || !has("[UNK]") {
            return Err(incomplete(name).at("vocab_file"));
        }
        Vocabulary::of(Interner::new(), lines(), settings)
    }

    fn of<'a>(
        mut tokens: Interner,
        words: impl Iterator<Item = &'a str>,
        settings: &Settings,
    ) -> Result<Vocabulary, Failure> {
        for (row, word) in words.enumerate() {
            let before = tokens.len();
            if (tokens.intern(word.as_bytes()) as usize) < before {
                return Err(Failure::new(format!(
                    "duplicate token `{word}` in row {row} of the vocabulary"
                ))
                .help("each token has one id: remove the duplicate"));
            }
        }
        let id = |special: &str| {
            tokens.find(special.as_bytes()).ok_or_else(|| {
                Failure::new(format!("the vocabulary has no token `{special}`"))
                    .help("add it, or change the parameter that needs it")
            })
        };
        let (pad, unknown) = (id("[PAD]")?, id("[UNK]")?);
        for mark in [settings.before, settings.after].into_iter().flatten() {
            id(mark)?;
        }
        Ok(Vocabulary {
            pad,
            unknown,
            tokens,
        })
    }
}

/// The first eight bytes as a number that is ordered as they are. Shorter tokens go on with
/// zeros, so that a tie says nothing.
fn beginning(token: &[u8]) -> u64 {
    let mut eight = [0; 8];
    let length = token.len().min(8);
    eight[..length].copy_from_slice(&token[..length]);
    u64::from_be_bytes(eight)
}

fn specials(settings: &Settings) -> Interner {
    let mut tokens = Interner::new();
    for special in settings.specials() {
        tokens.intern(special.as_bytes());
    }
    tokens
}

fn incomplete(name: &str) -> Failure {
    Failure::new(format!("{name} has no tokens `[PAD]` and `[UNK]`"))
        .help("word-piece needs a vocabulary in BERT's format, with its special tokens")
}

fn read_text(name: &str, path: &Path, digest: Digest) -> Result<String, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(format!("cannot read {name}: {error}")).at("vocab_file"))?;
    if Digest::of(&bytes) != digest {
        return Err(
            Failure::new(format!("{name} changed while the pipeline was running"))
                .help("run again: the new contents get a new key")
                .at("vocab_file"),
        );
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!("{name} is not UTF-8 at byte {at}")).at("vocab_file")
    })
}
