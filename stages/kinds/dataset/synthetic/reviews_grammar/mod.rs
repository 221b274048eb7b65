//! `reviews-grammar`: short reviews of films and restaurants, written by a grammar.
//!
//! The label is decided first and the text is derived from it: statements of graded strength,
//! negations ("far from dull"), concessions ("although …, …"), hedges, and distractors that
//! use words of the other side about something else (the trailer, the place next door). So
//! counting words gets most labels and not all. [`grammar`] reads
//! `grammar.txt` and walks it, [`typos`] misspells.
//!
//! A review depends on the seed and its own number alone: more rows leave the first ones as
//! they are, and any row can be made by itself.

mod dice;
mod grammar;
#[cfg(test)]
mod tests;
mod typos;

use arrow::record_batch::RecordBatch;

use super::options::{Options, Setting, Synthetic};
use crate::kinds::dataset::catalogue::Schema;
use crate::kinds::dataset::table::Texts;
use dice::Dice;
use grammar::GRAMMAR;
use typos::misspell;

/// The entry in the list.
pub static REVIEWS: Synthetic = Synthetic {
    name: "reviews-grammar",
    title: "Short reviews of films and restaurants, written by a grammar",
    schema: Schema::Text,
    pairs: false,
    labels: &["negative", "positive"],
    file: "stages/kinds/dataset/synthetic/reviews_grammar/mod.rs",
    splits: &[("train", 4_000), ("dev", 1_000), ("test", 1_000)],
    options: &[("typos", Setting::Share(0.01))],
    make,
};

/// Reviews in a table; each split has a seed of its own, so that none has another's rows.
fn make(options: &Options, seed: u64) -> RecordBatch {
    let mut rows = Texts::default();
    for (n, (split, count)) in (0_u64..).zip(options.splits()) {
        let seed = seed.wrapping_mul(3).wrapping_add(n);
        let reviews = generate(count, seed, options.share("typos"));
        for (n, review) in reviews.iter().enumerate() {
            rows.push(
                &format!("{split}/{n}"),
                split,
                Some(review.label),
                &review.text,
            );
        }
    }
    rows.finish()
}

/// One review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// 0 negative, 1 positive.
    pub label: i64,
    /// The text.
    pub text: String,
}

/// The first `rows` reviews of a seed. `typos` is the probability that a word is misspelt.
pub fn generate(rows: usize, seed: u64, typos: f64) -> Vec<Review> {
    (0..rows as u64).map(|row| one(row, seed, typos)).collect()
}

fn one(row: u64, seed: u64, typos: f64) -> Review {
    let mut dice = Dice::new(seed, row, 0);
    let (positive, film) = (dice.below(2) == 1, dice.below(2) == 1);
    let mut text = String::new();
    GRAMMAR.expand(GRAMMAR.review, film, positive, &mut dice, &mut text);
    let mut text = finish(&text);
    if typos > 0.0 {
        // A stream of their own: the same review with and without typos.
        text = misspell(&text, typos, &mut Dice::new(seed, row, 1));
    }
    Review {
        label: i64::from(positive),
        text,
    }
}

/// Capitals at the beginnings of sentences, and `an` where it belongs.
fn finish(text: &str) -> String {
    let mut finished = String::with_capacity(text.len() + 8);
    let mut begins = true;
    let words: Vec<&str> = text.split(' ').collect();
    for (n, word) in words.iter().enumerate() {
        if n > 0 {
            finished.push(' ');
        }
        let next = words.get(n + 1).copied().unwrap_or_default();
        let word = match *word {
            "a" if takes_an(next) => "an",
            "A" if takes_an(next) => "An",
            word => word,
        };
        let mut chars = word.chars();
        match chars.next() {
            Some(first) if begins => {
                finished.extend(first.to_uppercase());
                finished.push_str(chars.as_str());
            }
            _ => finished.push_str(word),
        }
        begins = word.ends_with(['.', '!', '?']);
    }
    finished
}

fn takes_an(word: &str) -> bool {
    let lower = word.to_lowercase();
    let spoken_otherwise = ["uni", "use", "usu", "eu", "one", "once"];
    if lower.starts_with("hour") || lower.starts_with("honest") {
        return true;
    }
    lower.starts_with(['a', 'e', 'i', 'o', 'u'])
        && !spoken_otherwise
            .iter()
            .any(|start| lower.starts_with(start))
}
