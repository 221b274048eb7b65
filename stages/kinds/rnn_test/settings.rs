//! The parameters of `rnn-test`, read once.

use nn::coverage::{CoverageSpec, GateSource, Guidance, StateMetric, Strategy};
use store::Params;

use crate::ParamError;
use crate::contract::description::Param;
use crate::models::entry::ModelTask;
use crate::params::settings::{Settings, wrong};

/// What the gradient is of, beside coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// Nothing.
    None,
    /// `h_(t-1) + c_t - h_t`, summed over layers and units.
    State,
    /// The loss.
    Cost,
    /// The logits of ranks 2 to `ranks` minus that of rank 1, at the output of step t.
    Decision,
    /// There is no gradient: a random token replaces the one at t.
    Random,
}

/// Which positions are tried after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallBack {
    /// None: the input is left as it is.
    None,
    /// The other characters of the word, then a random replacement.
    Word,
    /// All other characters, then a random replacement.
    Input,
}

const BY_GRADIENT: &[&str] = &["none", "state", "cost", "decision"];
const METRICS: &[&str] = &["HS", "CS", "G_i", "G_n", "G_f", "G_o", "DX"];

/// The parameters.
pub const PARAMS: &[Param] = &[
    Param::choice(
        "orientation",
        &["none", "state", "cost", "decision", "random"],
        "What the gradient is of: states, the loss, the decision, or coverage alone; random replaces a token at random, without a gradient.",
    ),
    Param::choice(
        "coverage",
        &["none", "HS", "CS", "G_i", "G_n", "G_f", "G_o", "DX"],
        "The coverage that is to rise: it is added to the orientation.",
    )
    .when("orientation", BY_GRADIENT),
    Param::choice(
        "strategy",
        &["boosting", "random"],
        "Which states: those nearest to being covered, or uncovered ones at random.",
    )
    .when("coverage", METRICS),
    Param::flag(
        "refill",
        true,
        "Whether covered states are drawn where fewer are uncovered than `states`; without them, and without an orientation, later inputs stay as they are once all are covered.",
    )
    .when("strategy", &["random"]),
    Param::int(
        "states",
        50,
        1,
        "How many states the coverage adds up; default: 5 per token for language models, one per 5 tokens for sequence-to-sequence models.",
    )
    .when("coverage", METRICS)
    .optional(),
    Param::int("ranks", 3, 2, "The last rank that counts against rank 1.")
        .when("orientation", &["decision"]),
    Param::flag(
        "swap_hc",
        false,
        "Whether hidden and cell states change places, as in the authors' script for language models.",
    )
    .when("orientation", &["state"]),
    Param::flag(
        "restricted",
        false,
        "Whether the gradient at the position is divided by its L2 norm.",
    )
    .when("orientation", BY_GRADIENT),
    Param::float(
        "scale_first",
        5.0,
        (1e-6, 1e9),
        "The first factor of the gradient; default: 5 for language models, 1 for sequence-to-sequence models.",
    )
    .when("orientation", BY_GRADIENT)
    .optional(),
    Param::float(
        "scale_step",
        5.0,
        (1e-6, 1e9),
        "From one factor to the next; default: 5, or 2.",
    )
    .when("orientation", BY_GRADIENT)
    .optional(),
    Param::float(
        "scale_last",
        65.0,
        (1e-6, 1e9),
        "The last factor; default: 65, or 199.",
    )
    .when("orientation", BY_GRADIENT)
    .optional(),
    Param::text("split", "test", "The rows to test."),
    Param::int("items", 0, 0, "How many inputs, the first ones; 0 = all."),
    Param::int(
        "window",
        10,
        2,
        "For language models: how many tokens an input has; 10 unless it is written.",
    )
    .optional(),
    Param {
        range: crate::contract::description::Range::OneOf(&["none", "word", "input"]),
        ..Param::text(
            "fall_back",
            "word",
            "For sequence-to-sequence models, where the gradient changes nothing at the position: the other characters of the \"word\" or of the whole \"input\", then a random replacement; or \"none\". \"word\" unless it is written.",
        )
        .optional()
    },
    Param::float(
        "top_fraction",
        0.0,
        (0.0, 1.0),
        "HS: the share of a vector that counts as its maximum; at least one state.",
    ),
    Param::float(
        "threshold",
        0.5,
        (0.0, 1.0),
        "DX: what a hidden state must be above, scaled from 0 to 1 in its layer.",
    ),
    Param::choice(
        "gate_source",
        &["real", "authors"],
        "G: the gates of the cell, or quarters of what the cell reads, as in the authors' code.",
    ),
];

/// The factors of the gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scales {
    first: f64,
    step: f64,
    last: f64,
}

impl Scales {
    /// In their order.
    pub fn each(self) -> impl Iterator<Item = f64> {
        let count = ((self.last - self.first) / self.step + 1e-9) as u64;
        (0..=count).map(move |k| self.first + k as f64 * self.step)
    }
}

/// The parameters, read.
#[derive(Clone, Copy, Debug)]
pub struct TestSettings {
    pub orientation: Orientation,
    pub guidance: Option<Guidance>,
    states: Option<usize>,
    pub ranks: usize,
    pub swap_hc: bool,
    pub restricted: bool,
    scales: [Option<f64>; 3],
    pub items: usize,
    pub window: Option<usize>,
    pub fall_back: Option<FallBack>,
    pub coverage: CoverageSpec,
}

const ORIENTATIONS: &[(&str, Orientation)] = &[
    ("none", Orientation::None),
    ("state", Orientation::State),
    ("cost", Orientation::Cost),
    ("decision", Orientation::Decision),
    ("random", Orientation::Random),
];
const STRATEGIES: &[(&str, Strategy)] = &[
    ("boosting", Strategy::Boosting),
    ("random", Strategy::Random),
];
const GATES: &[(&str, GateSource)] =
    &[("real", GateSource::Real), ("authors", GateSource::Authors)];
const FALL_BACKS: &[(&str, FallBack)] = &[
    ("none", FallBack::None),
    ("word", FallBack::Word),
    ("input", FallBack::Input),
];

impl TestSettings {
    /// From completed parameters.
    pub fn read(params: &Params) -> Result<TestSettings, ParamError> {
        let s = Settings(params);
        let orientation = s.one_of("orientation", ORIENTATIONS)?;
        let named = StateMetric::ALL.map(|metric| (metric.name(), metric));
        let metric = s.text("coverage").filter(|name| *name != "none");
        let guidance = match metric {
            None => None,
            Some(_) => Some(Guidance {
                metric: s.one_of("coverage", &named)?,
                strategy: s.one_of("strategy", STRATEGIES)?,
                // Whoever knows the input says how many.
                elements: 0,
                refill: s.flag("refill").unwrap_or(true),
            }),
        };
        if orientation == Orientation::None && guidance.is_none() {
            let message = "there is nothing to follow: no orientation and no coverage".to_owned();
            let help =
                "choose an orientation or a coverage, or orientation = \"random\" as a baseline";
            return Err(wrong("orientation", message, help));
        }
        let scales = ["scale_first", "scale_step", "scale_last"].map(|name| s.maybe_float(name));
        let fall_back = match s.text("fall_back") {
            None => None,
            Some(_) => Some(s.one_of("fall_back", FALL_BACKS)?),
        };
        Ok(TestSettings {
            orientation,
            guidance,
            states: s.maybe_int("states"),
            ranks: s.maybe_int("ranks").unwrap_or(3),
            swap_hc: s.flag("swap_hc").unwrap_or(false),
            restricted: s.flag("restricted").unwrap_or(false),
            scales,
            items: s.int("items")?,
            window: s.maybe_int("window"),
            fall_back,
            coverage: CoverageSpec {
                // Whoever knows the inputs says how long they are.
                steps: 0,
                top_fraction: s.float("top_fraction")?,
                threshold: s.float("threshold")?,
                gate_source: s.one_of("gate_source", GATES)?,
            },
        })
    }
}

impl TestSettings {
    /// The factors of the gradient, for a model of a task.
    pub fn scales(&self, task: ModelTask) -> Result<Scales, ParamError> {
        let defaults = match task {
            ModelTask::Translate => [1.0, 2.0, 199.0],
            _ => [5.0, 5.0, 65.0],
        };
        let [first, step, last] = [0, 1, 2].map(|n| self.scales[n].unwrap_or(defaults[n]));
        if last < first {
            let message = format!("`scale_last` is {last}, less than `scale_first`, {first}");
            let help = "raise it, or lower `scale_first`";
            return Err(wrong("scale_last", message, help));
        }
        Ok(Scales { first, step, last })
    }

    /// What coverage looks at in an input of so many tokens, for a model of a task.
    pub fn guidance(&self, task: ModelTask, tokens: usize) -> Option<Guidance> {
        let states = match task {
            ModelTask::Translate => (tokens / 5).max(1),
            _ => 5 * tokens,
        };
        let elements = self.states.unwrap_or(states);
        self.guidance.map(|guidance| Guidance {
            elements,
            ..guidance
        })
    }
}

/// Refuses parameters that are for other models than those of a task.
pub fn for_task(params: &Params, task: Option<ModelTask>) -> Result<(), ParamError> {
    if let Some(task) = task {
        TestSettings::read(params)?.scales(task)?;
    }
    let idle = match task {
        Some(ModelTask::Language) => ["fall_back", "is for sequence-to-sequence models"],
        Some(ModelTask::Translate) => ["window", "is for language models"],
        _ => return Ok(()),
    };
    let param = PARAMS.iter().find(|param| param.name == idle[0]);
    match param.filter(|param| params.contains_key(param.name)) {
        Some(param) => {
            let message = format!("`{}` would have no effect here", param.name);
            Err(wrong(
                param.name,
                message,
                format!("leave it out: it {}", idle[1]),
            ))
        }
        None => Ok(()),
    }
}
