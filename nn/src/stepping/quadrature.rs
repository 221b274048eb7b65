//! Gauss and Legendre's points on [0, 1]: with `n` of them polynomials of degree `2 n - 1` are integrated exactly.

use crate::error::{Result, setting};

/// Points and their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Quadrature {
    points: Vec<(f64, f64)>,
}

impl Quadrature {
    /// With 1 (the middle) to 16 points.
    pub fn new(points: usize) -> Result<Quadrature> {
        setting("points", (1..=16).contains(&points), "1 to 16", points)?;
        let n = points as f64;
        let point = |k: usize| {
            // Newton's method on the Legendre polynomial, from Tricomi's guess.
            let mut x = libm::cos(std::f64::consts::PI * (k as f64 + 0.75) / (n + 0.5));
            let mut slope = 1.0;
            for _ in 0..50 {
                let (mut p, mut before) = (1.0, 0.0);
                for j in 0..points {
                    let j = j as f64;
                    (p, before) = (((2.0 * j + 1.0) * x * p - j * before) / (j + 1.0), p);
                }
                slope = n * (x * p - before) / (x * x - 1.0);
                x -= p / slope;
            }
            (0.5 * (1.0 - x), 1.0 / ((1.0 - x * x) * slope * slope))
        };
        Ok(Quadrature {
            points: (0..points).map(point).collect(),
        })
    }

    /// `(where, weight)`; the weights add up to 1.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_integrated_exactly() {
        for n in 1..=16 {
            let q = Quadrature::new(n).unwrap();
            for degree in 0..2 * n as i32 {
                let sum: f64 = q.points().iter().map(|(x, w)| w * x.powi(degree)).sum();
                let exact = 1.0 / f64::from(degree + 1);
                assert!((sum - exact).abs() < 1e-14, "{n} points, degree {degree}");
            }
        }
        assert_eq!(Quadrature::new(1).unwrap().points(), [(0.5, 1.0)]);
        assert_eq!(
            Quadrature::new(17).unwrap_err().to_string(),
            "points is 17: expected 1 to 16"
        );
    }
}
