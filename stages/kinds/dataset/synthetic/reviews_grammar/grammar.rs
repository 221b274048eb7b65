//! Reads the grammar in `grammar.txt`, which says how it is written, and expands its symbols.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::dice::Dice;

/// The grammar of all reviews.
pub static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| read(include_str!("grammar.txt")));

/// Symbols and what they expand to.
pub struct Grammar {
    /// For each symbol its alternatives in every setting: see [`setting`].
    pub symbols: Vec<[Vec<Production>; 4]>,
    /// The symbol that a review begins with.
    pub review: usize,
}

/// One way to expand a symbol.
#[derive(Clone)]
pub struct Production {
    /// The weights up to and including this alternative's.
    upto: u64,
    /// What it expands to.
    pub parts: Vec<Part>,
}

/// A piece of an expansion.
#[derive(Clone)]
pub enum Part {
    /// Words as they are.
    Text(&'static str),
    /// A symbol, with the polarity in force or the opposite one.
    Symbol(usize, bool),
}

/// Which of a symbol's four lists of alternatives is in force.
pub fn setting(film: bool, positive: bool) -> usize {
    usize::from(film) * 2 + usize::from(positive)
}

impl Grammar {
    /// Appends an expansion of the symbol.
    pub fn expand(
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
