//! `keyword-detector`: a translator as attacks on classifiers see it, which says whether its output has a keyword.
//!
//! Nothing is trained and nothing is translated here: the output is the translator's weights with a card that says what
//! to ask it, [`keyword_detector`].

#[cfg(test)]
pub(crate) mod tests;

use store::Params;

use crate::contract::description::{Description, Inputs, Param, Port, Ports};
use crate::contract::expected::{
    Blamed, Expected, ExpectedInputs, ExpectedModel, ExpectedOutputs, ExpectedRows, Mismatch,
};
use crate::contract::follow::{Follow, Takes};
use crate::contract::nearest::nearest;
use crate::contract::role::Role;
use crate::models::keyword_detector::{self, card, translator, translators};
use crate::params::settings::{Settings, wrong};
use crate::tables::sequences::SequenceTable;
use crate::tables::vocabulary::{self, SPECIAL};
use crate::tables::weights::{self, Tensor};
use crate::{Failure, Outputs, ParamError, Stage, Task};

/// The kind `keyword-detector`.
pub struct KeywordDetector;

static DESCRIPTION: Description = Description {
    kind: "keyword-detector",
    summary: "A translator as a classifier of its source texts: whether its output has a keyword.",
    params: &[Param::text("keyword", "", "The word, as the vocabulary has it.").required()],
    seeded: false,
    role: Role::Other,
};

impl Stage for KeywordDetector {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, _: &Params) -> Ports {
        let port = |name: &str, holds| Port {
            name: name.to_owned(),
            holds,
            required: true,
        };
        Ports {
            inputs: Inputs::Named(vec![
                port("victim", "weights"),
                port("rows", "tokens"),
                port("vocab", "vocab"),
            ]),
            outputs: vec![port("weights", "weights")],
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        match Settings(params).text("keyword") {
            Some(word) if SPECIAL.contains(&word) => {
                let message = format!("`{word}` is a special token");
                Err(wrong("keyword", message, "choose a word"))
            }
            _ => Ok(()),
        }
    }

    fn follows(&self, _: &Params) -> Vec<Follow> {
        vec![Follow {
            port: "vocab",
            of: "rows",
            takes: Takes::Output("vocab"),
        }]
    }

    fn expect(&self, _: &Params, inputs: &ExpectedInputs<'_>) -> Result<ExpectedOutputs, Mismatch> {
        inputs.one_text("rows")?;
        let tokens = |rows| rows == ExpectedRows::Tokens { padded: false };
        inputs.hold("rows", "a translator", "tokens without padding", tokens)?;
        inputs.same_texts("vocab")?;
        let victim = inputs.of("victim").and_then(|table| table.model.as_ref());
        if let Some(other) = victim.filter(|model| translator(&model.name).is_none()) {
            let error = not_a_translator(other.called());
            return Err(Mismatch {
                at: Blamed::Input("victim".to_owned()),
                message: error.message,
                help: error.help,
            });
        }
        let model = ExpectedModel {
            name: keyword_detector::NAME.to_owned(),
            outside_vectors: false,
            gradients: false,
            attends: false,
            steps: false,
            states: false,
            reads: Some(ExpectedRows::Tokens { padded: false }),
            classes: Some(2),
            stage: None,
        };
        Ok(vec![Expected {
            model: Some(model),
            ..Expected::default()
        }])
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let (of, tensors) = weights::read(&task.inputs["victim"])?;
        if translator(&of.model()).is_none() {
            return Err(not_a_translator(&of.model()));
        }
        let rows = SequenceTable::read(&task.inputs["rows"])?;
        let words = vocabulary::words(&task.inputs["vocab"], "vocab")?;
        let listed = vocabulary::listed(&task.inputs["vocab"]);
        vocabulary::agree(rows.form.words(), listed.as_deref(), "vocab")?;
        vocabulary::agree(rows.form.words(), of.words(), "victim")?;
        let odd = (0..rows.ids.len()).find(|row| rows.label(*row) != Some(0));
        if let Some(row) = odd {
            let label = rows
                .label(row)
                .map_or("no label".to_owned(), |l| format!("the label {l}"));
            return Err(Failure::new(format!(
                "the row with the id {} has {label}, but the class of a text whose translation should not have the keyword is 0",
                rows.ids[row]
            ))
            .help("give all rows the label 0: SELECT id, split, text, 0 AS label"));
        }
        let keyword = Settings(task.params).text("keyword").unwrap_or_default();
        let Some(id) = words.iter().position(|word| word == Some(keyword)) else {
            let near = nearest(keyword, words.iter().flatten());
            let near = near.map(|near| format!("did you mean `{near}`?"));
            let help = near.unwrap_or("choose a word of the translator's vocabulary".to_owned());
            let message = format!("the vocabulary has no word `{keyword}`");
            return Err(Failure::new(message).help(help).at("keyword"));
        };
        let tensors: Vec<Tensor> = tensors.into_values().collect();
        let table = weights::table(&card(&of, id as u32), &tensors);
        Ok([("weights".to_owned(), table)].into())
    }
}

fn not_a_translator(name: &str) -> Failure {
    let known = translators().join("\" or \"");
    Failure::new(format!("the model `{name}` does not translate")).help(format!(
        "connect `victim` to a train stage with model = \"{known}\""
    ))
}
