//! Fixed-point (P1, equations 15 and 16): the perturbation that solves `d = alpha B(h2, x, d)^T v`.
//!
//! Paper: Deka, Stipanovic, Tomlin, "Dynamically computed adversarial perturbations for recurrent
//! neural networks". `B(h2, x, d)` is the mean of `Fx(h2, x + l d)` over `l` from 0 to 1.
//!
//! ```text
//! h2 = h(0), d = 0;  for each sample x(k):
//!     v = grad V(h2) / |grad V(h2)|              # or e = h2 - h1
//!     repeat d = alpha B(h2, x(k), d)^T v        # until it moves by less than 1e-5
//!     h2 = F(h2, x(k) + d)
//! ```
//!
//! The map must be a contraction: when one step is longer than half of the one before, alpha is
//! halved for this sample. Differs: `v` is the gradient's direction, because with the paper's
//! `v = e` nothing ever leaves `e = 0`; with `v = "error"` the first sample gets gradient-sign's
//! step. Limits (`eps`) apply to the solution, not to the equation.

use crate::Failure;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::entry::{Attack, AttackEntry, Begun, Changes, PreparedAttack, Victims};
use crate::kinds::attack::online::solver::solver;
use crate::kinds::attack::online::{
    ALPHA, CLIP01, EPS, ITERATIONS, POINTS, Pursuit, TARGET, THRESHOLD, V, within_eps,
};
use crate::kinds::attack::trace::Trace;
use crate::params::settings::Settings;

/// The attack.
pub struct FixedPoint;

struct Prepared<'a> {
    pursuit: Pursuit<'a>,
}

impl Attack for FixedPoint {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "fixed-point",
            file: "stages/kinds/attack/attacks/fixed_point.rs",
            summary: "Perturbs every sample of a signal by the solution of d = alpha B(d)^T v.",
            details: "`B` depends on the state, the sample and `d`.",
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
                    ITERATIONS,
                ]
            },
            changes: Changes::Numbers,
            victims: Victims::Recurrent,
            budget: within_eps,
            streams: true,
            ..AttackEntry::PLAIN
        }
    }

    fn rule(&self, settings: Settings<'_>) -> Result<Option<Begun>, Failure> {
        Ok(Some((Box::new(solver(settings)?), None)))
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        solver(context.settings())?;
        let pursuit = Pursuit::new("fixed-point", context, None)?;
        Ok(Box::new(Prepared { pursuit }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let rule = |_: &[&Item<'_>]| solver(self.pursuit.context.settings());
        self.pursuit
            .run(items, rule, |solver, item| Some(solver.halved[item]))
    }
}
