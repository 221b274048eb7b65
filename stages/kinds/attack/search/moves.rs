//! Which word to put in a place: drawn from a set, or the best of all in a direction.

use ndarray::ArrayView2;
use nn::Stream;
use nn::linear::Vectors;
use nn::numeric::Dictionary;

use crate::Failure;
use crate::models::failure;

/// A word of a set, evenly; `draw` counts the draws of one item.
pub fn drawn(set: &[u32], stream: &Stream, draw: u64) -> Option<u32> {
    (!set.is_empty()).then(|| set[stream.below(draw, set.len())])
}

/// From the gradient of what should become smaller to a direction of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Its signs only.
    Sign,
    /// As it is.
    Gradient,
}

impl Direction {
    /// The direction for one gradient.
    pub fn of(self, gradient: &[f32]) -> Vec<f32> {
        let one = |g: f32| match self {
            // Zero has no sign: it must not count for either side.
            Direction::Sign if g == 0.0 => 0.0,
            Direction::Sign => -g.signum(),
            Direction::Gradient => -g,
        };
        gradient.iter().map(|g| one(*g)).collect()
    }
}

/// Where a word is to be changed.
pub struct Ask<'a> {
    /// The word that is there, which is never the answer.
    pub token: u32,
    /// The gradient of the objective with respect to its vector.
    pub gradient: &'a [f32],
}

/// The word whose vector lies furthest along the direction: `argmax (e_z - e_x) . p`.
pub struct Steepest {
    dictionary: Dictionary,
    direction: Direction,
    never: Vec<u32>,
}

impl Steepest {
    /// Words whose id is in `never` are never chosen.
    pub fn new(
        vectors: &Vectors,
        direction: Direction,
        never: &[u32],
    ) -> Result<Steepest, Failure> {
        Ok(Steepest {
            dictionary: Dictionary::new(vectors.view()).map_err(failure)?,
            direction,
            never: never.to_vec(),
        })
    }

    /// The best word for each place: one product with the dictionary for all.
    pub fn best(&self, asks: &[Ask<'_>]) -> Result<Vec<Option<u32>>, Failure> {
        let directions: Vec<f32> = asks
            .iter()
            .flat_map(|ask| self.direction.of(ask.gradient))
            .collect();
        let shape = (asks.len(), self.dictionary.dim());
        let directions = ArrayView2::from_shape(shape, &directions);
        let directions = directions.map_err(|e| Failure::new(e.to_string()))?;
        // e_x . p is the same for all words, so it decides nothing.
        let skip: Vec<Vec<u32>> = asks
            .iter()
            .map(|ask| self.never.iter().copied().chain([ask.token]).collect())
            .collect();
        let skip: Vec<&[u32]> = skip.iter().map(Vec::as_slice).collect();
        let best = self.dictionary.best(directions, &skip).map_err(failure)?;
        Ok(best.into_iter().map(|b| b.map(|b| b.row)).collect())
    }
}
