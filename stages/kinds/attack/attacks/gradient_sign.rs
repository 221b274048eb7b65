//! Gradient-sign (P1, equation 8): every sample moves by `alpha` against the model, as it comes.
//!
//! Paper: Deka, Stipanovic, Tomlin, "Dynamically computed adversarial perturbations for recurrent
//! neural networks".
//!
//! ```text
//! h2 = h(0);  for each sample x(k):
//!     d(k) = alpha sign(Fx(h2, x(k))^T grad V(h2))
//!     h2 = F(h2, x(k) + d(k))
//! ```
//!
//! Differs: `V = -ln y` of the true class, or `ln y` of the target, where the paper prints a square
//! with a dead zone (`threshold` brings it back); a number whose gradient is 0 stays.

use crate::Failure;
use crate::contract::description::{Constant, Param};
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::entry::{
    Attack, AttackEntry, Begun, Budget, Changes, PreparedAttack, Victims,
};
use crate::kinds::attack::online::signs::Signs;
use crate::kinds::attack::online::{ALPHA, CLIP01, EPS, Pursuit, TARGET, THRESHOLD};
use crate::kinds::attack::trace::Trace;
use crate::params::settings::{Settings, failure};

const STEP: Param = ALPHA.or(Constant::Float(0.15));

/// The attack.
pub struct GradientSign;

struct Prepared<'a> {
    pursuit: Pursuit<'a>,
    alpha: f64,
}

impl Attack for GradientSign {
    fn entry(&self) -> AttackEntry {
        AttackEntry {
            name: "gradient-sign",
            file: "stages/kinds/attack/attacks/gradient_sign.rs",
            summary: "Perturbs every sample of a signal by the sign of the current gradient.",
            details: "By `alpha sign(Fx(h2, x)^T grad V(h2))`, as it arrives.",
            paper: "Deka, Stipanovic, Tomlin: Dynamically computed adversarial perturbations for recurrent neural networks",
            params: const { &[STEP, EPS.optional(), TARGET, THRESHOLD, CLIP01] },
            changes: Changes::Numbers,
            victims: Victims::Recurrent,
            budget: |s| {
                let bound = s.maybe_float("eps").or(s.maybe_float("alpha"));
                bound.map_or(Budget::Unlimited, Budget::Linf)
            },
            streams: true,
            ..AttackEntry::PLAIN
        }
    }

    fn rule(&self, settings: Settings<'_>) -> Result<Option<Begun>, Failure> {
        let alpha = settings.float("alpha").map_err(failure)?;
        Ok(Some((Box::new(Signs { alpha }), Some(alpha))))
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let alpha = context.settings().float("alpha").map_err(failure)?;
        let pursuit = Pursuit::new("gradient-sign", context, Some(alpha))?;
        Ok(Box::new(Prepared { pursuit, alpha }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let rule = |_: &[&Item<'_>]| Ok(Signs { alpha: self.alpha });
        self.pursuit.run(items, rule, |_, _| None)
    }
}
