//! The class or token that a row of logits predicts.

/// The index of the largest number, the first of equals.
pub fn argmax(z: &[f32]) -> usize {
    (0..z.len()).fold(0, |best, k| if z[k] > z[best] { k } else { best })
}
