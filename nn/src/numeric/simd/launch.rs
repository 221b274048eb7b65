//! The choice of instruction set at run time.
//!
//! AVX2 and AVX-512 do the same operations on every element in the same order, fused multiply-add included, so they
//! give the same bits; the portable path has no fused multiply-add and may differ in the last place.

use super::kernel::Kernel;
use super::registers::{self, Portable};
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
    if let Some(isa) = CHOSEN.get() {
        return isa;
    }
    isa()
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
    kernel.run::<registers::F32x8>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn avx512<K: Kernel<f32>>(kernel: K) -> K::Out {
    kernel.run::<registers::F32x16>()
}

#[cfg(test)]
thread_local! { pub static CHOSEN: std::cell::Cell<Option<Isa>> = const { std::cell::Cell::new(None) } }
