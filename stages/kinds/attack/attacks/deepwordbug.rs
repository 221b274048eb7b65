//! DeepWordBug: misspells the words that matter most to the prediction.
//!
//! Paper: Gao, Lanchantin, Soffa, Qi, "Black-box Generation of Adversarial Text Sequences to Evade Deep Learning
//! Classifiers", arXiv:1801.04354.
//!
//! ```text
//! score of word i:  replace-1   F_y(x) - F_y(x with i unknown)
//!                   head        F_y(x[..=i]) - F_y(x[..i])
//!                   tail        F_y(x[i..]) - F_y(x[i+1..])
//!                   combined    head + tail
//! the words by their scores, the largest first, while edits are left:
//!     swap two neighbouring characters, substitute, delete or insert one, at a random place of the word
//!     the prediction has changed? stop
//! ```
//!
//! Differs: for models that read characters (rows of a char-grid), so that a misspelt word is not simply unknown; asks
//! after every word and stops, where the authors misspell until the budget is used; a misspelt word is never a known
//! one, and white space is never put in, as for `hotflip`. A swap is two edits. Rows that the model gets wrong before
//! are left alone.

use nn::Stream;
use nn::batch::Sequence;

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::candidates::characters::{GridText, GridWord, Spelling, edit};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::{Change, Edit};
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack};
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::known_words;
use crate::kinds::attack::search::word_importance::by_score;
use crate::kinds::attack::trace::{Trace, each_correct};
use crate::models::loaded::probabilities;
use crate::params::settings::{Settings, failure};
use crate::tables::examples::{FORWARD, QUERIES};

const NAME: &str = "deepwordbug";

const SCORE: Param = Param::choice(
    "score",
    &["combined", "replace-1", "head", "tail"],
    "How much a word matters: combined (head + tail), replace-1 (without it), head (what it adds to the words before it) or tail (to those after it).",
);
const TYPO: Param = Param::choice(
    "typo",
    &["swap", "substitute", "delete", "insert", "random"],
    "What is done to a word: swap (two neighbouring characters), substitute, delete or insert one, or random (any of these).",
);
const MAX_CHARACTERS: Param = Param::int(
    "max_characters",
    30,
    1,
    "The maximum number of character edits of a row; a swap is two.",
);

/// The attack.
pub struct DeepWordBug;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Score {
    Combined,
    Replace1,
    Head,
    Tail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typo {
    Swap,
    Substitute,
    Delete,
    Insert,
}

const SCORES: &[(&str, Score)] = &[
    ("combined", Score::Combined),
    ("replace-1", Score::Replace1),
    ("head", Score::Head),
    ("tail", Score::Tail),
];
const TYPOS: &[(&str, Option<Typo>)] = &[
    ("swap", Some(Typo::Swap)),
    ("substitute", Some(Typo::Substitute)),
    ("delete", Some(Typo::Delete)),
    ("insert", Some(Typo::Insert)),
    ("random", None),
];
const ALL: [Typo; 4] = [Typo::Swap, Typo::Substitute, Typo::Delete, Typo::Insert];

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    spelling: Spelling<'a>,
    score: Score,
    /// None for any of them.
    typo: Option<Typo>,
    most: usize,
}

impl Attack for DeepWordBug {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: NAME,
            file: "stages/kinds/attack/attacks/deepwordbug.rs",
            summary: "Misspells the words that matter most to the prediction: DeepWordBug.",
            details: "One random typo in a word, the most important word first, until the prediction changes. A misspelt word is never a known one. Rows that the model misclassifies are left alone.",
            paper: "Gao et al. 2018, arXiv:1801.04354",
            params: &[SCORE, TYPO, MAX_CHARACTERS],
            changes: Changes::Characters,
            needs: &["vocab", known_words::PORT],
            budget: |s| {
                let most = s.maybe_int("max_characters");
                most.map_or(Budget::Unlimited, Budget::Characters)
            },
            counters: &[QUERIES],
            group: |_| 4,
            ..AttackEntry::PLAIN
        }
    }

    fn draws(&self, _: Settings<'_>) -> bool {
        true
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let s = context.settings();
        Ok(Box::new(Prepared {
            context,
            spelling: Spelling::new(context, NAME, false)?,
            score: s.one_of("score", SCORES).map_err(failure)?,
            typo: s.one_of("typo", TYPOS).map_err(failure)?,
            most: s.int("max_characters").map_err(failure)?,
        }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        each_correct(items, |item| self.one(item))
    }
}

impl Prepared<'_> {
    fn one(&self, item: &Item<'_>) -> Result<Trace, Failure> {
        let mut trace = Trace::of(item, Vec::new())?;
        trace.count(QUERIES, 0);
        let goal = Goal::untargeted(item.label);
        let stream = self.context.stream(NAME, item);
        for position in self.ranked(item, &mut trace)? {
            let stream = stream.item(position as u64);
            let edits = self.typo(&trace, position, &stream)?;
            if edits.is_empty() || trace.edits.len() + edits.len() > self.most {
                continue;
            }
            for edit in edits {
                trace.edit(edit)?;
            }
            let texts = vec![trace.input.clone()];
            let answer = self.ask(texts, &mut trace)?;
            if goal.reached(Answer::Probabilities(&answer[0])) {
                break;
            }
        }
        Ok(trace)
    }

    /// Words by how much they matter, the most important first.
    fn ranked(&self, item: &Item<'_>, trace: &mut Trace) -> Result<Vec<usize>, Failure> {
        let grid = GridText::new(item.input, &[], self.context.pad)?;
        let words: Vec<usize> = grid.words().map(|word| word.position).collect();
        let head = |trace: &mut Trace| self.added(item, &words, false, trace);
        let tail = |trace: &mut Trace| self.added(item, &words, true, trace);
        let scores: Vec<f64> = match self.score {
            Score::Head => head(trace)?,
            Score::Tail => tail(trace)?,
            Score::Combined => {
                let (head, tail) = (head(trace)?, tail(trace)?);
                head.iter().zip(&tail).map(|(a, b)| a + b).collect()
            }
            Score::Replace1 => {
                let texts = words.iter().map(|position| {
                    // Letters become unknown, and the word keeps its length.
                    self.with(item.input, |at| at != *position, self.context.special[1])
                });
                let answers = self.ask(texts.collect(), trace)?;
                let label = item.label as usize;
                let fall = |p: &Vec<f32>| f64::from(item.before[label]) - f64::from(p[label]);
                answers.iter().map(fall).collect()
            }
        };
        Ok(by_score(words, &scores))
    }

    /// What each word adds to the probability of the true class after all words before it, or before all after it.
    fn added(
        &self,
        item: &Item<'_>,
        words: &[usize],
        from_the_end: bool,
        trace: &mut Trace,
    ) -> Result<Vec<f64>, Failure> {
        // What is not read yet is padding. The whole text was asked about already.
        let part = |n: usize| match from_the_end {
            false => self.with(item.input, |at| at < words[n], self.context.pad),
            true => self.with(item.input, |at| at > words[n], self.context.pad),
        };
        let mut order: Vec<usize> = (0..words.len()).collect();
        if from_the_end {
            order.reverse();
        }
        let texts = order.iter().map(|n| part(*n)).collect();
        let answers = self.ask(texts, trace)?;
        let label = item.label as usize;
        let mut parts: Vec<f32> = answers.iter().map(|p| p[label]).collect();
        parts.push(item.before[label]);
        // In the order of reading: the text up to a word, less the text before it.
        let mut scores = vec![0.0; words.len()];
        for (k, n) in order.into_iter().enumerate() {
            scores[n] = f64::from(parts[k + 1]) - f64::from(parts[k]);
        }
        Ok(scores)
    }

    /// The text, with something else for the characters of words that are not kept.
    fn with(&self, text: &Sequence, kept: impl Fn(usize) -> bool, symbol: u32) -> Sequence {
        let mut text = text.clone();
        if let Sequence::Chars { width, ids } = &mut text {
            let words = ids.chunks_mut(*width).enumerate();
            for (_, word) in words.filter(|(position, _)| !kept(*position)) {
                let letters = word.iter_mut().filter(|id| **id != self.context.pad);
                letters.for_each(|id| *id = symbol);
            }
        }
        text
    }

    fn ask(&self, texts: Vec<Sequence>, trace: &mut Trace) -> Result<Vec<Vec<f32>>, Failure> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        trace.count(FORWARD, texts.len() as u64);
        trace.count(QUERIES, texts.len() as u64);
        let texts: Vec<&Sequence> = texts.iter().collect();
        probabilities(self.context.subject.victim(), &texts)
    }

    /// A typo in a word: none if no place of it allows one.
    fn typo(&self, trace: &Trace, position: usize, stream: &Stream) -> Result<Vec<Edit>, Failure> {
        let grid = GridText::new(&trace.input, &trace.edits, self.context.pad)?;
        let Some(word) = grid.words().find(|word| word.position == position) else {
            return Ok(Vec::new());
        };
        let typo = self.typo.unwrap_or(ALL[stream.below(0, ALL.len())]);
        let slots = word.letters.len();
        // Every place once, from a random one on.
        let first = stream.below(1, slots.max(1));
        let tried = (0..slots).map(|k| (first + k) % slots);
        let letters = &self.spelling.letters;
        let letter = letters.get(stream.below(2, letters.len().max(1))).copied();
        let found = tried
            .filter_map(|slot| self.made(typo, &word, slot, letter, grid.width))
            .next();
        Ok(found.unwrap_or_default())
    }

    /// The edits of a typo at a slot, if each of them is legal.
    fn made(
        &self,
        typo: Typo,
        word: &GridWord<'_>,
        slot: usize,
        letter: Option<u32>,
        width: usize,
    ) -> Option<Vec<Edit>> {
        let letters = word.letters;
        let old = letters[slot];
        let changes: Vec<(usize, Change<u32>)> = match typo {
            Typo::Swap => {
                let other = *letters.get(slot + 1)?;
                let (a, b) = (old, other);
                (a != b).then_some(())?;
                vec![
                    (slot, Change::Replace { old: a, new: b }),
                    (slot + 1, Change::Replace { old: b, new: a }),
                ]
            }
            Typo::Substitute => {
                let new = letter.filter(|new| *new != old)?;
                vec![(slot, Change::Replace { old, new })]
            }
            Typo::Delete if letters.len() < 2 => return None,
            Typo::Delete => vec![(slot, Change::Delete { old })],
            Typo::Insert if !self.spelling.has_room(letters.len(), width) => return None,
            Typo::Insert => vec![(slot, Change::Insert { new: letter? })],
        };
        let mut now = letters.to_vec();
        for (slot, change) in &changes {
            // Only characters of the grid that can be seen are put in: a swap may meet the unknown one.
            let visible = change
                .after()
                .is_none_or(|new| self.spelling.letters.contains(&new));
            if word.edited[*slot] || !visible || !self.spelling.is_new(&now, *slot, *change) {
                return None;
            }
            if let Change::Replace { new, .. } = change {
                now[*slot] = *new;
            }
        }
        let pad = self.context.pad;
        let edits = changes.into_iter();
        Some(
            edits
                .map(|(slot, change)| edit(word.position, slot, change, pad))
                .collect(),
        )
    }
}
