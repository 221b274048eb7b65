//! The networks of `nn` by the names that stored models carry: the one list that reads a specification back.
//! Knows nothing of parameters, weights or training.

use std::sync::Arc;

use nn::autodiff::Layout;
use nn::models::{
    CellKind, CharCnnSpec, GRU, KimCnnSpec, LSTM, LanguageSpec, Network, NetworkSpec, RNN,
    RecurrentSpec, Seq2seqSpec, TransformerSeq2seqSpec, TransformerSpec,
};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The parameters of a network, with its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Spec {
    /// RNN, GRU or LSTM classifier.
    Recurrent(RecurrentSpec),
    /// Kim's convolutional network.
    KimCnn(KimCnnSpec),
    /// Character convolutions and LSTM.
    CharCnn(CharCnnSpec),
    /// Transformer encoder classifier.
    Transformer(TransformerSpec),
    /// LSTM language model.
    Language(LanguageSpec),
    /// LSTM encoder and decoder with attention.
    Seq2seq(Seq2seqSpec),
    /// Transformer encoder and decoder.
    TransformerSeq2seq(TransformerSeq2seqSpec),
}

impl NetworkSpec for Spec {
    fn build(&self, layout: &mut Layout) -> nn::Result<Arc<dyn Network>> {
        match self {
            Spec::Recurrent(spec) => spec.build(layout),
            Spec::KimCnn(spec) => spec.build(layout),
            Spec::CharCnn(spec) => spec.build(layout),
            Spec::Transformer(spec) => spec.build(layout),
            Spec::Language(spec) => spec.build(layout),
            Spec::Seq2seq(spec) => spec.build(layout),
            Spec::TransformerSeq2seq(spec) => spec.build(layout),
        }
    }
}

/// The kinds of recurrent layers.
const CELLS: [&CellKind; 3] = [&RNN, &GRU, &LSTM];

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(from)?;
        let name = word(&mut fields, "name").map_err(D::Error::custom)?;
        read(&name, fields).map_err(D::Error::custom)
    }
}

fn read(name: &str, mut fields: Map<String, Value>) -> Result<Spec, String> {
    fn of<T: serde::de::DeserializeOwned>(fields: Map<String, Value>) -> Result<T, String> {
        serde_json::from_value(Value::Object(fields)).map_err(|e| e.to_string())
    }
    Ok(match name {
        "recurrent" => {
            let cell = word(&mut fields, "cell")?;
            let found = CELLS.into_iter().find(|kind| kind.name == cell);
            let cell = found.ok_or(format!("unknown recurrent layer `{cell}`"))?;
            let spec = of(fields)?;
            Spec::Recurrent(RecurrentSpec { cell, ..spec })
        }
        "kim_cnn" => Spec::KimCnn(of(fields)?),
        "char_cnn" => Spec::CharCnn(of(fields)?),
        "transformer" => Spec::Transformer(of(fields)?),
        "language" => Spec::Language(of(fields)?),
        "seq2seq" => Spec::Seq2seq(of(fields)?),
        "transformer_seq2seq" => Spec::TransformerSeq2seq(of(fields)?),
        other => return Err(format!("unknown network `{other}`")),
    })
}

fn word(fields: &mut Map<String, Value>, name: &str) -> Result<String, String> {
    match fields.remove(name) {
        Some(Value::String(word)) => Ok(word),
        _ => Err(format!("missing field `{name}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nn::models::{Model, Reads};

    /// Stored models carry these very bytes.
    #[test]
    fn specifications_are_written_as_they_always_were_and_read_back() {
        let reads = Reads::Tokens {
            vocabulary: 5,
            dim: 3,
            frozen: true,
        };
        let recurrent = Spec::Recurrent(RecurrentSpec {
            dropout: 0.25,
            ..RecurrentSpec::new(&GRU, reads.clone(), 4, 2)
        });
        let kim = Spec::KimCnn(KimCnnSpec {
            reads,
            widths: vec![3, 4],
            kernels: 7,
            padding: 4,
            dropout: 0.5,
            max_norm: 3.0,
            classes: 2,
        });
        for (spec, written) in [
            (
                recurrent,
                r#"{"name":"recurrent","cell":"gru","reads":{"kind":"tokens","vocabulary":5,"dim":3,"frozen":true},"units":4,"classes":2,"layers":1,"bidirectional":false,"attention":0,"learned_state":false,"dropout":0.25,"hidden":0,"forget_bias":0.0,"run_through_padding":false}"#,
            ),
            (
                kim,
                r#"{"name":"kim_cnn","reads":{"kind":"tokens","vocabulary":5,"dim":3,"frozen":true},"widths":[3,4],"kernels":7,"padding":4,"dropout":0.5,"max_norm":3.0,"classes":2}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&spec).unwrap(), written);
            assert_eq!(serde_json::from_str::<Spec>(written).unwrap(), spec);
            assert_eq!(Model::new(&spec).unwrap().spec(), written);
        }
    }

    #[test]
    fn what_is_not_a_specification_is_refused() {
        for (text, says) in [
            (r#"{"name":"perceptron"}"#, "unknown network `perceptron`"),
            (
                r#"{"name":"recurrent","cell":"elman"}"#,
                "unknown recurrent layer `elman`",
            ),
            (r#"{"units":3}"#, "missing field `name`"),
            (
                r#"{"name":"kim_cnn","units":3}"#,
                "unknown field `units`, expected one of `reads`, `widths`, `kernels`, `padding`, `dropout`, `max_norm`, `classes`",
            ),
        ] {
            let error = serde_json::from_str::<Spec>(text).unwrap_err().to_string();
            assert_eq!(error, says);
        }
    }
}
