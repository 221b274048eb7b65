//! How alike two texts are: the cosine of the means of their words' vectors. Knows no model.

use nn::linear::Vectors;

/// A text that others are compared with.
pub struct Compared<'a> {
    vectors: &'a Vectors,
    pad: u32,
    mean: Vec<f64>,
}

impl<'a> Compared<'a> {
    /// With this one.
    pub fn new(vectors: &'a Vectors, text: &[u32], pad: u32) -> Compared<'a> {
        Compared {
            vectors,
            pad,
            mean: mean(vectors, text, pad),
        }
    }

    /// The cosine; 0 if one of them has no direction.
    pub fn with(&self, text: &[u32]) -> f64 {
        let other = mean(self.vectors, text, self.pad);
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let lengths = (dot(&self.mean, &self.mean) * dot(&other, &other)).sqrt();
        match lengths > 0.0 {
            true => dot(&self.mean, &other) / lengths,
            false => 0.0,
        }
    }
}

/// The sum will do for a cosine.
fn mean(vectors: &Vectors, text: &[u32], pad: u32) -> Vec<f64> {
    let mut sum = vec![0.0; vectors.dim];
    for token in text.iter().filter(|token| **token != pad) {
        let at = *token as usize * vectors.dim;
        let vector = vectors.data.get(at..at + vectors.dim).unwrap_or_default();
        for (sum, x) in sum.iter_mut().zip(vector) {
            *sum += f64::from(*x);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_like_words_are_alike() {
        let vectors = Vectors {
            dim: 2,
            data: [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, -1.0, 0.0].into(),
        };
        let text = Compared::new(&vectors, &[1, 1, 0], 0);
        assert_eq!(text.with(&[1]), 1.0);
        assert_eq!(text.with(&[2, 0, 0]), 0.0);
        assert_eq!(text.with(&[3]), -1.0);
        assert!((text.with(&[1, 2]) - 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!(text.with(&[0]), 0.0);
    }
}
