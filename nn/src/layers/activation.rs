//! Activations, element by element: `y = f(x)`, `dx = dy f'(x)`.
//!
//! tanh: `f' = 1 - y^2`. Sigmoid: `f' = y (1 - y)`. ReLU: `f' = [x > 0]`.
//! GELU: `f = x P(x)`, `f' = P(x) + x p(x)`, `P` and `p` the normal distribution and density
//! (the exact form with erf, as in BERT).

use crate::autodiff::{Tape, Var};
use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// Hyperbolic tangent.
    Tanh,
    /// Logistic function.
    Sigmoid,
    /// `max(x, 0)`
    Relu,
    /// `x P(x)`
    Gelu,
}

/// Applies `f` to every number.
pub fn activate<T: Real>(tape: &mut Tape<T>, x: Var, f: Activation) -> Var {
    let shape = tape.shape(x);
    let y = tape.output(shape, &[x], false);
    let mut out = tape.take(y);
    T::launch(Forward {
        x: tape.get(x),
        y: &mut out,
        f,
    });
    tape.put(y, out);
    tape.record_output(y, move |tape, _, _, dy| {
        tape.add_grad_with(x, |tape, dx| {
            T::launch(Slope {
                x: tape.get(x),
                y: tape.get(y),
                dy,
                dx,
                f,
            });
        });
    });
    y
}

struct Forward<'a, T> {
    x: &'a [T],
    y: &'a mut [T],
    f: Activation,
}

impl<T: Real> Kernel<T> for Forward<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        for (x, y) in self.x.chunks(V::N).zip(self.y.chunks_mut(V::N)) {
            let x = V::load(x);
            let value = match self.f {
                Activation::Tanh => x.tanh(),
                Activation::Sigmoid => x.sigmoid(),
                // NaN is not below zero, so it stays.
                Activation::Relu => x.lt(number::<V>(0.0), number::<V>(0.0), x),
                Activation::Gelu => x.mul(x.normal().0),
            };
            value.store(y);
        }
    }
}

struct Slope<'a, T> {
    x: &'a [T],
    y: &'a [T],
    dy: &'a [T],
    dx: &'a mut [T],
    f: Activation,
}

impl<T: Real> Kernel<T> for Slope<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let chunks = self
            .x
            .chunks(V::N)
            .zip(self.y.chunks(V::N))
            .zip(self.dy.chunks(V::N));
        for (((x, y), dy), dx) in chunks.zip(self.dx.chunks_mut(V::N)) {
            let (x, y, dy) = (V::load(x), V::load(y), V::load(dy));
            let slope = match self.f {
                Activation::Tanh => number::<V>(1.0).sub(y.mul(y)),
                Activation::Sigmoid => y.mul(number::<V>(1.0).sub(y)),
                Activation::Relu => number::<V>(0.0).lt(x, number::<V>(1.0), number::<V>(0.0)),
                Activation::Gelu => {
                    let (distribution, density) = x.normal();
                    distribution.add(x.mul(density))
                }
            };
            V::load(dx).add(dy.mul(slope)).store(dx);
        }
    }
}

#[inline(always)]
fn number<V: Lanes>(x: f64) -> V
where
    V::T: Real,
{
    V::splat(V::T::of(x))
}
