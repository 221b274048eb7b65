//! Vectors of numbers, and the choice of instruction set at run time.
//!
//! A [`Kernel`] is written once over [`Lanes`]; [`Real::launch`](crate::Real::launch) runs it with the widest
//! vectors the processor has. AVX2 and AVX-512 do the same operations on every
//! element in the same order, fused multiply-add included, so they give the same
//! bits; the portable path has no fused multiply-add and may differ in the last place.
//!
//! This folder and `gemm` are the only places with `unsafe`.

mod lanes;
mod math;
mod rows;

pub use lanes::{Lanes, Portable};
pub use rows::{dot, max, scaled_softmax, softmax, sum_of_squares, total};
use std::sync::OnceLock;

/// The instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// Whatever the target guarantees; no fused multiply-add.
    Portable,
    /// 8 lanes of `f32`, fused multiply-add.
    Avx2,
    /// 16 lanes of `f32`, fused multiply-add.
    Avx512,
}

/// The widest instruction set of this processor.
pub fn isa() -> Isa {
    static FOUND: OnceLock<Isa> = OnceLock::new();
    *FOUND.get_or_init(|| *available().last().expect("portable is always there"))
}

/// Every instruction set this processor can run, narrowest first.
pub fn available() -> Vec<Isa> {
    let mut found = vec![Isa::Portable];
    #[cfg(target_arch = "x86_64")]
    {
        let fma = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        if fma {
            found.push(Isa::Avx2);
        }
        if fma && is_x86_feature_detected!("avx512f") {
            found.push(Isa::Avx512);
        }
    }
    found
}

/// The instruction set that kernels of this thread run on: the widest, except in tests that compare them.
#[inline(always)]
pub(crate) fn current() -> Isa {
    #[cfg(test)]
    if let Some(isa) = tests::CHOSEN.get() {
        return isa;
    }
    isa()
}

/// A loop over numbers, written once for every vector width.
///
/// Mark `run` and what it calls `#[inline(always)]`: it is compiled inside a function that
/// enables the instruction set, and loses it where it is not inlined. Closures cannot be
/// marked, so kernels have none.
pub trait Kernel<T> {
    /// What the loop returns.
    type Out;
    /// The loop itself.
    fn run<V: Lanes<T = T>>(self) -> Self::Out;
}

/// Runs `kernel` on one named instruction set; tests compare them with it.
///
/// # Panics
/// If this processor lacks `isa`.
pub fn launch_on<K: Kernel<f32>>(isa: Isa, kernel: K) -> K::Out {
    assert!(isa <= self::isa(), "this processor lacks {isa:?}");
    match isa {
        // SAFETY: `isa()` found the features at run time, and the assertion above compares with it.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(kernel) },
        _ => kernel.run::<Portable<f32>>(),
    }
}

impl PartialOrd for Isa {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (*self as u8).partial_cmp(&(*other as u8))
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<K: Kernel<f32>>(kernel: K) -> K::Out {
    kernel.run::<lanes::F32x8>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn avx512<K: Kernel<f32>>(kernel: K) -> K::Out {
    kernel.run::<lanes::F32x16>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Example, Sequence, Target};
    use crate::grads::Shard;
    use crate::model::{Model, Reads, Spec};
    use crate::models::{CellKind, RecurrentSpec, TransformerSpec};
    use crate::objective::Objective;
    use crate::tape::Want;
    use std::cell::Cell;

    thread_local! { pub static CHOSEN: Cell<Option<Isa>> = const { Cell::new(None) } }

    /// Logits and all input gradients of a model, on one instruction set.
    fn run(isa: Isa, spec: &Spec) -> Vec<f32> {
        CHOSEN.set(Some(isa));
        let model = Model::new(spec).unwrap();
        let params = model.init::<f32>(1);
        let text = |k: u32| Example {
            input: Sequence::Tokens((0..5 + 3 * k).map(|i| (i * 7 + k) % 20).collect()),
            target: Target::Class(k % 2),
        };
        let texts: Vec<Example> = (0..7).map(text).collect();
        let batch = Batch::new(&texts.iter().collect::<Vec<_>>()).unwrap();
        let mut shard: Shard<f32> = Shard::default();
        shard.tape.reset(Want::BOTH);
        shard.grads.reset(model.layout());
        let out = model.forward(&mut shard.tape, &params, &batch).unwrap();
        let logits = shard.tape.get(out.logits).to_vec();
        Objective::CrossEntropy
            .apply(&mut shard.tape, &out, &batch, 1.0)
            .unwrap();
        shard.tape.backward(&params, &mut shard.grads);
        CHOSEN.set(None);
        logits
            .into_iter()
            .chain(shard.tape.grad(out.input).to_vec())
            .collect()
    }

    #[test]
    fn avx2_and_avx512_give_the_same_bits_and_portable_nearly() {
        let reads = Reads::Tokens {
            vocabulary: 20,
            dim: 19,
            frozen: false,
        };
        let recurrent = |cell| {
            Spec::Recurrent(RecurrentSpec {
                attention: 9,
                ..RecurrentSpec::new(cell, reads.clone(), 37, 2)
            })
        };
        let transformer = TransformerSpec {
            vocabulary: 20,
            positions: 40,
            dim: 36,
            heads: 3,
            inner: 50,
            layers: 2,
            dropout: 0.0,
            pooler: true,
            classes: 2,
        };
        for spec in [
            recurrent(CellKind::Rnn),
            recurrent(CellKind::Gru),
            recurrent(CellKind::Lstm),
            Spec::Transformer(transformer),
        ] {
            let all: Vec<(Isa, Vec<f32>)> = available()
                .into_iter()
                .map(|isa| (isa, run(isa, &spec)))
                .collect();
            let wide: Vec<_> = all
                .iter()
                .filter(|(isa, _)| *isa != Isa::Portable)
                .collect();
            assert!(wide.windows(2).all(|w| w[0].1 == w[1].1), "{spec:?}");
            for (isa, values) in &all {
                let close = values
                    .iter()
                    .zip(&all[0].1)
                    .all(|(a, b)| (a - b).abs() < 2e-5 * (1.0 + b.abs()));
                assert!(close, "{isa:?} against portable, {spec:?}");
            }
        }
    }
}
