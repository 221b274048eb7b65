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
//! or that of the target minus the best other. Ours: back-propagation through time and Adam, from
//! noise of size 1e-3 and from what gradient-sign finds within the same bound. Of all iterates that
//! reach the goal, or of all if none does, the one with the least objective is taken: who sees the
//! future must not lose to who does not. It is the one attack of the paper that sees it.

use nn::batch::{Example, Sequence, Target};
use nn::objectives::Objective;
use nn::stepping::Aim;

use crate::contract::description::{Constant, Param};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::entry::{Attack, AttackEntry, Changes, PreparedAttack, Victims};
use crate::kinds::attack::online::signs::Signs;
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
const STARTS: Param = Param::choice(
    "starts",
    &["both", "noise"],
    "Where the search begins: both (at noise, and at the perturbation of gradient-sign) or noise alone.",
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
    from_signs: bool,
}

impl Attack for OptimalControl {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "optimal-control",
            file: "stages/kinds/attack/attacks/optimal_control.rs",
            summary: "Optimises the perturbation of a whole signal by shooting.",
            details: "The only attack on signals that sees future samples.",
            paper: "Deka, Stipanovic, Tomlin: Dynamically computed adversarial perturbations for recurrent neural networks",
            params: &[EPS, TARGET, CLIP01, PENALTY, STEPS, RATE, STARTS],
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
            from_signs: s.text("starts") != Some("noise"),
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
    best: Best,
}

/// The best signal so far.
#[derive(Clone, Debug)]
struct Best {
    reached: bool,
    objective: f64,
    signal: Option<Sequence>,
}

impl Best {
    const NONE: Best = Best {
        reached: false,
        objective: f64::INFINITY,
        signal: None,
    };

    /// Reaching the goal comes first.
    fn is_worse_than(&self, other: &Best) -> bool {
        match self.reached == other.reached {
            true => other.objective < self.objective,
            false => other.reached,
        }
    }

    fn or(self, other: Best) -> Best {
        match self.is_worse_than(&other) {
            true => other,
            false => self,
        }
    }
}

/// How near to its bound a control may begin: at the bound itself nothing moves it.
const INSIDE: f64 = 0.98;

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
    /// A search from a given control.
    fn plan<'i>(&self, item: &'i Item<'i>, control: Vec<f64>) -> Result<Option<Plan<'i>>, Failure> {
        let Some(goal) = self.pursuit.settled.goal(item) else {
            return Ok(None);
        };
        let (sign, class) = match goal.aim {
            Aim::Leave(class) => (1.0, class as u32),
            Aim::Reach(class) => (-1.0, class as u32),
        };
        let numbers = control.len();
        Ok(Some(Plan {
            item,
            channels: item.channels()?,
            sign,
            class,
            control,
            mean: vec![0.0; numbers],
            square: vec![0.0; numbers],
            best: Best::NONE,
        }))
    }

    fn noise(&self, item: &Item<'_>) -> Result<Vec<f64>, Failure> {
        let stream = self.pursuit.context.stream("optimal-control", item);
        let numbers = item.signal()?.len() as u64;
        Ok((0..numbers).map(|k| 1e-3 * stream.normal(k)).collect())
    }

    /// The control that comes near to a perturbed signal.
    fn towards(&self, item: &Item<'_>, perturbed: &Sequence) -> Result<Vec<f64>, Failure> {
        let Sequence::Vectors(perturbed) = perturbed else {
            return Err(Failure::new("the perturbed row is not a signal"));
        };
        let pairs = item.signal()?.iter().zip(perturbed);
        let control = |(x, y): (&f32, &f32)| {
            // Without a bound to move in there is nothing to come near to.
            let share = f64::from(y - x) / self.eps.max(f64::MIN_POSITIVE);
            libm::atanh(share.clamp(-INSIDE, INSIDE))
        };
        Ok(pairs.map(control).collect())
    }

    /// Walks all plans down together. `first`: signals to look at before, in the order of the plans.
    fn descend(
        &self,
        plans: &mut [Option<Plan<'_>>],
        first: Option<&[Sequence]>,
    ) -> Result<(), Failure> {
        if let Some(signals) = first {
            self.look(plans, signals.to_vec(), |_, _| ())?;
        }
        for step in 1..=self.iterations {
            let moved = plans.iter().flatten();
            let moved = moved.map(|plan| Ok(Sequence::of_rows(plan.channels, plan.moved(self)?)));
            let moved = moved.collect::<Result<Vec<_>, Failure>>()?;
            self.look(plans, moved, |plan, slopes| {
                plan.descend(slopes, step, self)
            })?;
        }
        Ok(())
    }

    /// One pass over a signal of each plan: keeps it if it is the best, and hands on its slopes.
    fn look<'i>(
        &self,
        plans: &mut [Option<Plan<'i>>],
        signals: Vec<Sequence>,
        then: impl Fn(&mut Plan<'i>, &[f32]),
    ) -> Result<(), Failure> {
        let targets = plans.iter().flatten().map(|plan| Target::Class(plan.class));
        let examples = signals.into_iter().zip(targets);
        let examples: Vec<Example> = examples
            .map(|(input, target)| Example { input, target })
            .collect();
        if examples.is_empty() {
            return Ok(());
        }
        let asked: Vec<&Example> = examples.iter().collect();
        let victim = self.pursuit.context.subject.victim();
        let gradients = victim.gradients(&asked, &Objective::Margin);
        let found = examples
            .iter()
            .zip(gradients.map_err(models::failure)?)
            .zip(plans.iter_mut().flatten());
        for ((example, gradient), plan) in found {
            let margin = plan.sign * gradient.value;
            let effort: f64 = plan.control.iter().map(|u| u * u).sum();
            let now = Best {
                reached: margin < 0.0,
                objective: margin + DT * self.penalty * effort,
                signal: None,
            };
            if plan.best.is_worse_than(&now) {
                plan.best = Best {
                    signal: Some(example.input.clone()),
                    ..now
                };
            }
            let slopes: Vec<f32> = gradient.input.into_iter().collect();
            then(plan, &slopes);
        }
        Ok(())
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let from_noise = items.iter().map(|item| self.plan(item, self.noise(item)?));
        let mut from_noise = from_noise.collect::<Result<Vec<_>, Failure>>()?;
        self.descend(&mut from_noise, None)?;
        let mut found: Vec<Option<Best>> = from_noise
            .into_iter()
            .map(|plan| plan.map(|plan| plan.best))
            .collect();
        let (mut starts, mut looked) = (1, 0);
        let mut greedy: Vec<Option<Trace>> = vec![None; items.len()];
        if self.from_signs {
            let rule = |_: &[&Item<'_>]| Ok(Signs { alpha: self.eps });
            let traces = self.pursuit.run(items, rule, |_, _| None)?;
            let plans = items.iter().zip(&traces);
            let plans =
                plans.map(|(item, trace)| self.plan(item, self.towards(item, &trace.input)?));
            let mut plans = plans.collect::<Result<Vec<_>, Failure>>()?;
            let signals: Vec<Sequence> = plans
                .iter()
                .zip(&traces)
                .filter(|(plan, _)| plan.is_some())
                .map(|(_, trace)| trace.input.clone())
                .collect();
            self.descend(&mut plans, Some(&signals))?;
            for (best, plan) in found.iter_mut().zip(plans) {
                *best = best.take().zip(plan).map(|(best, plan)| best.or(plan.best));
            }
            greedy = traces.into_iter().map(Some).collect();
            (starts, looked) = (2, 1);
        }
        let each = items.iter().zip(found).zip(greedy);
        let trace = |((item, best), greedy): ((&Item<'_>, Option<Best>), Option<Trace>)| {
            let Some(signal) = best.and_then(|best| best.signal) else {
                return Ok(Trace::untouched(item));
            };
            // A pass along the sequence is as many steps as it has.
            let steps = ((starts * self.iterations + looked) * item.input.len()) as u64;
            let mut counters = passes(steps, steps);
            for (name, count) in greedy.into_iter().flat_map(|trace| trace.counters) {
                *counters.entry(name).or_default() += count;
            }
            Ok(Trace {
                input: signal,
                edits: Vec::new(),
                attacked: true,
                counters,
                firsts: Vec::new(),
                probes: Vec::new(),
            })
        };
        each.map(trace).collect()
    }
}
