//! Texts to numbers, in shards that run side by side.
//!
//! A shard numbers tokens as it meets them; [`merge`](super::merge) then says what the vocabulary calls
//! them. So each text is read once, and no result depends on the number of threads: counts
//! are whole numbers, and the vocabulary is put in order by count and text.

use std::ops::Range;

use arrow::array::{Array, StringArray};
use rayon::prelude::*;

use super::interner::{Interner, Word, Words};
use super::rows::Rows;
use super::settings::{Scheme, Settings};
use super::split::Rules;
use super::vocab::Vocabulary;
use super::{basic, pieces, split, words};
use crate::{Failure, Watch};

/// An empty slot in a grid, in the numbers of a shard.
pub const EMPTY: u32 = u32::MAX;

/// Bytes of text for a shard: enough that its own table of words is small beside it.
const SHARD: usize = 4 << 20;

/// What was read of consecutive rows of one column.
pub struct Shard {
    /// Which column of text.
    pub column: usize,
    /// The tokens that are kept, without marks: numbers of this shard, or, for word-piece,
    /// ids. For a grid they are characters, as many for each word as the grid is wide.
    pub ids: Vec<u32>,
    /// Where each row's tokens end in `ids`.
    pub ends: Vec<usize>,
    /// How many tokens each row has before it is cut (words, for a grid).
    pub lengths: Vec<u32>,
    /// The tokens by their numbers; empty for word-piece.
    pub tokens: Words,
    /// How often each number was kept in the training split.
    pub counts: Vec<u64>,
    /// The numbers, dealt to parts: see [`Interner::deal`].
    pub parts: Vec<Vec<u32>>,
}

/// Reads all texts. A vocabulary is needed first for word-piece alone.
pub fn scan(
    rows: &Rows,
    settings: &Settings,
    vocab: Option<&Vocabulary>,
    watch: &dyn Watch,
) -> Result<Vec<Shard>, Failure> {
    let mut plan = Vec::new();
    for (column, (_, texts)) in rows.texts.iter().enumerate() {
        plan.extend(cut(texts).into_iter().map(|range| (column, range)));
    }
    let read = |(column, range): (usize, Range<usize>)| {
        if watch.stopped() {
            return Err(Failure::stopped());
        }
        Ok(shard(rows, settings, vocab, column, range))
    };
    plan.into_par_iter().map(read).collect()
}

/// Ranges of rows with about as much text each.
fn cut(texts: &StringArray) -> Vec<Range<usize>> {
    let offsets = texts.value_offsets();
    let (mut ranges, mut start) = (Vec::new(), 0);
    for row in 1..=texts.len() {
        if row == texts.len() || (offsets[row] - offsets[start]) as usize >= SHARD {
            ranges.push(start..row);
            start = row;
        }
    }
    ranges
}

fn shard(
    rows: &Rows,
    settings: &Settings,
    vocab: Option<&Vocabulary>,
    column: usize,
    range: Range<usize>,
) -> Shard {
    let offsets = rows.texts[column].1.value_offsets();
    let bytes = (offsets[range.end] - offsets[range.start]) as usize;
    let mut shard = Shard {
        column,
        ids: Vec::with_capacity(match settings.scheme {
            Scheme::Chars => bytes,
            // English words and the space between them take more than five bytes.
            _ => bytes / 5,
        }),
        ends: Vec::with_capacity(range.len()),
        lengths: Vec::with_capacity(range.len()),
        tokens: Words::default(),
        counts: Vec::new(),
        parts: Vec::new(),
    };
    let (mut scratch, mut known) = (Vec::new(), Pieces::default());
    let mut tokens = Interner::new();
    let rules = Rules {
        lowercase: settings.lowercase,
        breaks: settings.scheme == Scheme::WordsPunctuation,
    };
    for row in range {
        let text = rows.texts[column].1.value(row);
        let start = shard.ids.len();
        let mut row_of = Row::new(&mut shard.ids, &mut tokens, settings.keep());
        let length = match settings.scheme {
            Scheme::Words => {
                words::scan(text, &mut scratch, |word| row_of.word(word));
                row_of.length
            }
            Scheme::WordsPunctuation => {
                split::scan(text, rules, &mut scratch, |word| row_of.token(word));
                row_of.length
            }
            Scheme::Whitespace => {
                split::whitespace(text, rules.lowercase, &mut scratch, |word| {
                    row_of.token(word);
                });
                row_of.length
            }
            Scheme::Chars => {
                split::chars(text, rules.lowercase, |c| row_of.token(c));
                row_of.length
            }
            Scheme::CharGrid => {
                let width = settings.width;
                split::scan(text, rules, &mut scratch, |word| row_of.spelt(word, width));
                row_of.length
            }
            Scheme::WordPiece => {
                let vocab = vocab.expect("word-piece is given its vocabulary");
                basic::scan(text, settings.lowercase, &mut scratch, |word| {
                    known.extend(word, vocab, row_of.ids);
                });
                let length = shard.ids.len() - start;
                shard.ids.truncate(start + length.min(settings.keep()));
                length
            }
        };
        if rows.split[row] == rows.train {
            let numbers = tokens.len().max(vocab.map_or(0, |v| v.tokens.len()));
            shard.counts.resize(numbers.max(shard.counts.len()), 0);
            for id in shard.ids[start..].iter().filter(|id| **id != EMPTY) {
                shard.counts[*id as usize] += 1;
            }
        }
        shard.ends.push(shard.ids.len());
        shard.lengths.push(length.min(u32::MAX as usize) as u32);
    }
    shard.counts.resize(tokens.len().max(shard.counts.len()), 0);
    // The table of keys goes now: of all shards together it would be large.
    (shard.tokens, shard.parts) = tokens.deal();
    shard
}

/// One text on its way into a shard.
struct Row<'a> {
    ids: &'a mut Vec<u32>,
    tokens: &'a mut Interner,
    keep: usize,
    length: usize,
}

impl<'a> Row<'a> {
    fn new(ids: &'a mut Vec<u32>, tokens: &'a mut Interner, keep: usize) -> Row<'a> {
        Row {
            ids,
            tokens,
            keep,
            length: 0,
        }
    }

    #[inline]
    fn token(&mut self, token: &[u8]) {
        if self.length < self.keep {
            let number = self.tokens.intern(token);
            self.ids.push(number);
        }
        self.length += 1;
    }

    #[inline]
    fn word(&mut self, word: Word<'_>) {
        if self.length < self.keep {
            let number = self.tokens.intern_word(word);
            self.ids.push(number);
        }
        self.length += 1;
    }

    /// A row of the grid: at most `width - 1` characters, so that one slot at least is empty.
    fn spelt(&mut self, word: &[u8], width: usize) {
        if self.length < self.keep {
            let end = self.ids.len() + width;
            let text = std::str::from_utf8(word).expect("words are cut between characters");
            let mut space = [0; 4];
            for c in text.chars().take(width - 1) {
                let number = self.tokens.intern(c.encode_utf8(&mut space).as_bytes());
                self.ids.push(number);
            }
            self.ids.resize(end, EMPTY);
        }
        self.length += 1;
    }
}

/// The pieces of every word met so far: a text repeats its words far more often than not.
#[derive(Default)]
struct Pieces {
    words: Option<Interner>,
    pieces: Vec<u32>,
    ends: Vec<usize>,
    joined: Vec<u8>,
}

impl Pieces {
    fn extend(&mut self, word: &[u8], vocab: &Vocabulary, ids: &mut Vec<u32>) {
        let n = self.words.get_or_insert_with(Interner::new).intern(word) as usize;
        if n == self.ends.len() {
            pieces::cut(word, vocab, &mut self.joined, &mut self.pieces);
            self.ends.push(self.pieces.len());
        }
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        ids.extend_from_slice(&self.pieces[start..self.ends[n]]);
    }
}
