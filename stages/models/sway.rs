//! How much a word speaks for a class: `phi[w | y] / max over other classes c of phi[w | c]`.
//!
//! Compared exactly, as fractions of integers, so that ties are ties.

use std::cmp::Ordering;

use arrow::array::StringArray;
use nn::linear::NaiveBayes;

/// The sway of every word.
pub struct Sway<'a> {
    counts: &'a [u64],
    vocabulary: usize,
    classes: usize,
    totals: Vec<u64>,
}

impl<'a> Sway<'a> {
    /// From the counts of naive Bayes.
    pub fn new(bayes: &'a NaiveBayes) -> Sway<'a> {
        let counts = bayes.counts();
        let classes = bayes.classes();
        let vocabulary = counts.len() / classes;
        let total = |row: &[u64]| vocabulary as u64 + row.iter().sum::<u64>();
        Sway {
            counts,
            vocabulary,
            classes,
            totals: counts.chunks_exact(vocabulary).map(total).collect(),
        }
    }

    /// How many classes were counted.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How often a word occurs in a class.
    pub fn count(&self, class: u32, token: u32) -> u64 {
        self.counts[class as usize * self.vocabulary + token as usize]
    }

    /// `phi[w | y]` as a fraction.
    fn phi(&self, class: usize, token: u32) -> (u128, u128) {
        let count = 1 + self.counts[class * self.vocabulary + token as usize];
        (count.into(), self.totals[class].into())
    }

    /// The sway of a word towards a class, as a fraction.
    fn towards(&self, class: u32, token: u32) -> (u128, u128) {
        let class = class as usize;
        let (a, n) = self.phi(class, token);
        let others = (0..self.classes).filter(|other| *other != class);
        let rival = others
            .map(|other| self.phi(other, token))
            .reduce(|best, new| {
                if compare(new, best).is_gt() {
                    new
                } else {
                    best
                }
            });
        let (b, m) = rival.unwrap_or((1, 1));
        (a * m, n * b)
    }

    /// The `count` words that speak most for a class; ties in the order of their texts.
    pub fn strongest(
        &self,
        class: u32,
        count: usize,
        words: &StringArray,
        special: &[u32],
    ) -> Vec<u32> {
        let mut ranked: Vec<((u128, u128), u32)> = (0..self.vocabulary as u32)
            .filter(|token| !special.contains(token))
            .map(|token| (self.towards(class, token), token))
            .collect();
        let order = |a: &((u128, u128), u32), b: &((u128, u128), u32)| {
            let texts = || words.value(a.1 as usize).cmp(words.value(b.1 as usize));
            compare(b.0, a.0).then_with(texts)
        };
        if ranked.len() > count && count > 0 {
            ranked.select_nth_unstable_by(count - 1, order);
        }
        ranked.truncate(count);
        ranked.sort_by(order);
        ranked.into_iter().map(|(_, token)| token).collect()
    }

    /// The places of a text's tokens, those that speak most for a class first; ties in order.
    pub fn ranked(&self, class: u32, tokens: &[u32]) -> Vec<usize> {
        let sways: Vec<(u128, u128)> = tokens.iter().map(|t| self.towards(class, *t)).collect();
        let mut places: Vec<usize> = (0..tokens.len()).collect();
        places.sort_by(|a, b| compare(sways[*b], sways[*a]).then(a.cmp(b)));
        places
    }
}

/// Two fractions with positive denominators.
fn compare(a: (u128, u128), b: (u128, u128)) -> Ordering {
    (a.0 * b.1).cmp(&(b.0 * a.1))
}
