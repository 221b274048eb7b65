//! Optimisers over the flat buffer of weights, with the gradient clipped first.
//!
//! - SGD: `v = momentum v + g`, `w -= rate v`
//! - Adam: `m = b1 m + (1 - b1) g`, `s = b2 s + (1 - b2) g^2`,
//!   `w -= rate m / (1 - b1^t) / (sqrt(s / (1 - b2^t)) + eps)`
//! - Adadelta: `s = rho s + (1 - rho) g^2`, `d = g sqrt(u + eps) / sqrt(s + eps)`,
//!   `u = rho u + (1 - rho) d^2`, `w -= rate d`
//!
//! Every weight is updated on its own, so threads change nothing; the norm of the gradient
//! is summed in pieces of a fixed size.

use crate::error::{Result, setting};
use crate::numeric::{Real, sum_of_squares};
use crate::training::{Rule, Update};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How weights follow the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Optimiser {
    /// Stochastic gradient descent.
    Sgd {
        /// 0 for none.
        #[serde(default)]
        momentum: f64,
    },
    /// Kingma and Ba 2015.
    Adam {
        /// Decay of the mean.
        #[serde(default = "b1")]
        b1: f64,
        /// Decay of the mean square.
        #[serde(default = "b2")]
        b2: f64,
        /// Added to the root.
        #[serde(default = "eps")]
        eps: f64,
    },
    /// Zeiler 2012.
    Adadelta {
        /// Decay of both mean squares.
        rho: f64,
        /// Added to both.
        eps: f64,
    },
}

fn b1() -> f64 {
    0.9
}
fn b2() -> f64 {
    0.999
}
fn eps() -> f64 {
    1e-8
}

impl Optimiser {
    /// Adam with its usual constants.
    pub const ADAM: Optimiser = Optimiser::Adam {
        b1: 0.9,
        b2: 0.999,
        eps: 1e-8,
    };
    /// Plain descent.
    pub const SGD: Optimiser = Optimiser::Sgd { momentum: 0.0 };

    /// An error when a constant is outside its range.
    pub fn check(&self) -> Result<()> {
        let share = |what, x: f64| setting(what, (0.0..1.0).contains(&x), "in [0, 1)", x);
        match *self {
            Optimiser::Sgd { momentum } => share("momentum", momentum),
            Optimiser::Adam { b1, b2, eps } => {
                share("b1", b1)
                    .and(share("b2", b2))
                    .and(setting("eps", eps > 0.0, "above 0", eps))
            }
            Optimiser::Adadelta { rho, eps } => {
                share("rho", rho).and(setting("eps", eps > 0.0, "above 0", eps))
            }
        }
    }

    /// How many numbers it remembers for each weight.
    fn memories(&self) -> usize {
        match self {
            Optimiser::Sgd { momentum: 0.0 } => 0,
            Optimiser::Sgd { .. } => 1,
            _ => 2,
        }
    }
}

/// A limit on the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clip {
    /// None.
    No,
    /// The whole gradient is scaled down to this norm.
    Norm(f64),
    /// Each number is cut at plus and minus this.
    Value(f64),
}

/// What an optimiser remembers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory<T> {
    /// Updates made.
    pub updates: u64,
    /// First memory: momentum, mean, or mean square.
    pub first: Vec<T>,
    /// Second memory: mean square.
    pub second: Vec<T>,
}

impl<T: Real> Memory<T> {
    /// Nothing yet.
    pub fn new(optimiser: &Optimiser, weights: usize) -> Self {
        let of = |k| vec![T::ZERO; if optimiser.memories() > k { weights } else { 0 }];
        Memory {
            updates: 0,
            first: of(0),
            second: of(1),
        }
    }

    /// Changes the weights by one step; `norm` is the gradient's, from [`norm`].
    pub fn update(
        &mut self,
        optimiser: &Optimiser,
        clip: Clip,
        rate: f64,
        norm: f64,
        weights: &mut [T],
        grad: &[T],
    ) {
        self.updates += 1;
        let t = self.updates as f64;
        let (scale, bound) = match clip {
            Clip::Norm(limit) if norm > limit => (limit / norm, f64::INFINITY),
            Clip::Value(limit) => (1.0, limit),
            _ => (1.0, f64::INFINITY),
        };
        let rule = match *optimiser {
            Optimiser::Sgd { momentum: 0.0 } => Rule::Plain { rate },
            Optimiser::Sgd { momentum } => Rule::Momentum { rate, momentum },
            Optimiser::Adam { b1, b2, eps } => Rule::Adam {
                rate: rate / (1.0 - libm::pow(b1, t)),
                b1,
                b2,
                root: (1.0 - libm::pow(b2, t)).sqrt(),
                eps,
            },
            Optimiser::Adadelta { rho, eps } => Rule::Adadelta { rate, rho, eps },
        };
        let step = |w: &mut [T], g: &[T], m: &mut [T], s: &mut [T]| {
            T::launch(Update {
                rule,
                scale,
                bound,
                w,
                g,
                m,
                s,
            })
        };
        let pairs = weights.par_chunks_mut(PIECE).zip(grad.par_chunks(PIECE));
        match optimiser.memories() {
            0 => pairs.for_each(|(w, g)| step(w, g, &mut [], &mut [])),
            1 => pairs
                .zip(self.first.par_chunks_mut(PIECE))
                .for_each(|((w, g), m)| step(w, g, m, &mut [])),
            _ => pairs
                .zip(self.first.par_chunks_mut(PIECE))
                .zip(self.second.par_chunks_mut(PIECE))
                .for_each(|(((w, g), m), s)| step(w, g, m, s)),
        }
    }
}

const PIECE: usize = 1 << 14;

/// The Euclidean norm; NaN or infinite when any number is.
pub fn norm<T: Real>(grad: &[T]) -> f64 {
    let pieces: Vec<f64> = grad
        .par_chunks(PIECE)
        .map(|g| sum_of_squares(g).to_f64())
        .collect();
    pieces.iter().sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three updates by the formulas above, one weight at a time.
    fn by_hand(optimiser: &Optimiser, grads: &[f64], rate: f64, mut w: f64) -> f64 {
        let (mut m, mut s) = (0.0, 0.0);
        for (t, &g) in grads.iter().enumerate() {
            let t = (t + 1) as i32;
            match *optimiser {
                Optimiser::Sgd { momentum } => {
                    m = momentum * m + g;
                    w -= rate * m;
                }
                Optimiser::Adam { b1, b2, eps } => {
                    m = b1 * m + (1.0 - b1) * g;
                    s = b2 * s + (1.0 - b2) * g * g;
                    w -= rate * (m / (1.0 - b1.powi(t))) / ((s / (1.0 - b2.powi(t))).sqrt() + eps);
                }
                Optimiser::Adadelta { rho, eps } => {
                    m = rho * m + (1.0 - rho) * g * g;
                    let d = g * (s + eps).sqrt() / (m + eps).sqrt();
                    s = rho * s + (1.0 - rho) * d * d;
                    w -= rate * d;
                }
            }
        }
        w
    }

    #[test]
    fn every_rule_follows_its_formula() {
        let rules = [
            Optimiser::SGD,
            Optimiser::Sgd { momentum: 0.9 },
            Optimiser::ADAM,
            Optimiser::Adadelta {
                rho: 0.95,
                eps: 1e-6,
            },
        ];
        for rule in rules {
            let n = 37;
            let grads: Vec<Vec<f64>> = (0..3)
                .map(|t| {
                    (0..n)
                        .map(|i| ((i * 7 + t * 11) % 13) as f64 / 3.0 - 2.0)
                        .collect()
                })
                .collect();
            let mut weights: Vec<f64> = (0..n).map(|i| i as f64 / 10.0).collect();
            let start = weights.clone();
            let mut memory = Memory::new(&rule, n);
            for g in &grads {
                memory.update(&rule, Clip::No, 0.1, norm(g), &mut weights, g);
            }
            for i in 0..n {
                let g: Vec<f64> = grads.iter().map(|g| g[i]).collect();
                assert!(
                    (weights[i] - by_hand(&rule, &g, 0.1, start[i])).abs() < 1e-12,
                    "{rule:?} {i}"
                );
            }
        }
    }

    #[test]
    fn clipping_by_norm_keeps_the_direction_and_by_value_cuts() {
        let g = vec![3.0f64, -4.0];
        for (clip, expected) in [
            (Clip::Norm(1.0), [-0.6, 0.8]),
            (Clip::Norm(9.0), [-3.0, 4.0]),
            (Clip::Value(3.5), [-3.0, 3.5]),
        ] {
            let mut w = vec![0.0; 2];
            Memory::new(&Optimiser::SGD, 2).update(
                &Optimiser::SGD,
                clip,
                1.0,
                norm(&g),
                &mut w,
                &g,
            );
            assert!(
                w.iter().zip(expected).all(|(w, e)| (w - e).abs() < 1e-12),
                "{clip:?} {w:?}"
            );
        }
    }

    #[test]
    fn a_nan_gradient_has_a_nan_norm() {
        let mut g = vec![0.0f32; 40_000];
        g[39_999] = f32::NAN;
        assert!(norm(&g).is_nan());
    }
}
