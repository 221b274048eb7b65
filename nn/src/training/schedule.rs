//! The learning rate: a function of the epoch, the step, and how often the dev metric failed to improve.

use crate::error::{Result, setting};
use serde::{Deserialize, Serialize};

/// How the rate changes; every factor multiplies the initial rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// It does not.
    Constant,
    /// Constant for `epochs` epochs, then times `factor` each epoch (Zaremba et al. 2014).
    Step {
        /// Epochs at the full rate.
        epochs: usize,
        /// Factor for each epoch after them.
        factor: f64,
    },
    /// From 1 to `end` along an exponential over `steps` steps, then `end`.
    Decay {
        /// Steps until the end.
        steps: u64,
        /// The last factor.
        end: f64,
    },
    /// Up from 0 over `warmup` steps, then down to 0 at `steps`.
    Linear {
        /// Steps of the way up.
        warmup: u64,
        /// Steps in all.
        steps: u64,
    },
    /// Times `factor` whenever the dev metric does not improve.
    Plateau {
        /// Factor for each failure.
        factor: f64,
    },
}

impl Schedule {
    /// An error when a number is outside its range.
    pub fn check(&self) -> Result<()> {
        match *self {
            Schedule::Constant => Ok(()),
            Schedule::Step { factor, .. } | Schedule::Plateau { factor } => {
                setting("factor", factor > 0.0 && factor <= 1.0, "in (0, 1]", factor)
            }
            Schedule::Decay { steps, end } => setting("steps", steps > 0, "above 0", steps)
                .and(setting("end", end > 0.0, "above 0", end)),
            Schedule::Linear { warmup, steps } => {
                setting("warmup", warmup < steps, "fewer than the steps", warmup)
            }
        }
    }

    /// The factor at this point of training; `failures` counts dev evaluations without improvement since the start.
    pub fn factor(&self, epoch: usize, step: u64, failures: u32) -> f64 {
        match *self {
            Schedule::Constant => 1.0,
            Schedule::Step { epochs, factor } => {
                libm::pow(factor, (epoch + 1).saturating_sub(epochs) as f64)
            }
            Schedule::Decay { steps, end } => libm::pow(end, (step as f64 / steps as f64).min(1.0)),
            Schedule::Linear { warmup, steps } => {
                let step = step as f64 + 1.0;
                let up = if warmup == 0 {
                    1.0
                } else {
                    step / warmup as f64
                };
                let down = (steps as f64 + 1.0 - step) / (steps + 1 - warmup) as f64;
                up.min(down).clamp(0.0, 1.0)
            }
            Schedule::Plateau { factor } => libm::pow(factor, f64::from(failures)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_at_chosen_points() {
        let ptb = Schedule::Step {
            epochs: 4,
            factor: 0.5,
        };
        assert_eq!(
            [0, 3, 4, 5].map(|e| ptb.factor(e, 0, 0)),
            [1.0, 1.0, 0.5, 0.25]
        );
        let decay = Schedule::Decay {
            steps: 100,
            end: 0.01,
        };
        assert!(
            (decay.factor(0, 50, 0) - 0.1).abs() < 1e-12
                && (decay.factor(0, 500, 0) - 0.01).abs() < 1e-12
        );
        let linear = Schedule::Linear {
            warmup: 10,
            steps: 100,
        };
        assert!(
            (linear.factor(0, 4, 0) - 0.5).abs() < 1e-12
                && linear.factor(0, 9, 0) == 1.0
                && linear.factor(0, 100, 0) == 0.0
        );
        assert_eq!(Schedule::Plateau { factor: 0.5 }.factor(9, 9, 3), 0.125);
    }
}
