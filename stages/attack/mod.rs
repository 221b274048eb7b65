//! `attack`: adversarial rows against a trained model.
//!
//! One file an attack, listed in [`ATTACKS`]; what they are put together from is in `parts/`.
//! Items are attacked in parallel; an item's row does not depend on the others, on their order or
//! on the number of threads. What is reported of an item is measured afresh on what the attack left.

mod armoury;
mod dynamic;
mod expect;
mod fixed_point;
mod gradient_sign;
mod jsma;
mod live;
mod none;
mod optimal_control;
mod parts;
mod replay;
mod report;
mod scene;
#[cfg(test)]
mod signals;
mod swap;
mod tack_on;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod texts;
#[cfg(test)]
mod theory;
mod traces;
mod word_mapping;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use nn::online::Rule;
use store::{Params, Value};

use crate::describe::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::determinism::{Determinism, Within, within};
use crate::expected::{ExpectedInputs, ExpectedOutputs, Mismatch};
use crate::fingerprint::{self, Code};
use crate::settings::{self, Settings, failure};
use crate::{Failure, Outputs, ParamError, Replayed, Stage, Task};
pub use armoury::{Among, Armoury};
pub use expect::inputs as expect_inputs;
pub use live::{Live, Run};
pub use report::Outcome;
use scene::{Item, Scene, Trace};

/// Every attack. To add one: a file, a `mod` line above and an entry here.
pub static ATTACKS: &[&dyn Attack] = &[
    &none::None,
    &tack_on::TackOn,
    &swap::Swap,
    &jsma::Jsma,
    &gradient_sign::GradientSign,
    &fixed_point::FixedPoint,
    &dynamic::Dynamic,
    &optimal_control::OptimalControl,
    &word_mapping::WordMapping,
];

/// How an attack introduces itself.
pub struct Entry {
    /// The name after `attack =`.
    pub name: &'static str,
    /// The file it is in.
    pub file: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its own parameters.
    pub params: &'static [Param],
    /// What it changes.
    pub changes: Changes,
    /// The models that it can attack.
    pub victims: Victims,
    /// Inputs that it needs beside `weights` and `rows`.
    pub needs: &'static [&'static str],
}

/// What an attack changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing: rows of any kind will do.
    Nothing,
    /// The words of texts.
    Words,
    /// The numbers of signals.
    Numbers,
}

/// The models that an attack can ask what it needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// Any: it asks for answers, or for nothing.
    All,
    /// Those with gradients.
    Networks,
    /// Recurrent networks that read one step after the other.
    Recurrent,
}

/// An attack.
pub trait Attack: Sync {
    /// Its name, file, summary and parameters.
    fn entry(&self) -> Entry;

    /// Looks at parameters that their types do not tell enough about.
    fn check(&self, _: Settings<'_>) -> Result<(), ParamError> {
        Ok(())
    }

    /// Whether it draws random numbers, so that a second attack on a row is another one.
    fn draws(&self, _: Settings<'_>) -> bool {
        false
    }

    /// Its rule before the first sample, if it perturbs signals as they arrive, and its own limit
    /// on the change of a number.
    fn rule(&self, settings: Settings<'_>) -> Result<Option<Begun>, Failure> {
        let _ = settings;
        Ok(None)
    }

    /// Reads parameters and makes what all items share.
    fn ready<'a>(&self, scene: &'a Scene<'a>) -> Result<Box<dyn Ready + 'a>, Failure>;
}

/// A rule before the first sample, and the largest change of a number that it stands for.
pub type Begun = (Box<dyn Rule<f32>>, Option<f64>);

/// An attack with its parameters.
pub trait Ready: Sync {
    /// What becomes of each item. Items of one call share batches and nothing else.
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure>;
}

/// A parameter of an attack: absent unless it is written, so that a new one changes no key.
pub const fn param(name: &'static str, ty: Type, help: &'static str) -> Param {
    Param {
        name,
        ty,
        presence: Presence::Optional,
        help,
    }
}

/// Whole numbers that may be 0: a class, and steps that need not be taken.
const FROM_0: [&str; 2] = ["target", "substeps"];

/// The attack of that name.
fn find(name: &str) -> Option<&'static dyn Attack> {
    let all = ATTACKS.iter().copied();
    all.into_iter().find(|attack| attack.entry().name == name)
}

/// The parameters of all attacks, for a kind that takes one.
pub fn params() -> Vec<&'static [Param]> {
    ATTACKS.iter().map(|attack| attack.entry().params).collect()
}

/// Checks that the attack exists and that the parameters given are its own.
pub fn check(params: &Params) -> Result<(), ParamError> {
    let name = Settings(params).text("attack").unwrap_or_default();
    let Some(attack) = find(name) else {
        let known = ATTACKS.iter().map(|attack| attack.entry().name);
        return Err(settings::unknown("attack", name, known));
    };
    let entries = ATTACKS.iter().map(|attack| attack.entry());
    let owners: BTreeMap<_, Vec<_>> = entries
        .map(|entry| (entry.name, entry.params.iter().map(|p| p.name).collect()))
        .collect();
    settings::belongs(params, "attack", name, &owners)?;
    for param in attack.entry().params {
        if param.ty == Type::Int {
            let least = i64::from(!FROM_0.contains(&param.name));
            Settings(params).whole(param.name, least, least)?;
        }
    }
    attack.check(Settings(params))
}

/// Refuses what would be without an effect for the rows of an attack stage, or repeat itself.
fn check_rows(params: &Params) -> Result<(), ParamError> {
    let s = Settings(params);
    let name = s.text("attack").unwrap_or_default();
    let Some(attack) = find(name) else {
        return Ok(());
    };
    if s.whole("repeats", 1, 1)? > 1 && !attack.draws(s) {
        let message = format!(
            "`repeats` would attack each row in the same way: `{name}` draws no random numbers here"
        );
        let help = match name {
            "dynamic" => "leave it out, or draw where perturbations begin: `start`",
            "word-mapping" => "leave it out, or take rule = \"random\"",
            _ => "leave it out",
        };
        return Err(settings::wrong("repeats", message, help));
    }
    if s.whole("traces", 0, 0)? > 0 && attack.entry().changes == Changes::Words {
        let message = format!("`traces` are of signals, and `{name}` changes words");
        return Err(settings::wrong("traces", message, "leave it out"));
    }
    let (label, target) = (params.get("label"), params.get("target"));
    if label.is_some() && label == target {
        let message =
            "`label` and `target` are one class: there would be nothing to attack".to_owned();
        return Err(settings::wrong(
            "target",
            message,
            "choose another class to reach",
        ));
    }
    Ok(())
}

/// Whether a source decides the result of an attack: its own file, and all that is no attack's.
pub fn counts(source: &str, attack: &str) -> bool {
    // Looking into a result later decides nothing.
    if source.starts_with("stages/attack/replay") {
        return false;
    }
    let mut entries = ATTACKS.iter().map(|attack| attack.entry());
    let owner = entries.find(|entry| source == format!("stages/attack/{}", entry.file));
    owner.is_none_or(|owner| owner.name == attack)
}

/// The kind `attack`.
pub struct AttackStage;

static DESCRIPTION: LazyLock<Description> = LazyLock::new(|| {
    let base = [
        Param {
            name: "attack",
            ty: Type::Text,
            presence: Presence::Required,
            help: "none, tack-on, swap, jsma, word-mapping, gradient-sign, fixed-point, dynamic or optimal-control.",
        },
        Param {
            name: "split",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text("test".to_owned())),
            help: "The rows to attack.",
        },
        Param {
            name: "items",
            ty: Type::Int,
            presence: Presence::Default(|| Value::Int(0)),
            help: "How many of them, drawn by seed and id; 0 for all.",
        },
        param(
            "among",
            Type::Text,
            "Which rows there are to draw from: all (the default), or right: those that the model gets right.",
        ),
        param(
            "label",
            Type::Int,
            "Only rows of this class are drawn from.",
        ),
        param(
            "repeats",
            Type::Int,
            "How often each row is attacked, each time with random numbers of its own (1).",
        ),
        param(
            "traces",
            Type::Int,
            "For signals: the first so many rows step by step, in the output `traces` (0).",
        ),
    ];
    Description {
        kind: "attack",
        summary: "Adversarial rows against a trained model, each with what was changed and what it cost.",
        params: settings::union(&base, &params()),
        seeded: true,
    }
});

impl Stage for AttackStage {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
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
        if Settings(params).whole("traces", 0, 0).unwrap_or_default() > 0 {
            outputs.push(port("traces", "traces", true));
        }
        Ports {
            inputs: Inputs::Named(vec![
                port("weights", "weights", true),
                port("rows", "tokens", true),
                port("vectors", "vectors", false),
                port("vocab", "vocab", false),
                port("bayes", "weights", false),
                port("language", "ngrams", false),
            ]),
            outputs,
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        let settings = Settings(params);
        settings.whole("items", 0, 0)?;
        settings.whole("traces", 0, 0)?;
        settings.whole("repeats", 1, 1)?;
        settings.whole("label", 0, 0)?;
        settings.one_of("among", AMONG)?;
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
        if settings.whole("traces", 0, 0)? > 0 {
            expect::traces(inputs)?;
        }
        Ok(expect::outputs())
    }

    fn code(&self, params: &Params) -> Code {
        let name = Settings(params).text("attack").unwrap_or_default();
        fingerprint::narrowed("attack", |source| counts(source, name))
    }

    fn replay(
        &self,
        task: &Task<'_>,
        outputs: &Outputs,
        exact: bool,
    ) -> Option<Result<Replayed, Failure>> {
        Some(replay::replay(task, outputs, exact))
    }

    fn determinism(&self, _: &Params) -> Determinism {
        const ROUNDED: &[Within] = &[
            within("examples", "p_before", 1e-2),
            within("examples", "p_after", 1e-2),
            within("examples", "original", 1e-6),
            within("examples", "adversarial", 1e-3),
            within("summary", "*", 3e-2),
        ];
        Determinism::Rounding(ROUNDED)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let stage = Armoury::open(task)?;
        let settings = Settings(task.params);
        let split = settings.text("split").unwrap_or("test");
        let limit = settings.whole("items", 0, 0).map_err(failure)?;
        let among = Among {
            right: settings.one_of("among", AMONG).map_err(failure)?,
            label: settings.0.get("label").and_then(Value::as_int),
        };
        let places = stage.places((split, "split"), limit, task.seed, among)?;
        let outcomes = stage.attack(&places, task.params, task.seed, task.watch)?;
        let name = settings.text("attack").unwrap_or_default();
        let examples = report::examples(&outcomes, stage.words.as_ref());
        let summary = report::summary(name, &outcomes);
        let mut outputs = Outputs::from([
            ("examples".to_owned(), examples),
            ("summary".to_owned(), summary),
        ]);
        let traced = settings.whole("traces", 0, 0).map_err(failure)?;
        if traced > 0 {
            let outcomes = &outcomes[..traced.min(outcomes.len())];
            let table = traces::table(stage.loaded(), outcomes)?;
            outputs.insert("traces".to_owned(), table);
        }
        Ok(outputs)
    }
}

const AMONG: &[(&str, bool)] = &[("all", false), ("right", true)];
