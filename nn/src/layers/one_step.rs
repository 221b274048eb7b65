//! One step of a recurrent layer, forward and both ways of differentiating, with the weights packed once for all steps.
//!
//! `forward` keeps what the derivatives need. `backward` turns the gradient of the new state into those of the old
//! state and of the input; `tangent` turns moves `dx`, `dh`, `dc` of input and state into the move of the new state:
//! - RNN: `dh' = (1 - h'^2) (dx W + dh U)`
//! - GRU: `[dz dr] = [z r] (1 - [z r]) (dx W + dh U)`, `dn = (1 - n^2) (dx Wn + (dr h + r dh) Un)`,
//!   `dh' = (1 - z) dn + z dh + dz (h - n)`
//! - LSTM: `[di df do] = s (1 - s) p`, `dg = (1 - g^2) p` of `p = dx W + dh U`;
//!   `dc' = df c + f dc + di g + i dg`, `dh' = do tanh(c') + o (1 - tanh(c')^2) dc'`
//!
//! The element-wise kernels are those of the whole-sequence layers, so a step has the bits of the same step there.

use super::gru_cell::{BackGates, BackNew, Gates, New};
use super::recurrent::Cell;
use super::{gru::Gru, lstm_cell, rnn};
use crate::Real;
use crate::gemm::{Into, Mat, Packed, gemm_packed};
use crate::params::{Params, Span};

/// A weight, as it is and transposed.
pub(crate) struct Map<T> {
    pub(crate) straight: Packed<T>,
    pub(crate) turned: Packed<T>,
}

impl<T: Real> Map<T> {
    pub(crate) fn new(params: &Params<T>, span: Span) -> Self {
        let (mut straight, mut turned) = (Packed::default(), Packed::default());
        straight.pack(params.mat(span));
        turned.pack(params.mat(span).t());
        Map { straight, turned }
    }

    /// `y = x W`, in the memory of `y`.
    fn set(&self, y: &mut Vec<T>, x: &[T], items: usize) {
        y.resize(items * self.straight.columns(), T::ZERO);
        let x = Mat::new(x, items, x.len() / items);
        gemm_packed(Into::Set, y, x, &self.straight);
    }

    /// `y += x W`
    fn add(&self, y: &mut [T], x: &[T], items: usize) {
        let x = Mat::new(x, items, x.len() / items);
        gemm_packed(Into::Add, y, x, &self.straight);
    }

    /// `dx = dy W^T`, in the memory of `dx`.
    fn turn(&self, dx: &mut Vec<T>, dy: &[T], items: usize) {
        dx.resize(items * self.turned.columns(), T::ZERO);
        let dy = Mat::new(dy, items, dy.len() / items);
        gemm_packed(Into::Set, dx, dy, &self.turned);
    }

    /// `dx += dy W^T`
    pub(crate) fn back(&self, dx: &mut [T], dy: &[T], items: usize) {
        let dy = Mat::new(dy, items, dy.len() / items);
        gemm_packed(Into::Add, dx, dy, &self.turned);
    }
}

/// A layer with packed weights, and what its last step left.
pub(crate) struct OneStep<T> {
    cell: Cell,
    /// `W`, `U`, and `Wn`, `Un` of a GRU.
    maps: Vec<Map<T>>,
    biases: Vec<Vec<T>>,
    /// The hidden states of the last step, and their product with `U`: attacks ask for many inputs of one state.
    held: (Vec<T>, Vec<T>),
    /// The state before, for each input; `c` is empty outside LSTMs.
    before: (Vec<T>, Vec<T>),
    gates: Vec<T>,
    /// `n` of a GRU, `tanh(c)` of an LSTM.
    inner: Vec<T>,
    /// `r h` of a GRU.
    reset: Vec<T>,
    /// The state after.
    pub(crate) h: Vec<T>,
    pub(crate) c: Vec<T>,
    ones: Vec<usize>,
    /// Memory of the gradients before the activations, and of `r h`.
    slopes: [Vec<T>; 3],
}

impl<T: Real> OneStep<T> {
    pub(crate) fn new(cell: Cell, params: &Params<T>) -> Self {
        let (maps, biases) = match cell {
            Cell::Rnn(l) => (vec![l.input, l.recurrent], vec![l.bias]),
            Cell::Lstm(l) => (vec![l.input, l.recurrent], vec![l.bias]),
            Cell::Gru(Gru {
                input,
                recurrent,
                input_new,
                recurrent_new,
                bias,
                bias_new,
                ..
            }) => (
                vec![input, recurrent, input_new, recurrent_new],
                vec![bias, bias_new],
            ),
        };
        OneStep {
            cell,
            maps: maps.into_iter().map(|s| Map::new(params, s)).collect(),
            biases: biases.iter().map(|s| params.get(*s).to_vec()).collect(),
            held: Default::default(),
            before: Default::default(),
            gates: Vec::new(),
            inner: Vec::new(),
            reset: Vec::new(),
            h: Vec::new(),
            c: Vec::new(),
            ones: Vec::new(),
            slopes: Default::default(),
        }
    }

    /// Sizes of the state's parts: hidden, and cell or 0.
    pub(crate) fn parts(&self) -> (usize, usize) {
        let n = self.cell.units();
        (n, if self.cell.has_cell() { n } else { 0 })
    }

    /// From `x` (copies, items, inputs), `h` and `c` (items, units) to [`OneStep::h`] and [`OneStep::c`]
    /// (copies, items, units): every copy starts from the same states.
    pub(crate) fn forward(&mut self, x: &[T], h: &[T], c: &[T], copies: usize) {
        let n = self.cell.units();
        let (items, row) = (copies * h.len() / n, copies * h.len());
        let same = self.held.0 == h;
        if !same {
            self.maps[1].set(&mut self.held.1, h, h.len() / n);
            repeat(&mut self.held.0, h, 1);
        }
        if !same || self.before.0.len() != row {
            repeat(&mut self.before.0, h, copies);
        }
        repeat(&mut self.before.1, c, copies);
        let recurrent = &self.held.1[..];
        self.ones.resize(items, 1);
        self.h.resize(row, T::ZERO);
        let (before, lens, bias) = (&self.before.0[..], &self.ones[..], &self.biases[0][..]);
        match self.cell {
            Cell::Rnn(_) => {
                repeat(&mut self.h, recurrent, copies);
                self.maps[0].add(&mut self.h, x, items);
                T::launch(rnn::Forward {
                    t: 0,
                    n,
                    lens,
                    bias,
                    before,
                    h: &mut self.h,
                });
            }
            Cell::Gru(_) => {
                self.reset.resize(row, T::ZERO);
                repeat(&mut self.gates, recurrent, copies);
                self.maps[0].add(&mut self.gates, x, items);
                self.maps[2].set(&mut self.inner, x, items);
                T::launch(Gates {
                    t: 0,
                    n,
                    lens,
                    bias,
                    g: &mut self.gates,
                    before,
                    q: &mut self.reset,
                });
                self.maps[3].add(&mut self.inner, &self.reset, items);
                T::launch(New {
                    t: 0,
                    n,
                    lens,
                    bias: &self.biases[1],
                    g: &self.gates,
                    a: &mut self.inner,
                    before,
                    h: &mut self.h,
                });
            }
            Cell::Lstm(_) => {
                self.c.resize(row, T::ZERO);
                self.inner.resize(row, T::ZERO);
                repeat(&mut self.gates, recurrent, copies);
                self.maps[0].add(&mut self.gates, x, items);
                T::launch(lstm_cell::Forward {
                    t: 0,
                    n,
                    lens,
                    bias,
                    g: &mut self.gates,
                    h_before: before,
                    c_before: &self.before.1,
                    h: &mut self.h,
                    c: &mut self.c,
                    tanh_c: &mut self.inner,
                });
            }
        }
    }

    /// `dh`, `dc` of the state after become those of the state before; adds to `dx`.
    /// Unless `state` is wanted, `dh` is left unfinished, which spares a product.
    pub(crate) fn backward(
        &mut self,
        dh: &mut [T],
        dc: &mut [T],
        dx: &mut [T],
        items: usize,
        state: bool,
    ) {
        let (n, row) = (self.cell.units(), items * self.cell.units());
        let (before, lens) = (&self.before.0[..], &self.ones[..]);
        let [d, da, dq] = &mut self.slopes;
        d.resize(self.gates.len().max(row), T::ZERO);
        match self.cell {
            Cell::Rnn(_) => {
                let h = &self.h[..];
                T::launch(rnn::Back {
                    t: 0,
                    n,
                    lens,
                    h,
                    dh,
                    d,
                });
            }
            Cell::Gru(_) => {
                da.resize(row, T::ZERO);
                T::launch(BackNew {
                    t: 0,
                    n,
                    lens,
                    g: &self.gates,
                    a: &self.inner,
                    before,
                    more_g: None,
                    more_a: None,
                    dh,
                    dg: d,
                    da,
                });
                self.maps[3].turn(dq, da, items);
                T::launch(BackGates {
                    t: 0,
                    n,
                    lens,
                    g: &self.gates,
                    before,
                    dq,
                    dh,
                    dg: d,
                });
                self.maps[2].back(dx, da, items);
            }
            Cell::Lstm(_) => T::launch(lstm_cell::Back {
                t: 0,
                n,
                lens,
                gates: &self.gates,
                tanh_c: &self.inner,
                c_before: &self.before.1,
                extra: None,
                dh,
                dc,
                d,
            }),
        }
        if state {
            self.maps[1].back(dh, d, items);
        }
        self.maps[0].back(dx, d, items);
    }

    /// The move of the new state (hidden, cell) of one item.
    pub(crate) fn tangent(&self, dx: &[T], dh: &[T], dc: &[T]) -> (Vec<T>, Vec<T>) {
        let n = self.cell.units();
        let (mut p, mut dc_new) = (Vec::new(), vec![T::ZERO; dc.len()]);
        self.maps[0].set(&mut p, dx, 1);
        self.maps[1].add(&mut p, dh, 1);
        let (one, g, h) = (T::ONE, &self.gates, &self.before.0);
        let dh_new = match self.cell {
            Cell::Rnn(_) => (0..n)
                .map(|j| (one - self.h[j] * self.h[j]) * p[j])
                .collect(),
            Cell::Gru(_) => {
                let slope: Vec<T> = (0..2 * n).map(|j| g[j] * (one - g[j]) * p[j]).collect();
                let dq: Vec<T> = (0..n)
                    .map(|j| slope[n + j] * h[j] + g[n + j] * dh[j])
                    .collect();
                let mut dn = Vec::new();
                self.maps[2].set(&mut dn, dx, 1);
                self.maps[3].add(&mut dn, &dq, 1);
                let new = &self.inner;
                let move_of = |j: usize| {
                    let dn = (one - new[j] * new[j]) * dn[j];
                    (one - g[j]) * dn + g[j] * dh[j] + slope[j] * (h[j] - new[j])
                };
                (0..n).map(move_of).collect()
            }
            Cell::Lstm(_) => {
                let mut move_of = |j: usize| {
                    let [i, f, a, o] = [0, 1, 2, 3].map(|k| g[k * n + j]);
                    let sigmoid = |k: usize, s: T| s * (one - s) * p[k * n + j];
                    let da = (one - a * a) * p[2 * n + j];
                    let squashed = self.inner[j];
                    dc_new[j] =
                        sigmoid(1, f) * self.before.1[j] + f * dc[j] + sigmoid(0, i) * a + i * da;
                    sigmoid(3, o) * squashed + o * (one - squashed * squashed) * dc_new[j]
                };
                (0..n).map(&mut move_of).collect()
            }
        };
        (dh_new, dc_new)
    }
}

/// `to` becomes so many copies of `from`, one after the other, in its own memory.
fn repeat<T: Copy>(to: &mut Vec<T>, from: &[T], copies: usize) {
    to.clear();
    for _ in 0..copies {
        to.extend_from_slice(from);
    }
}
