//! A translator as a classifier of source texts: class 1 if its output has a keyword, class 0 if not.
//!
//! Paper: Cheng, Yi, Chen, Zhang, Hsieh, "Seq2Sick", AAAI 2020, whose objective for targeted keywords is the logit of
//! class 1. With `z_t` the logits at step `t` of the greedy output, its end included:
//!
//! ```text
//! logits = [0, max over t of (z_t(keyword) - max over w != keyword of z_t(w))]
//! ```
//!
//! Greedy decoding writes the keyword exactly where that difference is above 0 (a tie counts as class 0), so that an
//! attack which turns class 0 into class 1 has put the keyword into the output, and every attack that only asks can try.
//! As for all victims, the output is at most 2 n + 10 tokens long, n being the length of the source. The vector of a
//! sentence is all that the decoder attends to: the encoder's vectors, one after the other.

use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{Array1, Array2};
use nn::batch::{Example, Sequence, Side, Target};
use nn::error::{Error, Result};
use nn::linear::Vectors;
use nn::victim::{LayerStates, LayerVectors, Neural, Queries, Victim};
use serde::Deserialize;

use super::entry::{
    Data, LoadedModel, ModelEntry, ModelKind, ModelTask, Subject, Tensors, VectorUse, not_a_model,
};
use super::seq2seq::Seq2seq;
use super::transformer_seq2seq::TransformerSeq2seq;
use crate::contract::expected::ExpectedRows;
use crate::params::settings::{self, Settings};
use crate::tables::model_card::{ModelCard, json};
use crate::{Failure, ParamError};

/// The name of such models: no `train` stage makes one.
pub const NAME: &str = "keyword-detector";

/// The translators that it can ask. They are named here so that their code is a part of its own.
const TRANSLATORS: [&dyn ModelKind; 2] = [&Seq2seq, &TransformerSeq2seq];

/// The translator of that name.
pub fn translator(name: &str) -> Option<&'static dyn ModelKind> {
    let mut all = TRANSLATORS.into_iter();
    all.find(|model| model.entry().name == name)
}

/// The names of all translators, for messages.
pub fn translators() -> Vec<&'static str> {
    let all = TRANSLATORS.iter();
    all.map(|model| model.entry().name).collect()
}

/// What its card holds beside its name.
#[derive(Deserialize)]
struct Stored {
    keyword: u32,
    translator: String,
}

/// The card of a translator that is asked for a keyword. The tensors are the translator's.
pub fn card(translator: &ModelCard, keyword: u32) -> ModelCard {
    let fields = [
        ("words", json(translator.words())),
        ("keyword", json(keyword)),
        ("translator", json(translator.text())),
    ];
    ModelCard::written("keyword_detector", &fields)
}

/// The kind of model.
pub struct KeywordDetector;

impl ModelKind for KeywordDetector {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: NAME,
            file: "stages/models/keyword_detector.rs",
            summary: "A translator as a classifier: whether its output has a keyword.",
            task: ModelTask::Classify,
            params: &[],
            reads: "token sequences without padding",
            fits: |rows| rows == ExpectedRows::Tokens { padded: false },
            vectors: VectorUse::Own,
        }
    }

    fn card(&self, _: Settings<'_>, _: &Data) -> std::result::Result<ModelCard, ParamError> {
        Err(settings::wrong(
            "model",
            "a keyword detector is not trained: it is a translator that is asked for a keyword"
                .to_owned(),
            "use kind = \"keyword-detector\"",
        ))
    }

    fn load(
        &self,
        card: &ModelCard,
        tensors: &Tensors,
        _: Option<&Vectors>,
    ) -> std::result::Result<Box<dyn LoadedModel>, Failure> {
        let stored = serde_json::from_str::<Stored>(card.text());
        let stored = stored.map_err(|error| not_a_model(error.to_string()))?;
        let inner = ModelCard::parse(&stored.translator).map_err(not_a_model)?;
        let kind = translator(&inner.model()).ok_or_else(|| {
            let name = inner.model();
            not_a_model(format!("the model `{name}` is not a translator"))
        })?;
        let translator = kind.load(&inner, tensors, None)?;
        let known = translator.network().map_or(0, |(model, _)| model.outputs());
        if stored.keyword as usize >= known {
            let keyword = stored.keyword;
            return Err(not_a_model(format!(
                "its keyword is token {keyword} of {known}"
            )));
        }
        Ok(Box::new(Detector {
            translator,
            keyword: stored.keyword as usize,
            forwards: AtomicU64::new(0),
        }))
    }

    fn by_gradient(&self) -> bool {
        false
    }
}

/// A translator and the keyword.
struct Detector {
    translator: Box<dyn LoadedModel>,
    keyword: usize,
    forwards: AtomicU64,
}

impl LoadedModel for Detector {
    fn victim(&self) -> std::result::Result<Subject<'_>, Failure> {
        Ok(Subject::Classifier(self))
    }
}

impl Detector {
    /// Asks the translator, and counts its passes.
    fn ask<R>(&self, question: impl FnOnce(&Neural<'_>) -> Result<R>) -> Result<R> {
        let network = self.translator.network();
        let (model, params) = network.ok_or(Error::Missing { what: "decoder" })?;
        let neural = Neural::new(model, params)?;
        let answer = question(&neural)?;
        let passes = neural.queries().forwards;
        self.forwards.fetch_add(passes, Ordering::Relaxed);
        Ok(answer)
    }

    /// By how much the keyword's logit is above all others, at the step where that is most; below 0 if it never is.
    fn objective(&self, steps: &Array2<f32>) -> f32 {
        let above = |z: ndarray::ArrayView1<'_, f32>| {
            let others = z
                .iter()
                .enumerate()
                .filter(|(word, _)| *word != self.keyword);
            let best = others.map(|(_, z)| *z).fold(f32::NEG_INFINITY, f32::max);
            z[self.keyword] - best
        };
        let steps = steps.rows().into_iter().map(above);
        steps.fold(f32::NEG_INFINITY, f32::max)
    }
}

impl Victim for Detector {
    fn logits(&self, items: &[&Sequence]) -> Result<Vec<Array2<f32>>> {
        let outputs = self.ask(|translator| translator.logits(items))?;
        let classes = |steps: &Array2<f32>| ndarray::array![[0.0, self.objective(steps)]];
        Ok(outputs.iter().map(classes).collect())
    }

    fn queries(&self) -> Queries {
        Queries {
            forwards: self.forwards.load(Ordering::Relaxed),
            backwards: 0,
        }
    }

    fn without(&self, tokens: &[u32], positions: &[usize]) -> Result<Vec<Array2<f32>>> {
        let text = Sequence::Tokens(tokens.to_vec());
        let vectors = self.ask(|translator| translator.embed(&[&text]))?;
        let mut texts = Vec::with_capacity(positions.len());
        for &position in positions {
            if position >= tokens.len() {
                let (what, item, below) = ("position", 0, tokens.len());
                return Err(Error::Range {
                    what,
                    item,
                    got: position,
                    below,
                });
            }
            let mut vectors = vectors[0].clone();
            vectors.row_mut(position).fill(0.0);
            texts.push(Sequence::Vectors(vectors));
        }
        self.logits(&texts.iter().collect::<Vec<_>>())
    }

    fn sentences(&self, items: &[&Sequence]) -> Result<Vec<Array1<f32>>> {
        // The encoder reads no target: the shortest there is will do.
        let end = self.translator.network();
        let end = end.and_then(|(model, _)| model.decoding());
        let end = end.ok_or(Error::Missing { what: "decoder" })?.end;
        let example = |input: &&Sequence| Example {
            input: (*input).clone(),
            target: Target::Tokens(vec![end]),
        };
        let examples: Vec<Example> = items.iter().map(example).collect();
        let examples: Vec<&Example> = examples.iter().collect();
        let hidden = self.ask(|translator| translator.hidden(&examples))?;
        if let Some(rows) = hidden.iter().map(|layers| attended(layers)).collect() {
            return Ok(rows);
        }
        let states = self.ask(|translator| translator.states(&examples))?;
        Ok(states
            .iter()
            .map(|layers| both_directions(layers))
            .collect())
    }
}

/// The last layer of an encoder that shows its vectors.
fn attended(layers: &[LayerVectors]) -> Option<Array1<f32>> {
    let mut layers = layers.iter().rev();
    let last = layers.find(|layer| layer.side == Side::Source)?;
    Some(last.vectors.iter().copied().collect())
}

/// The states of the last layer of a bidirectional encoder.
fn both_directions(layers: &[LayerStates]) -> Array1<f32> {
    let layers = layers.iter().filter(|layer| layer.side == Side::Source);
    let layers: Vec<&LayerStates> = layers.collect();
    let top = &layers[layers.len().saturating_sub(2)..];
    top.iter()
        .flat_map(|layer| layer.h.iter().copied())
        .collect()
}
