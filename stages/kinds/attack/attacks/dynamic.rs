//! Dynamic fixed-point (P1, equation 18): the perturbation follows the fixed point instead of solving for it.
//!
//! Paper: Deka, Stipanovic, Tomlin, "Dynamically computed adversarial perturbations for recurrent
//! neural networks": `eps dd/dt = alpha B(h2, x, d)^T v - d`, by Euler's method with one step per sample.
//!
//! ```text
//! h2 = h(0), d = 0;  for each sample x(k):
//!     h2' = F(h2, x(k) + d)
//!     d = d + rho (alpha B(h2, x(k), d)^T v - d)     # v as in fixed-point, rho = dt / eps
//!     h2 = h2'
//! ```
//!
//! So the perturbation of a sample comes from the sample before, and one `B` a sample is all it costs.
//! With `substeps` the equation is followed more closely, for the theory: this many steps of
//! `rho / substeps` on the sample itself before it is perturbed, so that a smaller eps (a larger rho)
//! comes nearer to the fixed point. `start` draws `d(0)` from (-start, start) for each item.

use ndarray::{Array2, ArrayView2};
use nn::Real;
use nn::stepping::{OnlineContext, Quadrature, Rule};

use crate::contract::description::Param;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::entry::{Attack, AttackEntry, Begun, Changes, PreparedAttack, Victims};
use crate::kinds::attack::online::signs::Signs;
use crate::kinds::attack::online::{
    ALPHA, CLIP01, EPS, POINTS, Pursuit, Push, TARGET, THRESHOLD, V, keep_rows, within_eps,
};
use crate::kinds::attack::trace::Trace;
use crate::params::settings::{Settings, failure, wrong};
use crate::{Failure, ParamError, models};

const RHO: Param = Param::float(
    "rho",
    1.0,
    (1e-9, 1e9),
    "The time of a sample divided by the eps of equation 18.",
);
const SUBSTEPS: Param = Param::int(
    "substeps",
    0,
    0,
    "0 takes one step for the next sample; more are taken on the sample itself.",
);
const START: Param = Param::float(
    "start",
    0.0,
    (0.0, 1e9),
    "The initial perturbation is drawn from (-start, start).",
);

/// The attack.
pub struct Dynamic;

/// The equation and where it has come to.
pub struct Follower<T> {
    pub alpha: f64,
    pub push: Push,
    pub points: Quadrature,
    pub rho: f64,
    pub substeps: usize,
    /// The perturbation (items, input); before the first sample empty, or what to begin with.
    pub delta: Array2<T>,
}

impl<T: Real> Follower<T> {
    /// One step, by this fraction of `rho`, towards the right-hand side of the equation.
    fn follow(
        &mut self,
        now: &mut OnlineContext<'_, '_, T>,
        v: ArrayView2<'_, T>,
        rate: f64,
    ) -> nn::Result<()> {
        let pulled = now.pull_all(v, self.delta.view(), &self.points)?;
        let (alpha, rate) = (T::of(self.alpha), T::of(rate));
        for (d, g) in self.delta.iter_mut().zip(pulled) {
            *d += rate * (alpha * g - *d);
        }
        Ok(())
    }
}

impl<T: Real> Rule<T> for Follower<T> {
    fn perturb(&mut self, now: &mut OnlineContext<'_, '_, T>) -> nn::Result<Array2<T>> {
        if now.sample() == 0 && self.delta.is_empty() {
            self.delta = Array2::from_elem(now.inputs().dim(), T::ZERO);
        }
        let mut d = self.delta.clone();
        let v = match self.push {
            Push::Gradient => now.ascent()?,
            // Without an initial perturbation nothing would ever move; one that has begun elsewhere needs none.
            Push::Error if now.sample() == 0 && d.iter().all(|d| *d == T::ZERO) => {
                d = Signs { alpha: self.alpha }.perturb(now)?;
                return Ok(d);
            }
            Push::Error => now.error(),
        };
        for _ in 0..self.substeps {
            self.follow(now, v.view(), self.rho / self.substeps as f64)?;
            d.clone_from(&self.delta);
        }
        if self.substeps == 0 {
            self.follow(now, v.view(), self.rho)?;
        }
        Ok(d)
    }

    fn follows_nominal(&self) -> bool {
        self.push == Push::Error
    }

    fn keep(&mut self, items: usize) {
        keep_rows(&mut self.delta, items);
    }
}

struct Prepared<'a> {
    pursuit: Pursuit<'a>,
}

fn rates(s: Settings<'_>) -> Result<(f64, usize, f64), ParamError> {
    let substeps = s.int("substeps")?;
    let rho = s.float("rho")?;
    let most = substeps.max(1) as f64;
    if rho > most {
        let message = format!("`rho` is {rho}, and a step would go past the fixed point");
        let help = format!("it must be at most {most}, or take more `substeps`");
        return Err(wrong("rho", message, help));
    }
    Ok((rho, substeps, s.float("start")?))
}

/// The equation before the first sample. `streams` are of the items, if their starts are drawn.
fn follower(
    s: Settings<'_>,
    streams: &[nn::Stream],
    channels: usize,
) -> Result<Follower<f32>, Failure> {
    let (rho, substeps, start) = rates(s).map_err(failure)?;
    let mut delta = Vec::new();
    for stream in streams.iter().filter(|_| start > 0.0) {
        let draw = |k| (start * (2.0 * stream.uniform(k) - 1.0)) as f32;
        delta.extend((0..channels as u64).map(draw));
    }
    let shape = (delta.len() / channels.max(1), channels);
    let delta = Array2::from_shape_vec(shape, delta).expect("as many numbers of each item");
    let points = s.int("points").map_err(failure)?;
    Ok(Follower {
        alpha: s.float("alpha").map_err(failure)?,
        push: Push::read(s).map_err(failure)?,
        points: Quadrature::new(points).map_err(models::failure)?,
        rho,
        substeps,
        delta,
    })
}

impl Attack for Dynamic {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "dynamic",
            file: "stages/kinds/attack/attacks/dynamic.rs",
            summary: "Perturbs every sample of a signal; the perturbation follows the fixed point, one step per sample.",
            paper: "Deka, Stipanovic, Tomlin: Dynamically computed adversarial perturbations for recurrent neural networks",
            params: const {
                &[
                    ALPHA,
                    EPS.optional(),
                    TARGET,
                    THRESHOLD,
                    CLIP01,
                    POINTS,
                    V,
                    RHO,
                    SUBSTEPS,
                    START,
                ]
            },
            changes: Changes::Numbers,
            victims: Victims::Recurrent,
            budget: within_eps,
            streams: true,
            ..AttackEntry::PLAIN
        }
    }

    fn check(&self, settings: Settings<'_>) -> Result<(), ParamError> {
        rates(settings).map(drop)
    }

    fn draws(&self, settings: Settings<'_>) -> bool {
        rates(settings).is_ok_and(|(_, _, start)| start > 0.0)
    }

    fn draws_with(&self) -> Option<&'static str> {
        Some("draw where perturbations begin: `start`")
    }

    fn rule(&self, settings: Settings<'_>) -> Result<Option<Begun>, Failure> {
        let (_, _, start) = rates(settings).map_err(failure)?;
        if start > 0.0 {
            return Err(Failure::new(
                "`start` is drawn for each row of a table, and a stream has none",
            )
            .help("leave it out: --set STAGE.start=0"));
        }
        Ok(Some((Box::new(follower(settings, &[], 0)?), None)))
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        rates(context.settings()).map_err(failure)?;
        let pursuit = Pursuit::new("dynamic", context, None)?;
        Ok(Box::new(Prepared { pursuit }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let context = self.pursuit.context;
        let rule = |items: &[&Item<'_>]| {
            let streams = items.iter().map(|item| context.stream("dynamic", item));
            let channels = items.first().map_or(Ok(0), |item| item.channels())?;
            follower(context.settings(), &streams.collect::<Vec<_>>(), channels)
        };
        self.pursuit.run(items, rule, |_, _| None)
    }
}
