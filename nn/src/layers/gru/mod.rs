//! GRU over a whole sequence, the reset gate applied before the recurrent product (Cho et al. 2014).
//!
//! `[z r] = sigmoid(x[t] W + h[t-1] U + b)`, `n = tanh(x[t] Wn + (r h[t-1]) Un + bn)`,
//! `h[t] = (1 - z) n + z h[t-1]`.
//! `x` is (time, batch, inputs); `W` (inputs, 2 units), `U` (units, 2 units), `Wn` (inputs, units),
//! `Un` (units, units); `h`, `n` are (time, batch, units), `[z r]` (time, batch, 2 units).

mod backward;

use super::Lens;
use super::gru_cell::{Gates, New};
use super::lstm::split;
use super::recurrent::{Direction, Gate, Recurrent, States};
use crate::Real;
use crate::batch::Side;
use crate::gemm::{Into, Mat, gemm};
use crate::params::{Init, Layout, Params, Span};
use crate::tape::{Shape, Tape, Var};
use backward::Backward;

/// Gated recurrent unit.
#[derive(Clone, Copy, Debug)]
pub struct Gru {
    /// (inputs, 2 units)
    pub input: Span,
    /// (inputs, units)
    pub input_new: Span,
    /// (units, 2 units)
    pub recurrent: Span,
    /// (units, units)
    pub recurrent_new: Span,
    /// (1, 2 units)
    pub bias: Span,
    /// (1, units)
    pub bias_new: Span,
    /// Hidden units.
    pub units: usize,
}

impl Gru {
    /// Weights start as `init`, biases at zero.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, units: usize, init: Init) -> Self {
        let mut map =
            |part: &str, rows, cols| layout.add_map(&format!("{name}.{part}"), rows, cols, init);
        Gru {
            input: map("input", inputs, 2 * units),
            input_new: map("input_new", inputs, units),
            recurrent: map("recurrent", units, 2 * units),
            recurrent_new: map("recurrent_new", units, units),
            bias: layout.add(&format!("{name}.bias"), 1, 2 * units, Init::Constant(0.0)),
            bias_new: layout.add(&format!("{name}.bias_new"), 1, units, Init::Constant(0.0)),
            units,
        }
    }

    /// Runs over all steps from `initial`, or from zero.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        lens: &Lens,
        initial: Option<Var>,
        direction: Direction,
    ) -> States {
        let shape = tape.shape(x);
        let Shape { time, batch, .. } = shape;
        let (n, row) = (self.units, batch * self.units);
        let inputs: Vec<Var> = [Some(x), initial].into_iter().flatten().collect();
        let h = tape.output(shape.with_dim(n), &inputs, true);
        let wants = tape.wants(h);
        let gates = tape.value(shape.with_dim(2 * n), wants);
        let new = tape.value(shape.with_dim(n), wants);
        let reset = tape.value(shape.with_dim(n), false);
        let (mut vh, mut vg, mut vn, mut vr) = (
            tape.take(h),
            tape.take(gates),
            tape.take(new),
            tape.take(reset),
        );

        let all = Mat::new(tape.get(x), shape.rows(), shape.dim);
        gemm(Into::Set, &mut vg, all, params.mat(self.input));
        gemm(Into::Set, &mut vn, all, params.mat(self.input_new));
        let (u, un) = (
            Recurrent::new(params.mat(self.recurrent), time),
            Recurrent::new(params.mat(self.recurrent_new), time),
        );
        let zero = tape.zeros(row);
        let h0 = initial.map_or(&zero[..], |h| tape.get(h));
        for t in direction.steps(time) {
            let before = direction.before(t, time);
            let (h_before, now) = split(&mut vh, before, t, row, h0);
            let (g, a, q) = (
                &mut vg[t * 2 * row..(t + 1) * 2 * row],
                &mut vn[t * row..(t + 1) * row],
                &mut vr[t * row..(t + 1) * row],
            );
            let recur = before.is_some() || initial.is_some();
            if recur {
                u.add(g, Mat::new(h_before, batch, n));
            }
            T::launch(Gates {
                t,
                n,
                lens,
                bias: params.get(self.bias),
                g,
                before: h_before,
                q,
            });
            if recur {
                un.add(a, Mat::new(q, batch, n));
            }
            T::launch(New {
                t,
                n,
                lens,
                bias: params.get(self.bias_new),
                g,
                a,
                before: h_before,
                h: now,
            });
        }
        tape.recycle(zero);
        for (v, data) in [(h, vh), (gates, vg), (new, vn), (reset, vr)] {
            tape.put(v, data);
        }
        tape.record(
            h,
            Backward {
                layer: *self,
                x,
                h,
                gates,
                new,
                reset,
                lens: lens.clone(),
                initial,
                direction,
            },
        );
        let list = vec![
            Gate {
                name: 'z',
                var: gates,
                from: 0,
            },
            Gate {
                name: 'r',
                var: gates,
                from: n,
            },
            Gate {
                name: 'n',
                var: new,
                from: 0,
            },
        ];
        States {
            h,
            c: None,
            gates: list,
            direction,
            side: Side::Source,
        }
    }
}
