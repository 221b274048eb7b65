//! One word for another (P3): a place is selected, and words are tried there until the model is wrong.
//!
//! Paper: Hsieh, Cheng, Juan, Wei, Hsu, Hsieh, "On the Robustness of Self-Attentive Models", ACL 2019.
//!
//! | paper | `place` | `replace` | |
//! |---|---|---|---|
//! | RANDOM | random | random | `max_candidates = 1`, `repeats = 1000`: the success rate is an expected value |
//! | LIST | in-order | synonyms | |
//! | GS-GR, GS-EC | importance | random, nearest | |
//! | ASMIN-GR, ASMIN-EC | attention-min | random, nearest | |
//! | ASMAX-GR, ASMAX-EC | attention-max | random, nearest | |
//!
//! Candidates are all words of the vocabulary, digits and punctuation too, but special tokens and the word itself.
//! Rows that the model gets wrong before are left alone.

use std::collections::{BTreeMap, HashSet};

use arrow::array::{Array, StringArray};
use nn::Stream;
use nn::batch::{Example, Sequence, Target};
use store::Value;

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack};
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::search::select_replace::{
    Attention, Select, nearest_first, places, try_in_order,
};
use crate::kinds::attack::trace::{Trace, each_correct};
use crate::models::loaded::probabilities;
use crate::params::settings::{Settings, failure};
use crate::tables::examples::{FORWARD, QUERIES};
use crate::tables::vocabulary::SPECIAL;
use crate::{ParamError, models};

const NAME: &str = "replace-word";
const BY_ATTENTION: [&str; 2] = ["attention-min", "attention-max"];

const PLACE: Param = Param::choice(
    "place",
    &[
        "importance",
        "random",
        "in-order",
        BY_ATTENTION[0],
        BY_ATTENTION[1],
    ],
    "The place: importance (where a zero vector lowers the probability of the true class most), random, in-order (all, from the left), attention-min or attention-max (where the model attends least or most).",
);
const REPLACE: Param = Param::choice(
    "replace",
    &["random", "nearest", "synonyms"],
    "The order of candidates: random, nearest (those first that change the sentence's vector least, in L1 norm) or synonyms (those of the input `synonyms` alone, in its order).",
);
const MAX_CANDIDATES: Param = Param::int(
    "max_candidates",
    0,
    0,
    "The maximum number of candidates that are tried in a place; 0 = all.",
);
const ATTENTION_LAYER: Param = Param::choice(
    "attention_layer",
    &["first", "last"],
    "For attention-min and attention-max: the layer whose attention is looked at, averaged over heads.",
)
.when("place", &BY_ATTENTION);
const ATTENTION_OF: Param = Param::choice(
    "attention_of",
    &["first-token", "all-tokens"],
    "For attention-min and attention-max: the attention of the first token, [CLS], or the mean over all tokens. Attention that pools a sequence is the same for both.",
)
.when("place", &BY_ATTENTION);

const PIECES: Param = Param::flag(
    "pieces",
    true,
    "For word pieces: whether pieces of words are replaced too, by any piece; default: false, only words that are one piece, by such words.",
)
.optional();

/// The attack.
pub struct ReplaceWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replace {
    Random,
    Nearest,
    Synonyms,
}

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    select: Select,
    replace: Replace,
    /// Candidates tried in a place.
    limit: usize,
    /// Words that may be put in.
    candidates: Vec<u32>,
    synonyms: BTreeMap<u32, Vec<u32>>,
    /// Tokens that are not words.
    special: HashSet<u32>,
    /// Tokens that go on with the word before, if only whole words are replaced.
    parts: HashSet<u32>,
}

impl Attack for ReplaceWord {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: NAME,
            file: "stages/kinds/attack/attacks/replace_word.rs",
            summary: "Replaces one word: selects a place, and tries words there until the prediction changes.",
            details: "Candidates are the whole vocabulary, or those of the input `candidates`. A row stays as it is if none of them changes the prediction. Rows that the model misclassifies are left alone.",
            paper: "Hsieh et al. 2019, ACL",
            params: &[
                PLACE,
                REPLACE,
                MAX_CANDIDATES,
                ATTENTION_LAYER,
                ATTENTION_OF,
                PIECES,
            ],
            changes: Changes::Words,
            needs: &["vocab"],
            needs_with: |s| match s.text("replace") {
                Some("synonyms") => vec!["synonyms"],
                _ => Vec::new(),
            },
            takes_candidates: true,
            pairs: true,
            budget: |_| Budget::Words(1),
            counters: &[QUERIES],
            group: |s| if single_draw(s) { 256 } else { 4 },
            ..AttackEntry::PLAIN
        }
    }

    fn attends_by(&self, s: Settings<'_>) -> Option<&'static str> {
        let place = s.text("place")?;
        BY_ATTENTION.contains(&place).then_some("place")
    }

    fn draws(&self, s: Settings<'_>) -> bool {
        s.text("place") == Some("random") || s.text("replace") == Some("random")
    }

    fn draws_with(&self) -> Option<&'static str> {
        Some("choose place = \"random\" or replace = \"random\"")
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let settings = context.settings();
        let words = context.words(NAME)?;
        let special = special(words, context.special);
        let replace = settings.one_of("replace", REPLACES).map_err(failure)?;
        let synonyms = match replace {
            Replace::Synonyms => context.synonyms(NAME)?.by_id(words),
            _ => BTreeMap::new(),
        };
        let limit = settings.int("max_candidates").map_err(failure)?;
        let parts = parts(settings, words)?;
        let prepared = Prepared {
            select: select(settings).map_err(failure)?,
            replace,
            limit: if limit > 0 { limit } else { usize::MAX },
            candidates: candidates(context, words, |id| {
                special.contains(id) || parts.contains(id)
            })?,
            parts,
            synonyms,
            special,
            context,
        };
        prepared.probe()?;
        Ok(Box::new(prepared))
    }
}

const REPLACES: &[(&str, Replace)] = &[
    ("random", Replace::Random),
    ("nearest", Replace::Nearest),
    ("synonyms", Replace::Synonyms),
];

fn select(s: Settings<'_>) -> Result<Select, ParamError> {
    let attention = || Attention {
        last_layer: s.text("attention_layer") == Some("last"),
        all_tokens: s.text("attention_of") == Some("all-tokens"),
    };
    Ok(match s.text("place") {
        Some("random") => Select::Random,
        Some("in-order") => Select::InOrder,
        Some("attention-min") => Select::LeastAttention(attention()),
        Some("attention-max") => Select::MostAttention(attention()),
        _ => Select::Importance,
    })
}

/// Whether each item is one text, drawn without asking the model: then many are asked about at once.
fn single_draw(s: Settings<'_>) -> bool {
    let drawn = |param: &str| s.text(param) == Some("random");
    drawn("place") && drawn("replace") && s.maybe_int("max_candidates") == Some(1)
}

/// Tokens that are not words.
fn special(words: &StringArray, of_rows: [u32; 2]) -> HashSet<u32> {
    let named = words.iter().zip(0_u32..);
    let named = named.filter(|(word, _)| word.is_some_and(|word| SPECIAL.contains(&word)));
    named.map(|(_, id)| id).chain(of_rows).collect()
}

/// Tokens that go on with the word before, unless they are replaced like words.
fn parts(s: Settings<'_>, words: &StringArray) -> Result<HashSet<u32>, Failure> {
    let all = words.iter().zip(0_u32..);
    let all = all.filter(|(word, _)| word.is_some_and(|word| word.starts_with("##")));
    let all: HashSet<u32> = all.map(|(_, id)| id).collect();
    match s.0.get(PIECES.name) {
        Some(_) if all.is_empty() => Err(Failure::new(
            "`pieces` would have no effect: the vocabulary has no pieces of words, which begin with ##",
        )
        .help("leave it out")
        .at(PIECES.name)),
        Some(Value::Bool(true)) => Ok(HashSet::new()),
        _ => Ok(all),
    }
}

/// Words that may be put in, by their ids: those connected, or all.
fn candidates(
    context: &AttackContext<'_>,
    words: &StringArray,
    never: impl Fn(&u32) -> bool,
) -> Result<Vec<u32>, Failure> {
    let wanted: Option<HashSet<&str>> = context
        .candidates
        .map(|wanted| wanted.iter().flatten().collect());
    let is_word = |id: &u32| {
        let text = words.value(*id as usize);
        !never(id) && wanted.as_ref().is_none_or(|wanted| wanted.contains(text))
    };
    let found: Vec<u32> = (0..words.len() as u32).filter(is_word).collect();
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::new(
            "no word of the input `candidates` is in the vocabulary of the rows",
        )
        .help("connect words of the same language and case")),
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        if single_draw(self.context.settings()) {
            return self.draw_each(items);
        }
        each_correct(items, |item| self.one(item))
    }
}

impl Prepared<'_> {
    /// Asks the model what the attack will ask it, about one word: a model that lacks it is refused before anything
    /// is attacked.
    fn probe(&self) -> Result<(), Failure> {
        let victim = self.context.subject.victim();
        let input = Sequence::Tokens(vec![self.candidates[0]]);
        let refused = |param: &'static str, what: &'static str| {
            let value = self.context.settings().text(param).unwrap_or_default();
            move |error: nn::error::Error| {
                models::failure(error)
                    .help(format!(
                        "{param} = \"{value}\" needs {what}: connect another victim, or choose another value"
                    ))
                    .at(param)
            }
        };
        match self.select {
            Select::Importance => {
                let without = victim.without(&[self.candidates[0]], &[0]);
                without.map(drop).map_err(refused("place", "a network"))?;
            }
            Select::LeastAttention(_) | Select::MostAttention(_) => {
                let target = Target::None;
                let example = Example {
                    input: input.clone(),
                    target,
                };
                let attention = victim.attention(&[&example]);
                attention
                    .map(drop)
                    .map_err(refused("place", "a model with attention"))?;
            }
            Select::Random | Select::InOrder => {}
        }
        if self.replace == Replace::Nearest {
            let sentences = victim.sentences(&[&input]);
            sentences
                .map(drop)
                .map_err(refused("replace", "a network"))?;
        }
        Ok(())
    }

    fn one(&self, item: &Item<'_>) -> Result<Trace, Failure> {
        let context = self.context;
        let tokens = item.tokens()?;
        let goal = Goal::untargeted(item.label);
        let mut trace = Trace {
            attacked: true,
            ..Trace::untouched(item)
        };
        let words = self.words(tokens);
        for place in places(context, item, self.select, words, &mut trace)? {
            let old = tokens[place];
            let done = match self.replace {
                Replace::Nearest => self.nearest(item, &goal, place, &mut trace)?,
                Replace::Random => {
                    let stream = context.stream("replace", item);
                    let drawn = drawn(&self.candidates, old, &stream, self.limit);
                    try_in_order(context, item, &goal, place, &drawn, &mut trace)?
                }
                Replace::Synonyms => {
                    let synonyms = self.synonyms.get(&old).into_iter().flatten();
                    let synonyms = synonyms.copied().filter(|new| *new != old);
                    let synonyms: Vec<u32> = synonyms.take(self.limit).collect();
                    try_in_order(context, item, &goal, place, &synonyms, &mut trace)?
                }
            };
            if done {
                break;
            }
        }
        Ok(trace)
    }

    /// One random word in one random place of each item. A row stays as it is if that does not reach the goal.
    fn draw_each(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let mut drawn = Vec::with_capacity(items.len());
        for item in items.iter().filter(|item| item.right()) {
            let mut trace = Trace {
                attacked: true,
                ..Trace::untouched(item)
            };
            let words = self.words(item.tokens()?);
            let places = places(self.context, item, self.select, words, &mut trace)?;
            for place in places {
                let old = item.tokens()?[place];
                let stream = self.context.stream("replace", item);
                for new in self::drawn(&self.candidates, old, &stream, 1) {
                    trace.edit(Edit::replace(place, old, new))?;
                    trace.count(FORWARD, 1);
                    trace.count(QUERIES, 1);
                }
            }
            drawn.push(trace);
        }
        let texts: Vec<&Sequence> = drawn.iter().map(|trace| &trace.input).collect();
        let answers = match texts.is_empty() {
            true => Vec::new(),
            false => probabilities(self.context.subject.victim(), &texts)?,
        };
        let mut drawn = drawn.into_iter().zip(answers);
        let trace = |item: &Item<'_>| {
            let untouched = Trace::untouched(item);
            if !item.right() {
                return untouched;
            }
            let Some((trace, p)) = drawn.next() else {
                return untouched;
            };
            match Goal::untargeted(item.label).reached(Answer::Probabilities(&p)) {
                true => trace,
                false => Trace {
                    input: untouched.input,
                    edits: Vec::new(),
                    ..trace
                },
            }
        };
        Ok(items.iter().map(trace).collect())
    }

    /// Places of words.
    fn words(&self, tokens: &[u32]) -> Vec<usize> {
        let part = |token: Option<&u32>| token.is_some_and(|token| self.parts.contains(token));
        let word = |place: &usize| {
            let (here, next) = (tokens.get(*place), tokens.get(*place + 1));
            !self.special.contains(&tokens[*place]) && !part(here) && !part(next)
        };
        (0..tokens.len()).filter(word).collect()
    }

    /// The nearest candidate that reaches the goal.
    fn nearest(
        &self,
        item: &Item<'_>,
        goal: &Goal,
        place: usize,
        trace: &mut Trace,
    ) -> Result<bool, Failure> {
        let old = item.tokens()?[place];
        let others = self.candidates.iter().copied().filter(|new| *new != old);
        let others: Vec<u32> = others.collect();
        let tried = nearest_first(self.context, item, goal, place, &others, trace)?;
        let mut tried = tried.into_iter().take(self.limit).enumerate();
        let mut count = 0;
        let found = tried.find(|(n, tried)| {
            count = n + 1;
            tried.reached
        });
        trace.count(QUERIES, count as u64);
        let Some((_, found)) = found else {
            return Ok(false);
        };
        trace.edit(Edit::replace(place, old, found.token))?;
        Ok(true)
    }
}

/// So many of the candidates but one, in random order.
fn drawn(candidates: &[u32], but: u32, stream: &Stream, limit: usize) -> Vec<u32> {
    let mut others: Vec<u32> = candidates.iter().copied().filter(|c| *c != but).collect();
    let count = others.len();
    for first in 0..limit.min(count) {
        others.swap(first, first + stream.below(first as u64, count - first));
    }
    others.truncate(limit);
    others
}
