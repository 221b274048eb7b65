//! The loop over weights of each optimiser; `optimiser.rs` has the formulas.
//!
//! The gradient is scaled, then cut at plus and minus `bound`, before it is used.

use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// Which formula, with the constants of this step.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    Plain {
        rate: f64,
    },
    Momentum {
        rate: f64,
        momentum: f64,
    },
    Adam {
        rate: f64,
        b1: f64,
        b2: f64,
        root: f64,
        eps: f64,
    },
    Adadelta {
        rate: f64,
        rho: f64,
        eps: f64,
    },
}

/// Some weights `w`, their gradient `g`, and what is remembered of them in `m` and `s`.
pub(crate) struct Update<'a, T> {
    pub rule: Rule,
    pub scale: f64,
    pub bound: f64,
    pub w: &'a mut [T],
    pub g: &'a [T],
    pub m: &'a mut [T],
    pub s: &'a mut [T],
}

impl<T: Real> Kernel<T> for Update<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let (scale, low, high): (V, V, V) = (v(self.scale), v(-self.bound), v(self.bound));
        let (m, s) = (self.m, self.s);
        for (k, (w, g)) in self.w.chunks_mut(V::N).zip(self.g.chunks(V::N)).enumerate() {
            let (now, g, here) = (
                V::load(w),
                V::load(g).mul(scale),
                k * V::N..k * V::N + w.len(),
            );
            let g = g.lt(low, low, g);
            let g = high.lt(g, high, g);
            match self.rule {
                Rule::Plain { rate } => g.fma(v(-rate), now).store(w),
                Rule::Momentum { rate, momentum } => {
                    let m = &mut m[here];
                    let speed = V::load(m).fma(v(momentum), g);
                    speed.store(m);
                    speed.fma(v(-rate), now).store(w);
                }
                Rule::Adam {
                    rate,
                    b1,
                    b2,
                    root,
                    eps,
                } => {
                    let (m, s) = (&mut m[here.clone()], &mut s[here]);
                    let mean = V::load(m).fma(v(b1), g.mul(v(1.0 - b1)));
                    let square = V::load(s).fma(v(b2), g.mul(g).mul(v(1.0 - b2)));
                    mean.store(m);
                    square.store(s);
                    mean.mul(v(-rate))
                        .div(square.sqrt().div(v(root)).add(v(eps)))
                        .add(now)
                        .store(w);
                }
                Rule::Adadelta { rate, rho, eps } => {
                    let (s, u) = (&mut m[here.clone()], &mut s[here]);
                    let square = V::load(s).fma(v(rho), g.mul(g).mul(v(1.0 - rho)));
                    let d = V::load(u)
                        .add(v(eps))
                        .sqrt()
                        .div(square.add(v(eps)).sqrt())
                        .mul(g);
                    V::load(u).fma(v(rho), d.mul(d).mul(v(1.0 - rho))).store(u);
                    square.store(s);
                    d.fma(v(-rate), now).store(w);
                }
            }
        }
    }
}

#[inline(always)]
fn v<V: Lanes>(x: f64) -> V
where
    V::T: Real,
{
    V::splat(V::T::of(x))
}
