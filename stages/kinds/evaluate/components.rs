//! The first two principal components of rows, by orthogonal iteration on `X' X` with a few vectors to spare.
//! Every sum has a fixed order. Does not know what the rows are.

use nn::Stream;

/// Vectors that iterate: two are wanted, the others make them settle sooner.
const BLOCK: usize = 6;
/// Rounds; the angle left shrinks by the ratio of the third to the seventh variance in each.
pub const ROUNDS: usize = 40;

/// Rows whose columns have the mean 0, by what they do to vectors.
pub struct Centred<'a> {
    /// The number of columns.
    pub width: usize,
    /// `X v`
    pub times: &'a dyn Fn(&[f64]) -> Vec<f64>,
    /// `X' u`
    pub transposed: &'a dyn Fn(&[f64]) -> Vec<f64>,
}

/// The rows on the first two components. `go_on` is asked after every round.
pub fn two_components(rows: &Centred<'_>, go_on: impl Fn(u64) -> bool) -> Option<Vec<[f64; 2]>> {
    let stream = Stream::new(0, "pca");
    let random = |k: usize| {
        let stream = stream.item(k as u64);
        (0..rows.width as u64).map(|i| stream.normal(i)).collect()
    };
    let mut block: Vec<Vec<f64>> = (0..BLOCK).map(random).collect();
    for round in 0..ROUNDS {
        orthonormal(&mut block);
        let next = block.iter().map(|v| (rows.transposed)(&(rows.times)(v)));
        block = next.collect();
        if !go_on(round as u64 + 1) {
            return None;
        }
    }
    orthonormal(&mut block);
    let projected: Vec<Vec<f64>> = block.iter().map(|v| (rows.times)(v)).collect();
    let [mut first, mut second] = top_two(&projected);
    for axis in [&mut first, &mut second] {
        // A component has no sign of its own: the largest number is made positive.
        let largest = axis
            .iter()
            .copied()
            .fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        if largest < 0.0 {
            axis.iter_mut().for_each(|x| *x = -*x);
        }
    }
    Some(first.into_iter().zip(second).map(|(a, b)| [a, b]).collect())
}

/// Gram and Schmidt, twice, so that rounding leaves no trace.
fn orthonormal(block: &mut [Vec<f64>]) {
    for k in 0..block.len() {
        let (done, rest) = block.split_at_mut(k);
        let v = &mut rest[0];
        for _ in 0..2 {
            for other in done.iter() {
                let product = dot(v, other);
                v.iter_mut().zip(other).for_each(|(v, o)| *v -= product * o);
            }
        }
        let norm = dot(v, v).sqrt();
        if norm > 0.0 {
            v.iter_mut().for_each(|v| *v /= norm);
        }
    }
}

/// Rotates the projections so that the first two have the largest variances and are uncorrelated
/// (Jacobi's rotations of their small covariance).
fn top_two(projected: &[Vec<f64>]) -> [Vec<f64>; 2] {
    let mut axes: Vec<Vec<f64>> = projected.to_vec();
    for _ in 0..30 {
        for i in 0..axes.len() {
            for j in i + 1..axes.len() {
                let (a, b, c) = (
                    dot(&axes[i], &axes[i]),
                    dot(&axes[j], &axes[j]),
                    dot(&axes[i], &axes[j]),
                );
                if c == 0.0 {
                    continue;
                }
                // The tangent of the angle that makes them uncorrelated; roots alone, since other
                // functions differ between systems in the last place.
                let tau = (a - b) / (2.0 * c);
                let tan = tau.signum() / (tau.abs() + (tau * tau + 1.0).sqrt());
                let cos = 1.0 / (tan * tan + 1.0).sqrt();
                let sin = tan * cos;
                let (left, right) = axes.split_at_mut(j);
                for (x, y) in left[i].iter_mut().zip(&mut right[0]) {
                    (*x, *y) = (cos * *x + sin * *y, cos * *y - sin * *x);
                }
            }
        }
    }
    axes.sort_by(|a, b| dot(b, b).total_cmp(&dot(a, a)));
    let mut axes = axes.into_iter();
    [
        axes.next().unwrap_or_default(),
        axes.next().unwrap_or_default(),
    ]
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
