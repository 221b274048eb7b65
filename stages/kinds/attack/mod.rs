//! `attack`: adversarial rows against a trained model.
//!
//! One file per attack in `attacks/`; what they are put together from is in `goals/`, `candidates/`,
//! `search/` and `online/`. Items are attacked in parallel; an item's row does not depend on the others,
//! on their order or on the number of threads. What is reported of an item is measured afresh on what
//! the attack left.

pub mod attacks;
pub mod candidates;
mod constraints;
mod context;
pub mod edit;
pub mod entry;
mod expect;
mod external;
pub mod goals;
mod inputs;
mod known_words;
mod lexicon;
mod online;
mod outcome;
mod replay;
mod resumable;
pub mod search;
mod sentence;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod trace;
mod traces;
mod word_rules;

use std::sync::LazyLock;

use store::{Params, Value};

use crate::contract::description::{Choice, Description, Inputs, Param, Port, Ports, Renamed};
use crate::contract::determinism::{Determinism, Within, within};
use crate::contract::expected::{ExpectedInputs, ExpectedOutputs, Mismatch};
use crate::contract::follow::Follow;
use crate::contract::program::ProgramSpec;
use crate::contract::role::Role;
use crate::fingerprint::{self, Code};
use crate::params::complete::union;
use crate::params::settings::{self, Settings, failure};
use crate::tables::{by_confidence, estimates};
use crate::{Failure, Outputs, ParamError, Replayed, Stage, Task, models, programs};
pub use attacks::transfer::PORT as TRANSFERRED;
use attacks::{check, find};
use entry::{AttackEntry, Changes};
pub use expect::{follows, inputs as expect_inputs, unread};
pub use inputs::{Among, AttackInputs, note_fewer};
pub use known_words::PORT as KNOWN_WORDS;
pub use outcome::Outcome;
pub use stream::{AttackStream, StreamRun, has_target};

/// Refuses what would be without an effect for the rows of an attack stage, or repeat itself.
fn check_rows(params: &Params) -> Result<(), ParamError> {
    let s = Settings(params);
    let name = s.text("attack").unwrap_or_default();
    let Some(attack) = find(name) else {
        return Ok(());
    };
    if s.int("repeats")? > 1 && !attack.draws(s) {
        let message = format!(
            "`repeats` would attack each row in the same way: `{name}` draws no random numbers here"
        );
        let or = attack.draws_with().map(|how| format!(", or {how}"));
        let help = format!("leave it out{}", or.unwrap_or_default());
        return Err(settings::wrong("repeats", message, &help));
    }
    if s.int("traces")? > 0
        && !matches!(attack.entry().changes, Changes::Numbers | Changes::Nothing)
    {
        let message = format!("`traces` is only for signals, but `{name}` changes words");
        return Err(settings::wrong("traces", message, "leave it out"));
    }
    let (label, target) = (params.get("label"), params.get("target"));
    if label.is_some() && label == target {
        let message =
            "`label` and `target` are the same class: there is nothing to attack".to_owned();
        return Err(settings::wrong(
            "target",
            message,
            "choose another target class",
        ));
    }
    Ok(())
}

/// The sources of the attack that is chosen and of the models that come in.
pub fn chosen(params: &Params, inputs: &ExpectedInputs<'_>) -> Vec<&'static str> {
    let name = Settings(params).text("attack").unwrap_or_default();
    let mut files = models::files(inputs, &["victim", "bayes"]);
    files.extend(attacks::file(name));
    files
}

/// The input `victim` had another name.
pub const VICTIM: Renamed = Renamed::Input {
    old: "weights",
    new: "victim",
};

/// The kind `attack`.
pub struct AttackStage;

static DESCRIPTION: LazyLock<Description> = LazyLock::new(|| {
    let names = format!("{}.", attacks::names());
    let base = [
        Param::text("attack", "", names.leak()).required(),
        Param::text("split", "test", "The rows to attack."),
        Param::int(
            "items",
            0,
            0,
            "How many of them, sampled by seed and id; 0 = all.",
        ),
        Param::choice(
            "among",
            &["all", "correct"],
            "Which rows to sample from: all of them, or those that the model classifies correctly.",
        ),
        Param::int("label", 0, 0, "Sample only from rows of this class.").optional(),
        Param::int(
            "repeats",
            1,
            1,
            "How often each row is attacked, each time with different random numbers.",
        ),
        Param::int(
            "traces",
            0,
            0,
            "For signals: how many rows to record step by step, in the output `traces`.",
        ),
    ];
    Description {
        kind: "attack",
        summary: "Adversarial rows against a trained model, each with what was changed and what it cost.",
        params: union(&base, &attacks::choices()),
        seeded: true,
        role: Role::Attack,
    }
});

impl Stage for AttackStage {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn attack<'p>(&self, params: &'p Params) -> Option<&'p str> {
        params.get("attack")?.as_text()
    }

    fn is_control(&self, params: &Params) -> bool {
        self.attack(params) == Some("none")
    }

    fn ports(&self, params: &Params) -> Ports {
        let port = |name: &'static str, holds, required| Port {
            name: name.to_owned(),
            holds,
            required,
        };
        let mut outputs = vec![
            port("examples", "examples", true),
            port("summary", "summary", true),
        ];
        if Settings(params).maybe_int("traces").unwrap_or_default() > 0 {
            outputs.push(port("traces", "traces", true));
        }
        if by_confidence::is_made(Settings(params)) {
            outputs.push(port("by_confidence", "by_confidence", true));
        }
        if estimates::is_made(Settings(params)) {
            outputs.push(port("estimates", "estimates", true));
        }
        Ports {
            inputs: Inputs::Named(vec![
                port("victim", "weights", true),
                port("rows", "tokens", true),
                port("vectors", "vectors", false),
                port("vocab", "vocab", false),
                port("bayes", "weights", false),
                port("language", "ngrams", false),
                port(known_words::PORT, "vocab", false),
                port("lemmas", "pairs", false),
                port("synonyms", "pairs", false),
                port("candidates", "vocab", false),
                port("ids", "ids", false),
                port(attacks::transfer::PORT, "examples", false),
            ]),
            outputs,
        }
    }

    fn choices(&self) -> Vec<Choice> {
        attacks::choices()
    }

    fn renamed(&self) -> &'static [Renamed] {
        const AMONG: Renamed = Renamed::Value {
            param: "among",
            old: "right",
            new: "correct",
        };
        &[VICTIM, AMONG]
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        check(params)?;
        check_rows(params)
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        expect::inputs(params, inputs)?;
        let settings = Settings(params);
        inputs.has_split("rows", "split", settings.text("split").unwrap_or("test"))?;
        if settings.int("traces")? > 0 {
            expect::check_traces(inputs)?;
        }
        Ok(expect::outputs(params))
    }

    fn follows(&self, params: &Params) -> Vec<Follow> {
        expect::follows(params)
    }

    fn unread(&self, params: &Params, inputs: &ExpectedInputs<'_>) -> Vec<&'static str> {
        expect::unread(params, inputs)
    }

    fn draws(&self, params: &Params) -> bool {
        let settings = Settings(params);
        let attack = find(settings.text("attack").unwrap_or_default());
        // A sample of the rows is drawn by the seed.
        let samples = settings.maybe_int("items").unwrap_or_default() > 0;
        samples || attack.is_none_or(|attack| attack.draws(settings))
    }

    fn code(&self, params: &Params, inputs: &ExpectedInputs<'_>) -> Code {
        fingerprint::with_chosen("attack", &chosen(params, inputs))
    }

    fn environments<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        programs::params::environments(params)
    }

    fn program(&self, params: &Params) -> Option<ProgramSpec> {
        programs::params::program(params)
    }

    fn limits(&self) -> &'static [&'static str] {
        programs::params::LIMITS
    }

    fn replay(
        &self,
        task: &Task<'_>,
        outputs: &Outputs,
        exact: bool,
    ) -> Option<Result<Replayed, Failure>> {
        Some(replay::replay(task, outputs, exact))
    }

    fn determinism(&self, params: &Params) -> Determinism {
        let attack = self.attack(params).and_then(find);
        if attack.is_some_and(|attack| attack.entry().program) {
            return Determinism::Outside;
        }
        const ROUNDED: &[Within] = &[
            within("examples", "p_before", 1e-2),
            within("examples", "p_after", 1e-2),
            within("examples", "original", 1e-6),
            within("examples", "adversarial", 1e-3),
            within("estimates", "*", 1e-2),
            within("by_confidence", "p_before", 1e-2),
            within("by_confidence", "p_after", 1e-2),
            within("summary", "*", 3e-2),
        ];
        Determinism::Rounding(ROUNDED)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let stage = AttackInputs::open(task)?;
        let settings = Settings(task.params);
        let split = settings.text("split").unwrap_or("test");
        let limit = settings.int("items").map_err(failure)?;
        let among = Among {
            correct: settings.one_of("among", AMONG).map_err(failure)?,
            label: settings.0.get("label").and_then(Value::as_int),
        };
        let selected = stage.select((split, "split"), limit, task.seed, among)?;
        note_fewer(limit, "items", selected.rows.len(), task.watch);
        let outcomes = stage.attack(&selected, task, task.watch)?;
        let name = settings.text("attack").unwrap_or_default();
        let entry = find(name).map_or(AttackEntry::PLAIN, |attack| attack.entry());
        let examples = outcome::examples(&entry, &outcomes, stage.words.as_ref());
        let summary = outcome::summary(name, &outcomes);
        let mut outputs = Outputs::from([
            ("examples".to_owned(), examples),
            ("summary".to_owned(), summary),
        ]);
        if estimates::is_made(settings) {
            let table = outcome::estimates(&outcomes, stage.words.as_ref());
            outputs.insert("estimates".to_owned(), table);
        }
        if by_confidence::is_made(settings) {
            let table = outcome::by_confidence(&entry, &outcomes, stage.words.as_ref());
            outputs.insert("by_confidence".to_owned(), table);
        }
        let traced = settings.int("traces").map_err(failure)?;
        note_fewer(traced, "traces", outcomes.len(), task.watch);
        if traced > 0 {
            let outcomes = &outcomes[..traced.min(outcomes.len())];
            let table = traces::table(stage.loaded(), outcomes)?;
            outputs.insert("traces".to_owned(), table);
        }
        stage.loaded().finish(task.watch)?;
        Ok(outputs)
    }
}

const AMONG: &[(&str, bool)] = &[("all", false), ("correct", true)];
