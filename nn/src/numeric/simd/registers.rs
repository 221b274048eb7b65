//! [`Lanes`] for each instruction set.

use super::lanes::Lanes;
use super::math;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Eight numbers in an array: no instruction set beyond the target's, and the f64 twin of every kernel.
#[derive(Clone, Copy)]
pub struct Portable<T>([T; 8]);

/// One AVX register.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct F32x8(__m256);

/// One AVX-512 register.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct F32x16(__m512);

macro_rules! partial {
    ($t:ty, $n:literal) => {
        #[inline(always)]
        fn load(s: &[$t]) -> Self {
            if s.len() >= $n {
                // SAFETY: the slice has at least N elements.
                unsafe { Self::read(s.as_ptr()) }
            } else {
                let mut full = [0.0; $n];
                for (to, from) in full.iter_mut().zip(s) {
                    *to = *from;
                }
                // SAFETY: the array has N elements.
                unsafe { Self::read(full.as_ptr()) }
            }
        }
        #[inline(always)]
        fn store(self, s: &mut [$t]) {
            if s.len() >= $n {
                // SAFETY: the slice has at least N elements.
                unsafe { self.write(s.as_mut_ptr()) }
            } else {
                let mut full = [0.0; $n];
                // SAFETY: the array has N elements.
                unsafe { self.write(full.as_mut_ptr()) }
                for (to, from) in s.iter_mut().zip(&full) {
                    *to = *from;
                }
            }
        }
    };
}

macro_rules! approximated {
    () => {
        #[inline(always)]
        fn exp(self) -> Self {
            math::exp(self)
        }
        #[inline(always)]
        fn tanh(self) -> Self {
            math::tanh(self)
        }
        #[inline(always)]
        fn sigmoid(self) -> Self {
            math::sigmoid(self)
        }
        #[inline(always)]
        fn normal(self) -> (Self, Self) {
            math::normal(self)
        }
    };
}

macro_rules! arrays {
    ($t:ty) => {
        type T = $t;
        const N: usize = 8;
        const TURN: usize = 1;
        #[inline(always)]
        fn splat(x: $t) -> Self {
            Self([x; 8])
        }
        #[inline(always)]
        unsafe fn read(p: *const $t) -> Self {
            // SAFETY: promised by the caller; an array has no stricter alignment than its element.
            Self(unsafe { *p.cast::<[$t; 8]>() })
        }
        #[inline(always)]
        unsafe fn write(self, p: *mut $t) {
            // SAFETY: promised by the caller.
            unsafe { *p.cast::<[$t; 8]>() = self.0 }
        }
        partial!($t, 8);
        #[inline(always)]
        fn add(self, b: Self) -> Self {
            Self(std::array::from_fn(|i| self.0[i] + b.0[i]))
        }
        #[inline(always)]
        fn sub(self, b: Self) -> Self {
            Self(std::array::from_fn(|i| self.0[i] - b.0[i]))
        }
        #[inline(always)]
        fn mul(self, b: Self) -> Self {
            Self(std::array::from_fn(|i| self.0[i] * b.0[i]))
        }
        #[inline(always)]
        fn div(self, b: Self) -> Self {
            Self(std::array::from_fn(|i| self.0[i] / b.0[i]))
        }
        #[inline(always)]
        fn fma(self, b: Self, c: Self) -> Self {
            Self(std::array::from_fn(|i| self.0[i] * b.0[i] + c.0[i]))
        }
        #[inline(always)]
        fn lt(self, b: Self, yes: Self, no: Self) -> Self {
            Self(std::array::from_fn(|i| {
                if self.0[i] < b.0[i] {
                    yes.0[i]
                } else {
                    no.0[i]
                }
            }))
        }
        #[inline(always)]
        fn total([a, b]: [Self; 2]) -> $t {
            let mut all = a.add(b).0;
            for half in [4, 2, 1] {
                for i in 0..half {
                    all[i] += all[i + half];
                }
            }
            all[0]
        }
        #[inline(always)]
        fn abs(self) -> Self {
            Self(self.0.map(<$t>::abs))
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            Self(self.0.map(<$t>::sqrt))
        }
    };
}

impl Lanes for Portable<f32> {
    arrays!(f32);
    approximated!();
    #[inline(always)]
    fn exponent(self) -> Self {
        Self(self.0.map(|x| f32::from_bits(x.to_bits() << 23)))
    }
}

impl Lanes for Portable<f64> {
    arrays!(f64);
    #[inline(always)]
    fn exponent(self) -> Self {
        unreachable!("f64 uses the standard library's exp")
    }
    fn exp(self) -> Self {
        Self(self.0.map(f64::exp))
    }
    fn tanh(self) -> Self {
        Self(self.0.map(f64::tanh))
    }
    fn sigmoid(self) -> Self {
        Self(self.0.map(|x| 1.0 / (1.0 + (-x).exp())))
    }
    fn normal(self) -> (Self, Self) {
        let distribution = |x: f64| 0.5 * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2));
        (
            Self(self.0.map(distribution)),
            Self(
                self.0
                    .map(|x| (-0.5 * x * x).exp() * 0.398_942_280_401_432_7),
            ),
        )
    }
}

// SAFETY of every block below: these types are only made inside `simd::avx2` and `simd::avx512`,
// which run after the processor was found to have the instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($($op:ident = $intrinsic:ident),*) => {
        $(#[inline(always)]
        fn $op(self, b: Self) -> Self {
            Self(unsafe { $intrinsic(self.0, b.0) })
        })*
        approximated!();
    };
}

/// The sum of eight numbers: those four apart, then those two and one apart.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn total_of_eight(x: __m256) -> f32 {
    // SAFETY: as for every block below.
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }
}

/// The mask of the first `n` of eight lanes, which are those of the eight numbers from `8 - n` on.
#[cfg(target_arch = "x86_64")]
static FIRST: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first(n: usize) -> __m256i {
    let eight: &[i32; 8] = FIRST[8 - n..].first_chunk().expect("at most eight lanes");
    // SAFETY: eight numbers are there; as for every block below.
    unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for F32x8 {
    type T = f32;
    const N: usize = 8;
    const TURN: usize = 4;
    #[inline(always)]
    fn load(s: &[f32]) -> Self {
        if s.len() >= 8 {
            // SAFETY: the slice has at least eight elements.
            unsafe { Self::read(s.as_ptr()) }
        } else {
            // SAFETY: lanes beyond the slice are masked, and not read.
            Self(unsafe { _mm256_maskload_ps(s.as_ptr(), first(s.len())) })
        }
    }
    #[inline(always)]
    fn store(self, s: &mut [f32]) {
        if s.len() >= 8 {
            // SAFETY: the slice has at least eight elements.
            unsafe { self.write(s.as_mut_ptr()) }
        } else {
            // SAFETY: lanes beyond the slice are masked, and not written.
            unsafe { _mm256_maskstore_ps(s.as_mut_ptr(), first(s.len()), self.0) }
        }
    }
    registers!(
        add = _mm256_add_ps,
        sub = _mm256_sub_ps,
        mul = _mm256_mul_ps,
        div = _mm256_div_ps
    );
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self(unsafe { _mm256_set1_ps(x) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(unsafe { _mm256_sqrt_ps(self.0) })
    }
    #[inline(always)]
    unsafe fn read(p: *const f32) -> Self {
        Self(unsafe { _mm256_loadu_ps(p) })
    }
    #[inline(always)]
    unsafe fn write(self, p: *mut f32) {
        unsafe { _mm256_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Self(unsafe { _mm256_fmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn lt(self, b: Self, yes: Self, no: Self) -> Self {
        Self(unsafe { _mm256_blendv_ps(no.0, yes.0, _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, b.0)) })
    }
    #[inline(always)]
    fn total([a, b]: [Self; 2]) -> f32 {
        total_of_eight(a.add(b).0)
    }
    // Of a NaN and a number, the processor's maximum and minimum are the second operand.
    #[inline(always)]
    fn at_least(self, low: Self) -> Self {
        Self(unsafe { _mm256_max_ps(low.0, self.0) })
    }
    #[inline(always)]
    fn at_most(self, high: Self) -> Self {
        Self(unsafe { _mm256_min_ps(high.0, self.0) })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0) })
    }
    #[inline(always)]
    fn exponent(self) -> Self {
        Self(unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_castps_si256(self.0))) })
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for F32x16 {
    type T = f32;
    const N: usize = 16;
    const TURN: usize = 4;
    #[inline(always)]
    fn load(s: &[f32]) -> Self {
        if s.len() >= 16 {
            // SAFETY: the slice has at least sixteen elements.
            unsafe { Self::read(s.as_ptr()) }
        } else {
            // SAFETY: lanes beyond the slice are masked, and not read.
            Self(unsafe { _mm512_maskz_loadu_ps((1 << s.len()) - 1, s.as_ptr()) })
        }
    }
    #[inline(always)]
    fn store(self, s: &mut [f32]) {
        if s.len() >= 16 {
            // SAFETY: the slice has at least sixteen elements.
            unsafe { self.write(s.as_mut_ptr()) }
        } else {
            // SAFETY: lanes beyond the slice are masked, and not written.
            unsafe { _mm512_mask_storeu_ps(s.as_mut_ptr(), (1 << s.len()) - 1, self.0) }
        }
    }
    registers!(
        add = _mm512_add_ps,
        sub = _mm512_sub_ps,
        mul = _mm512_mul_ps,
        div = _mm512_div_ps
    );
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self(unsafe { _mm512_set1_ps(x) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(unsafe { _mm512_sqrt_ps(self.0) })
    }
    #[inline(always)]
    unsafe fn read(p: *const f32) -> Self {
        Self(unsafe { _mm512_loadu_ps(p) })
    }
    #[inline(always)]
    unsafe fn write(self, p: *mut f32) {
        unsafe { _mm512_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Self(unsafe { _mm512_fmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn lt(self, b: Self, yes: Self, no: Self) -> Self {
        Self(unsafe {
            _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, b.0), no.0, yes.0)
        })
    }
    #[inline(always)]
    fn total([all, _]: [Self; 2]) -> f32 {
        let halves = F32x8(unsafe { _mm512_castps512_ps256(all.0) });
        let upper = unsafe { _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(all.0)) };
        total_of_eight(halves.add(F32x8(unsafe { _mm256_castpd_ps(upper) })).0)
    }
    // Of a NaN and a number, the processor's maximum and minimum are the second operand.
    #[inline(always)]
    fn at_least(self, low: Self) -> Self {
        Self(unsafe { _mm512_max_ps(low.0, self.0) })
    }
    #[inline(always)]
    fn at_most(self, high: Self) -> Self {
        Self(unsafe { _mm512_min_ps(high.0, self.0) })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(unsafe { _mm512_abs_ps(self.0) })
    }
    #[inline(always)]
    fn exponent(self) -> Self {
        Self(unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_castps_si512(self.0))) })
    }
}
