//! The first token along a gradient whose embedding is nearer than the token's own.

use ndarray::ArrayView2;
use nn::numeric::dot;

/// Embeddings of all tokens, and which of them may be put into an input.
pub struct Embeddings<'a> {
    rows: ArrayView2<'a, f32>,
    allowed: Vec<u32>,
    /// Half the squared length of each allowed one.
    halves: Vec<f32>,
    longest: f64,
}

/// A token that is nearest to a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The token.
    pub token: u32,
    /// The factor of the gradient.
    pub scale: f64,
    /// The length of the scaled gradient.
    pub l2: f64,
    /// Embedding plus scaled gradient.
    pub point: Vec<f32>,
}

impl<'a> Embeddings<'a> {
    /// Of a table of embeddings in rows.
    pub fn new(rows: ArrayView2<'a, f32>, allowed: Vec<u32>) -> Self {
        let square = |token: &u32| {
            let row = rows.row(*token as usize);
            let row = row.to_slice().expect("embeddings are contiguous");
            dot(row, row)
        };
        let halves: Vec<f32> = allowed.iter().map(|token| square(token) / 2.0).collect();
        let longest = halves.iter().map(|half| 2.0 * f64::from(*half));
        let longest = longest.fold(0.0, f64::max).sqrt();
        Embeddings {
            rows,
            allowed,
            halves,
            longest,
        }
    }

    /// Tokens that may be put into an input.
    pub fn allowed(&self) -> &[u32] {
        &self.allowed
    }

    fn row(&self, token: u32) -> &[f32] {
        let row = self.rows.row(token as usize).to_slice();
        row.expect("embeddings are contiguous")
    }

    /// The first factor at which another token than `own` is nearest.
    pub fn along(
        &self,
        own: u32,
        gradient: &[f32],
        scales: impl Iterator<Item = f64>,
    ) -> Option<Found> {
        let from = self.row(own);
        // The inner product with a point on the line is linear in the factor.
        let products = |with: &[f32]| -> Vec<f32> {
            let each = self.allowed.iter();
            each.map(|token| dot(self.row(*token), with)).collect()
        };
        let (start, slope) = (products(from), products(gradient));
        for scale in scales {
            let step: Vec<f32> = gradient
                .iter()
                .map(|g| (scale * f64::from(*g)) as f32)
                .collect();
            let point: Vec<f32> = from.iter().zip(&step).map(|(x, d)| x + d).collect();
            let score = |n: usize| start[n] + scale as f32 * slope[n] - self.halves[n];
            let token = self.nearest(&point, score)?;
            if token != own {
                let square: f64 = step.iter().map(|d| f64::from(*d) * f64::from(*d)).sum();
                let l2 = square.sqrt();
                return Some(Found {
                    token,
                    scale,
                    l2,
                    point,
                });
            }
        }
        None
    }

    /// The allowed token nearest to a point, the first of equals. `score` is about half the squared distance, less
    /// what all tokens share, and with its sign changed: who is far from the best by it is not looked at.
    fn nearest(&self, point: &[f32], score: impl Fn(usize) -> f32) -> Option<u32> {
        let scores: Vec<f32> = (0..self.allowed.len()).map(score).collect();
        let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let length = squared(point, &vec![0.0; point.len()]).sqrt();
        // Far more than what single precision loses in sums of this size.
        let slack = 1e-4 * self.longest * (length + self.longest);
        let near = |n: &usize| f64::from(scores[*n]) >= f64::from(best) - slack;
        let near = (0..scores.len()).filter(near);
        let exact = near.map(|n| (squared(self.row(self.allowed[n]), point), self.allowed[n]));
        let least = exact.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        least.map(|(_, token)| token)
    }
}

/// The squared distance, in double precision.
pub fn squared(a: &[f32], b: &[f32]) -> f64 {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(a, b)| {
            let d = f64::from(*a) - f64::from(*b);
            d * d
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use nn::Stream;

    use super::*;

    #[test]
    fn it_is_the_first_change_that_brute_force_finds() {
        let stream = Stream::new(1, "nearest");
        let rows = Array2::from_shape_fn((200, 12), |(n, k)| {
            stream.item(n as u64).normal(k as u64) as f32
        });
        let allowed: Vec<u32> = (0..200).filter(|n| n % 7 != 0).collect();
        let embeddings = Embeddings::new(rows.view(), allowed.clone());
        let mut found = 0;
        for own in allowed.iter().copied().take(40) {
            let size = if own % 2 == 0 { 0.02 } else { 100.0 };
            let noise = stream.item(1000 + u64::from(own));
            let gradient: Vec<f32> = (0..12).map(|k| (size * noise.normal(k)) as f32).collect();
            let scales = (1..=13).map(|k| 5.0 * f64::from(k));
            let by_hand = scales.clone().find_map(|scale| {
                let own_row = rows.row(own as usize);
                let point = own_row.iter().zip(&gradient);
                let point: Vec<f32> = point
                    .map(|(x, g)| x + (scale * f64::from(*g)) as f32)
                    .collect();
                let distance =
                    |token: &u32| squared(rows.row(*token as usize).to_slice().unwrap(), &point);
                let nearest = allowed.iter().copied();
                let nearest = nearest.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
                (nearest != own).then_some((nearest, scale))
            });
            let ours = embeddings.along(own, &gradient, scales);
            assert_eq!(ours.as_ref().map(|f| (f.token, f.scale)), by_hand);
            found += usize::from(ours.is_some());
        }
        assert!((20..40).contains(&found), "{found}: both ends are tried");
    }

    #[test]
    fn without_a_gradient_nothing_changes() {
        let rows = Array2::from_shape_fn((5, 2), |(n, k)| (n * 2 + k) as f32);
        let embeddings = Embeddings::new(rows.view(), vec![0, 1, 2]);
        assert_eq!(
            embeddings.along(1, &[0.0, 0.0], [5.0, 10.0].into_iter()),
            None
        );
        // Tokens 3 and 4 would be nearer.
        let found = embeddings
            .along(1, &[1.0, 1.0], [100.0].into_iter())
            .unwrap();
        assert_eq!(found.token, 2);
    }
}
