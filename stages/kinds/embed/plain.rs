//! Vectors that are not learnt: random ones and one-hot ones.

use super::draw::Stream;
use crate::Failure;
use crate::tables::vectors::Matrix;

/// Even random numbers between -scale and scale, which depend on the seed and the id alone.
pub fn random(seed: u64, id: usize, dim: usize, scale: f32) -> impl Iterator<Item = f32> {
    let mut stream = Stream::new(seed, 0, id as u64);
    (0..dim).map(move |_| (stream.unit() * 2.0 - 1.0) * scale)
}

/// The largest vocabulary for which one-hot vectors are written out: 256 MB of them.
const MOST: usize = 8_192;

/// The identity matrix.
pub fn one_hot(size: usize) -> Result<Matrix, Failure> {
    if size > MOST {
        return Err(Failure::new(format!(
            "one-hot vectors of {size} tokens would be {size} x {size} numbers"
        ))
        .help(format!(
            "limit the vocabulary to {MOST} tokens with `max_vocab`"
        ))
        .at("source"));
    }
    let mut values = vec![0.0; size * size];
    (0..size).for_each(|n| values[n * size + n] = 1.0);
    Ok(Matrix { dim: size, values })
}
