//! `attack`: adversarial rows against a trained model.
//!
//! One file an attack, listed in [`ATTACKS`]; what they are put together from is in `parts/`.
//! Items are attacked in parallel; an item's row does not depend on the others, on their order or
//! on the number of threads. What is reported of an item is measured afresh on what the attack left.

mod dynamic;
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
mod theory;
mod traces;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{AsArray, StringArray};
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use nn::model::Model;
use nn::models::Vectors;
use nn::online::Rule;
use nn::victim::Neural;
use rayon::prelude::*;
use store::{Params, Value};

use crate::describe::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::determinism::{Determinism, Within, within};
use crate::fingerprint::{self, Code};
use crate::labelled::{Form, Labelled};
use crate::settings::{self, Settings, failure};
use crate::victim::{Loaded, Subject, accuracy, probabilities, vectors};
use crate::weights::Card;
use crate::{Failure, Outputs, ParamError, Replayed, Stage, Task, Watch, models, wordlist};
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
}

/// An attack.
pub trait Attack: Sync {
    /// Its name, file, summary and parameters.
    fn entry(&self) -> Entry;

    /// Looks at parameters that their types do not tell enough about.
    fn check(&self, _: Settings<'_>) -> Result<(), ParamError> {
        Ok(())
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
            help: "none, tack-on, swap, jsma, gradient-sign, fixed-point, dynamic or optimal-control.",
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
        check(params)
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

/// Which rows of a split there are to draw from; all of them by default.
#[derive(Clone, Copy, Default)]
pub struct Among {
    /// Only those that the model gets right.
    pub right: bool,
    /// Only those of this class.
    pub label: Option<i64>,
}

/// The inputs of an attack, taken apart once.
pub struct Armoury {
    /// The rows.
    pub rows: Labelled,
    loaded: Loaded,
    bayes: Option<Loaded>,
    words: Option<StringArray>,
    vectors: Option<Vectors>,
}

/// Items that share batches: two groups of 16, one for each of two classes.
const GROUP: usize = 32;

impl Armoury {
    /// From the ports `weights`, `rows`, `vectors`, `vocab` and `bayes`.
    pub fn open(task: &Task<'_>) -> Result<Armoury, Failure> {
        let connected = task.inputs.get("vectors").map(vectors).transpose()?;
        let loaded = Loaded::open(&task.inputs["weights"], connected.as_ref())?;
        Armoury::with(task, loaded, connected)
    }

    /// The same inputs with another model.
    pub fn with(
        task: &Task<'_>,
        loaded: Loaded,
        connected: Option<Vectors>,
    ) -> Result<Armoury, Failure> {
        let bayes = task.inputs.get("bayes");
        let bayes = bayes.map(|table| Loaded::open(table, None)).transpose()?;
        if let Some(other) = bayes.as_ref().filter(|loaded| loaded.bayes().is_none()) {
            let name = models::named(&other.card);
            return Err(
                Failure::new(format!("the input `bayes` is the model `{name}`"))
                    .help("connect a train stage with model = \"naive-bayes\""),
            );
        }
        let rows = Labelled::read(&task.inputs["rows"])?;
        // The vectors that the model reads, also when they were trained with it.
        let own = loaded.network();
        let own = own.and_then(|(model, params)| own_vectors(model, params));
        let words = task.inputs.get("vocab").map(words).transpose()?;
        let ours = rows.form.words();
        wordlist::agree(ours, loaded.card.words(), "weights")?;
        for port in ["vectors", "vocab"] {
            let listed = task.inputs.get(port).and_then(wordlist::listed);
            wordlist::agree(ours, listed.as_deref(), port)?;
        }
        let counted = bayes.as_ref().and_then(|bayes| bayes.card.words());
        wordlist::agree(ours, counted, "bayes")?;
        Ok(Armoury {
            rows,
            loaded,
            bayes,
            words,
            vectors: own.or(connected),
        })
    }

    /// The rows of a split, or some of them; at most so many, drawn by seed and id, in their order.
    /// The split comes with the parameter that names it.
    pub fn places(
        &self,
        (split, param): (&str, &'static str),
        limit: usize,
        seed: u64,
        among: Among,
    ) -> Result<Vec<usize>, Failure> {
        let mut places = self.rows.split(split);
        if places.is_empty() {
            return Err(self.rows.no_split(split, param));
        }
        if let Some(label) = among.label {
            places.retain(|row| self.rows.label(*row).map(i64::from) == Some(label));
        }
        if among.right && !places.is_empty() {
            let examples = self.rows.examples(&places)?;
            let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
            let said = probabilities(self.loaded.subject()?.victim(), &texts)?;
            let mut said = said.iter();
            places.retain(|row| {
                let answer = said.next().map(|p| nn::evaluate::argmax(p) as u32);
                answer == self.rows.label(*row)
            });
        }
        if places.is_empty() {
            let which = if among.right {
                " that the model gets right"
            } else {
                ""
            };
            let class = among
                .label
                .map_or("".to_owned(), |label| format!(" of class {label}"));
            return Err(Failure::new(format!(
                "the split `{split}` has no row{class}{which}: there is nothing to attack"
            ))
            .help("draw from other rows: `split`, `label` and `among` say which"));
        }
        if limit > 0 && limit < places.len() {
            // A hash of the id, so that a bigger draw holds the smaller one.
            places.sort_by_key(|row| {
                let name = format!("{seed}/{}", self.rows.ids[*row]);
                (store::Digest::of(name.as_bytes()).to_string(), *row)
            });
            places.truncate(limit);
            places.sort_unstable();
        }
        Ok(places)
    }

    /// The model.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// What the model is.
    pub fn card(&self) -> &Card {
        &self.loaded.card
    }

    /// The model's accuracy on these rows as they are.
    pub fn accuracy(&self, places: &[usize]) -> Result<f64, Failure> {
        let subject = self.loaded.subject()?;
        accuracy(subject.victim(), &self.rows.examples(places)?)
    }

    /// Attacks these rows.
    pub fn attack(
        &self,
        places: &[usize],
        params: &Params,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let subject = self.loaded.subject()?;
        self.attack_subject(&subject, self.vectors.as_ref(), places, params, seed, watch)
    }

    /// Attacks these rows of a network that has other weights by now.
    pub fn attack_with(
        &self,
        weights: &nn::params::Params<f32>,
        places: &[usize],
        params: &Params,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let (model, _) = self
            .loaded
            .network()
            .ok_or_else(|| Failure::new("this model is no network"))?;
        let subject = Subject::Network(Neural::new(model, weights).map_err(models::failure)?);
        let own = own_vectors(model, weights);
        let vectors = own.as_ref().or(self.vectors.as_ref());
        self.attack_subject(&subject, vectors, places, params, seed, watch)
    }

    fn attack_subject(
        &self,
        subject: &Subject<'_>,
        vectors: Option<&Vectors>,
        places: &[usize],
        params: &Params,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let name = Settings(params).text("attack").unwrap_or_default();
        let attack = find(name).ok_or_else(|| Failure::new(format!("no attack `{name}`")))?;
        let examples = self.rows.examples(places)?;
        let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
        let before = probabilities(subject.victim(), &texts)?;
        let classes = before.first().map_or(0, Vec::len);
        let repeats = Settings(params).whole("repeats", 1, 1).map_err(failure)?;
        let ids = places.iter().flat_map(|row| {
            let id = &self.rows.ids[*row];
            (0..repeats).map(move |k| match repeats {
                1 => id.clone(),
                _ => format!("{id}#{k}"),
            })
        });
        let ids: Vec<String> = ids.collect();
        let item = |n: usize| {
            let k = n / repeats;
            Item {
                id: &ids[n],
                input: texts[k],
                label: self.rows.label(places[k]).unwrap_or_default(),
                before: before[k].clone(),
            }
        };
        let items: Vec<Item<'_>> = (0..ids.len()).map(item).collect();
        if let Some(item) = items.iter().find(|item| item.label as usize >= classes) {
            return Err(Failure::new(format!(
                "the row with the id {} has the label {}, but the model knows {classes} classes",
                item.id, item.label
            )));
        }
        let special = match self.rows.form {
            Form::Tokens { pad, unknown, .. } => [pad, unknown],
            _ => [0, 0],
        };
        let scene = Scene {
            subject,
            params,
            seed,
            words: self.words.as_ref(),
            vectors,
            bayes: self.bayes.as_ref().and_then(Loaded::bayes),
            special,
            pad: special[0],
            classes,
        };
        let ready = attack.ready(&scene)?;
        let traces = in_groups(&items, ready.as_ref(), watch)?;
        let wanted = Settings(params).0.get("target").and_then(Value::as_int);
        self.measure(
            subject,
            items,
            traces,
            wanted.map(|class| class as u32),
            watch,
        )
    }

    /// What the model says of what the attack left, asked afresh.
    fn measure(
        &self,
        subject: &Subject<'_>,
        items: Vec<Item<'_>>,
        traces: Vec<Trace>,
        wanted: Option<u32>,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let texts: Vec<&Sequence> = traces.iter().map(|trace| &trace.input).collect();
        let after = probabilities(subject.victim(), &texts)?;
        let sum = |get: fn(&Trace) -> u64| traces.iter().map(get).sum::<u64>();
        let done = [
            ("items", items.len() as u64),
            ("forward", sum(|trace| trace.forward)),
            ("backward", sum(|trace| trace.backward)),
        ];
        for (unit, amount) in done.into_iter().filter(|(_, amount)| *amount > 0) {
            watch.work(unit, amount);
        }
        let outcome = |((item, trace), after): ((Item<'_>, Trace), Vec<f32>)| Outcome {
            id: item.id.to_owned(),
            label: item.label,
            original: item.input.clone(),
            before: item.before,
            after,
            wanted,
            trace,
        };
        Ok(items
            .into_iter()
            .zip(traces)
            .zip(after)
            .map(outcome)
            .collect())
    }
}

/// The vectors among a network's weights.
fn own_vectors(model: &Model, params: &nn::params::Params<f32>) -> Option<Vectors> {
    let span = model.layout().find("embedding")?;
    Some(Vectors {
        dim: span.cols,
        data: params.get(span).into(),
    })
}

/// Groups of items in parallel, in the order of items.
fn in_groups(
    items: &[Item<'_>],
    ready: &dyn Ready,
    watch: &dyn Watch,
) -> Result<Vec<Trace>, Failure> {
    let done = AtomicU64::new(0);
    let group = |group: &[Item<'_>]| {
        if watch.stopped() {
            return Err(Failure::stopped());
        }
        let traces = ready.attack(group)?;
        let done = done.fetch_add(group.len() as u64, Ordering::Relaxed) + group.len() as u64;
        watch.progress(done, items.len() as u64);
        Ok(traces)
    };
    let groups: Vec<Vec<Trace>> = items
        .par_chunks(GROUP)
        .map(group)
        .collect::<Result<_, _>>()?;
    Ok(groups.into_iter().flatten().collect())
}

/// The words by id, from the output `vocab` of a tokenize stage.
fn words(table: &RecordBatch) -> Result<StringArray, Failure> {
    let words = table.column_by_name("token");
    let words = words.and_then(|c| c.as_string_opt::<i32>());
    words.cloned().ok_or_else(|| {
        Failure::new("the input `vocab` has no column `token`")
            .help("connect the output `vocab` of a tokenize stage")
    })
}
