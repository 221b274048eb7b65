//! Optimal control (P1): the perturbation of the whole sequence at once, by single shooting.
//!
//! Paper: Deka, Stipanovic, Tomlin, "Dynamically computed adversarial perturbations for recurrent
//! neural networks", which uses a control toolbox.
//!
//! ```text
//! minimise over u:  -V(h(T)) + sum_k 0.1 R u(k)^T u(k),   h(k+1) = F(h(k), x(k) + eps tanh(u(k)))
//! ```
//!
//! `V(h(T))` is the margin of the wrong class: the best other logit minus that of the true class,
//! or that of the target minus the best other. Ours: back-propagation through time and Adam from
//! noise of size 1e-3; of all iterates the one with the least objective is taken. It is the one
//! attack of the paper that sees the future.

use nn::batch::{Example, Sequence, Target};
use nn::objectives::Objective;
use nn::stepping::Aim;

use crate::contract::description::{Constant, Param};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::entry::{Attack, AttackEntry, Changes, PreparedAttack, Victims};
use crate::kinds::attack::online::{CLIP01, EPS, ITERATIONS, Pursuit, TARGET, within_eps};
use crate::kinds::attack::trace::{Trace, passes};
use crate::params::settings::{Settings, failure};
use crate::{Failure, models};

/// The time of a sample in the sum.
const DT: f64 = 0.1;

const PENALTY: Param = Param::float(
    "penalty",
    1.0,
    (0.0, 1e9),
    "R, the weight of the squared control.",
);
const RATE: Param = Param::float("rate", 0.05, (1e-9, 1e3), "Adam's learning rate.");
const STEPS: Param = ITERATIONS.or(Constant::Int(300));

/// The attack.
pub struct OptimalControl;

struct Prepared<'a> {
    pursuit: Pursuit<'a>,
    eps: f64,
    penalty: f64,
    iterations: usize,
    rate: f64,
}

impl Attack for OptimalControl {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "optimal-control",
            file: "stages/kinds/attack/attacks/optimal_control.rs",
            summary: "Optimises the perturbation of a whole signal by shooting.",
            details: "The only attack on signals that sees future samples.",
            params: &[EPS, TARGET, CLIP01, PENALTY, STEPS, RATE],
            changes: Changes::Numbers,
            victims: Victims::Networks,
            budget: within_eps,
            ..AttackEntry::PLAIN
        }
    }

    fn draws(&self, _: Settings<'_>) -> bool {
        true
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let s = context.settings();
        let eps = s.float("eps").map_err(failure)?;
        Ok(Box::new(Prepared {
            pursuit: Pursuit::new("optimal-control", context, Some(eps))?,
            eps,
            penalty: s.float("penalty").map_err(failure)?,
            iterations: s.int("iterations").map_err(failure)?,
            rate: s.float("rate").map_err(failure)?,
        }))
    }
}

/// One item on its way to the least objective.
struct Plan<'i> {
    item: &'i Item<'i>,
    channels: usize,
    /// 1 to make the margin of `class` small, -1 to make it large.
    sign: f64,
    class: u32,
    control: Vec<f64>,
    mean: Vec<f64>,
    square: Vec<f64>,
    best: (f64, Option<Sequence>),
}

impl Plan<'_> {
    /// The signal under the control of the moment.
    fn moved(&self, prepared: &Prepared<'_>) -> Result<Vec<f32>, Failure> {
        let limits = &prepared.pursuit.settled.limits;
        let pairs = self.item.signal()?.iter().zip(&self.control);
        let moved = |(x, u): (&f32, &f64)| limits.moved(*x, (prepared.eps * libm::tanh(*u)) as f32);
        Ok(pairs.map(moved).collect())
    }

    /// One step of Adam; `step` counts from 1.
    fn descend(&mut self, gradient: &[f32], step: usize, prepared: &Prepared<'_>) {
        let (one, two) = (0.9f64, 0.999f64);
        let bias = |beta: f64| 1.0 - libm::pow(beta, step as f64);
        for (k, g) in gradient.iter().enumerate() {
            let u = self.control[k];
            let slope = prepared.eps * (1.0 - libm::tanh(u).powi(2));
            let g = self.sign * f64::from(*g) * slope + 2.0 * DT * prepared.penalty * u;
            self.mean[k] = one * self.mean[k] + (1.0 - one) * g;
            self.square[k] = two * self.square[k] + (1.0 - two) * g * g;
            let (m, s) = (self.mean[k] / bias(one), self.square[k] / bias(two));
            self.control[k] -= prepared.rate * m / (s.sqrt() + 1e-8);
        }
    }
}

impl Prepared<'_> {
    fn plan<'i>(&self, item: &'i Item<'i>) -> Result<Option<Plan<'i>>, Failure> {
        let Some(goal) = self.pursuit.settled.goal(item) else {
            return Ok(None);
        };
        let (sign, class) = match goal.aim {
            Aim::Leave(class) => (1.0, class as u32),
            Aim::Reach(class) => (-1.0, class as u32),
        };
        let stream = self.pursuit.context.stream("optimal-control", item);
        let numbers = item.signal()?.len();
        Ok(Some(Plan {
            item,
            channels: item.channels()?,
            sign,
            class,
            control: (0..numbers as u64)
                .map(|k| 1e-3 * stream.normal(k))
                .collect(),
            mean: vec![0.0; numbers],
            square: vec![0.0; numbers],
            best: (f64::INFINITY, None),
        }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let plans = items.iter().map(|item| self.plan(item));
        let mut plans: Vec<Option<Plan<'_>>> = plans.collect::<Result<_, _>>()?;
        let victim = self.pursuit.context.subject.victim();
        for step in 1..=self.iterations {
            let mut examples = Vec::with_capacity(items.len());
            for plan in plans.iter().flatten() {
                let input = Sequence::of_rows(plan.channels, plan.moved(self)?);
                let target = Target::Class(plan.class);
                examples.push(Example { input, target });
            }
            if examples.is_empty() {
                break;
            }
            let asked: Vec<&Example> = examples.iter().collect();
            let gradients = victim.gradients(&asked, &Objective::Margin);
            let gradients = gradients.map_err(models::failure)?;
            let found = examples.into_iter().zip(gradients);
            for (plan, (example, gradient)) in plans.iter_mut().flatten().zip(found) {
                let effort: f64 = plan.control.iter().map(|u| u * u).sum();
                let objective = plan.sign * gradient.value + DT * self.penalty * effort;
                if objective < plan.best.0 {
                    plan.best = (objective, Some(example.input));
                }
                let slopes: Vec<f32> = gradient.input.into_iter().collect();
                plan.descend(&slopes, step, self);
            }
        }
        let trace = |(item, plan): (&Item<'_>, Option<Plan<'_>>)| {
            let Some(plan) = plan else {
                return Trace::untouched(item);
            };
            // A pass along the sequence is as many steps as it has.
            let steps = (self.iterations * item.input.len()) as u64;
            let none = || Sequence::of_rows(plan.channels, Vec::new());
            Trace {
                input: plan.best.1.unwrap_or_else(none),
                edits: Vec::new(),
                attacked: true,
                counters: passes(steps, steps),
                firsts: Vec::new(),
                probes: Vec::new(),
            }
        };
        Ok(items.iter().zip(plans).map(trace).collect())
    }
}
