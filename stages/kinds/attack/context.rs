//! What an attack sees: the victim, the items, the words, and where its random numbers come from.

use arrow::array::StringArray;
use nn::Stream;
use nn::batch::Sequence;
use nn::linear::{NaiveBayes, Vectors};
use nn::ngrams::KneserNey;
use nn::numeric::argmax;
use nn::victim::Neural;
use store::Params;

use super::known_words::{KnownWords, PORT as KNOWN_WORDS};
use crate::models::entry::Subject;
use crate::params::settings::Settings;
use crate::tables::lemmas::Lemmas;
use crate::tables::synonyms::Synonyms;
use crate::{Failure, Task};

/// Everything but the items.
pub struct AttackContext<'a> {
    /// The model.
    pub subject: &'a Subject<'a>,
    /// The stage's parameters.
    pub params: &'a Params,
    /// Names every random choice, with the attack and the item's id.
    pub seed: u64,
    /// The words by id, if a vocabulary is connected.
    pub words: Option<&'a StringArray>,
    /// The words' vectors as the model reads them.
    pub vectors: Option<&'a Vectors>,
    /// The words' vectors that are connected, which the model may have trained on since.
    pub connected: Option<&'a Vectors>,
    /// Base forms of words, if connected.
    pub lemmas: Option<&'a Lemmas>,
    /// Counts of words by class, if connected.
    pub bayes: Option<&'a NaiveBayes>,
    /// What words follow others, if connected.
    pub language: Option<&'a KneserNey>,
    /// Words that mean the same, if connected.
    pub synonyms: Option<&'a Synonyms>,
    /// The words that may be put in, if connected; otherwise all.
    pub candidates: Option<&'a StringArray>,
    /// Words that attacks on characters must not make, if connected.
    pub known_words: Option<&'a KnownWords>,
    /// Tokens that are not words: padding and unknown. Attacks put neither into a text.
    pub special: [u32; 2],
    /// Padding: where it stands there is no text to change.
    pub pad: u32,
    /// How many classes there are.
    pub classes: usize,
    /// The stage that attacks, for attacks that start a program.
    pub task: Option<&'a Task<'a>>,
}

impl<'a> AttackContext<'a> {
    /// The parameters, to be asked by name.
    pub fn settings(&self) -> Settings<'a> {
        Settings(self.params)
    }

    /// The random numbers of one item. They do not depend on its place or its company.
    pub fn stream(&self, purpose: &str, item: &Item<'_>) -> Stream {
        let digest = store::Digest::of(item.id.as_bytes()).to_string();
        let number = u64::from_str_radix(&digest[..16], 16).unwrap_or_default();
        Stream::new(self.seed, purpose).item(number)
    }

    /// Refuses a model without gradients, for attacks that follow them.
    pub fn gradients(&self, attack: &str) -> Result<(), Failure> {
        match self.subject.victim().has_gradients() {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "the attack `{attack}` needs gradients, and this model has none"
            ))
            .help("connect `victim` to a network, or to an external model with gradients = true")),
        }
    }

    /// The network, for attacks that look inside it.
    pub fn network(&self, attack: &str) -> Result<&'a Neural<'a>, Failure> {
        match self.subject {
            Subject::Network(network) => Ok(network),
            Subject::Classifier(_) => Err(Failure::new(format!(
                "the attack `{attack}` needs gradients, but this model is not a network"
            ))
            .help("connect `victim` to a network")),
        }
    }

    /// The vectors, or what to connect.
    pub fn vectors(&self, attack: &str) -> Result<&'a Vectors, Failure> {
        self.vectors
            .ok_or_else(|| missing(attack, "vectors", "an embed stage"))
    }

    /// The vectors that are connected, whatever the model reads; or what to connect.
    pub fn connected(&self, attack: &str) -> Result<&'a Vectors, Failure> {
        self.connected
            .ok_or_else(|| missing(attack, "vectors", "an embed stage"))
    }

    /// The base forms, or what to connect.
    pub fn lemmas(&self, attack: &str) -> Result<&'a Lemmas, Failure> {
        let from = "a dataset stage with name = \"wordnet-lemmas\"";
        self.lemmas.ok_or_else(|| missing(attack, "lemmas", from))
    }

    /// The synonyms, or what to connect.
    pub fn synonyms(&self, attack: &str) -> Result<&'a Synonyms, Failure> {
        let from = "a dataset stage with name = \"counterfit\"";
        self.synonyms
            .ok_or_else(|| missing(attack, "synonyms", from))
    }

    /// The words, or what to connect.
    pub fn words(&self, attack: &str) -> Result<&'a StringArray, Failure> {
        self.words
            .ok_or_else(|| missing(attack, "vocab", "the tokenize stage (its output `vocab`)"))
    }

    /// The counts, or what to connect.
    pub fn bayes(&self, attack: &str) -> Result<&'a NaiveBayes, Failure> {
        self.bayes.ok_or_else(|| {
            missing(
                attack,
                "bayes",
                "a train stage with model = \"naive-bayes\"",
            )
        })
    }

    /// The words that must not be made, or what to connect.
    pub fn known_words(&self, attack: &str) -> Result<&'a KnownWords, Failure> {
        self.known_words
            .ok_or_else(|| missing(attack, KNOWN_WORDS, KNOWN_WORDS_FROM))
    }

    /// The language model, or what to connect.
    pub fn language(&self, attack: &str) -> Result<&'a KneserNey, Failure> {
        self.language
            .ok_or_else(|| missing(attack, "language", "an ngrams stage"))
    }
}

/// What makes the words that must not be made.
pub const KNOWN_WORDS_FROM: &str = "the output `vocab` of a tokenize stage with scheme = \"words-punctuation\" and lowercase = false";

fn missing(attack: &str, port: &str, from: &str) -> Failure {
    Failure::new(format!("the attack `{attack}` needs the input `{port}`"))
        .help(format!("connect it to {from}"))
}

/// One row under attack.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    /// What names it.
    pub id: &'a str,
    /// What the model reads.
    pub input: &'a Sequence,
    /// The true class.
    pub label: u32,
    /// The model's probabilities before the attack.
    pub before: Vec<f32>,
}

impl<'a> Item<'a> {
    /// The class that the model says.
    pub fn predicted(&self) -> u32 {
        argmax(&self.before) as u32
    }

    /// Whether the model is right before the attack.
    pub fn right(&self) -> bool {
        self.predicted() == self.label
    }

    /// The numbers step by step, for attacks on signals.
    pub fn signal(&self) -> Result<&'a [f32], Failure> {
        let numbers = match self.input {
            Sequence::Vectors(rows) => rows.as_slice(),
            _ => None,
        };
        match numbers {
            Some(numbers) => Ok(numbers),
            None => Err(Failure::new(
                "this attack perturbs signals, and these rows are not signals",
            )
            .help("connect a data set of signals: rows with a column `x`")),
        }
    }

    /// Numbers in a step of a signal.
    pub fn channels(&self) -> Result<usize, Failure> {
        let steps = self.input.len().max(1);
        Ok(self.signal()?.len() / steps)
    }

    /// The tokens, for attacks on words.
    pub fn tokens(&self) -> Result<&'a [u32], Failure> {
        match self.input {
            Sequence::Tokens(ids) => Ok(ids),
            _ => Err(
                Failure::new("this attack changes words, and these rows are not tokens")
                    .help("connect the output `tokens` of a tokenize stage"),
            ),
        }
    }
}
