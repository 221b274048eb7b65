//! Dropout: `y = x m / (1 - rate)`, `m` 0 with probability `rate`, otherwise 1.
//!
//! `m` for number `j` of item `b` at step `t` is a hash of (step of training, layer, `b`, `t`, `j`),
//! so it does not depend on shards or threads. Outside training the layer does nothing.

use crate::autodiff::{Tape, Var};
use crate::numeric::Real;

/// Drops numbers of `x` while training.
pub fn dropout<T: Real>(tape: &mut Tape<T>, x: Var, rate: f64) -> Var {
    let noise = tape.noise();
    let Some((stream, first)) = noise.filter(|_| rate > 0.0) else {
        return x;
    };
    let shape = tape.shape(x);
    let (y, mask) = (tape.output(shape, &[x], false), tape.value(shape, false));
    let (mut out, mut m) = (tape.take(y), tape.take(mask));
    let scale = T::of(1.0 / (1.0 - rate));
    // A 32-bit threshold: two numbers from each hash.
    let threshold = (rate * f64::from(u32::MAX)) as u32;
    for (row, m) in m.chunks_exact_mut(shape.dim).enumerate() {
        let (t, b) = (row / shape.batch, row % shape.batch);
        let stream = stream.item((first + b) as u64).item(t as u64);
        for (i, pair) in m.chunks_mut(2).enumerate() {
            let bits = stream.bits(i as u64);
            for (half, m) in pair.iter_mut().enumerate() {
                *m = if (bits >> (32 * half)) as u32 >= threshold {
                    scale
                } else {
                    T::ZERO
                };
            }
        }
    }
    for ((y, x), m) in out.iter_mut().zip(tape.get(x)).zip(&m) {
        *y = *x * *m;
    }
    tape.put(y, out);
    tape.put(mask, m);
    tape.record_output(y, move |tape, _, _, dy| {
        tape.add_grad_with(x, |tape, dx| {
            for ((dx, dy), m) in dx.iter_mut().zip(dy).zip(tape.get(mask)) {
                *dx += *dy * *m;
            }
        });
    });
    y
}
