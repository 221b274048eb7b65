//! What an attack is: an entry that describes it, and how it is prepared and run. Knows none by name.

use nn::stepping::Rule;

use super::constraints::WordConstraints;
use super::context::{AttackContext, Item};
use super::trace::Trace;
use crate::contract::description::Param;
use crate::params::settings::Settings;
use crate::{Failure, ParamError};

/// How an attack introduces itself.
pub struct AttackEntry {
    /// The name after `attack =`.
    pub name: &'static str,
    /// The file it is in.
    pub file: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// More of it, for its README.
    pub details: &'static str,
    /// The paper that it is from, if it is from one.
    pub paper: &'static str,
    /// Its own parameters.
    pub params: &'static [Param],
    /// What it changes.
    pub changes: Changes,
    /// The models that it can attack.
    pub victims: Victims,
    /// Inputs that it needs beside the victim and the rows.
    pub needs: &'static [&'static str],
    /// Inputs that it needs beside those with some parameters.
    pub needs_with: fn(Settings<'_>) -> Vec<&'static str>,
    /// Whether the input `candidates` restricts the words that it puts in.
    pub takes_candidates: bool,
    /// Whether it changes words of pairs of texts, joined into one sequence, too.
    pub pairs: bool,
    /// What it may do to a row, by its completed parameters. `replay` holds it to that.
    pub budget: fn(Settings<'_>) -> Budget,
    /// Rules for the words that it replaces, if it has some. `replay` holds it to them.
    pub constraints: fn(Settings<'_>) -> Option<WordConstraints>,
    /// What it counts beside passes through the model: columns of its examples.
    pub counters: &'static [&'static str],
    /// Whether it perturbs samples as they arrive, by its rule: `attack-stream` can run it.
    pub streams: bool,
    /// Whether items are attacked one after the other in the order of rows, because what was found on one matters
    /// for the next. Otherwise they are attacked in parallel, in any order.
    pub ordered: bool,
    /// Whether it is a program of the user, which only attack stages start.
    pub program: bool,
    /// Items that are attacked together, and saved together when the user stops the stage. Few if an item takes long.
    pub group: fn(Settings<'_>) -> usize,
}

impl AttackEntry {
    /// All inputs that it needs with these parameters beside the victim and the rows.
    pub fn needed(&self, settings: Settings<'_>) -> Vec<&'static str> {
        let mut needed = self.needs.to_vec();
        needed.extend((self.needs_with)(settings));
        needed
    }

    /// For literals: an attack without parameters that any model can be asked about.
    pub const PLAIN: AttackEntry = AttackEntry {
        name: "",
        file: "",
        summary: "",
        details: "",
        paper: "",
        params: &[],
        changes: Changes::Nothing,
        victims: Victims::All,
        needs: &[],
        needs_with: |_| Vec::new(),
        takes_candidates: false,
        pairs: false,
        budget: |_| Budget::Unlimited,
        constraints: |_| None,
        counters: &[],
        streams: false,
        ordered: false,
        program: false,
        // They share batches: two groups of 16, one for each of two classes.
        group: |_| 32,
    };
}

/// What an attack may do to a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// None.
    Nothing,
    /// At most this many words.
    Words(usize),
    /// This share of a row's words, rounded down, and at least one.
    WordShare(f64),
    /// At most this many character edits.
    Characters(usize),
    /// Edits of this share of a row's characters, rounded down, and at least one.
    CharacterShare(f64),
    /// Edits that change this share of a row's character slots, rounded down, and at least one.
    SlotShare(f64),
    /// A maximum number of changed words, and of changed characters in them.
    Text {
        /// Words.
        words: Option<usize>,
        /// Characters.
        characters: Option<usize>,
    },
    /// Each number by at most this.
    Linf(f64),
    /// Each word by one whose vector has a cosine above this with its own.
    Similarity(f64),
    /// Anything.
    Unlimited,
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Budget::Nothing => f.write_str("no change"),
            Budget::Words(1) => f.write_str("at most 1 word"),
            Budget::Words(most) => write!(f, "at most {most} words"),
            Budget::WordShare(share) => write!(f, "at most {}% of the words", share * 100.0),
            Budget::Characters(1) => f.write_str("at most 1 character"),
            Budget::Characters(most) => write!(f, "at most {most} characters"),
            Budget::CharacterShare(share) => {
                write!(f, "at most {}% of the characters", share * 100.0)
            }
            Budget::SlotShare(share) => {
                write!(f, "at most {}% of the character slots", share * 100.0)
            }
            Budget::Text { words, characters } => {
                let (words, characters) =
                    (words.map(Budget::Words), characters.map(Budget::Characters));
                match (words, characters) {
                    (None, None) => Budget::Unlimited.fmt(f),
                    (Some(words), None) => words.fmt(f),
                    (None, Some(characters)) => characters.fmt(f),
                    (Some(words), Some(characters)) => write!(f, "{words} and {characters}"),
                }
            }
            Budget::Linf(most) => write!(f, "L-infinity at most {most}"),
            Budget::Similarity(cosine) => write!(f, "words with a cosine above {cosine}"),
            Budget::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// What an attack changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing: rows of any kind will do.
    Nothing,
    /// The words of texts: replaces them by others.
    Words,
    /// The words of texts: also inserts and deletes them.
    WordEdits,
    /// The characters of words.
    Characters,
    /// The numbers of signals.
    Numbers,
}

impl Changes {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Changes::Nothing => "nothing",
            Changes::Words => "words",
            Changes::WordEdits => "words, also inserted and deleted",
            Changes::Characters => "characters",
            Changes::Numbers => "numbers",
        }
    }

    /// Whether edits are more than replaced words.
    pub fn edited(self) -> bool {
        matches!(self, Changes::WordEdits | Changes::Characters)
    }
}

/// The models that an attack can ask what it needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// Any: it asks for answers, or for nothing.
    All,
    /// Those with vectors of words and of sentences.
    Vectors,
    /// Those with gradients.
    Networks,
    /// Recurrent networks that read one step after the other.
    Recurrent,
}

impl Victims {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Victims::All => "all",
            Victims::Vectors => "networks and keyword detectors",
            Victims::Networks => "networks",
            Victims::Recurrent => "recurrent networks that read forward only",
        }
    }
}

/// An attack.
pub trait Attack: Sync {
    /// Its name, file, summary and parameters.
    fn entry(&self) -> AttackEntry;

    /// Looks at combinations of parameters. Each is complete and in its range.
    fn check(&self, _: Settings<'_>) -> Result<(), ParamError> {
        Ok(())
    }

    /// The parameter by which it looks at what the model attends to, if it does.
    fn attends_by(&self, _: Settings<'_>) -> Option<&'static str> {
        None
    }

    /// Whether it draws random numbers, so that a second attack on a row is another one.
    fn draws(&self, _: Settings<'_>) -> bool {
        false
    }

    /// Whether it looks at the model's prediction for a row as it came. If not, adversarial training saves a pass.
    fn asks_before(&self, _: Settings<'_>) -> bool {
        true
    }

    /// What to do so that it draws some, if there is something.
    fn draws_with(&self) -> Option<&'static str> {
        None
    }

    /// Its rule before the first sample, if it perturbs signals as they arrive, and its own limit
    /// on the change of a number.
    fn rule(&self, settings: Settings<'_>) -> Result<Option<Begun>, Failure> {
        let _ = settings;
        Ok(None)
    }

    /// Reads parameters and makes what all items share.
    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure>;
}

/// A rule before the first sample, and the largest change of a number that it stands for.
pub type Begun = (Box<dyn Rule<f32>>, Option<f64>);

/// An attack with its parameters.
pub trait PreparedAttack: Sync {
    /// What becomes of each item. Items of one call share batches and nothing else. If the entry says that items are
    /// attacked in order, every call has the next ones.
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure>;

    /// If items are attacked in order: how many at once.
    fn together(&self) -> usize {
        1
    }

    /// After all items.
    fn finish(&self) -> Result<(), Failure> {
        Ok(())
    }
}
