//! How hard the reviews are, and that they read as they should.

use std::collections::{BTreeSet, HashMap};

use rayon::prelude::*;

use super::grammar::{Part, setting};
use super::*;

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-');
    words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// Multinomial naive Bayes with Laplace smoothing: accuracy on the rows after `train`.
fn naive_bayes(reviews: &[Review], train: usize) -> f64 {
    let mut counts: HashMap<String, [f64; 2]> = HashMap::new();
    let mut totals = [0.0; 2];
    for review in &reviews[..train] {
        for word in words(&review.text) {
            counts.entry(word).or_default()[review.label as usize] += 1.0;
            totals[review.label as usize] += 1.0;
        }
    }
    let size = counts.len() as f64;
    let right = reviews[train..].iter().filter(|review| {
        let mut lean = 0.0;
        for word in words(&review.text) {
            let [neg, pos] = counts.get(&word).copied().unwrap_or_default();
            lean +=
                ((pos + 1.0) / (totals[1] + size)).ln() - ((neg + 1.0) / (totals[0] + size)).ln();
        }
        (lean > 0.0) == (review.label == 1)
    });
    right.count() as f64 / (reviews.len() - train) as f64
}

/// On seeds that were not looked at when the weights of the grammar were set; the first sizes
/// are those that the set has if nothing is said. The README has the figures.
#[test]
fn a_bag_of_words_gets_about_nine_in_ten() {
    for (train, test) in [(4_000, 1_000), (8_000, 2_000)] {
        let accuracy = |seed| naive_bayes(&generate(train + test, seed, 0.01), train);
        let all: Vec<f64> = (9_001..=9_020).into_par_iter().map(accuracy).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        println!("{train} train, {test} test: mean {mean:.4} of {all:.3?}");
        assert!((0.85..0.95).contains(&mean), "{mean}");
        // No seed is easier or harder than chance makes it: four standard deviations.
        let chance = 4.0 * (mean * (1.0 - mean) / test as f64).sqrt();
        assert!(all.iter().all(|one| (one - mean).abs() < chance), "{all:?}");
    }
}

#[test]
fn the_vocabulary_is_large_and_the_labels_balanced() {
    let reviews = generate(20_000, 7, 0.0);
    let seen: BTreeSet<String> = reviews.iter().flat_map(|r| words(&r.text)).collect();
    assert!(seen.len() >= 2_000, "{}", seen.len());
    let positive = reviews.iter().filter(|r| r.label == 1).count();
    assert!((9_600..10_400).contains(&positive), "{positive}");
    let distinct: BTreeSet<&str> = reviews.iter().map(|r| r.text.as_str()).collect();
    assert!(distinct.len() > 19_900, "{}", distinct.len());
}

#[test]
fn a_row_depends_on_the_seed_and_its_number_alone() {
    let (few, many) = (generate(50, 3, 0.05), generate(500, 3, 0.05));
    assert_eq!(few[..], many[..50]);
    assert_ne!(generate(50, 4, 0.05), few);
}

#[test]
fn typos_come_at_their_rate_and_change_nothing_else() {
    let (clean, typed) = (generate(2_000, 5, 0.0), generate(2_000, 5, 0.1));
    let (mut long, mut wrong) = (0.0, 0.0);
    for (clean, typed) in clean.iter().zip(&typed) {
        assert_eq!(clean.label, typed.label);
        let pairs = clean.text.split(' ').zip(typed.text.split(' '));
        for (right, written) in pairs {
            let letters = right.chars().take_while(char::is_ascii_alphabetic).count();
            if letters < 4 {
                assert_eq!(right, written);
            } else {
                long += 1.0;
                wrong += f64::from(u8::from(right != written));
            }
        }
    }
    // Swapping two equal letters changes nothing, so a few stay right.
    assert!((0.09..0.105).contains(&(wrong / long)), "{}", wrong / long);
}

#[test]
fn every_symbol_has_words_wherever_it_is_reached() {
    let mut open = vec![(GRAMMAR.review, false), (GRAMMAR.review, true)];
    let mut seen = BTreeSet::new();
    while let Some((symbol, film)) = open.pop() {
        if !seen.insert((symbol, film)) {
            continue;
        }
        for positive in [false, true] {
            let choices = &GRAMMAR.symbols[symbol][setting(film, positive)];
            assert!(
                !choices.is_empty(),
                "symbol {symbol}, film {film}, positive {positive}"
            );
            for part in choices.iter().flat_map(|choice| &choice.parts) {
                if let Part::Symbol(next, _) = part {
                    open.push((*next, film));
                }
            }
        }
    }
    // And every section is reached: a word that no review can have is a mistake.
    for symbol in 0..GRAMMAR.symbols.len() {
        assert!(
            seen.contains(&(symbol, false)) || seen.contains(&(symbol, true)),
            "symbol {symbol}"
        );
    }
}

#[test]
fn sentences_begin_with_capitals_and_articles_fit() {
    for review in generate(3_000, 11, 0.0) {
        let text = &review.text;
        assert!(text.starts_with(|c: char| c.is_uppercase()), "{text}");
        assert!(text.ends_with(['.', '!']), "{text}");
        assert!(!text.contains(['{', '}', '|', '=']), "{text}");
        assert!(
            !text.contains("  ") && !text.contains(" a a ") && !text.contains(" the the "),
            "{text}"
        );
        assert!(
            !text.contains(" a old ") && !text.contains(" an good "),
            "{text}"
        );
    }
}

/// The quick start and other tests run on these reviews: a changed grammar changes them all.
/// If that is meant, pin the new text.
#[test]
fn the_first_review_is_pinned() {
    assert_eq!(
        generate(1, 1, 0.0)[0].text,
        "We finally tried the Fever, on a whim. The garden is a touch plain. \
         Somebody had left corduroy trousers on my seat. Such revolting prices!"
    );
}
