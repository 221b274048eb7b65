//! Words whose vectors point the same way. Knows nothing of texts.

use ndarray::Array2;
use nn::linear::Vectors;

/// Vectors of length 1, one in each column, so that a cosine with all words is a sum over rows of columns.
pub struct Alike {
    units: Array2<f32>,
    above: f32,
}

impl Alike {
    /// Words are alike if their cosine is above the limit.
    pub fn new(vectors: &Vectors, above: f32) -> Alike {
        let words = vectors.data.len() / vectors.dim.max(1);
        let mut units = Array2::zeros((vectors.dim, words));
        for (word, vector) in vectors.data.chunks(vectors.dim.max(1)).enumerate() {
            let square: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            // Zeros have no direction, and stay zeros.
            let length = if square > 0.0 { square.sqrt() } else { 1.0 };
            for (d, x) in vector.iter().enumerate() {
                units[[d, word]] = (f64::from(*x) / length) as f32;
            }
        }
        Alike { units, above }
    }

    /// The words that are like one, itself among them, by ids. Every sum goes through the numbers of a vector in
    /// their order, so that every machine finds the same words.
    pub fn of(&self, word: u32) -> Vec<u32> {
        let mut cosines = vec![0.0f32; self.units.ncols()];
        for numbers in self.units.rows() {
            let own = numbers[word as usize];
            for (cosine, other) in cosines.iter_mut().zip(numbers) {
                *cosine += own * other;
            }
        }
        let alike = cosines.iter().enumerate().filter(|(_, c)| **c > self.above);
        alike.map(|(other, _)| other as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_alike_whatever_their_length() {
        let vectors = Vectors {
            dim: 2,
            data: vec![0.0, 0.0, 3.0, 0.0, 0.5, 0.1, 0.0, 2.0, -1.0, 0.0].into(),
        };
        let alike = |above: f32, word| Alike::new(&vectors, above).of(word);
        assert_eq!(alike(0.8, 1), [1, 2]);
        assert_eq!(alike(0.0, 1), [1, 2]);
        assert_eq!(alike(-0.5, 1), [0, 1, 2, 3]);
        assert_eq!(alike(0.8, 0), [] as [u32; 0]);
    }
}
