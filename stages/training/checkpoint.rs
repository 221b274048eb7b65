//! Pre-trained weights in BERT's format: a file of one's own, or a data set of the catalogue. Whether they fit the model
//! that the parameters describe is asked before anything is trained.

use nn::autodiff::Params;
use nn::models::{Model, TransformerSpec, bert_spec, load_bert};
use safetensors::SafeTensors;
use store::Value;

use crate::Failure;
use crate::Task;
use crate::models::failure;
use crate::tables::checkpoint;
use crate::tables::model_card::ModelCard;

/// The parameter, and the input, that names them.
pub const PRETRAINED: &str = "pretrained";

/// The weights that a train stage starts from, as the bytes of a safetensors file.
pub fn open(task: &Task<'_>) -> Result<Option<Vec<u8>>, Failure> {
    let file = task.params.get(PRETRAINED).and_then(Value::as_text);
    let table = task.inputs.get(PRETRAINED);
    match (file, table) {
        (Some(_), Some(_)) => Err(Failure::new(
            "`pretrained` is given as a parameter and as an input",
        )
        .help("leave one out")
        .at(PRETRAINED)),
        (None, Some(table)) => checkpoint::to_safetensors(table).map(Some),
        (Some(name), None) => read(task, name).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(task: &Task<'_>, name: &str) -> Result<Vec<u8>, Failure> {
    let wrong = |why: String| Failure::new(format!("{name}{why}")).at(PRETRAINED);
    let file = task.files.get(name.trim_start_matches("./"));
    let file = file.ok_or_else(|| wrong(" is not a file".to_owned()))?;
    let bytes = std::fs::read(file.path).map_err(|e| wrong(format!(": {e}")))?;
    match store::Digest::of(&bytes) == file.digest {
        true => Ok(bytes),
        false => Err(wrong(" changed while the run was planned".to_owned())),
    }
}

/// Refuses weights that are not of the model of a card, by the parameter that differs.
pub fn fits(card: &ModelCard, bytes: &[u8]) -> Result<(), Failure> {
    let ours: TransformerSpec = card.spec().map_err(|_| {
        Failure::new("pre-trained weights are for model = \"transformer\"").at(PRETRAINED)
    })?;
    let tensors = opened(bytes)?;
    let theirs = bert_spec(&tensors, ours.heads, ours.classes, ours.dropout);
    let theirs = theirs.map_err(|error| failure(error).at(PRETRAINED))?;
    if ours.vocabulary != theirs.vocabulary {
        let (ours, theirs) = (ours.vocabulary, theirs.vocabulary);
        return Err(Failure::new(format!(
            "the rows have a vocabulary of {ours} tokens, but the pre-trained weights have {theirs}"
        ))
        .help("tokenize with scheme = \"word-piece\" and the vocabulary of these weights"));
    }
    let sizes = [
        ("layers", ours.layers, theirs.layers),
        ("dim", ours.dim, theirs.dim),
        ("inner", ours.inner, theirs.inner),
        ("positions", ours.positions, theirs.positions),
    ];
    if let Some((param, ours, theirs)) = sizes.into_iter().find(|(_, a, b)| a != b) {
        let message = format!("`{param}` is {ours}, but the pre-trained weights have {theirs}");
        let help = format!("write {param} = {theirs}");
        return Err(Failure::new(message).help(help).at(param));
    }
    match ours.pooler && !theirs.pooler {
        true => Err(
            Failure::new("`pooler` is true, but the pre-trained weights have no pooler")
                .help("leave it out")
                .at("pooler"),
        ),
        false => Ok(()),
    }
}

/// Puts the weights into a network. The classifier keeps its fresh ones.
pub fn load(model: &Model, params: &mut Params<f32>, bytes: &[u8]) -> Result<(), Failure> {
    load_bert(model, params, &opened(bytes)?).map_err(|error| failure(error).at(PRETRAINED))
}

fn opened(bytes: &[u8]) -> Result<SafeTensors<'_>, Failure> {
    SafeTensors::deserialize(bytes).map_err(|error| {
        Failure::new(format!(
            "the pre-trained weights are not a safetensors file: {error}"
        ))
        .at(PRETRAINED)
    })
}
