//! `reviews-grammar`: short reviews of films and restaurants, written by a grammar.
//!
//! The label is decided first and the text is derived from it: statements of graded strength,
//! negations ("far from dull"), concessions ("although …, …"), hedges, and distractors that
//! use words of the other side about something else (the trailer, the place next door). So
//! counting words gets most labels and not all. The grammar is in `reviews_grammar.txt`; this
//! file reads it and walks it. Knows nothing of tables.
//!
//! A review depends on the seed and its own number alone: more rows leave the first ones as
//! they are, and any row can be made by itself.

use std::collections::BTreeMap;
use std::sync::LazyLock;

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

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| read(include_str!("reviews_grammar.txt")));

struct Grammar {
    /// For each symbol its alternatives in every setting: see [`setting`].
    symbols: Vec<[Vec<Production>; 4]>,
    review: usize,
}

#[derive(Clone)]
struct Production {
    /// The weights up to and including this alternative's.
    upto: u64,
    parts: Vec<Part>,
}

#[derive(Clone)]
enum Part {
    Text(&'static str),
    /// A symbol, with the polarity in force or the opposite one.
    Symbol(usize, bool),
}

fn setting(film: bool, positive: bool) -> usize {
    usize::from(film) * 2 + usize::from(positive)
}

impl Grammar {
    fn expand(
        &self,
        symbol: usize,
        film: bool,
        positive: bool,
        dice: &mut Dice,
        text: &mut String,
    ) {
        let choices = &self.symbols[symbol][setting(film, positive)];
        let drawn = dice.below(choices.last().expect("read checks this").upto);
        let chosen = choices.partition_point(|choice| choice.upto <= drawn);
        for part in &choices[chosen].parts {
            match part {
                Part::Text(words) => text.push_str(words),
                Part::Symbol(symbol, opposite) => {
                    self.expand(*symbol, film, positive != *opposite, dice, text);
                }
            }
        }
    }
}

/// Reads the grammar. It is part of the program, so a mistake in it is a panic that a test finds.
fn read(source: &'static str) -> Grammar {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut symbols: Vec<[Vec<Production>; 4]> = Vec::new();
    let mut number = |name: &'static str, symbols: &mut Vec<[Vec<Production>; 4]>| {
        *numbers.entry(name).or_insert_with(|| {
            symbols.push(Default::default());
            symbols.len() - 1
        })
    };
    let mut section = (0, None, None);
    for line in source.lines().filter(|line| !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            let (name, positive) = match header.rsplit_once(' ') {
                Some((name, sign)) => (name, Some(sign == "+")),
                None => (header, None),
            };
            let (name, film) = match name.split_once('.') {
                Some((domain, name)) => (name, Some(domain == "film")),
                None => (name, None),
            };
            section = (number(name, &mut symbols), film, positive);
            continue;
        }
        let (weight, alternatives) = match line.split_once(": ") {
            Some((weight, rest)) if weight.parse::<u64>().is_ok() => {
                (weight.parse().unwrap(), rest)
            }
            _ => (1, line),
        };
        for alternative in alternatives
            .split('|')
            .map(str::trim)
            .filter(|a| !a.is_empty())
        {
            let parts = parts(alternative, |name| number(name, &mut symbols));
            let (symbol, film, positive) = section;
            for (at_film, at_positive) in
                [(false, false), (false, true), (true, false), (true, true)]
            {
                if film.unwrap_or(at_film) == at_film
                    && positive.unwrap_or(at_positive) == at_positive
                {
                    let choices = &mut symbols[symbol][setting(at_film, at_positive)];
                    let upto = choices.last().map_or(0, |last| last.upto) + weight;
                    let parts = parts.clone();
                    choices.push(Production { upto, parts });
                }
            }
        }
    }
    let review = numbers["review"];
    Grammar { symbols, review }
}

/// `The {aspect} is {=grade}.` as texts and symbols.
fn parts(alternative: &'static str, mut number: impl FnMut(&'static str) -> usize) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = alternative;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').expect("every brace is closed");
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        let plain = name.trim_start_matches(['=', '!']);
        parts.push(Part::Symbol(number(plain), name.starts_with('!')));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
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

/// Misspells words of four letters or more as people do: letters swapped, dropped, doubled, or
/// the key beside the right one.
fn misspell(text: &str, rate: f64, dice: &mut Dice) -> String {
    let words = text.split(' ').map(|word| {
        let letters: Vec<char> = word.chars().collect();
        let long = letters
            .iter()
            .take_while(|c| c.is_ascii_alphabetic())
            .count();
        if dice.unit() >= rate || long < 4 {
            return word.to_owned();
        }
        let mut letters = letters;
        // The first letter is hardly ever wrong.
        let at = 1 + dice.below(long as u64 - 2) as usize;
        match dice.below(4) {
            0 => letters.swap(at, at + 1),
            1 => drop(letters.remove(at)),
            2 => letters.insert(at, letters[at]),
            _ => letters[at] = beside(letters[at], dice),
        }
        letters.into_iter().collect()
    });
    words.collect::<Vec<String>>().join(" ")
}

/// A key beside this one.
fn beside(letter: char, dice: &mut Dice) -> char {
    const KEYS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];
    let lower = letter.to_ascii_lowercase();
    let Some((row, at)) = KEYS
        .iter()
        .find_map(|row| Some((row.as_bytes(), row.find(lower)?)))
    else {
        return letter;
    };
    let at = match dice.below(2) {
        0 if at > 0 => at - 1,
        _ if at + 1 < row.len() => at + 1,
        _ => at - 1,
    };
    char::from(row[at])
}

/// Random numbers that depend on (seed, row, stream) alone: SplitMix64.
struct Dice(u64);

impl Dice {
    fn new(seed: u64, row: u64, stream: u64) -> Dice {
        let mut dice = Dice(seed ^ 0x72_6576_6965_7773);
        dice.0 = dice.next() ^ row;
        dice.0 = dice.next() ^ stream;
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

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
                lean += ((pos + 1.0) / (totals[1] + size)).ln()
                    - ((neg + 1.0) / (totals[0] + size)).ln();
            }
            (lean > 0.0) == (review.label == 1)
        });
        right.count() as f64 / (reviews.len() - train) as f64
    }

    #[test]
    fn a_bag_of_words_gets_about_nine_in_ten() {
        for seed in [1, 2] {
            let accuracy = naive_bayes(&generate(10_000, seed, 0.01), 8_000);
            assert!((0.86..0.94).contains(&accuracy), "{accuracy}");
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
}
