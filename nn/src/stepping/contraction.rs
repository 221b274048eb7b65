//! How fast two runs of a recurrent network part: matrix measures, a sufficient condition, and an envelope.
//!
//! Deka, Stipanovic and Tomlin read a network as `dh/dt = f(h, x) = (F(h, x) - h) / D` and ask when the error
//! `e = h2 - h1` between an attacked and a nominal run grows. With `A = (Fs - I) / D` it does while `mu(-A) < 0`,
//! `mu(M) = max_i (M_ii + sum_(j != i) |M_ij|)` being the matrix measure of the maximum norm; the sign of
//! `mu(-A)` is that of `mu(I - Fs)`, whatever `D` is.
//!
//! [`Envelope`] bounds it from above. Exactly,
//! `e' = F(h2, x + d) - F(h1, x) = [F(h2, x + d) - F(h2, x)] + (mean over l of Fs(h1 + l e, x)) e`, so
//! `|e'| <= |F(h2, x + d) - F(h2, x)| + |mean Fs| |e|` in the maximum norm. The means are by quadrature.

use super::online_steps::{Stepping, stepper};
use super::quadrature::Quadrature;
use crate::autodiff::Params;
use crate::error::{Error, Result, same};
use crate::layers::Rnn;
use crate::models::{Model, Recurrent};
use crate::numeric::Real;

/// The matrix measure of the maximum norm, of a square matrix by rows.
pub fn measure(matrix: &[f64], n: usize) -> f64 {
    let row = |i: usize| {
        let row = &matrix[i * n..(i + 1) * n];
        let others: f64 = (0..n).filter(|j| *j != i).map(|j| row[j].abs()).sum();
        row[i] + others
    };
    (0..n).map(row).fold(f64::NEG_INFINITY, f64::max)
}

/// The maximum norm of a matrix by rows: the largest sum of a row's absolute values.
pub fn norm(matrix: &[f64], columns: usize) -> f64 {
    let rows = matrix.chunks_exact(columns);
    rows.map(|row| row.iter().map(|x| x.abs()).sum())
        .fold(0.0, f64::max)
}

/// `mu(I - Fs)` at a state and an input: below 0, nearby states part.
pub fn contraction<T: Real>(
    stepper: &mut dyn Stepping<T>,
    state: &[T],
    input: &[T],
) -> Result<f64> {
    let n = stepper.state_len();
    let fs = stepper.jacobian(state, input)?.state;
    let entry = |k: usize| f64::from(u8::from(k / n == k % n)) - fs[k].to_f64();
    Ok(measure(&(0..n * n).map(entry).collect::<Vec<_>>(), n))
}

/// Example 1 of the paper, for a vanilla network of one layer: for each unit `i`
/// `2 U_ii - (2 |U_i|_1 + W_i x + b_i + 0.8)`. The paper's condition is that all of them are above 0.
///
/// As printed it is not enough: see the test `example_1_as_printed_does_not_make_the_measure_negative`.
/// [`contraction`] looks at the measure itself.
pub fn example_1<T: Real>(model: &Model, params: &Params<T>, input: &[T]) -> Result<Vec<f64>> {
    let missing = Error::Missing {
        what: "single vanilla recurrent layer, which Example 1 is about",
    };
    let net = model.network::<Recurrent<Rnn>>().ok_or(missing.clone())?;
    net.forward_only()?;
    let cells: Vec<&Rnn> = net.cells().collect();
    let [Rnn { weights: layer }] = cells[..] else {
        return Err(missing);
    };
    same("input", layer.input.weight.rows, input.len())?;
    let units = layer.recurrent.rows;
    let (w, u, b) = (
        params.get(layer.input.weight),
        params.get(layer.recurrent),
        layer.input.bias_in(params),
    );
    // Weights map rows to columns, so the paper's row i is a column here.
    let slack = |i: usize| {
        let row = (0..units).map(|j| u[j * units + i].to_f64().abs());
        let pushed = input.iter().enumerate();
        let pushed = pushed.map(|(j, x)| x.to_f64() * w[j * units + i].to_f64());
        let own = u[i * units + i].to_f64();
        2.0 * own - (2.0 * row.sum::<f64>() + pushed.sum::<f64>() + b[i].to_f64() + 0.8)
    };
    Ok((0..units).map(slack).collect())
}

/// An upper bound on `|h2 - h1|` (maximum norm) that grows with the samples.
pub struct Envelope<'m, T: Real> {
    stepper: Box<dyn Stepping<T> + 'm>,
    quadrature: Quadrature,
    nominal: Vec<T>,
    attacked: Vec<T>,
    bound: f64,
}

impl<'m, T: Real> Envelope<'m, T> {
    /// Before the first sample, where both runs are one.
    pub fn new(model: &'m Model, params: &'m Params<T>, points: usize) -> Result<Self> {
        let stepper = stepper(model, params)?;
        Ok(Envelope {
            quadrature: Quadrature::new(points)?,
            nominal: stepper.start(),
            attacked: stepper.start(),
            stepper,
            bound: 0.0,
        })
    }

    /// The bound, and the distance itself, after a sample and what was read in its place.
    pub fn push(&mut self, input: &[T], moved: &[T]) -> Result<(f64, f64)> {
        let (n, m) = (self.stepper.state_len(), self.stepper.input_len());
        same("input", m, input.len())?;
        let mut mean = vec![0.0; n * n];
        for (place, weight) in self.quadrature.points() {
            let pairs = self.nominal.iter().zip(&self.attacked);
            let between: Vec<T> = pairs.map(|(a, b)| *a + T::of(*place) * (*b - *a)).collect();
            let fs = self.stepper.jacobian(&between, input)?.state;
            let pairs = mean.iter_mut().zip(&fs);
            pairs.for_each(|(sum, x)| *sum += weight * x.to_f64());
        }
        let next = self.stepper.step(&self.attacked, moved)?;
        let still = self.stepper.step(&self.attacked, input)?;
        self.bound = norm(&mean, n) * self.bound + distance(&next, &still);
        self.nominal = self.stepper.step(&self.nominal, input)?;
        self.attacked = next;
        Ok((self.bound, distance(&self.attacked, &self.nominal)))
    }
}

fn distance<T: Real>(a: &[T], b: &[T]) -> f64 {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(a, b)| (a.to_f64() - b.to_f64()).abs())
        .fold(0.0, f64::max)
}
