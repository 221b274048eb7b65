//! `rnn-test`: inputs that a recurrent sequence model predicts badly, made along gradients of its states.
//!
//! Paper: Guo et al., "RNN-Test: Towards Adversarial Testing for Recurrent Neural Network Systems", arXiv:1911.06155.
//! One position of each input is changed ([`generate`]) along an orientation, a coverage or their sum ([`objective`]),
//! to the token with the nearest embedding ([`nearest`]); what inputs cover adds up in their order. Language models
//! read [`windows`], spell checkers sentences ([`spelling`]). `replay` re-checks what is stored by brute force.

mod generate;
mod nearest;
mod objective;
mod replay;
mod resumable;
mod settings;
mod spelling;
mod tested;
#[cfg(test)]
pub(crate) mod tests;
mod windows;

use store::Params;

use crate::contract::description::{Description, Inputs, Port, Ports};
use crate::contract::determinism::{Determinism, Within, within};
use crate::contract::expected::{
    Blamed, Expected, ExpectedInputs, ExpectedModel, ExpectedOutputs, ExpectedRows, Mismatch,
};
use crate::contract::follow::{Follow, Takes};
use crate::contract::role::Role;
use crate::fingerprint::{self, Code};
use crate::params::settings::Settings;
use crate::tables::schema::TableSchema;
use crate::tables::{coverage, generated, rates};
use crate::{Failure, Outputs, ParamError, Replayed, Stage, Task, models};
use settings::TestSettings;
use tested::Tested;

/// The kind `rnn-test`.
pub struct RnnTest;

static DESCRIPTION: Description = Description {
    kind: "rnn-test",
    summary: "Inputs that a recurrent sequence model predicts badly, one token changed along a gradient of its states, and what they cover (RNN-Test).",
    params: settings::PARAMS,
    seeded: true,
    role: Role::Attack,
};

impl Stage for RnnTest {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn attack<'p>(&self, params: &'p Params) -> Option<&'p str> {
        let named = |param: &str| params.get(param)?.as_text().filter(|name| *name != "none");
        named("orientation").or_else(|| named("coverage"))
    }

    fn ports(&self, _: &Params) -> Ports {
        let port = |name: &'static str, holds, required| Port {
            name: name.to_owned(),
            holds,
            required,
        };
        Ports {
            inputs: Inputs::Named(vec![
                port("victim", "weights", true),
                port("rows", "tokens", true),
                port("vocab", "vocab", false),
            ]),
            outputs: vec![
                port("generated", "generated", true),
                port("coverage", "coverage", true),
                port("rates", "rates", true),
            ],
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        TestSettings::read(params).map(drop)
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        let split = Settings(params).text("split").unwrap_or("test");
        let tokens = |rows| rows == ExpectedRows::Tokens { padded: false };
        inputs.hold("rows", "`rnn-test`", "tokens without padding", tokens)?;
        inputs.has_split("rows", "split", split)?;
        let victim = inputs.of("victim").and_then(|w| w.model.as_ref());
        if let Some(victim) = victim {
            tested_model(params, victim)?;
        }
        let known = |schema: &TableSchema| match victim.map(|model| model.name.as_str()) {
            Some("lstm-lm") => schema.expected(),
            Some(_) => {
                let columns = schema.columns.iter().map(|column| column.name);
                Expected::of_columns(&columns.collect::<Vec<_>>())
            }
            None => Expected::default(),
        };
        Ok(vec![
            known(&generated::SCHEMA),
            coverage::SCHEMA.expected(),
            known(&rates::SCHEMA),
        ])
    }

    fn follows(&self, _: &Params) -> Vec<Follow> {
        let follow = |port, of, takes| Follow { port, of, takes };
        vec![
            follow("rows", "victim", Takes::Input("rows")),
            follow("vocab", "rows", Takes::Output("vocab")),
        ]
    }

    fn code(&self, _: &Params, inputs: &ExpectedInputs<'_>) -> Code {
        fingerprint::with_chosen(DESCRIPTION.kind, &models::files(inputs, &["victim"]))
    }

    fn determinism(&self, _: &Params) -> Determinism {
        const ROUNDED: &[Within] = &[
            within("generated", "*", 1e-2),
            within("coverage", "*", 3e-2),
            within("rates", "*", 3e-2),
        ];
        Determinism::Rounding(ROUNDED)
    }

    fn replay(
        &self,
        task: &Task<'_>,
        outputs: &Outputs,
        exact: bool,
    ) -> Option<Result<Replayed, Failure>> {
        Some(replay::replay(task, outputs, exact))
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let tested = Tested::open(task)?;
        let made = tested.generate(task)?;
        let words = generated::Words {
            name: &|token| tested.name(token),
            text: &|tokens| tested.text(tokens),
        };
        Ok(Outputs::from([
            ("generated".to_owned(), generated::write(&made.rows, &words)),
            ("coverage".to_owned(), coverage::write(&made.coverage)),
            ("rates".to_owned(), rates::write(&made.rows)),
        ]))
    }
}

/// Refuses models that have no states or no sequence to predict, and parameters that are not for them.
fn tested_model(params: &Params, victim: &ExpectedModel) -> Result<(), Mismatch> {
    let name = &victim.name;
    let task = models::find(name).map(|model| model.entry().task);
    if !["lstm-lm", "seq2seq"].contains(&name.as_str()) {
        let message = format!(
            "`rnn-test` is for recurrent models of sequences, and `victim` is `{}`",
            victim.called()
        );
        let help = "connect a train stage with model = \"lstm-lm\" or \"seq2seq\"";
        return Err(Mismatch::new(
            Blamed::Input("victim".to_owned()),
            message,
            help,
        ));
    }
    Ok(settings::for_task(params, task)?)
}
