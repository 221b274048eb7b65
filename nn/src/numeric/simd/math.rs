//! exp, tanh, sigmoid and the normal distribution of `f32` vectors by polynomials, to about 2e-7.
//!
//! Comparisons are written so that a NaN stays a NaN: a broken weight must not look healthy.

use super::lanes::Lanes;

/// Below -87.3 the result is 0, above 88.3 it is infinite.
#[inline(always)]
pub fn exp<V: Lanes<T = f32>>(x: V) -> V {
    let s = V::splat;
    let y = exp_inside(clamp(x, -87.3, 88.3));
    let y = x.lt(s(-87.3), s(0.0), y);
    s(88.3).lt(x, s(f32::INFINITY), y)
}

/// `e^x = 2^k e^r`, `|r| <= ln 2 / 2`, with a polynomial for `e^r` (Cephes), for `x` in [-87.3, 88.3].
#[inline(always)]
fn exp_inside<V: Lanes<T = f32>>(x: V) -> V {
    let s = V::splat;
    // Adding 1.5 * 2^23 rounds to an integer; the extra 127 is the exponent's bias.
    let shifted = x.fma(s(std::f32::consts::LOG2_E), s(12_583_039.0));
    let k = shifted.sub(s(12_583_039.0));
    let r = k.fma(s(-0.693_359_4), x);
    let r = k.fma(s(2.121_944_4e-4), r);
    let p = s(1.987_569_1e-4);
    let p = p.fma(r, s(1.398_199_9e-3));
    let p = p.fma(r, s(8.333_452e-3));
    let p = p.fma(r, s(4.166_579_6e-2));
    let p = p.fma(r, s(1.666_666_5e-1));
    let p = p.fma(r, s(0.5));
    p.mul(r).fma(r, r).add(s(1.0)).mul(shifted.exponent())
}

/// A rational function of degree 13/6 (Eigen), odd by construction.
#[inline(always)]
pub fn tanh<V: Lanes<T = f32>>(x: V) -> V {
    let s = V::splat;
    let x = clamp(x, -7.905_311, 7.905_311);
    let x2 = x.mul(x);
    let p = s(-2.760_768_5e-16);
    let p = p.fma(x2, s(2.000_188e-13));
    let p = p.fma(x2, s(-8.604_672e-11));
    let p = p.fma(x2, s(5.122_297e-8));
    let p = p.fma(x2, s(1.485_722_4e-5));
    let p = p.fma(x2, s(6.372_619e-4));
    let p = p.fma(x2, s(4.893_524_6e-3)).mul(x);
    let q = s(1.198_258_4e-6);
    let q = q.fma(x2, s(1.185_347_1e-4));
    let q = q.fma(x2, s(2.268_434_6e-3));
    let q = q.fma(x2, s(4.893_525e-3));
    // Rounding may pass 1 by one place, and `1 - tanh^2` must not be negative.
    clamp(p.div(q), -1.0, 1.0)
}

/// By `exp`, so that small values keep their relative accuracy.
#[inline(always)]
pub fn sigmoid<V: Lanes<T = f32>>(x: V) -> V {
    let one = V::splat(1.0);
    let e = exp_inside(V::splat(0.0).sub(clamp(x, -87.0, 87.0)));
    one.div(one.add(e))
}

/// Distribution and density of the standard normal, from one exponential.
/// erf by Abramowitz and Stegun 7.1.26: absolute error below 1.5e-7 before rounding.
#[inline(always)]
pub fn normal<V: Lanes<T = f32>>(x: V) -> (V, V) {
    let s = V::splat;
    let e = exp(x.mul(x).mul(s(-0.5)));
    let t = s(1.0).div(x.abs().fma(s(0.231_641_9), s(1.0)));
    let p = s(0.530_702_7);
    let p = p.fma(t, s(-0.726_576));
    let p = p.fma(t, s(0.710_706_84));
    let p = p.fma(t, s(-0.142_248_37));
    let p = p.fma(t, s(0.127_414_8)).mul(t);
    let tail = p.mul(e);
    (x.lt(s(0.0), tail, s(1.0).sub(tail)), e.mul(s(0.398_942_3)))
}

#[inline(always)]
fn clamp<V: Lanes<T = f32>>(x: V, low: f32, high: f32) -> V {
    x.at_least(V::splat(low)).at_most(V::splat(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::simd::{Isa, Kernel, available, launch_on};

    struct All<'a>(&'a [f32], [&'a mut [f32]; 4]);
    impl Kernel<f32> for All<'_> {
        type Out = ();
        #[inline(always)]
        fn run<V: Lanes<T = f32>>(self) {
            let All(x, [e, t, s, f]) = self;
            for i in (0..x.len()).step_by(V::N) {
                let v = V::load(&x[i..]);
                v.exp().store(&mut e[i..]);
                v.tanh().store(&mut t[i..]);
                v.sigmoid().store(&mut s[i..]);
                v.normal().0.store(&mut f[i..]);
            }
        }
    }

    fn on(isa: Isa, x: &[f32]) -> [Vec<f32>; 4] {
        let mut out = [0; 4].map(|_| vec![0.0; x.len()]);
        launch_on(isa, All(x, out.each_mut().map(|v| v.as_mut_slice())));
        out
    }

    #[test]
    fn close_to_the_standard_library_everywhere() {
        let x: Vec<f32> = (-200_000..=200_000).map(|i| i as f32 * 1e-4).collect();
        for isa in available() {
            let [e, t, s, f] = on(isa, &x);
            for (i, &v) in x.iter().enumerate() {
                let v = f64::from(v);
                assert!(
                    (f64::from(e[i]) / v.exp() - 1.0).abs() < 4e-7,
                    "exp {v} {isa:?}"
                );
                assert!(
                    (f64::from(t[i]) - v.tanh()).abs() < 4e-7 && t[i].abs() <= 1.0,
                    "tanh {v} {isa:?}"
                );
                let exact = 1.0 / (1.0 + (-v).exp());
                assert!(
                    (f64::from(s[i]) / exact - 1.0).abs() < 5e-7,
                    "sigmoid {v} {isa:?}"
                );
                let exact = 0.5 * (1.0 + libm::erf(v * std::f64::consts::FRAC_1_SQRT_2));
                assert!((f64::from(f[i]) - exact).abs() < 3e-7, "normal {v} {isa:?}");
            }
        }
    }

    #[test]
    fn extremes_saturate_and_nan_stays() {
        let x = [
            f32::NEG_INFINITY,
            -1e30,
            -100.0,
            100.0,
            1e30,
            f32::INFINITY,
            f32::NAN,
        ];
        for isa in available() {
            let [e, t, s, f] = on(isa, &x);
            assert_eq!(
                &e[..6],
                &[0.0, 0.0, 0.0, f32::INFINITY, f32::INFINITY, f32::INFINITY]
            );
            assert!((t[0] + 1.0).abs() < 2e-7 && (t[5] - 1.0).abs() < 2e-7);
            assert!(s[0] < 1e-37 && s[5] == 1.0);
            assert_eq!((f[1], f[4]), (0.0, 1.0));
            assert!([e[6], t[6], s[6], f[6]].iter().all(|v| v.is_nan()));
        }
    }

    /// The smaller and the larger of two, whichever is NaN or a zero with a sign, by comparison and by the
    /// instruction sets' own means.
    #[test]
    fn bounds_are_comparisons() {
        struct Bounded<'a>(&'a [f32; 16], f32, [&'a mut [f32]; 4]);
        impl Kernel<f32> for Bounded<'_> {
            type Out = ();
            #[inline(always)]
            fn run<V: Lanes<T = f32>>(self) {
                let Bounded(x, bound, [least, most, least_by_lt, most_by_lt]) = self;
                let b = V::splat(bound);
                for i in (0..x.len()).step_by(V::N) {
                    let v = V::load(&x[i..]);
                    v.at_least(b).store(&mut least[i..]);
                    v.at_most(b).store(&mut most[i..]);
                    v.lt(b, b, v).store(&mut least_by_lt[i..]);
                    b.lt(v, b, v).store(&mut most_by_lt[i..]);
                }
            }
        }
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let x = [
            0.0, -0.0, 1.0, -1.0, inf, -inf, nan, -nan, 1e-45, -1e-45, 7.9, -7.9, 87.0, -87.0, 2.5,
            3e38,
        ];
        for isa in available() {
            for bound in x {
                let mut out = [[0.0; 16]; 4];
                launch_on(isa, Bounded(&x, bound, out.each_mut().map(|v| &mut v[..])));
                let [least, most, least_by_lt, most_by_lt] = out.map(|v| v.map(f32::to_bits));
                assert_eq!((least, most), (least_by_lt, most_by_lt), "{bound} {isa:?}");
            }
        }
    }

    #[test]
    fn avx2_and_avx512_give_the_same_bits() {
        let x: Vec<f32> = (-5000..5003).map(|i| i as f32 * 0.0037).collect();
        let wide: Vec<_> = available()
            .into_iter()
            .filter(|i| *i != Isa::Portable)
            .map(|i| on(i, &x))
            .collect();
        assert!(wide.windows(2).all(|w| w[0] == w[1]));
    }
}
