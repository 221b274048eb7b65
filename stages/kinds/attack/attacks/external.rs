//! An attack in a program of the user, in any language.
//!
//! ```text
//! for each item that the model gets right, in the order of rows:
//!     the program is given its words, and may ask the model about texts as often as `max_queries` allows
//!     it gives back a row; the item stays as it is if that breaks the budget or a constraint
//! ```
//!
//! The program is started once, so that what it remembers from one item to the next is the same in every execution:
//! items come in their order, whatever the number of threads. Success is judged like that of every other attack, by
//! asking the model again.

use std::collections::BTreeMap;
use std::sync::Mutex;

use nn::batch::Sequence;

use crate::contract::description::{Constant, Param, Presence, Type};
use crate::kinds::attack::constraints::{
    KEEP_STOP_WORDS, OTHER_LEXEME, SAME_PART_OF_SPEECH, SIMILARITY, WordConstraints,
};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::entry::{Attack, AttackEntry, Budget, Changes, PreparedAttack};
use crate::kinds::attack::external::judge::{Judge, text, with_text};
use crate::kinds::attack::external::session::{Answered, Session};
use crate::kinds::attack::external::wire::{Rows, Sent};
use crate::kinds::attack::trace::Trace;
use crate::kinds::attack::word_rules::WordRules;
use crate::params::settings::{Settings, failure, wrong};
use crate::programs::{check, params};
use crate::tables::examples::{FORWARD, QUERIES, REJECTED};
use crate::{Failure, ParamError, Watch};

const NAME: &str = "external";

const READS: Param = Param::choice(
    "reads",
    &["text", "tokens"],
    "What the program is given and gives back: words, or token ids.",
);
const INSERT_AND_DELETE: Param = Param::flag(
    "insert_and_delete",
    false,
    "Whether words may also be inserted and deleted, and not only replaced.",
);
const MAX_WORDS: Param = Param::int(
    "max_words",
    0,
    0,
    "The maximum number of words that are changed; 0 = all.",
);
const MAX_CHARACTERS: Param = Param::int(
    "max_characters",
    0,
    0,
    "The maximum number of characters that are changed, by the edit distance of each new word to the old one; 0 = all.",
);
const MAX_QUERIES: Param = Param::int(
    "max_queries",
    0,
    0,
    "How many texts the model may be asked about for each row; 0 = no limit.",
);
const LEAST_COSINE: Param = Param {
    help: "Minimum cosine similarity of the new word's vector and the old one's (exclusive), of the input `vectors`; -1 = off.",
    ..SIMILARITY.or(Constant::Float(-1.0))
};
const TIMEOUT: Param = Param::float(
    "timeout",
    600.0,
    (0.001, 31_536_000.0),
    "Seconds until the program asks or answers something. Not in the key.",
);
const RUN: Param = Param {
    presence: Presence::Optional,
    ..params::RUN
};
const MEMORY: Param = Param {
    ty: Type::Float,
    ..params::MEMORY
};

/// How many reasons for rejected rows are logged.
const LOGGED: usize = 20;

/// The attack.
pub struct External;

struct Prepared<'a> {
    context: &'a AttackContext<'a>,
    session: Session<'a>,
    judge: Judge<'a>,
    watch: &'a dyn Watch,
    max_queries: Option<usize>,
    /// How many rows were rejected, by reason.
    rejected: Mutex<BTreeMap<String, u64>>,
}

impl Attack for External {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: NAME,
            file: "stages/kinds/attack/attacks/external.rs",
            summary: "A program of yours, in any language: it may ask the model, and gives back adversarial rows.",
            details: "Rows that break the budget or a constraint are rejected: the item stays as it is, and `rejected` is 1. Rows that the model misclassifies are left alone.",
            params: &[
                RUN,
                params::FILES,
                READS,
                INSERT_AND_DELETE,
                MAX_WORDS,
                MAX_CHARACTERS,
                MAX_QUERIES,
                LEAST_COSINE,
                Param {
                    presence: Presence::Constant(Constant::Bool(false)),
                    ..SAME_PART_OF_SPEECH
                },
                Param {
                    presence: Presence::Constant(Constant::Bool(false)),
                    ..KEEP_STOP_WORDS
                },
                Param {
                    presence: Presence::Constant(Constant::Bool(false)),
                    ..OTHER_LEXEME
                },
                params::ENV,
                params::SECRET_ENV,
                params::ENVIRONMENT,
                params::LOCK,
                params::NETWORK,
                MEMORY,
                params::PROCESSES,
                TIMEOUT,
            ],
            changes: Changes::WordEdits,
            needs: &["vocab"],
            needs_with: |s| constraints(s).map_or(Vec::new(), |rules| rules.needs()),
            budget: |s| Budget::Text {
                words: limit(s, "max_words"),
                characters: limit(s, "max_characters"),
            },
            constraints,
            counters: &[QUERIES, REJECTED],
            ordered: true,
            program: true,
            ..AttackEntry::PLAIN
        }
    }

    fn check(&self, s: Settings<'_>) -> Result<(), ParamError> {
        check::program(s.0)?;
        if s.flag(INSERT_AND_DELETE.name)? && constraints(s).is_some() {
            let message =
                "the constraints compare a word with the one in whose place it stands, and `insert_and_delete` is true"
                    .to_owned();
            let help = "leave `insert_and_delete` out, or the constraints";
            return Err(wrong(INSERT_AND_DELETE.name, message, help));
        }
        Ok(())
    }

    fn draws(&self, _: Settings<'_>) -> bool {
        true
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let s = context.settings();
        let task = context.task.ok_or_else(|| {
            Failure::new("a program that attacks is only started by attack stages")
        })?;
        let words = context.words(NAME)?;
        let rules = constraints(s).map(|rules| WordRules::new(context, rules, NAME));
        let judge = Judge {
            context,
            any_edit: s.flag(INSERT_AND_DELETE.name).map_err(failure)?,
            max_words: limit(s, "max_words").unwrap_or(usize::MAX),
            max_characters: limit(s, "max_characters").unwrap_or(usize::MAX),
            rules: rules.transpose()?,
        };
        let rows = Rows::new(words, s.text("reads") != Some("tokens"));
        let max_queries = s.int("max_queries").map_err(failure)?;
        Ok(Box::new(Prepared {
            context,
            session: Session::start(task, rows, context.classes)?,
            judge,
            watch: task.watch,
            max_queries: (max_queries > 0).then_some(max_queries),
            rejected: Mutex::new(BTreeMap::new()),
        }))
    }
}

/// A limit that is not 0.
fn limit(s: Settings<'_>, name: &str) -> Option<usize> {
    s.maybe_int(name).filter(|most| *most > 0)
}

/// The constraints that the stage declares, if it declares one.
fn constraints(s: Settings<'_>) -> Option<WordConstraints> {
    let flag = |name: &'static str| s.flag(name).unwrap_or(false);
    let similarity = s.maybe_float("similarity").unwrap_or(-1.0);
    let rules = WordConstraints {
        similarity,
        pretrained: similarity > -1.0,
        part_of_speech: flag("same_part_of_speech"),
        stop_words: flag("keep_stop_words"),
        lexeme: flag("other_lexeme"),
        ..WordConstraints::NONE
    };
    let none = !(rules.pretrained || rules.part_of_speech || rules.stop_words || rules.lexeme);
    (!none).then_some(rules)
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let right: Vec<&Item<'_>> = items.iter().filter(|item| item.right()).collect();
        let mut answered = self.ask(&right)?.into_iter();
        let trace = |item: &Item<'_>| match (item.right(), item.tokens()?) {
            (true, tokens) if !text(tokens, self.context.pad).1.is_empty() => {
                let answered = answered.next();
                let answered = answered.ok_or_else(|| Failure::new("an item was not attacked"))?;
                self.judged(item, answered)
            }
            _ => Ok(Trace::untouched(item)),
        };
        items.iter().map(trace).collect()
    }

    fn together(&self) -> usize {
        self.session.batch
    }

    fn finish(&self) -> Result<(), Failure> {
        let rejected = self.rejected.lock().unwrap_or_else(|e| e.into_inner());
        for (why, count) in rejected.iter().take(LOGGED) {
            let rows = if *count == 1 { "row was" } else { "rows were" };
            self.watch.log(&format!("{count} {rows} rejected: {why}"));
        }
        if rejected.len() > LOGGED {
            let more: u64 = rejected.values().skip(LOGGED).sum();
            self.watch
                .log(&format!("{more} more were rejected for other reasons"));
        }
        self.session.finish()
    }
}

impl Prepared<'_> {
    /// What the program gives back for items that have a text.
    fn ask(&self, items: &[&Item<'_>]) -> Result<Vec<Answered>, Failure> {
        let pad = self.context.pad;
        let mut sent = Vec::with_capacity(items.len());
        let mut rows = Vec::with_capacity(items.len());
        for item in items {
            let tokens = item.tokens()?;
            let (_, words) = text(tokens, pad);
            if words.is_empty() {
                continue;
            }
            rows.push(tokens);
            sent.push(Sent {
                id: item.id,
                tokens: words,
                label: item.label,
                probabilities: &item.before,
                // Languages whose numbers are all floats read this one too.
                seed: self.context.stream(NAME, item).bits(0) >> 11,
                queries: self.max_queries,
            });
        }
        if sent.is_empty() {
            return Ok(Vec::new());
        }
        let whole = |n: usize, new: Vec<u32>| Sequence::Tokens(with_text(rows[n], pad, &new));
        let victim = self.context.subject.victim();
        self.session.attack(&sent, victim, whole)
    }

    fn judged(&self, item: &Item<'_>, answered: Answered) -> Result<Trace, Failure> {
        let judged = match &answered.row {
            Some(row) => self.judge.trace(item, row)?,
            None => Trace::of(item, Vec::new()).map(Ok)?,
        };
        let mut trace = match judged {
            Ok(trace) => trace,
            Err(why) => {
                let mut rejected = self.rejected.lock().unwrap_or_else(|e| e.into_inner());
                *rejected.entry(why).or_default() += 1;
                let mut trace = Trace::of(item, Vec::new())?;
                trace.count(REJECTED, 1);
                trace
            }
        };
        trace.count(FORWARD, answered.queries);
        trace.count(QUERIES, answered.queries);
        trace.count(REJECTED, 0);
        Ok(trace)
    }
}
