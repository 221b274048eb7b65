//! Texts to numbers, in shards that run in parallel.
//!
//! A reader, one for each thread, numbers tokens as it meets them; [`merge`](super::merge) then says what the
//! vocabulary calls them. So each text is read once, and no result depends on the number of threads or on who
//! read what: counts are integers, and the vocabulary is put in order by count and text.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, StringArray};
use rayon::prelude::*;

use super::interner::{Interner, Word};
use super::numbers::Numbers;
use super::rows::Rows;
use super::settings::{Scheme, Settings};
use super::split::Rules;
use super::vocab::Vocabulary;
use super::{basic, pieces, split, words};
use crate::{Failure, Watch};

/// Bytes of text for a shard: small enough that every thread has something to do to the end.
const SHARD: usize = 1 << 20;

/// What was read of consecutive rows of one column.
pub struct Shard {
    /// Which column of text.
    pub column: usize,
    /// Who has read it, and says what the numbers mean.
    pub reader: usize,
    /// The tokens that are kept, without special tokens: numbers of the reader, or, for word-piece, ids.
    /// For a grid they are characters, as many places for each word as the grid is wide.
    pub numbers: Numbers,
    /// Where each row's tokens end in `numbers`.
    pub ends: Vec<usize>,
    /// How many tokens each row has before it is cut (words, for a grid).
    pub lengths: Vec<u32>,
}

/// The tokens of the shards that one reader has read.
pub struct Reading {
    /// The tokens by their numbers; empty for word-piece.
    pub tokens: Interner,
    /// How often each number was kept in the training split.
    pub counts: Vec<u64>,
}

/// Reads one shard after another, and numbers tokens as it meets them.
struct Reader {
    number: usize,
    tokens: Interner,
    counts: Vec<u64>,
    known: Pieces,
    scratch: Vec<u8>,
}

/// Reads all texts. A vocabulary is needed first for word-piece alone.
pub fn scan(
    rows: &Rows,
    settings: &Settings,
    vocab: Option<&Vocabulary>,
    watch: &dyn Watch,
) -> Result<(Vec<Shard>, Vec<Reading>), Failure> {
    let mut plan = Vec::new();
    for (column, (_, texts)) in rows.texts.iter().enumerate() {
        plan.extend(cut(texts).into_iter().map(|range| (column, range)));
    }
    // A text of some size has a new word in some five hundred bytes, and fewer as it goes on.
    let bytes: usize = rows
        .texts
        .iter()
        .map(|(_, texts)| texts.values().len())
        .sum();
    let words = (bytes / 512).min(1 << 16);
    let (idle, made) = (Mutex::new(Vec::<Reader>::new()), AtomicUsize::new(0));
    let read = |(column, range): (usize, Range<usize>)| {
        if watch.stopped() {
            return Err(Failure::stopped());
        }
        let waiting = idle.lock().expect("nobody panics with it").pop();
        let mut reader =
            waiting.unwrap_or_else(|| Reader::new(made.fetch_add(1, Ordering::Relaxed), words));
        let shard = reader.read(rows, settings, vocab, column, range);
        idle.lock().expect("nobody panics with it").push(reader);
        shard
    };
    let shards = plan
        .into_par_iter()
        .map(read)
        .collect::<Result<Vec<_>, _>>()?;
    let mut readers = idle.into_inner().expect("nobody panicked with it");
    readers.sort_by_key(|reader| reader.number);
    Ok((shards, readers.into_iter().map(Reader::end).collect()))
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

impl Reader {
    fn new(number: usize, words: usize) -> Reader {
        let mut tokens = Interner::new();
        tokens.reserve(words);
        Reader {
            number,
            tokens,
            counts: Vec::with_capacity(words),
            known: Pieces::default(),
            scratch: Vec::new(),
        }
    }

    fn read(
        &mut self,
        rows: &Rows,
        settings: &Settings,
        vocab: Option<&Vocabulary>,
        column: usize,
        range: Range<usize>,
    ) -> Result<Shard, Failure> {
        let offsets = rows.texts[column].1.value_offsets();
        let bytes = (offsets[range.end] - offsets[range.start]) as usize;
        // No more than that, but for grids and rare characters, for which the room grows.
        let mut numbers = Numbers::with_room(bytes + range.len())
            .map_err(|error| Failure::new(format!("out of memory for token ids: {error}")))?;
        let (mut ends, mut lengths) = (
            Vec::with_capacity(range.len()),
            Vec::with_capacity(range.len()),
        );
        let rules = Rules {
            lowercase: settings.lowercase,
            breaks: settings.scheme == Scheme::WordsPunctuation,
        };
        let scratch = &mut self.scratch;
        let mut end = 0;
        for row in range {
            let text = rows.texts[column].1.value(row);
            let mut into = Row {
                numbers: &mut numbers,
                tokens: &mut self.tokens,
                counts: (rows.split[row] == rows.train).then_some(&mut self.counts),
                keep: settings.keep(),
                length: 0,
                kept: 0,
            };
            match settings.scheme {
                Scheme::Words => words::scan(text, scratch, |word| into.word(word)),
                Scheme::WordsPunctuation => {
                    split::scan(text, rules, scratch, |word| into.token(word));
                }
                Scheme::Whitespace => {
                    split::whitespace(text, rules.lowercase, scratch, |word| into.token(word));
                }
                Scheme::Chars => split::chars(text, rules.lowercase, |c| into.token(c)),
                Scheme::CharGrid => {
                    let width = settings.width;
                    split::scan(text, rules, scratch, |word| into.spelt(word, width));
                }
                Scheme::WordPiece => {
                    let vocab = vocab.expect("word-piece is given its vocabulary");
                    let known = &mut self.known;
                    basic::scan(text, settings.lowercase, scratch, |word| {
                        let pieces = known.of(word, vocab);
                        pieces.iter().for_each(|id| into.piece(*id));
                    });
                }
            }
            end += into.kept;
            ends.push(end);
            lengths.push(into.length.min(u32::MAX as usize) as u32);
        }
        Ok(Shard {
            column,
            reader: self.number,
            numbers,
            ends,
            lengths,
        })
    }

    fn end(mut self) -> Reading {
        let numbers = self.tokens.len().max(self.counts.len());
        self.counts.resize(numbers, 0);
        Reading {
            tokens: self.tokens,
            counts: self.counts,
        }
    }
}

/// One text on its way into a shard.
struct Row<'a> {
    numbers: &'a mut Numbers,
    tokens: &'a mut Interner,
    /// Only of the training split.
    counts: Option<&'a mut Vec<u64>>,
    keep: usize,
    /// Tokens so far, and places in `numbers` that they have taken.
    length: usize,
    kept: usize,
}

impl Row<'_> {
    #[inline]
    fn token(&mut self, token: &[u8]) {
        if self.length < self.keep {
            let number = self.tokens.intern(token);
            self.put(number);
        }
        self.length += 1;
    }

    #[inline]
    fn word(&mut self, word: Word<'_>) {
        if self.length < self.keep {
            let number = self.tokens.intern_word(word);
            self.put(number);
        }
        self.length += 1;
    }

    fn piece(&mut self, id: u32) {
        if self.length < self.keep {
            self.put(id);
        }
        self.length += 1;
    }

    /// A row of the grid: at most `width - 1` characters, so that one slot at least is empty.
    fn spelt(&mut self, word: &[u8], width: usize) {
        if self.length < self.keep {
            let end = self.kept + width;
            let text = std::str::from_utf8(word).expect("words are cut between characters");
            let mut space = [0; 4];
            for c in text.chars().take(width - 1) {
                let number = self.tokens.intern(c.encode_utf8(&mut space).as_bytes());
                self.put(number);
            }
            for _ in self.kept..end {
                self.numbers.push_empty();
            }
            self.kept = end;
        }
        self.length += 1;
    }

    #[inline]
    fn put(&mut self, number: u32) {
        self.numbers.push(number);
        self.kept += 1;
        if let Some(counts) = &mut self.counts {
            let at = number as usize;
            if at >= counts.len() {
                counts.resize(at + 1, 0);
            }
            counts[at] += 1;
        }
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
    fn of(&mut self, word: &[u8], vocab: &Vocabulary) -> &[u32] {
        let n = self.words.get_or_insert_with(Interner::new).intern(word) as usize;
        if n == self.ends.len() {
            pieces::cut(word, vocab, &mut self.joined, &mut self.pieces);
            self.ends.push(self.pieces.len());
        }
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        &self.pieces[start..self.ends[n]]
    }
}
