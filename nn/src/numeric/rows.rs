//! Sums over a row, in an order that does not depend on the vector width: sixteen running
//! sums, then pairs of them. So AVX2 and AVX-512 agree here too.

use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// `sum_j term(j)`, where the term is the vector that starts at element `j`, zero beyond the end.
/// A macro, because a closure might not be inlined and would then lose the instruction set.
macro_rules! sixteen {
    ($v:ident, $len:expr, |$j:ident| $term:expr) => {{
        let (len, per) = ($len, 16 / $v::N);
        let mut acc = [$v::splat($v::T::ZERO); 2];
        for i in (0..len).step_by(16) {
            for k in 0..per {
                let $j = i + k * $v::N;
                if $j < len {
                    acc[k] = acc[k].add($term);
                }
            }
        }
        $v::total(acc)
    }};
}

/// `sum x`
pub fn total<T: Real>(x: &[T]) -> T {
    struct Total<'a, T>(&'a [T]);
    impl<T: Real> Kernel<T> for Total<'_, T> {
        type Out = T;
        #[inline(always)]
        fn run<V: Lanes<T = T>>(self) -> T {
            sixteen!(V, self.0.len(), |j| V::load(&self.0[j..]))
        }
    }
    T::launch(Total(x))
}

/// `sum x^2`
pub fn sum_of_squares<T: Real>(x: &[T]) -> T {
    dot(x, x)
}

/// `sum x y`
pub fn dot<T: Real>(x: &[T], y: &[T]) -> T {
    T::launch(Dot(x, y))
}

/// [`dot`] as a kernel, for others to run.
pub(crate) struct Dot<'a, T>(pub &'a [T], pub &'a [T]);
impl<T: Real> Kernel<T> for Dot<'_, T> {
    type Out = T;
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) -> T {
        let (x, y) = (self.0, &self.1[..self.0.len()]);
        sixteen!(V, x.len(), |j| V::load(&x[j..]).mul(V::load(&y[j..])))
    }
}

/// The largest number; an empty row gives minus infinity. A NaN may be passed over:
/// [`softmax`] still notices it, by its sum.
pub fn max<T: Real>(x: &[T]) -> T {
    T::launch(Max(x))
}

/// [`max`] as a kernel.
struct Max<'a, T>(&'a [T]);
impl<T: Real> Kernel<T> for Max<'_, T> {
    type Out = T;
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) -> T {
        let low = T::of(f64::NEG_INFINITY);
        let mut top = [V::splat(low); 4];
        let whole = self.0.chunks_exact(4 * V::N);
        let rest = whole.remainder();
        for x in whole {
            for (k, top) in top.iter_mut().enumerate() {
                let v = V::load(&x[k * V::N..]);
                *top = v.lt(*top, *top, v);
            }
        }
        let (mut best, mut all) = (low, [low; 64]);
        // A row of a few classes is only a rest.
        let seen = if rest.len() < self.0.len() {
            4 * V::N
        } else {
            0
        };
        for (k, top) in top.iter().take(seen / V::N).enumerate() {
            top.store(&mut all[k * V::N..]);
        }
        for v in all[..seen].iter().chain(rest) {
            if *v > best {
                best = *v;
            }
        }
        best
    }
}

/// Turns `x` into `e^x / sum e^x` and returns `ln sum e^x`.
pub fn softmax<T: Real>(x: &mut [T]) -> T {
    scaled_softmax(x, T::ONE)
}

/// Turns `x` into `scale e^x / sum e^x` and returns `ln sum e^x`.
pub fn scaled_softmax<T: Real>(x: &mut [T], scale: T) -> T {
    let (top, sum) = exponentials(x, scale);
    top + sum.ln()
}

/// Turns `x` into `e^x / sum e^x` alone: the logarithm costs as much as a row of a few classes.
#[inline]
pub fn shares<T: Real>(x: &mut [T]) {
    if let [x] = x {
        // It is `e^0 / e^0`; a NaN, or infinity less itself, spoils it as it would a longer row.
        *x = if x.is_finite() {
            T::ONE
        } else {
            T::of(f64::NAN)
        };
    } else {
        exponentials(x, T::ONE);
    }
}

/// Turns `x` into `scale e^x / sum e^x` and returns the largest `x` and the sum of `e^(x - largest)`.
fn exponentials<T: Real>(x: &mut [T], scale: T) -> (T, T) {
    struct Exp<'a, T>(&'a mut [T], T);
    impl<T: Real> Kernel<T> for Exp<'_, T> {
        type Out = (T, T);
        #[inline(always)]
        fn run<V: Lanes<T = T>>(self) -> (T, T) {
            let largest = Max(self.0).run::<V>();
            let (x, top) = (self.0, V::splat(largest));
            let sum = sixteen!(V, x.len(), |j| {
                let e = V::load(&x[j..]).sub(top).exp();
                e.store(&mut x[j..]);
                // Lanes beyond the end hold e^-top, not zero: read back what was stored.
                if j + V::N <= x.len() {
                    e
                } else {
                    V::load(&x[j..])
                }
            });
            let scale = V::splat(self.1 / sum);
            for part in x.chunks_mut(V::N) {
                V::load(part).mul(scale).store(part);
            }
            (largest, sum)
        }
    }
    T::launch(Exp(x, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_maxima_and_softmax_of_every_length() {
        for n in 1..70usize {
            let x: Vec<f64> = (0..n).map(|i| ((i * 37) % 23) as f64 / 7.0 - 1.5).collect();
            let sum: f64 = x.iter().sum();
            assert!((total(&x) - sum).abs() < 1e-12);
            assert!((sum_of_squares(&x) - x.iter().map(|v| v * v).sum::<f64>()).abs() < 1e-12);
            assert_eq!(max(&x), x.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            let mut p = x.clone();
            let log = softmax(&mut p);
            let z: f64 = x.iter().map(|v| v.exp()).sum();
            assert!((log - z.ln()).abs() < 1e-12);
            assert!(
                p.iter()
                    .zip(&x)
                    .all(|(p, x)| (p - x.exp() / z).abs() < 1e-12),
                "{n}"
            );
            let mut q = x.clone();
            shares(&mut q);
            assert_eq!(q, p);
            let x32: Vec<f32> = x.iter().map(|v| *v as f32).collect();
            assert!((f64::from(total(&x32)) - sum).abs() < 1e-4);
        }
    }

    #[test]
    fn a_nan_spoils_the_softmax() {
        for n in [1, 5, 40, 200] {
            for at in 0..n {
                let mut x = vec![1.0f32; n];
                x[at] = f32::NAN;
                assert!(softmax(&mut x.clone()).is_nan(), "{n} {at}");
                shares(&mut x);
                assert!(x.iter().all(|x| x.is_nan()), "{n} {at}");
            }
        }
    }
}
