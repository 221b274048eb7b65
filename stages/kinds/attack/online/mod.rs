//! Attacks on signals that run while the sequence arrives: their parameters, and the walk along all items.
//! What is added to a sample is the attack's own rule; see `nn::stepping`.

pub mod signs;
pub mod solver;

use ndarray::{Array2, ArrayView2, s};
use nn::batch::Sequence;
use nn::models::Model;
use nn::stepping::{Aim, Goal, Limits, Online, Rule};

use crate::contract::description::{Param, Range};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::entry::Budget;
use crate::kinds::attack::trace::{Trace, passes};
use crate::models::entry::Subject;
use crate::models::failure as refused;
use crate::params::settings::{Settings, failure};
use crate::tables::examples::HALVED;
use crate::{Failure, ParamError};

/// The largest number that makes sense anywhere.
const HUGE: (f64, f64) = (0.0, 1e9);

/// How large perturbations are.
pub const ALPHA: Param = Param::float(
    "alpha",
    1.0,
    HUGE,
    "The size of a perturbation: the step of gradient-sign, the gain of the others.",
);
/// The bound on a perturbation.
pub const EPS: Param = Param::float(
    "eps",
    0.15,
    HUGE,
    "The maximum change of a number (L-infinity norm).",
);
/// The class to reach.
pub const TARGET: Param = Param::int(
    "target",
    0,
    0,
    "The class to reach; default: any wrong one.",
)
.optional();
/// Where the objective rests.
pub const THRESHOLD: Param = Param::float(
    "threshold",
    0.5,
    (1e-9, 1.0),
    "V = max(0, threshold - y)^2, which is 0 where the model is more confident; default: V = -ln y.",
)
.optional();
/// Whether numbers are intensities.
pub const CLIP01: Param = Param::flag(
    "clip01",
    false,
    "Whether perturbed numbers are clipped to [0, 1].",
);
/// The quadrature's size.
pub const POINTS: Param = Param {
    range: Range::Ints(1, 16),
    ..Param::int(
        "points",
        4,
        1,
        "Points of the quadrature over the perturbation.",
    )
};
/// Iterations of a solver.
pub const ITERATIONS: Param = Param::int(
    "iterations",
    30,
    1,
    "Maximum iterations with one alpha; of optimal-control, steps of Adam.",
);
/// The direction of the push.
pub const V: Param = Param::choice(
    "v",
    &["gradient", "error"],
    "The direction, the gradient of V or the error h2 - h1.",
);

/// The bound that `eps` declares.
pub fn within_eps(s: Settings<'_>) -> Budget {
    s.maybe_float("eps").map_or(Budget::Unlimited, Budget::Linf)
}

/// Drops the rows of items that have ended.
pub fn keep_rows<T: Clone>(rows: &mut Array2<T>, items: usize) {
    if items < rows.nrows() {
        *rows = rows.slice(s![..items, ..]).to_owned();
    }
}

/// What attacks on signals share.
pub struct Settled {
    target: Option<u32>,
    threshold: Option<f64>,
    pub limits: Limits,
}

/// The direction in which a state is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// The gradient of V, of length 1.
    Gradient,
    /// The distance of the two runs; at first, where there is none, the sign of the gradient.
    Error,
}

impl Push {
    pub fn read(s: Settings<'_>) -> Result<Push, ParamError> {
        match s.text("v") {
            // Word mapping has no other.
            None => Ok(Push::Gradient),
            Some(_) => s.one_of("v", &[("gradient", Push::Gradient), ("error", Push::Error)]),
        }
    }
}

impl Settled {
    /// The shared parameters. `linf` is the attack's own limit, if it has one.
    pub fn read(s: Settings<'_>, linf: Option<f64>) -> Result<Settled, ParamError> {
        let own = linf.unwrap_or(f64::INFINITY);
        let eps = s.maybe_float("eps").map(|eps| eps.min(own));
        // Attacks on words have no range.
        let clip = s.flag("clip01").unwrap_or(false);
        Ok(Settled {
            target: s.maybe_int("target").map(|class| class as u32),
            threshold: s.maybe_float("threshold"),
            limits: Limits {
                linf: eps.or(linf),
                range: clip.then_some((0.0, 1.0)),
            },
        })
    }

    /// The class to reach.
    pub fn target(&self) -> Option<u32> {
        self.target
    }

    /// Where V rests.
    pub fn threshold(&self) -> Option<f64> {
        self.threshold
    }

    /// What an item shall become; nothing if it is that already.
    pub fn goal(&self, item: &Item<'_>) -> Option<Goal> {
        let aim = match self.target {
            None => Aim::Leave(item.label as usize),
            Some(class) if class == item.label => return None,
            Some(class) => Aim::Reach(class as usize),
        };
        Some(Goal {
            aim,
            threshold: self.threshold,
        })
    }

    /// An error for a class that the model does not know.
    pub fn known(&self, classes: usize) -> Result<(), Failure> {
        match self.target {
            Some(class) if class as usize >= classes => Err(Failure::new(format!(
                "the target class is {class}, but the model has {classes} classes"
            ))
            .help(format!("`target` is at most {}", classes - 1))
            .at("target")),
            _ => Ok(()),
        }
    }
}

/// An attack on signals, with its parameters.
pub struct Pursuit<'a> {
    pub context: &'a AttackContext<'a>,
    pub settled: Settled,
    model: &'a Model,
    weights: &'a nn::autodiff::Params<f32>,
}

impl<'a> Pursuit<'a> {
    /// An error for a model that cannot be read step by step.
    pub fn new(
        attack: &str,
        context: &'a AttackContext<'a>,
        linf: Option<f64>,
    ) -> Result<Pursuit<'a>, Failure> {
        let settled = Settled::read(context.settings(), linf).map_err(failure)?;
        settled.known(context.classes)?;
        let Subject::Network(network) = context.subject else {
            return Err(
                Failure::new(format!("the attack `{attack}` needs a recurrent network"))
                    .help("connect a train stage with model = \"rnn\", \"gru\" or \"lstm\""),
            );
        };
        let (model, weights) = network.parts();
        Ok(Pursuit {
            context,
            settled,
            model,
            weights,
        })
    }

    /// Walks along all items at once. `rule` makes the rule of some items in their order; `halved` says at how many
    /// samples of one of them it took a smaller gain than its own.
    pub fn run<R: Rule<f32>>(
        &self,
        items: &[Item<'_>],
        rule: impl Fn(&[&Item<'_>]) -> Result<R, Failure>,
        halved: impl Fn(&R, usize) -> Option<u64>,
    ) -> Result<Vec<Trace>, Failure> {
        let mut traces: Vec<Trace> = items.iter().map(Trace::untouched).collect();
        let mut places: Vec<(usize, Goal)> = Vec::new();
        for (place, item) in items.iter().enumerate() {
            item.signal()?;
            places.extend(self.settled.goal(item).map(|goal| (place, goal)));
        }
        if places.is_empty() {
            return Ok(traces);
        }
        // The longest first, so that those still going are always the first ones.
        places.sort_by_key(|(place, _)| std::cmp::Reverse(items[*place].input.len()));
        let going: Vec<&Item<'_>> = places.iter().map(|(place, _)| &items[*place]).collect();
        let goals = places.iter().map(|(_, goal)| *goal).collect();
        let mut online = Online::new(
            self.model,
            self.weights,
            rule(&going)?,
            goals,
            self.settled.limits,
        )
        .map_err(refused)?;
        let width = online.width();
        let mut moved: Vec<Vec<f32>> = vec![Vec::new(); going.len()];
        for k in 0..going[0].input.len() {
            let left = going.iter().take_while(|i| i.input.len() > k).count();
            online.keep(left);
            let mut samples = Vec::with_capacity(left * width);
            for item in &going[..left] {
                samples.extend_from_slice(&item.signal()?[k * width..(k + 1) * width]);
            }
            let samples = ArrayView2::from_shape((left, width), &samples).expect("whole samples");
            let read = online.push(samples).map_err(refused)?;
            for (item, sample) in moved.iter_mut().zip(read.outer_iter()) {
                item.extend(sample);
            }
        }
        let done = places.iter().zip(moved).zip(online.bill()).enumerate();
        for (item, (((place, _), data), bill)) in done {
            let mut counters = passes(bill.forwards, bill.backwards);
            counters.extend(halved(online.rule(), item).map(|samples| (HALVED, samples)));
            traces[*place] = Trace {
                input: Sequence::of_rows(width, data),
                edits: Vec::new(),
                attacked: true,
                counters,
                firsts: Vec::new(),
                probes: Vec::new(),
            };
        }
        Ok(traces)
    }
}
