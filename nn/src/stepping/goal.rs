//! What is increased: `V = -ln y_c` to leave class `c`, `V = ln y_t` to reach class `t`, read from the current state.
//!
//! Only the direction of its gradient is used. With `s` the softmax over all classes but one,
//! `dV/dz = (1 - y_c) (s - onehot(c))` and `(1 - y_t) (onehot(t) - s)`: the factor is left out, since it
//! rounds to 0 when the model is sure, and the direction does not.

use crate::error::{Error, Result};
use crate::numeric::{Real, shares};

/// Where an item shall go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Any class but this one.
    Leave(usize),
    /// This class.
    Reach(usize),
}

/// An aim, perhaps with a dead zone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Where to.
    pub aim: Aim,
    /// With a threshold `y`, `V` is `max(0, y - y_c)^2` or `max(0, y_t - (1 - y))^2` instead: nothing pulls a model
    /// that is surer than that.
    pub threshold: Option<f64>,
}

impl Goal {
    /// Away from a class, without a dead zone.
    pub fn leave(class: usize) -> Goal {
        Goal {
            aim: Aim::Leave(class),
            threshold: None,
        }
    }

    /// To a class, without a dead zone.
    pub fn reach(class: usize) -> Goal {
        Goal {
            aim: Aim::Reach(class),
            threshold: None,
        }
    }

    pub(super) fn check(&self, item: usize, classes: usize) -> Result<()> {
        let (Aim::Leave(class) | Aim::Reach(class)) = self.aim;
        if class >= classes {
            return Err(Error::Range {
                what: "class of the goal",
                item,
                got: class,
                below: classes,
            });
        }
        Ok(())
    }

    /// The logarithm of the odds of getting there: `ln((1 - y_c) / y_c)` or `ln(y_t / (1 - y_t))`. It grows with `V`
    /// and does not round to a constant where the model is sure.
    pub(crate) fn odds<T: Real>(&self, logits: &[T]) -> f64 {
        let (Aim::Leave(class) | Aim::Reach(class)) = self.aim;
        let others = logits.iter().enumerate().filter(|(k, _)| *k != class);
        let others: Vec<f64> = others.map(|(_, z)| z.to_f64()).collect();
        let most = others
            .iter()
            .fold(f64::NEG_INFINITY, |most, z| most.max(*z));
        let rest: f64 = others.iter().map(|z| libm::exp(z - most)).sum();
        let away = most + libm::log(rest) - logits[class].to_f64();
        match self.aim {
            Aim::Leave(_) => away,
            Aim::Reach(_) => -away,
        }
    }

    /// Turns logits into the direction of `dV/dz`.
    pub(crate) fn direct<T: Real>(&self, logits: &mut [T]) {
        let (class, sign) = match self.aim {
            Aim::Leave(class) => (class, -T::ONE),
            Aim::Reach(class) => (class, T::ONE),
        };
        if let Some(threshold) = self.threshold {
            let mut y = logits.to_vec();
            shares(&mut y);
            let y = y[class].to_f64();
            let dead = match self.aim {
                Aim::Leave(_) => y >= threshold,
                Aim::Reach(_) => y <= 1.0 - threshold,
            };
            if dead {
                return logits.fill(T::ZERO);
            }
        }
        // The others side by side, without this class; then everything back to its place.
        let others = logits.len() - 1;
        if let [_, _] = logits {
            // As below, of one number beside the class.
            let other = others - class;
            shares(std::slice::from_mut(&mut logits[other]));
            logits[other] *= -sign;
            logits[class] = sign;
            return;
        }
        (class..others).for_each(|k| logits.swap(k, k + 1));
        shares(&mut logits[..others]);
        logits[..others].iter_mut().for_each(|s| *s *= -sign);
        logits[others] = sign;
        (class..others).rev().for_each(|k| logits.swap(k, k + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction<T: Real, const N: usize>(goal: Goal, mut z: [T; N]) -> [T; N] {
        goal.direct(&mut z);
        z
    }

    /// The direction is that of differences of V, also where the model is so sure that `1 - y` is 0.
    #[test]
    fn the_direction_is_that_of_the_gradient_however_sure_the_model_is() {
        let z = [0.3f64, -1.2, 0.8];
        for (goal, v) in [
            (Goal::leave(1), -1.0f64),
            (Goal::reach(0), 1.0),
            (
                Goal {
                    threshold: Some(0.9),
                    ..Goal::leave(1)
                },
                -1.0,
            ),
        ] {
            let (Aim::Leave(class) | Aim::Reach(class)) = goal.aim;
            let value = |z: &[f64]| {
                let total: f64 = z.iter().map(|z| z.exp()).sum();
                v * (z[class].exp() / total).ln()
            };
            let d = direction(goal, z);
            let slope = |k: usize| {
                let at = |by: f64| {
                    let mut z = z;
                    z[k] += by;
                    value(&z)
                };
                (at(1e-6) - at(-1e-6)) / 2e-6
            };
            let scale = slope(class) / d[class];
            assert!(scale > 0.0);
            for (k, d) in d.iter().enumerate() {
                assert!((slope(k) - scale * d).abs() < 1e-8, "{goal:?} {k}");
            }
        }
        assert_eq!(direction(Goal::leave(0), [90.0f32, 0.0]), [-1.0, 1.0]);
        assert_eq!(direction(Goal::reach(0), [90.0f32, 0.0]), [1.0, -1.0]);
    }

    #[test]
    fn odds_are_those_of_the_softmax_and_do_not_round_away() {
        let z = [0.3f64, -1.2, 0.8];
        let total: f64 = z.iter().map(|z| z.exp()).sum();
        let y = z[1].exp() / total;
        assert!((Goal::leave(1).odds(&z) - ((1.0 - y) / y).ln()).abs() < 1e-12);
        assert!((Goal::reach(1).odds(&z) - (y / (1.0 - y)).ln()).abs() < 1e-12);
        let sure = |z: f32| Goal::leave(0).odds(&[z, 0.0]);
        assert!(sure(90.0) > sure(91.0), "y is 1 in both");
    }

    #[test]
    fn a_threshold_makes_a_dead_zone() {
        let sure = [3.0f32, 0.0];
        let dead = Goal {
            threshold: Some(0.9),
            ..Goal::leave(0)
        };
        assert_eq!(direction(dead, sure), [0.0, 0.0], "0.95 is above 0.9");
        assert_eq!(direction(dead, [1.0, 0.0]), [-1.0, 1.0]);
        let reach = Goal {
            threshold: Some(0.9),
            ..Goal::reach(1)
        };
        assert_eq!(direction(reach, sure), [0.0, 0.0], "0.05 is below 0.1");
        assert_eq!(direction(reach, [1.0, 0.0]), [-1.0, 1.0]);
    }
}
