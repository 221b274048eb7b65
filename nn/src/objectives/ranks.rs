//! The logits of ranks 2 to `last` minus that of rank 1, at one step.

use super::range::below;
use crate::error::{Error, Result};
use crate::numeric::Real;

/// Of one row of logits; adds `scale` times the gradient to `seed`.
pub(super) fn ranks<T: Real>(z: &[T], seed: &mut [T], last: usize, scale: f64) -> Result<f64> {
    below("rank", last, z.len() + 1)?;
    if last == 0 {
        return Err(Error::Setting {
            what: "rank",
            expected: "above 0".into(),
            got: "0".into(),
        });
    }
    let mut order: Vec<usize> = (0..z.len()).collect();
    order.sort_by(|&i, &j| {
        let descending = z[j].partial_cmp(&z[i]);
        descending
            .unwrap_or(std::cmp::Ordering::Equal)
            .then(i.cmp(&j))
    });
    let others: f64 = order[1..last].iter().map(|&k| z[k].to_f64()).sum();
    order[1..last].iter().for_each(|&k| seed[k] += T::of(scale));
    seed[order[0]] -= T::of(scale);
    Ok(others - z[order[0]].to_f64())
}
