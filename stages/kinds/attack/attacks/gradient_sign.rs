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

use crate::kinds::attack::context::{AttackContext, Item, Trace};
use crate::kinds::attack::entry::{Attack, AttackEntry, Begun, Changes, PreparedAttack, Victims};
use crate::kinds::attack::online::signs::Signs;
use crate::kinds::attack::online::{self, ALPHA, CLIP01, EPS, Pursuit, TARGET, THRESHOLD};
use crate::models::failure;
use crate::params::settings::Settings;
use crate::{Failure, ParamError};

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
            summary: "Every sample of a signal moves by the sign of the gradient of the moment.",
            params: &[ALPHA, EPS, TARGET, THRESHOLD, CLIP01],
            changes: Changes::Numbers,
            victims: Victims::Recurrent,
            needs: &[],
        }
    }

    fn check(&self, settings: Settings<'_>) -> Result<(), ParamError> {
        online::check(settings)
    }

    fn rule(&self, settings: Settings<'_>) -> Result<Option<Begun>, Failure> {
        let alpha = online::alpha(settings, 0.15)?;
        let signs = Signs::new(alpha).map_err(failure)?;
        Ok(Some((Box::new(signs), Some(alpha))))
    }

    fn prepare<'a>(
        &self,
        context: &'a AttackContext<'a>,
    ) -> Result<Box<dyn PreparedAttack + 'a>, Failure> {
        let alpha = online::alpha(context.settings(), 0.15)?;
        let pursuit = Pursuit::new("gradient-sign", context, Some(alpha))?;
        Ok(Box::new(Prepared { pursuit, alpha }))
    }
}

impl PreparedAttack for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let rule = |_: &[&Item<'_>]| Signs::new(self.alpha).map_err(failure);
        self.pursuit.run(items, rule, |_, _| None)
    }
}
