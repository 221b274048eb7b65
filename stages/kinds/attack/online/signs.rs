//! `d = alpha sign(Fx(h2, x)^T grad V(h2))`: gradient-sign's formula, which also gives the other attacks
//! a first step where they have none of their own.

use ndarray::Array2;
use nn::Real;
use nn::stepping::{OnlineContext, Quadrature, Rule};

/// Steps by the sign of the gradient.
pub struct Signs {
    pub alpha: f64,
    /// One point: the Jacobian where the sample is.
    pub here: Quadrature,
}

impl Signs {
    /// Steps of size `alpha`.
    pub fn new(alpha: f64) -> nn::Result<Signs> {
        let here = Quadrature::new(1)?;
        Ok(Signs { alpha, here })
    }
}

impl<T: Real> Rule<T> for Signs {
    fn perturb(&mut self, now: &mut OnlineContext<'_, '_, T>) -> nn::Result<Array2<T>> {
        let v = now.ascent()?;
        let still = Array2::from_elem(now.inputs().dim(), T::ZERO);
        let mut pulled = now.pull_all(v.view(), still.view(), &self.here)?;
        let alpha = T::of(self.alpha);
        for g in &mut pulled {
            let up = if *g > T::ZERO { alpha } else { T::ZERO };
            *g = if *g < T::ZERO { -alpha } else { up };
        }
        Ok(pulled)
    }
}
