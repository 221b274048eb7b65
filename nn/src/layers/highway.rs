//! Highway layer (Srivastava et al. 2015): `t = sigmoid(x Wt + bt)`, `h = relu(x Wh + bh)`, `y = t h + (1 - t) x`.
//!
//! All are (time, batch, dim). Backward of the mixture: `dt = dy (h - x)`, `dh = dy t`, `dx += dy (1 - t)`.

use crate::autodiff::{Grads, Init, Layout, Op, Params, Tape, Var};
use crate::layers::{Activation, Dense, activate};
use crate::numeric::Real;

/// A gate between a layer and its input.
#[derive(Clone, Copy, Debug)]
pub struct Highway {
    gate: Dense,
    transform: Dense,
}

impl Highway {
    /// The gate's bias starts at `gate_bias`; -2 lets the input through at first.
    pub fn new(layout: &mut Layout, name: &str, dim: usize, gate_bias: f64, init: Init) -> Self {
        Highway {
            gate: Dense::with_bias(layout, &format!("{name}.gate"), dim, dim, init, gate_bias),
            transform: Dense::new(layout, &format!("{name}.transform"), dim, dim, init),
        }
    }

    /// Mixes the layer's output and its input.
    pub fn forward<T: Real>(&self, tape: &mut Tape<T>, params: &Params<T>, x: Var) -> Var {
        let gate = self.gate.forward(tape, params, x);
        let gate = activate(tape, gate, Activation::Sigmoid);
        let h = self.transform.forward(tape, params, x);
        let h = activate(tape, h, Activation::Relu);
        let shape = tape.shape(x);
        let y = tape.output(shape, &[gate, h, x], false);
        let mut out = tape.take(y);
        for (((y, t), h), x) in out
            .iter_mut()
            .zip(tape.get(gate))
            .zip(tape.get(h))
            .zip(tape.get(x))
        {
            *y = *t * *h + (T::ONE - *t) * *x;
        }
        tape.put(y, out);
        tape.record(y, Backward { gate, h, x, y });
        y
    }
}

struct Backward {
    gate: Var,
    h: Var,
    x: Var,
    y: Var,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, _: &Params<T>, _: &mut Grads<T>) {
        let Some(dy) = tape.take_grad(self.y) else {
            return;
        };
        if let Some(mut dt) = tape.grad_to_add(self.gate) {
            for (((dt, dy), h), x) in dt
                .iter_mut()
                .zip(&dy)
                .zip(tape.get(self.h))
                .zip(tape.get(self.x))
            {
                *dt += *dy * (*h - *x);
            }
            tape.put_grad(self.gate, dt);
        }
        if let Some(mut dh) = tape.grad_to_add(self.h) {
            for ((dh, dy), t) in dh.iter_mut().zip(&dy).zip(tape.get(self.gate)) {
                *dh += *dy * *t;
            }
            tape.put_grad(self.h, dh);
        }
        if let Some(mut dx) = tape.grad_to_add(self.x) {
            for ((dx, dy), t) in dx.iter_mut().zip(&dy).zip(tape.get(self.gate)) {
                *dx += *dy * (T::ONE - *t);
            }
            tape.put_grad(self.x, dx);
        }
        tape.recycle(dy);
    }
}
