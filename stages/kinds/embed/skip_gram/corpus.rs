//! The text to learn from, in blocks: one per thread in a round.

use std::ops::Range;

/// Words of a block, before frequent ones are left out.
pub const BLOCK: usize = 1_000;

/// The texts to learn from: lists of ids.
pub struct Corpus<'a> {
    /// All ids.
    pub ids: &'a [i32],
    /// Where each text lies in `ids`.
    pub texts: Vec<Range<usize>>,
}

/// Consecutive texts, and how many words come before them in an epoch.
pub struct Block {
    /// The texts.
    pub texts: Range<usize>,
    /// Words of the epoch before them.
    pub before: usize,
}

/// Cuts texts into blocks of about [`BLOCK`] words.
pub fn blocks(texts: &[Range<usize>]) -> Vec<Block> {
    let (mut blocks, mut start, mut before, mut words) = (Vec::new(), 0, 0, 0);
    for (n, text) in texts.iter().enumerate() {
        words += text.len();
        if words >= BLOCK || n + 1 == texts.len() {
            blocks.push(Block {
                texts: start..n + 1,
                before,
            });
            (start, before, words) = (n + 1, before + words, 0);
        }
    }
    blocks
}
