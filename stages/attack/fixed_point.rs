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

use nn::Real;
use nn::online::{Moment, Quadrature, Rule};

use super::parts::online::{
    self, ALPHA, CLIP01, EPS, ITERATIONS, POINTS, Pursuit, Push, TARGET, THRESHOLD, V,
};
use super::parts::signs::Signs;
use super::scene::{Item, Scene, Trace};
use super::{Attack, Begun, Entry, Ready};
use crate::settings::{Settings, failure};
use crate::{Failure, ParamError, models};

/// A solution that moves by less than this is one.
pub const TOLERANCE: f64 = 1e-5;

/// How often alpha is halved for one sample, at most.
const HALVINGS: u32 = 20;

/// The attack.
pub struct FixedPoint;

/// The equation and its last solution.
pub struct Solver<T> {
    pub alpha: f64,
    pub push: Push,
    pub points: Quadrature,
    pub iterations: usize,
    /// The solution of the last sample (items, input), where the next search begins.
    pub solution: Vec<T>,
    /// The alpha that each item's last solution belongs to.
    pub alphas: Vec<f64>,
}

impl<T: Real> Solver<T> {
    /// Before the first sample.
    pub fn new(alpha: f64, push: Push, points: usize, iterations: usize) -> nn::Result<Solver<T>> {
        Ok(Solver {
            alpha,
            push,
            points: Quadrature::new(points)?,
            iterations,
            solution: Vec::new(),
            alphas: Vec::new(),
        })
    }

    fn solve(&mut self, now: &mut Moment<'_, '_, T>, v: &[T]) -> nn::Result<()> {
        let width = now.width();
        let mut before: Vec<Option<f64>> = vec![None; now.items()];
        let mut tries = vec![0; now.items()];
        let mut halvings = vec![0; now.items()];
        let mut searching: Vec<usize> = (0..now.items()).collect();
        while !searching.is_empty() {
            let pulled = now.pull(&searching, v, &self.solution, &self.points)?;
            let rows = pulled.chunks_exact(width);
            let mut still = Vec::with_capacity(searching.len());
            for (&item, row) in searching.iter().zip(rows) {
                let alpha = T::of(self.alphas[item]);
                let place = &mut self.solution[item * width..(item + 1) * width];
                let mut moved = 0.0f64;
                for (d, g) in place.iter_mut().zip(row) {
                    let next = alpha * *g;
                    moved = moved.max((next.to_f64() - d.to_f64()).abs());
                    *d = next;
                }
                tries[item] += 1;
                if moved < TOLERANCE {
                    continue;
                }
                let wild = before[item].is_some_and(|before| moved > 0.5 * before);
                before[item] = Some(moved);
                if wild && halvings[item] < HALVINGS {
                    self.alphas[item] *= 0.5;
                    halvings[item] += 1;
                    tries[item] = 0;
                    before[item] = None;
                }
                if tries[item] < self.iterations {
                    still.push(item);
                }
            }
            searching = still;
        }
        Ok(())
    }
}

impl<T: Real> Rule<T> for Solver<T> {
    fn perturb(&mut self, now: &mut Moment<'_, '_, T>) -> nn::Result<Vec<T>> {
        if now.sample() == 0 {
            self.solution = vec![T::ZERO; now.inputs().len()];
        }
        self.alphas = vec![self.alpha; now.items()];
        let v = match self.push {
            Push::Gradient => now.ascent()?,
            Push::Error if now.sample() == 0 => {
                self.solution = Signs::new(self.alpha)?.perturb(now)?;
                return Ok(self.solution.clone());
            }
            Push::Error => now.error(),
        };
        self.solve(now, &v)?;
        Ok(self.solution.clone())
    }

    fn follows_nominal(&self) -> bool {
        self.push == Push::Error
    }

    fn keep(&mut self, items: usize, width: usize) {
        self.solution.truncate(items * width);
    }
}

struct Prepared<'a> {
    pursuit: Pursuit<'a>,
}

impl Attack for FixedPoint {
    fn entry(&self) -> Entry {
        Entry {
            name: "fixed-point",
            file: "fixed_point.rs",
            summary: "Every sample of a signal gets the perturbation that solves d = alpha B(d)^T v.",
            params: &[ALPHA, EPS, TARGET, THRESHOLD, CLIP01, POINTS, V, ITERATIONS],
        }
    }

    fn check(&self, settings: Settings<'_>) -> Result<(), ParamError> {
        settings.whole("iterations", 30, 1)?;
        online::check(settings)
    }

    fn rule(&self, settings: Settings<'_>) -> Result<Option<Begun>, Failure> {
        Ok(Some((Box::new(solver(settings)?), None)))
    }

    fn ready<'a>(&self, scene: &'a Scene<'a>) -> Result<Box<dyn Ready + 'a>, Failure> {
        solver(scene.settings())?;
        let pursuit = Pursuit::new("fixed-point", scene, None)?;
        Ok(Box::new(Prepared { pursuit }))
    }
}

fn solver(s: Settings<'_>) -> Result<Solver<f32>, Failure> {
    let push = Push::read(s).map_err(failure)?;
    let points = s.whole("points", 4, 1).map_err(failure)?;
    let iterations = s.whole("iterations", 30, 1).map_err(failure)?;
    let solver = Solver::new(online::alpha(s, 1.0)?, push, points, iterations);
    solver.map_err(models::failure)
}

impl Ready for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let rule = |_: &[&Item<'_>]| solver(self.pursuit.scene.settings());
        self.pursuit.run(items, rule)
    }
}
