//! `embed`: a vector for each token.
//!
//! Random or one-hot vectors are made here, pretrained ones are read by [`pretrained`] and
//! [`formats`], and [`skip_gram`] trains them. [`tables`] reads and makes the tables. Knows
//! nothing of models.

mod draw;
mod formats;
mod negatives;
mod plain;
mod pretrained;
mod settings;
mod skip_gram;
#[cfg(test)]
mod tests;

use arrow::array::Array;
use arrow::datatypes::Metadata;
use store::{Params, Value};

use crate::contract::description::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::contract::determinism::{Determinism, Within, within};
use crate::contract::expected::{ExpectedInputs, ExpectedOutputs, ExpectedRows, Mismatch};
use crate::tables::vectors::{self, Matrix};
use crate::tables::vocabulary::{PAD, Vocab};
use crate::{Failure, Outputs, ParamError, Role, Stage, Task};
use plain::{one_hot, random};
use settings::{Origin, Settings};

/// The kind `embed`.
pub struct Embed;

static DESCRIPTION: Description = Description {
    kind: "embed",
    summary: "A vector for each token: random, one-hot, trained by skip-gram, or pretrained.",
    params: &[
        Param {
            name: "source",
            ty: Type::Text,
            presence: Presence::Required,
            help: "random, one-hot, skip-gram or vectors.",
            ..Param::PLAIN
        },
        Param {
            name: "dim",
            ty: Type::Int,
            presence: Presence::Default(|| Value::Int(50)),
            help: "For random and skip-gram: embedding dimension.",
            ..Param::PLAIN
        },
        Param {
            name: "file",
            ty: Type::Text,
            presence: Presence::Optional,
            help: "For vectors: a file in GloVe's or word2vec's text format, or safetensors.",
            ..Param::PLAIN
        },
        Param {
            name: "tensor",
            ty: Type::Text,
            presence: Presence::Optional,
            help: "For a safetensors file: the name of the matrix, if there are several.",
            ..Param::PLAIN
        },
        Param {
            name: "unknown",
            ty: Type::Text,
            presence: Presence::Optional,
            help: "For vectors: the word whose vector is used for [UNK], such as \"unk\" in GloVe.",
            ..Param::PLAIN
        },
        Param {
            name: "missing",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text("random".to_owned())),
            help: "For vectors: the vector of tokens that have none: random, zero or unknown.",
            ..Param::PLAIN
        },
        Param {
            name: "scale",
            ty: Type::Float,
            presence: Presence::Default(|| Value::Float(settings::SCALE)),
            help: "Random vectors are uniform between -scale and scale.",
            ..Param::PLAIN
        },
        Param {
            name: "window",
            ty: Type::Int,
            presence: Presence::Default(|| Value::Int(5)),
            help: "For skip-gram: the maximum distance between a word and its context.",
            ..Param::PLAIN
        },
        Param {
            name: "negative",
            ty: Type::Int,
            presence: Presence::Default(|| Value::Int(5)),
            help: "For skip-gram: negative samples per pair.",
            ..Param::PLAIN
        },
        Param {
            name: "epochs",
            ty: Type::Int,
            presence: Presence::Default(|| Value::Int(5)),
            help: "For skip-gram: number of epochs.",
            ..Param::PLAIN
        },
        Param {
            name: "learning_rate",
            ty: Type::Float,
            presence: Presence::Default(|| Value::Float(0.025)),
            help: "For skip-gram: initial learning rate; it decays linearly to 0.",
            ..Param::PLAIN
        },
        Param {
            name: "subsample",
            ty: Type::Float,
            presence: Presence::Default(|| Value::Float(1e-3)),
            help: "For skip-gram: words with a higher relative frequency are subsampled; 0 = off.",
            ..Param::PLAIN
        },
        Param {
            name: "train",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text("train".to_owned())),
            help: "For skip-gram: the split to train on.",
            ..Param::PLAIN
        },
    ],
    seeded: true,
    role: Role::Other,
};

impl Stage for Embed {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, params: &Params) -> Ports {
        let origin = Settings::read(params).ok().map(|settings| settings.origin);
        let port = |name: &'static str, holds, required| Port {
            name: name.to_owned(),
            holds,
            required,
        };
        let own = matches!(
            origin,
            Some(Origin::Random | Origin::OneHot | Origin::SkipGram)
        );
        let mut inputs = vec![port("vocab", "vocab", own)];
        if matches!(origin, None | Some(Origin::SkipGram)) {
            inputs.push(port("tokens", "tokens", origin.is_some()));
        }
        if matches!(origin, None | Some(Origin::Vectors)) {
            inputs.push(port("vectors", "vectors", false));
        }
        Ports {
            inputs: Inputs::Named(inputs),
            outputs: vec![port("vectors", "vectors", true)],
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        Settings::read(params).map(drop)
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        let settings = Settings::read(params)?;
        match settings.origin {
            Origin::SkipGram => {
                inputs.one_text("tokens")?;
                let words = |rows| rows == ExpectedRows::Tokens { padded: false };
                inputs.hold("tokens", "skip-gram", "tokens without padding", words)?;
                inputs.has_split("tokens", "train", &settings.train)?;
            }
            Origin::Vectors => {
                pretrained::one_source(&settings, inputs.has("vectors"), inputs.has("vocab"))?;
            }
            Origin::Random | Origin::OneHot => {}
        }
        Ok(Vec::new())
    }

    fn files<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        let file = params.get("file").and_then(Value::as_text);
        file.map(|name| ("file", name)).into_iter().collect()
    }

    fn determinism(&self, _: &Params) -> Determinism {
        const ROUNDED: &[Within] = &[within("vectors", "v", 1e-3)];
        Determinism::Rounding(ROUNDED)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let settings = Settings::of(task)?;
        let vocab = task.inputs.get("vocab").map(Vocab::read).transpose()?;
        let (tokens, matrix, metadata) = match settings.origin {
            Origin::Vectors => pretrained::read(task, &settings, vocab.as_ref())?,
            origin => {
                let vocab = vocab.ok_or_else(|| Failure::new("the input `vocab` is missing"))?;
                let mut matrix = match origin {
                    Origin::OneHot => one_hot(vocab.tokens.len())?,
                    Origin::SkipGram => skip_gram::run(task, &settings, &vocab)?,
                    _ => Matrix {
                        dim: settings.dim,
                        values: (0..vocab.tokens.len())
                            .flat_map(|n| random(task.seed, n, settings.dim, settings.scale))
                            .collect(),
                    },
                };
                if let Some(pad) = vocab.place(PAD) {
                    let dim = matrix.dim;
                    matrix.values[pad * dim..(pad + 1) * dim].fill(0.0);
                }
                (vocab.tokens, matrix, Metadata::default())
            }
        };
        let table = vectors::write(tokens, matrix, metadata)?;
        Ok([("vectors".to_owned(), table)].into())
    }
}
