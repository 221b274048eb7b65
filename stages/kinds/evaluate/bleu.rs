//! Corpus BLEU-4 (Papineni et al. 2002) of token lists, as sacreBLEU computes it with `tokenize='none'` and its default
//! smoothing: each n-gram order without a match counts as half, a quarter, … of one match.

use std::collections::HashMap;

/// The longest n-grams.
const ORDER: usize = 4;

/// BLEU from 0 to 100 of translations beside one reference each.
pub fn corpus_bleu<T: std::hash::Hash + Eq>(translations: &[(Vec<T>, Vec<T>)]) -> f64 {
    let (mut matches, mut totals) = ([0_usize; ORDER], [0_usize; ORDER]);
    let (mut ours, mut theirs) = (0, 0);
    for (translation, reference) in translations {
        ours += translation.len();
        theirs += reference.len();
        for n in 1..=ORDER {
            let wanted = counts(reference, n);
            for (gram, count) in counts(translation, n) {
                totals[n - 1] += count;
                matches[n - 1] += count.min(wanted.get(gram).copied().unwrap_or(0));
            }
        }
    }
    if matches.iter().all(|n| *n == 0) || totals.contains(&0) {
        return 0.0;
    }
    let (mut logs, mut smooth) = (0.0, 1.0);
    for (matched, total) in matches.iter().zip(totals) {
        let matched = match matched {
            0 => {
                smooth *= 2.0;
                1.0 / smooth
            }
            n => *n as f64,
        };
        logs += libm::log(100.0 * matched / total as f64);
    }
    let brevity = match ours < theirs {
        true => libm::exp(1.0 - theirs as f64 / ours as f64),
        false => 1.0,
    };
    brevity * libm::exp(logs / ORDER as f64)
}

fn counts<T: std::hash::Hash + Eq>(tokens: &[T], n: usize) -> HashMap<&[T], usize> {
    let mut counts = HashMap::new();
    for gram in tokens.windows(n) {
        *counts.entry(gram).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator that any language has in a line, so that sacreBLEU can be given the same sentences.
    struct Lcg(u64);

    impl Lcg {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = (self.0 * 1_103_515_245 + 12_345) % 2_147_483_648;
            (self.0 >> 8) % n
        }
    }

    /// References of 3 to 17 words, and translations that keep six words of ten, replace two, double one and lose one.
    fn pairs(count: usize) -> Vec<(Vec<u64>, Vec<u64>)> {
        let mut random = Lcg(7);
        let pair = |_| {
            let length = 3 + random.below(15);
            let reference: Vec<u64> = (0..length).map(|_| random.below(40)).collect();
            let mut translation = Vec::new();
            for word in &reference {
                match random.below(10) {
                    0..6 => translation.push(*word),
                    6..8 => translation.push(random.below(40)),
                    8 => translation.extend([*word, *word]),
                    _ => {}
                }
            }
            (translation, reference)
        };
        (0..count).map(pair).collect()
    }

    /// What sacreBLEU 2.6.0 says of the same sentences: `corpus_bleu(H, [T], tokenize='none')`.
    #[test]
    fn bleu_is_that_of_sacrebleu() {
        let expected = [
            (1000, 37.902_022_712_411_58),
            (100, 35.328_829_452_014_78),
            (5, 32.721_580_126_638_294),
            (2, 41.070_959_725_067_425),
            (1, 49.030_470_692_026_626),
        ];
        for (count, score) in expected {
            let found = corpus_bleu(&pairs(count));
            assert!(
                (found - score).abs() < 1e-9,
                "{count}: {found}, not {score}"
            );
        }
    }

    #[test]
    fn short_and_unmatched_texts_are_smoothed_as_sacrebleu_does() {
        let text =
            |words: &str| -> Vec<String> { words.split_whitespace().map(str::to_owned).collect() };
        let cases = [
            ("a b c d", "a b c d", 100.0),
            ("a b c d e", "a b x d e", SMOOTHED),
            ("a b c d", "a b c d e f", BRIEF),
            ("x y", "a b", 0.0),
            ("", "a b", 0.0),
            ("a b c", "a x c", 0.0),
        ];
        for (translation, reference, score) in cases {
            let found = corpus_bleu(&[(text(translation), text(reference))]);
            assert!(
                (found - score).abs() < 1e-9,
                "{translation}: {found}, not {score}"
            );
        }
    }

    const SMOOTHED: f64 = 30.213_753_973_567_677;
    const BRIEF: f64 = 60.653_065_971_263_366;
}
