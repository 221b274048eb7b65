//! CharCNN-LSTM: characters -> windows inside a word, maximum, tanh -> highways -> LSTM layers -> last state -> logits.
//!
//! Paper: Kim et al. 2016, arXiv:1508.06615, as the victim of HotFlip. Words have a fixed number of character
//! slots, padding included: padding characters have embeddings too, so inserting and deleting is flipping.

use crate::autodiff::{Init, Layout, Params, Shape, Tape};
use crate::batch::{Batch, Input, Side};
use crate::error::{Error, Result, same, setting};
use crate::layers::{
    Activation, ConvMax, Dense, Direction, Embedding, Highway, Lstm, RecurrentCell, Windows,
    dropout, last,
};
use crate::models::network::{Forward, Network, NetworkInfo, NetworkSpec, TargetKind};
use crate::models::output::{Hidden, Output};
use crate::models::reader::vectors;
use crate::models::settings;
use crate::numeric::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Parameters of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CharCnnSpec {
    /// Characters, padding and unknown included.
    pub characters: usize,
    /// Embedding dimension of a character.
    pub dim: usize,
    /// Characters in a window.
    pub width: usize,
    /// Kernels, which are the values per word's vector.
    pub kernels: usize,
    /// Highway layers.
    pub highways: usize,
    /// Hidden units of each LSTM layer.
    pub units: usize,
    /// LSTM layers.
    pub layers: usize,
    /// Dropout between LSTM layers and before the logits.
    #[serde(default)]
    pub dropout: f64,
    /// Classes.
    pub classes: usize,
    /// Initial weights are uniform in [-init, init].
    #[serde(default = "default_init")]
    pub init: f64,
    /// What the forget gates' biases start at. Earlier cards say nothing of it: 0.
    #[serde(default)]
    pub forget_bias: f64,
    /// Whether every dimension of the character embeddings has mean 0 and variance 1 over the characters, at the start
    /// and after every update (Miyato et al. 2017, who weigh characters by frequency and differentiate through it).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub normalise: bool,
}

/// Kim et al.'s; cards that say nothing of it were made with this one.
fn default_init() -> f64 {
    0.05
}

/// The network.
#[derive(Clone, Debug)]
pub struct CharCnn {
    spec: CharCnnSpec,
    table: Embedding,
    windows: ConvMax,
    highways: Vec<Highway>,
    cells: Vec<Lstm>,
    head: Dense,
}

impl NetworkSpec for CharCnnSpec {
    fn build(&self, layout: &mut Layout) -> Result<Arc<dyn Network>> {
        let spec = self;
        settings::sizes(&[
            ("characters", spec.characters),
            ("dim", spec.dim),
            ("width", spec.width),
            ("kernels", spec.kernels),
            ("units", spec.units),
            ("layers", spec.layers),
        ])?;
        settings::classes(spec.classes)?;
        settings::dropout(spec.dropout)?;
        setting("init", spec.init > 0.0, "above 0", spec.init)?;
        let init = Init::Uniform(spec.init);
        let table = Embedding::new(layout, "characters", spec.characters, spec.dim, init);
        let windows = ConvMax::new(
            layout,
            "windows",
            spec.dim,
            spec.width,
            spec.kernels,
            0,
            Activation::Tanh,
            init,
        );
        let highways = (0..spec.highways)
            .map(|k| Highway::new(layout, &format!("highway.{k}"), spec.kernels, -2.0, init))
            .collect();
        let cells = (0..spec.layers)
            .map(|k| {
                Lstm::new(
                    layout,
                    &format!("lstm.{k}"),
                    if k == 0 { spec.kernels } else { spec.units },
                    spec.units,
                    init,
                )
            })
            .collect();
        let head = Dense::new(layout, "head", spec.units, spec.classes, init);
        Ok(Arc::new(CharCnn {
            spec: spec.clone(),
            table,
            windows,
            highways,
            cells,
            head,
        }))
    }
}

impl Network for CharCnn {
    fn info(&self) -> NetworkInfo {
        NetworkInfo {
            takes_noise: true,
            ..NetworkInfo::new("char_cnn", &self.spec, TargetKind::Class, self.spec.classes)
        }
    }
}

impl<T: Real> Forward<T> for CharCnn {
    fn forward(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        let (time, items) = (batch.time(), batch.items());
        let (input, width) = match &batch.input {
            Input::Chars(ids, width) => {
                let slots = items * width;
                if let Some(i) = ids.iter().position(|c| *c as usize >= self.spec.characters) {
                    return Err(Error::Range {
                        what: "character",
                        item: i % slots / width,
                        got: ids[i] as usize,
                        below: self.spec.characters,
                    });
                }
                (
                    self.table
                        .forward(tape, params, ids, time, items * width, Side::Source),
                    *width,
                )
            }
            // Perturbed vectors: all slots of a word, one after the other.
            Input::Vectors(rows) => {
                let dim = rows.dim().2;
                if dim == 0 || !dim.is_multiple_of(self.spec.dim) {
                    return Err(Error::Shape {
                        what: "values per word",
                        expected: format!("a multiple of {}", self.spec.dim),
                        got: dim.to_string(),
                    });
                }
                let width = dim / self.spec.dim;
                let shape = Shape::new(time, items * width, self.spec.dim);
                (vectors(tape, rows, shape)?, width)
            }
            Input::Tokens(_) => {
                return Err(Error::Shape {
                    what: "input",
                    expected: "characters".into(),
                    got: "tokens".into(),
                });
            }
        };
        setting("characters in a word", width > 0, "above 0", width)?;
        if !batch.noise.is_empty() {
            let mut vectors = tape.take(input);
            same("noise", vectors.len(), batch.noise.len())?;
            let pairs = vectors.iter_mut().zip(&batch.noise);
            pairs.for_each(|(x, noise)| *x += *noise);
            tape.put(input, vectors);
        }
        let mut x = self
            .windows
            .forward(tape, params, input, Windows::Words(width));
        for highway in &self.highways {
            x = highway.forward(tape, params, x);
        }
        let (mut hidden, mut states) = (vec![Hidden::source(x)], Vec::new());
        for (k, cell) in self.cells.iter().enumerate() {
            if k > 0 {
                x = dropout(tape, x, self.spec.dropout);
            }
            let s = cell.forward(tape, params, x, &batch.lens, None, Direction::Forward);
            x = s.h;
            hidden.push(Hidden::source(x));
            states.push(s);
        }
        let sentence = last(tape, x, Direction::Forward);
        let y = dropout(tape, sentence, self.spec.dropout);
        let logits = self.head.forward(tape, params, y);
        Ok(Output {
            states,
            sentence: Some(sentence),
            hidden,
            ..Output::new(input, logits)
        })
    }

    fn adjust(&self, params: &mut Params<T>) {
        for cell in &self.cells {
            cell.set_forget_bias(params, self.spec.forget_bias);
        }
        self.constrain(params);
    }

    fn constrain(&self, params: &mut Params<T>) {
        if !self.spec.normalise {
            return;
        }
        for mut column in params.view_mut(self.table.table).columns_mut() {
            let count = column.len() as f64;
            let mean = column.iter().map(|x| x.to_f64()).sum::<f64>() / count;
            let squares = column.iter().map(|x| (x.to_f64() - mean).powi(2));
            let deviation = (squares.sum::<f64>() / count).sqrt();
            // A single character, or equal ones, cannot be scaled.
            let scale = if deviation > 0.0 {
                1.0 / deviation
            } else {
                1.0
            };
            column.mapv_inplace(|x| T::of((x.to_f64() - mean) * scale));
        }
    }
}
