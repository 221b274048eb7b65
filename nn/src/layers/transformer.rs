//! Transformer blocks with the norm after each part, as in BERT, and learned positions.
//!
//! Encoder: `a = norm(x + attention(x))`, `y = norm(a + W2 f(W1 a))`. A decoder block has a second
//! attention, to the encoder's output, between the two. Everything is (time, batch, dim).
//! Positions: `y[t, b] = x[t, b] + P[t]`; backward adds `dy[t, b]` to row `t` of `dP`.

use crate::autodiff::{Init, Layout, Params, Span, Tape, Var};
use crate::batch::Lens;
use crate::layers::slices::add;
use crate::layers::{
    Activation, Dense, Direction, LayerNorm, MultiHead, Sight, activate, dropout, last, sum,
};
use crate::numeric::Real;

/// Attention, then a two-layer network, each with a residual and a norm.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Self-attention.
    pub attention: MultiHead,
    /// After it.
    pub norm: LayerNorm,
    /// Attention to an encoder's output, in decoders.
    pub cross: Option<(MultiHead, LayerNorm)>,
    /// Up to the feed-forward dimension.
    pub up: Dense,
    /// And back.
    pub down: Dense,
    /// After it.
    pub norm_out: LayerNorm,
    activation: Activation,
    dropout: f64,
}

/// Sizes of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockSize {
    /// Model dimension.
    pub dim: usize,
    /// Heads; must divide `dim`.
    pub heads: usize,
    /// Feed-forward dimension.
    pub inner: usize,
    /// Between its layers.
    pub activation: Activation,
    /// After each part.
    pub dropout: f64,
    /// Of the norms.
    pub eps: f64,
}

impl Block {
    /// An encoder block.
    pub fn encoder(layout: &mut Layout, name: &str, size: BlockSize, init: Init) -> Self {
        Self::new(layout, name, size, init, false)
    }

    /// A decoder block.
    pub fn decoder(layout: &mut Layout, name: &str, size: BlockSize, init: Init) -> Self {
        Self::new(layout, name, size, init, true)
    }

    fn new(layout: &mut Layout, name: &str, size: BlockSize, init: Init, decoder: bool) -> Self {
        let BlockSize {
            dim,
            heads,
            inner,
            activation,
            dropout,
            eps,
        } = size;
        Block {
            attention: MultiHead::new(layout, &format!("{name}.attention"), dim, heads, init),
            norm: LayerNorm::new(layout, &format!("{name}.norm"), dim, eps),
            cross: decoder.then(|| {
                (
                    MultiHead::new(layout, &format!("{name}.cross"), dim, heads, init),
                    LayerNorm::new(layout, &format!("{name}.norm_cross"), dim, eps),
                )
            }),
            up: Dense::new(layout, &format!("{name}.up"), dim, inner, init),
            down: Dense::new(layout, &format!("{name}.down"), inner, dim, init),
            norm_out: LayerNorm::new(layout, &format!("{name}.norm_out"), dim, eps),
            activation,
            dropout,
        }
    }

    /// Runs the block; `memory` is the encoder's output and its mask. Returns the output and all attention weights.
    pub fn forward<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        sight: &Sight,
        memory: Option<(Var, &Sight)>,
    ) -> (Var, Vec<Var>) {
        let (a, weights) = self.attention.forward(tape, params, x, x, sight);
        self.after_attention(tape, params, x, (a, weights), memory)
    }

    /// The block's output at the first step alone, (1, batch, dim), which attends to all steps.
    pub fn first<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        keys: &Lens,
    ) -> (Var, Vec<Var>) {
        let sight = Sight {
            queries: vec![1; keys.len()].into(),
            keys: keys.clone(),
            causal: false,
        };
        // The state "after the last step read" of a backward reading is that of step 0.
        let first = last(tape, x, Direction::Backward);
        let attended = self.attention.forward(tape, params, first, x, &sight);
        self.after_attention(tape, params, first, attended, None)
    }

    fn after_attention<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        (a, weights): (Var, Var),
        memory: Option<(Var, &Sight)>,
    ) -> (Var, Vec<Var>) {
        let mut x = self.residual(tape, params, x, a, &self.norm);
        let mut all = vec![weights];
        if let (Some((cross, norm)), Some((memory, sight))) = (&self.cross, memory) {
            let (a, weights) = cross.forward(tape, params, x, memory, sight);
            x = self.residual(tape, params, x, a, norm);
            all.push(weights);
        }
        let up = self.up.forward(tape, params, x);
        let up = activate(tape, up, self.activation);
        let down = self.down.forward(tape, params, up);
        (self.residual(tape, params, x, down, &self.norm_out), all)
    }

    fn residual<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        x: Var,
        part: Var,
        norm: &LayerNorm,
    ) -> Var {
        let part = dropout(tape, part, self.dropout);
        let y = sum(tape, x, part);
        norm.forward(tape, params, y)
    }
}

/// Adds row `t` of a table to step `t`; the table must have a row for every step.
pub fn positions<T: Real>(tape: &mut Tape<T>, params: &Params<T>, x: Var, table: Span) -> Var {
    let shape = tape.shape(x);
    let y = tape.output(shape, &[x], true);
    let mut out = tape.take(y);
    let table_values = params.get(table);
    for (row, (y, x)) in out
        .chunks_exact_mut(shape.dim)
        .zip(tape.get(x).chunks_exact(shape.dim))
        .enumerate()
    {
        let p = &table_values[row / shape.batch * shape.dim..][..shape.dim];
        for ((y, x), p) in y.iter_mut().zip(x).zip(p) {
            *y = *x + *p;
        }
    }
    tape.put(y, out);
    tape.record_output(y, move |tape, _, grads, dy| {
        if grads.wants(table) {
            let to = grads.get(table);
            for (row, dy) in dy.chunks_exact(shape.dim).enumerate() {
                add(&mut to[row / shape.batch * shape.dim..][..shape.dim], dy);
            }
        }
        tape.add_grad(x, dy);
    });
    y
}
