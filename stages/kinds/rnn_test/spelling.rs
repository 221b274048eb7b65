//! Inputs of a spell checker: sentences in which the model corrects a misspelt word, and what becomes of it.
//!
//! Texts are characters; words are what spaces separate. Misspelt words are found by aligning the words of the input
//! with those of the target; one is corrected if the right word is among those of the prediction.

use std::ops::Range;

use nn::Stream;

use super::generate::{Item, POSITION};
use super::settings::FallBack;
use crate::tables::generated::PredictionRow;

/// The characters that have a meaning.
#[derive(Clone, Debug)]
pub struct Characters {
    /// What separates words.
    pub space: u32,
    /// What ends a text, and others that are never put into one.
    pub special: Vec<u32>,
}

/// A misspelt word of an input that the model corrects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Where it is.
    pub place: Range<usize>,
    /// As it was written.
    pub misspelt: Vec<u32>,
    /// As it is right.
    pub right: Vec<u32>,
}

impl Characters {
    /// The words of a text, with their places.
    fn words(&self, text: &[u32]) -> Vec<(Range<usize>, Vec<u32>)> {
        let mut words: Vec<(Range<usize>, Vec<u32>)> = Vec::new();
        for (n, c) in text.iter().enumerate() {
            if *c == self.space || self.special.contains(c) {
                continue;
            }
            match words.last_mut().filter(|(place, _)| place.end == n) {
                Some((place, word)) => {
                    place.end = n + 1;
                    word.push(*c);
                }
                None => words.push((n..n + 1, vec![*c])),
            }
        }
        words
    }

    fn plain_words(&self, text: &[u32]) -> Vec<Vec<u32>> {
        self.words(text).into_iter().map(|(_, word)| word).collect()
    }

    /// A text without what ends it.
    fn plain(&self, text: &[u32]) -> Vec<u32> {
        let plain = text.iter().copied();
        plain.filter(|c| !self.special.contains(c)).collect()
    }

    /// The misspelt words of an input that are right in a prediction.
    pub fn corrections(&self, input: &[u32], target: &[u32], predicted: &[u32]) -> Vec<Correction> {
        let (written, right) = (self.words(input), self.plain_words(target));
        let plain: Vec<Vec<u32>> = written.iter().map(|(_, word)| word.clone()).collect();
        let predicted = self.plain_words(predicted);
        let replaced = alignment(&plain, &right).into_iter();
        let replaced =
            replaced.filter(|(a, b)| plain[*a] != right[*b] && predicted.contains(&right[*b]));
        replaced
            .map(|(a, b)| Correction {
                place: written[a].0.clone(),
                misspelt: plain[a].clone(),
                right: right[b].clone(),
            })
            .collect()
    }

    /// Whether a correction is missing from a new prediction, and whether a misspelt word is in it.
    pub fn undone(&self, corrections: &[Correction], predicted: &[u32]) -> [bool; 2] {
        let words = self.plain_words(predicted);
        [
            corrections.iter().any(|c| !words.contains(&c.right)),
            corrections.iter().any(|c| words.contains(&c.misspelt)),
        ]
    }

    /// A prediction beside its target.
    pub fn measured(&self, predicted: Vec<u32>, target: &[u32]) -> PredictionRow {
        let (plain, right) = (self.plain(&predicted), self.plain(target));
        let (words, right_words) = (self.plain_words(&plain), self.plain_words(&right));
        let wrong_words = distance(&words, &right_words) as f64;
        PredictionRow {
            wer_lev: distance(&plain, &right) as f64,
            wer: wrong_words / right_words.len().max(1) as f64,
            bleu: bleu(&plain, &right),
            tokens: predicted,
        }
    }

    /// An input whose first corrected word is to be changed; none if nothing is corrected.
    pub fn item(
        &self,
        id: &str,
        input: &[u32],
        target: &[u32],
        corrections: &[Correction],
        fall_back: FallBack,
        stream: Stream,
    ) -> Option<Item> {
        let word: Vec<usize> = corrections.first()?.place.clone().collect();
        let first = word[stream.below(POSITION, word.len())];
        let others: Vec<usize> = match fall_back {
            FallBack::None => Vec::new(),
            FallBack::Word => word,
            FallBack::Input => self
                .words(input)
                .into_iter()
                .flat_map(|(place, _)| place)
                .collect(),
        };
        let others = others.into_iter().filter(|place| *place != first);
        Some(Item {
            id: id.to_owned(),
            input: input.to_vec(),
            target: target.to_vec(),
            positions: std::iter::once(first).chain(others).collect(),
            stream,
        })
    }
}

/// Levenshtein's distances between all beginnings of two lists.
fn distances<T: PartialEq>(a: &[T], b: &[T]) -> Vec<Vec<usize>> {
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (0, j) => j,
                (i, 0) => i,
                _ => {
                    let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let moved = table[i - 1][j].min(table[i][j - 1]) + 1;
                    replaced.min(moved)
                }
            };
        }
    }
    table
}

/// Insertions, deletions and replacements from one list to another.
pub fn distance<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    distances(a, b)[a.len()][b.len()]
}

/// Which elements stand beside each other with the fewest edits: replacements first, from the end.
fn alignment<T: PartialEq>(a: &[T], b: &[T]) -> Vec<(usize, usize)> {
    let table = distances(a, b);
    let (mut i, mut j, mut pairs) = (a.len(), b.len(), Vec::new());
    while i > 0 && j > 0 {
        let here = table[i][j];
        if here == table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]) {
            (i, j) = (i - 1, j - 1);
            pairs.push((i, j));
        } else if here == table[i - 1][j] + 1 {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    pairs.reverse();
    pairs
}

/// BLEU-4 of one text: the geometric mean of clipped precisions of 1- to 4-grams times the brevity penalty, not
/// smoothed: 0 if there is no common 4-gram.
pub fn bleu(predicted: &[u32], reference: &[u32]) -> f64 {
    let mut logarithms = 0.0;
    for n in 1..=4 {
        let mut left: Vec<&[u32]> = reference.windows(n).collect();
        let all = predicted.windows(n).count();
        let common = predicted.windows(n).filter(|gram| {
            let at = left.iter().position(|known| known == gram);
            at.map(|at| left.swap_remove(at)).is_some()
        });
        let common = common.count();
        if common == 0 {
            return 0.0;
        }
        logarithms += libm::log(common as f64 / all as f64) / 4.0;
    }
    let short = 1.0 - reference.len() as f64 / predicted.len() as f64;
    libm::exp(logarithms + short.min(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u32> {
        text.chars().map(|c| c as u32).collect()
    }

    const CHARACTERS: Characters = Characters {
        space: ' ' as u32,
        special: Vec::new(),
    };

    #[test]
    fn corrections_are_found_by_aligning_words() {
        let found = |input: &str, target: &str, predicted: &str| {
            let all = CHARACTERS.corrections(&text(input), &text(target), &text(predicted));
            let word = |word: &[u32]| word.iter().map(|c| char::from_u32(*c).unwrap()).collect();
            all.iter()
                .map(|c| (c.place.start, word(&c.right)))
                .collect::<Vec<(usize, String)>>()
        };
        let right = "he left the house";
        assert_eq!(
            found("he lef tthe house", right, right),
            [(3, "left".into()), (7, "the".into())]
        );
        assert_eq!(
            found("he lef tthe house", right, "he left they house"),
            [(3, "left".into())]
        );
        assert_eq!(found(right, right, right), []);
        assert_eq!(
            found("he x left teh house", right, right),
            [(10, "the".into())]
        );
    }

    #[test]
    fn what_is_undone_has_two_meanings() {
        let right = text("he left the house");
        let all = CHARACTERS.corrections(&text("he left teh house"), &right, &right);
        let undone = |predicted: &str| CHARACTERS.undone(&all, &text(predicted));
        assert_eq!(undone("he left the house"), [false, false]);
        assert_eq!(undone("he left tha house"), [true, false]);
        assert_eq!(undone("he left teh house"), [true, true]);
    }

    #[test]
    fn distances_and_bleu_are_those_of_hand() {
        assert_eq!(distance(&text("kitten"), &text("sitting")), 3);
        assert_eq!(distance::<u32>(&[], &[1, 2]), 2);
        let row = CHARACTERS.measured(text("the cat sat"), &text("the cats sat"));
        assert_eq!((row.wer_lev, row.wer), (1.0, 1.0 / 3.0));
        assert_eq!(bleu(&text("abcdef"), &text("abcdef")), 1.0);
        assert_eq!(bleu(&text("abc"), &text("abcdef")), 0.0, "no 4-gram");
        // 5 of 5, 4 of 4, 3 of 3 and 2 of 2, and a brevity penalty of exp(1 - 6/5).
        assert!((bleu(&text("abcde"), &text("abcdef")) - (-0.2_f64).exp()).abs() < 1e-12);
        // 5 of 6, 3 of 5, 2 of 4, 1 of 3.
        let expected = (5.0 / 6.0 * 3.0 / 5.0 * 2.0 / 4.0 * 1.0 / 3.0_f64).powf(0.25);
        assert!((bleu(&text("abcdxf"), &text("abcdef")) - expected).abs() < 1e-12);
    }
}
