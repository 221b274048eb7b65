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
use super::stepper::Stepper;
use crate::autodiff::Params;
use crate::error::{Error, Result, same};
use crate::layers::Rnn;
use crate::models::{Model, Recurrent};
use crate::numeric::Real;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// The matrix measure of the maximum norm, of a square matrix.
pub fn measure(matrix: ArrayView2<'_, f64>) -> f64 {
    let row = |(i, row): (usize, ArrayView1<'_, f64>)| {
        let others = row.iter().enumerate().filter(|(j, _)| *j != i);
        row[i] + others.map(|(_, x)| x.abs()).sum::<f64>()
    };
    let rows = matrix.outer_iter().enumerate();
    rows.map(row).fold(f64::NEG_INFINITY, f64::max)
}

/// The maximum norm of a matrix: the largest sum of a row's absolute values.
pub fn norm(matrix: ArrayView2<'_, f64>) -> f64 {
    let rows = matrix.outer_iter();
    rows.map(|row| row.iter().map(|x| x.abs()).sum())
        .fold(0.0, f64::max)
}

/// `mu(I - Fs)` at a state and an input: below 0, nearby states part.
pub fn contraction<T: Real>(
    stepper: &mut Stepper<'_, T>,
    state: ArrayView1<'_, T>,
    input: ArrayView1<'_, T>,
) -> Result<f64> {
    let fs = stepper.jacobian(state, input)?.state;
    let mut difference = Array2::eye(fs.nrows());
    difference.zip_mut_with(&fs, |unit, fs| *unit -= fs.to_f64());
    Ok(measure(difference.view()))
}

/// Example 1 of the paper, for a vanilla network of one layer: for each unit `i`
/// `2 U_ii - (2 |U_i|_1 + W_i x + b_i + 0.8)`. The paper's condition is that all of them are above 0.
///
/// As printed it is not enough: see the test `example_1_as_printed_does_not_make_the_measure_negative`.
/// [`contraction`] looks at the measure itself.
pub fn example_1<T: Real>(
    model: &Model,
    params: &Params<T>,
    input: ArrayView1<'_, T>,
) -> Result<Array1<f64>> {
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
    let (w, u) = (
        params.view(layer.input.weight),
        params.view(layer.recurrent),
    );
    let b = layer.input.bias_in(params);
    // Weights map rows to columns, so the paper's row i is a column here.
    let slack = |i: usize| {
        let row = u.column(i).into_iter().map(|u| u.to_f64().abs());
        let pushed = input.iter().zip(w.column(i));
        let pushed = pushed.map(|(x, w)| x.to_f64() * w.to_f64());
        let own = u[[i, i]].to_f64();
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
    pub fn push(
        &mut self,
        input: ArrayView1<'_, T>,
        moved: ArrayView1<'_, T>,
    ) -> Result<(f64, f64)> {
        let (n, m) = (self.stepper.state_len(), self.stepper.input_len());
        same("input", m, input.len())?;
        let (input, moved) = (&input.to_vec()[..], &moved.to_vec()[..]);
        let mut mean = Array2::zeros((n, n));
        for (place, weight) in self.quadrature.points() {
            let pairs = self.nominal.iter().zip(&self.attacked);
            let between: Vec<T> = pairs.map(|(a, b)| *a + T::of(*place) * (*b - *a)).collect();
            let fs = self.stepper.jacobian(&between, input)?.state;
            mean.zip_mut_with(&fs, |sum, x| *sum += weight * x.to_f64());
        }
        let next = self.stepper.step(&self.attacked, moved)?.to_vec();
        let still = self.stepper.step(&self.attacked, input)?;
        self.bound = norm(mean.view()) * self.bound + distance(&next, still);
        self.nominal = self.stepper.step(&self.nominal, input)?.to_vec();
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
