//! The number type: `f32` to work with, `f64` to check the gradients with.

use super::lines::Lines;
use super::simd::{self, Kernel, Portable};
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// `f32` or `f64`.
pub trait Real:
    Copy
    + Default
    + Send
    + Sync
    + 'static
    + PartialOrd
    + Debug
    + Display
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
{
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// Below this a back-propagated value counts as zero. Without it, 250 steps
    /// of back-propagation drift into denormals, which cost ten times the time.
    const TINY: Self;
    /// The nearest value.
    fn of(x: f64) -> Self;
    /// Exact.
    fn to_f64(self) -> f64;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Natural logarithm, the same on every system.
    fn ln(self) -> Self;
    /// Neither NaN nor infinite.
    fn is_finite(self) -> bool;
    /// Whether two rows of one length have the same bits: zeros of two signs differ, a NaN is itself.
    fn same_bits(a: &[Self], b: &[Self]) -> bool;
    /// The next value above.
    fn next_up(self) -> Self;
    /// The next value below.
    fn next_down(self) -> Self;
    /// The next value towards `x`, which is another one; not for 0. Without a branch.
    fn towards(self, x: Self) -> Self;
    /// Of two members of a family, the one of this precision.
    fn choose<F: PerPrecision>(single: F::Of<f32>, double: F::Of<f64>) -> F::Of<Self>;
    /// Runs a kernel with the widest vectors at hand.
    fn launch<K: Kernel<Self>>(kernel: K) -> K::Out;
    /// Lends this thread's packing buffers of the matrix product.
    fn with_pack<R>(f: impl FnOnce(&mut Lines<Self>, &mut Lines<Self>) -> R) -> R;
}

/// A family of types with a member for each precision, such as `&dyn Forward<T>`.
///
/// A trait object has no generic methods, so what computes in both precisions implements a trait for `f32` and for
/// `f64`; generic code picks the one for its `T` with [`Real::choose`].
pub trait PerPrecision {
    /// The member for `T`.
    type Of<T: Real>;
}

macro_rules! real {
    ($t:ident, $bits:ident, $ln:ident, $tiny:literal, |$single:ident, $double:ident| $chosen:ident, |$k:ident| $launch:expr) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const TINY: Self = $tiny;
            fn of(x: f64) -> Self {
                x as $t
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            fn abs(self) -> Self {
                self.abs()
            }
            fn ln(self) -> Self {
                libm::$ln(self)
            }
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            fn same_bits(a: &[Self], b: &[Self]) -> bool {
                // To the end of the row, without a way out: so it is vectors that are compared.
                let differ = |(a, b): (&$t, &$t)| a.to_bits() ^ b.to_bits();
                a.len() == b.len() && a.iter().zip(b).map(differ).fold(0, |all, d| all | d) == 0
            }
            fn next_up(self) -> Self {
                self.next_up()
            }
            fn next_down(self) -> Self {
                self.next_down()
            }
            #[inline(always)]
            fn towards(self, x: Self) -> Self {
                let bits = self.to_bits() as $bits;
                // All ones where it must go down, and where it is negative: bits grow with the distance from 0.
                let (down, negative) = (-$bits::from(self > x), bits >> ($bits::BITS - 1));
                $t::from_bits((bits + ((down ^ negative) | 1)) as _)
            }
            fn choose<F: PerPrecision>($single: F::Of<f32>, $double: F::Of<f64>) -> F::Of<Self> {
                $chosen
            }
            #[inline(always)]
            fn launch<K: Kernel<Self>>($k: K) -> K::Out {
                $launch
            }
            fn with_pack<R>(f: impl FnOnce(&mut Lines<Self>, &mut Lines<Self>) -> R) -> R {
                use std::cell::RefCell;
                thread_local! { static PACK: RefCell<[Lines<$t>; 2]> = RefCell::default() }
                PACK.with_borrow_mut(|[a, b]| f(a, b))
            }
        }
    };
}
real!(f32, i32, logf, 1e-25, |single, _double| single, |k| {
    simd::launch_on(simd::current(), k)
});
real!(f64, i64, log, 1e-200, |_single, double| double, |k| {
    k.run::<Portable<f64>>()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn towards_is_the_next_value() {
        for a in [1.0f32, -1.0, 0.15, -3e-38, 1e-45, -1e-45, 7e37, 2.0, -2.0] {
            assert_eq!(a.towards(100.0 + a.abs() * 2.0), a.next_up(), "{a} up");
            assert_eq!(a.towards(-100.0 - a.abs() * 2.0), a.next_down(), "{a} down");
            let a = f64::from(a);
            assert_eq!(a.towards(f64::INFINITY), a.next_up());
            assert_eq!(a.towards(f64::NEG_INFINITY), a.next_down());
        }
    }
}
