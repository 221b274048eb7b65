//! `d = alpha sign(Fx(h2, x)^T grad V(h2))`: gradient-sign's formula, which also gives the other attacks
//! a first step where they have none of their own.

use ndarray::Array2;
use nn::Real;
use nn::stepping::{OnlineContext, Rule};

/// Steps of size `alpha` by the sign of the gradient.
pub struct Signs {
    pub alpha: f64,
}

impl<T: Real> Rule<T> for Signs {
    fn perturb(&mut self, now: &mut OnlineContext<'_, '_, T>) -> nn::Result<Array2<T>> {
        let mut pulled = now.climb()?;
        let alpha = T::of(self.alpha);
        for g in &mut pulled {
            let up = if *g > T::ZERO { alpha } else { T::ZERO };
            *g = if *g < T::ZERO { -alpha } else { up };
        }
        Ok(pulled)
    }
}
