//! Dense layer: `y = x W + b`.
//!
//! `x` is (time, batch, inputs), `W` (inputs, outputs), `b` (outputs), `y` (time, batch, outputs).
//! Backward: `dx = dy W^T`, `dW = x^T dy`, `db = sum of the rows of dy`.

use crate::autodiff::{Grads, Init, Layout, Op, Params, Rows, Span, Tape, Var, map_back};
use crate::layers::alike::map_steps;
use crate::numeric::Real;
use crate::numeric::gemm::Mat;

/// A linear map with or without a bias.
#[derive(Clone, Copy, Debug)]
pub struct Dense {
    /// (inputs, outputs)
    pub weight: Span,
    /// (1, outputs)
    pub bias: Option<Span>,
}

impl Dense {
    /// A map with a bias that starts at zero.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, outputs: usize, init: Init) -> Self {
        Self::with_bias(layout, name, inputs, outputs, init, 0.0)
    }

    /// A map whose bias starts at `bias`.
    pub fn with_bias(
        layout: &mut Layout,
        name: &str,
        inputs: usize,
        outputs: usize,
        init: Init,
        bias: f64,
    ) -> Self {
        let weight = layout.add_map(&format!("{name}.weight"), inputs, outputs, init);
        Dense {
            weight,
            bias: Some(layout.add(&format!("{name}.bias"), 1, outputs, Init::Constant(bias))),
        }
    }

    /// A map without a bias.
    pub fn without_bias(
        layout: &mut Layout,
        name: &str,
        inputs: usize,
        outputs: usize,
        init: Init,
    ) -> Self {
        Dense {
            weight: layout.add_map(&format!("{name}.weight"), inputs, outputs, init),
            bias: None,
        }
    }

    /// Maps every row of `x`.
    pub fn forward<T: Real>(&self, tape: &mut Tape<T>, params: &Params<T>, x: Var) -> Var {
        let shape = tape.shape(x);
        let y = tape.output(shape.with_dim(self.weight.cols), &[x], true);
        let mut out = tape.take(y);
        map_steps(tape, params, self.weight, self.bias, x, &mut out);
        tape.put(y, out);
        tape.record(y, Backward { layer: *self, x, y });
        y
    }

    /// Adds the gradients of `x`, weight and bias, given the gradient `dy` of the output, which is kept on the tape.
    pub(in crate::layers) fn backward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        grads: &mut Grads<T>,
        x: Var,
        dy: Vec<T>,
    ) -> Var {
        let (w, shape) = (self.weight, tape.shape(x));
        if let Some(mut dx) = tape.grad_to_add(x) {
            let dy = Mat::new(&dy, shape.rows(), w.cols);
            map_back(tape, params, w, dy, &mut dx);
            tape.put_grad(x, dx);
        }
        if let Some(bias) = self.bias {
            grads.bias(bias, &dy);
        }
        let dy = tape.keep(shape.with_dim(w.cols), dy);
        grads.product(tape, w, Rows::all(tape, x), Rows::all(tape, dy));
        dy
    }

    /// The bias; empty when there is none.
    pub(crate) fn bias_in<'p, T: Real>(&self, params: &'p Params<T>) -> &'p [T] {
        self.bias.map_or(&[], |bias| params.get(bias))
    }
}

struct Backward {
    layer: Dense,
    x: Var,
    y: Var,
}

impl<T: Real> Op<T> for Backward {
    fn backward(&self, tape: &mut Tape<T>, params: &Params<T>, grads: &mut Grads<T>) {
        let Some(dy) = tape.take_grad(self.y) else {
            return;
        };
        self.layer.backward(tape, params, grads, self.x, dy);
    }
}
