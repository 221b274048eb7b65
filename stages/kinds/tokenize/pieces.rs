//! Word-piece: a word is the longest piece of the vocabulary that it begins with, then the
//! longest `##` piece that the rest begins with, and so on; a word that cannot be covered is
//! unknown as a whole.
//!
//! Our own thirty lines rather than the `tokenizers` crate, which brings two regular
//! expression engines, a random number generator and a progress bar for training. The tests
//! hold it to that crate's output.

use super::vocab::Vocabulary;

/// Longer words are unknown, as in BERT's code.
const LONGEST: usize = 100;

/// Appends the pieces of a word, or the unknown token.
pub fn cut(word: &[u8], vocab: &Vocabulary, joined: &mut Vec<u8>, pieces: &mut Vec<u32>) {
    let text = std::str::from_utf8(word).expect("words are cut between characters");
    let before = pieces.len();
    if text.chars().count() > LONGEST {
        pieces.push(vocab.unknown);
        return;
    }
    let mut start = 0;
    while start < word.len() {
        let longest = (start + 1..=word.len())
            .rev()
            .filter(|end| text.is_char_boundary(*end))
            .find_map(|end| {
                joined.clear();
                if start > 0 {
                    joined.extend_from_slice(b"##");
                }
                joined.extend_from_slice(&word[start..end]);
                Some((end, vocab.tokens.find(joined)?))
            });
        let Some((end, piece)) = longest else {
            pieces.truncate(before);
            pieces.push(vocab.unknown);
            return;
        };
        pieces.push(piece);
        start = end;
    }
}
