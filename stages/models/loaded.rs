//! Trained models loaded from tables. Knows nothing of attacks.

use arrow::record_batch::RecordBatch;
use nn::autodiff::Params;
use nn::batch::{Example, Sequence, Target};
use nn::linear::{NaiveBayes, Vectors};
use nn::models::Model;
use nn::numeric::argmax;
use nn::victim::Victim;

use super::entry::{LoadedModel, ModelTask, Subject};
use crate::models::failure;
use crate::tables::model_card::ModelCard;
use crate::tables::weights;
use crate::{Failure, Task, Watch, models};

/// A stored model with its card.
pub struct Loaded {
    /// What it is.
    pub card: ModelCard,
    body: Box<dyn LoadedModel>,
}

impl Loaded {
    /// The model of a table of weights. `vectors` are those that it was trained with, if it
    /// keeps them outside its weights.
    pub fn open(table: &RecordBatch, vectors: Option<&Vectors>) -> Result<Loaded, Failure> {
        let (card, tensors) = weights::read(table)?;
        let needed = card.vectors();
        let vectors = match (needed, vectors) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(Failure::new(
                    "this model reads word vectors that are not among its weights",
                )
                .help("connect the input `vectors` to what the train stage read"));
            }
            (Some(digest), Some(vectors)) if weights::digest(&vectors.data) == digest => {
                Some(vectors)
            }
            (Some(_), Some(_)) => {
                return Err(Failure::new(
                    "the connected vectors are not those that the model was trained with",
                )
                .help("connect the input `vectors` to what the train stage read"));
            }
        };
        let body = models::of(&card)?.load(&card, &tensors, vectors)?;
        Ok(Loaded { card, body })
    }

    /// The same, started: for stages that may start programs.
    pub fn started(self, task: &Task<'_>) -> Result<Loaded, Failure> {
        self.body.start(task)?;
        Ok(self)
    }

    /// Ends what was started. Without it, that ends with this value and leaves no log.
    pub fn finish(&self, watch: &dyn Watch) -> Result<(), Failure> {
        self.body.finish(watch)
    }

    /// A classifier, to be queried and attacked.
    pub fn subject(&self) -> Result<Subject<'_>, Failure> {
        self.classifies()?;
        self.body.victim()
    }

    /// Refuses a model that does not predict classes.
    pub fn classifies(&self) -> Result<(), Failure> {
        let entry = models::of(&self.card)?.entry();
        if entry.task == ModelTask::Classify {
            return Ok(());
        }
        let name = entry.name;
        Err(
            Failure::new(format!("the model `{name}` is not a classifier"))
                .help("connect the weights of a model that predicts classes"),
        )
    }

    /// The network, if it is one.
    pub fn network(&self) -> Option<(&Model, &Params<f32>)> {
        self.body.network()
    }

    /// The vectors of its words, if they are with it but it is not a network.
    pub fn vectors(&self) -> Option<&Vectors> {
        self.body.vectors()
    }

    /// Asks a model that was started for the vectors of its words.
    pub fn ask_vectors(&self) -> Result<Option<Vectors>, Failure> {
        self.body.ask_vectors()
    }

    /// The counts, if it is naive Bayes.
    pub fn bayes(&self) -> Option<&NaiveBayes> {
        self.body.naive_bayes()
    }
}

/// The probabilities of each class for each text, a few thousand at a time.
pub fn probabilities(victim: &dyn Victim, texts: &[&Sequence]) -> Result<Vec<Vec<f32>>, Failure> {
    let mut all = Vec::with_capacity(texts.len());
    for part in texts.chunks(4096) {
        let rows = victim.probabilities(part).map_err(failure)?;
        all.extend(rows.into_iter().map(|p| p.into_raw_vec_and_offset().0));
    }
    Ok(all)
}

/// The share of examples whose most likely class is their label.
pub fn accuracy(victim: &dyn Victim, examples: &[Example]) -> Result<f64, Failure> {
    let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
    let said = probabilities(victim, &texts)?;
    let right = said
        .iter()
        .zip(examples)
        .filter(|(p, e)| matches!(e.target, Target::Class(label) if argmax(p) == label as usize));
    Ok(right.count() as f64 / examples.len().max(1) as f64)
}
