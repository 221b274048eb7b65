//! Highway layer (Srivastava et al. 2015): `t = sigmoid(x Wt + bt)`, `h = relu(x Wh + bh)`, `y = t h + (1 - t) x`.
//!
//! All are (time, batch, dim). Backward of the mixture: `dt = dy (h - x)`, `dh = dy t`, `dx += dy (1 - t)`.

use crate::autodiff::{Init, Layout, Params, Tape, Var};
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
        tape.record_output(y, move |tape, _, _, dy| {
            tape.add_grad_with(gate, |tape, dt| {
                let (h, x) = (tape.get(h), tape.get(x));
                for (((dt, dy), h), x) in dt.iter_mut().zip(&*dy).zip(h).zip(x) {
                    *dt += *dy * (*h - *x);
                }
            });
            tape.add_grad_with(h, |tape, dh| {
                for ((dh, dy), t) in dh.iter_mut().zip(&*dy).zip(tape.get(gate)) {
                    *dh += *dy * *t;
                }
            });
            tape.add_grad_with(x, |tape, dx| {
                for ((dx, dy), t) in dx.iter_mut().zip(dy).zip(tape.get(gate)) {
                    *dx += *dy * (T::ONE - *t);
                }
            });
        });
        y
    }
}
