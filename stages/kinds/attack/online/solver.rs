//! `d = alpha B(h2, x, d)^T v`, solved for every sample by iteration: the equation of fixed-point, whose
//! solution word-mapping turns into words.

use ndarray::{Array2, ArrayView2};
use nn::Real;
use nn::stepping::{OnlineContext, Quadrature, Rule};

use crate::kinds::attack::online::signs::Signs;
use crate::kinds::attack::online::{Push, keep_rows};
use crate::params::settings::{Settings, failure};
use crate::{Failure, models};

/// A solution that moves by less than this is one.
pub const TOLERANCE: f64 = 1e-5;

/// How often alpha is halved for one sample, at most: from 1e9, the largest, to less than 1e-3.
const HALVINGS: u32 = 40;

/// The equation and its last solution.
pub struct Solver<T> {
    pub alpha: f64,
    pub push: Push,
    pub points: Quadrature,
    pub iterations: usize,
    /// The solution of the last sample (items, input), where the next search begins.
    pub solution: Array2<T>,
    /// The alpha that each item's last solution belongs to.
    pub alphas: Vec<f64>,
    /// At how many samples of each item, also of those that have ended, alpha was halved.
    pub halved: Vec<u64>,
}

impl<T: Real> Solver<T> {
    /// Before the first sample.
    pub fn new(alpha: f64, push: Push, points: usize, iterations: usize) -> nn::Result<Solver<T>> {
        Ok(Solver {
            alpha,
            push,
            points: Quadrature::new(points)?,
            iterations,
            solution: Array2::default((0, 0)),
            alphas: Vec::new(),
            halved: Vec::new(),
        })
    }

    fn solve(
        &mut self,
        now: &mut OnlineContext<'_, '_, T>,
        v: ArrayView2<'_, T>,
    ) -> nn::Result<()> {
        let mut before: Vec<Option<f64>> = vec![None; now.items()];
        let mut tries = vec![0; now.items()];
        let mut halvings = vec![0; now.items()];
        let mut searching: Vec<usize> = (0..now.items()).collect();
        while !searching.is_empty() {
            let pulled = now.pull(&searching, v, self.solution.view(), &self.points)?;
            let rows = pulled.outer_iter();
            let mut still = Vec::with_capacity(searching.len());
            for (&item, row) in searching.iter().zip(rows) {
                let alpha = T::of(self.alphas[item]);
                let mut place = self.solution.row_mut(item);
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
    fn perturb(&mut self, now: &mut OnlineContext<'_, '_, T>) -> nn::Result<Array2<T>> {
        if now.sample() == 0 {
            self.solution = Array2::from_elem(now.inputs().dim(), T::ZERO);
            self.halved = vec![0; now.items()];
        }
        self.alphas = vec![self.alpha; now.items()];
        let v = match self.push {
            Push::Gradient => now.ascent()?,
            Push::Error if now.sample() == 0 => {
                self.solution = Signs { alpha: self.alpha }.perturb(now)?;
                return Ok(self.solution.clone());
            }
            Push::Error => now.error(),
        };
        self.solve(now, v.view())?;
        for (halved, alpha) in self.halved.iter_mut().zip(&self.alphas) {
            *halved += u64::from(*alpha < self.alpha);
        }
        Ok(self.solution.clone())
    }

    fn follows_nominal(&self) -> bool {
        self.push == Push::Error
    }

    fn keep(&mut self, items: usize) {
        keep_rows(&mut self.solution, items);
    }
}

/// The solver of a stage's parameters.
pub fn solver(s: Settings<'_>) -> Result<Solver<f32>, Failure> {
    let push = Push::read(s).map_err(failure)?;
    let points = s.int("points").map_err(failure)?;
    let iterations = s.int("iterations").map_err(failure)?;
    let solver = Solver::new(s.float("alpha").map_err(failure)?, push, points, iterations);
    solver.map_err(models::failure)
}
