//! A step of a narrow layer: items into blocks, the equations, and back.

use super::block::{Block, Place, gather, scatter};
use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// The equations of one kind of layer, on a block; `ONE` for a single item.
pub trait NarrowEquations<T: Real>: Send {
    /// Groups of numbers that are kept for the derivatives.
    const KEPT: usize;

    /// Numbers of an input.
    fn inputs(&self) -> usize;

    /// From `x`, `h` and `c` to the states after. What the derivatives need is kept.
    fn forward<V: Lanes<T = T>, const ONE: bool>(&self, place: Place<ONE>, block: &mut Block<T>);

    /// From gradients of the states after to those of the states before, finished only if `state` is wanted, and of
    /// the inputs.
    fn backward<V: Lanes<T = T>, const ONE: bool>(
        &self,
        place: Place<ONE>,
        block: &mut Block<T>,
        state: bool,
    );
}

/// A narrow layer with its weights, and what its last step left.
pub struct NarrowStep<T, E> {
    equations: E,
    units: usize,
    items: usize,
    blocks: Vec<Block<T>>,
    /// The hidden states after the last step, (items, units).
    pub h: Vec<T>,
    /// The cell states.
    pub c: Vec<T>,
}

impl<T: Real, E: NarrowEquations<T>> NarrowStep<T, E> {
    /// A layer of this many units.
    pub fn new(equations: E, units: usize) -> Self {
        NarrowStep {
            equations,
            units,
            items: 0,
            blocks: Vec::new(),
            h: Vec::new(),
            c: Vec::new(),
        }
    }

    /// Input, hidden and cell state of the last step, which had a single item.
    pub fn read(&self) -> [&[T]; 3] {
        let block = &self.blocks[0];
        let (inputs, units) = (self.equations.inputs(), self.units);
        let cells = self.c.len();
        [&block.x[..inputs], &block.h[..units], &block.c[..cells]]
    }

    /// From `x` (copies, items, inputs), `h` and `c` (items, units) to the states after
    /// (copies, items, units): every copy starts from the same states.
    pub fn forward(&mut self, x: &[T], h: &[T], c: &[T], copies: usize) {
        self.items = copies * h.len() / self.units;
        self.h.resize(copies * h.len(), T::ZERO);
        self.c.resize(copies * c.len(), T::ZERO);
        T::launch(Forward {
            layer: self,
            x,
            h,
            c,
        });
    }

    /// `dh`, `dc` of the state after become those of the state before, and `dx` that of the input.
    /// Unless `state` is wanted, they are left as they are, which spares a product.
    pub fn backward(&mut self, dh: &mut [T], dc: &mut [T], dx: &mut Vec<T>, state: bool) {
        dx.resize(self.items * self.equations.inputs(), T::ZERO);
        T::launch(Backward {
            layer: self,
            dh,
            dc,
            dx,
            state,
        });
    }
}

/// A step forward.
struct Forward<'a, T, E> {
    layer: &'a mut NarrowStep<T, E>,
    x: &'a [T],
    h: &'a [T],
    c: &'a [T],
}

impl<T: Real, E: NarrowEquations<T>> Kernel<T> for Forward<'_, T, E> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        match self.layer.items {
            1 => self.of::<V, true>(),
            _ => self.of::<V, false>(),
        }
    }
}

impl<T: Real, E: NarrowEquations<T>> Forward<'_, T, E> {
    #[inline(always)]
    fn of<V: Lanes<T = T>, const ONE: bool>(self) {
        let NarrowStep {
            equations,
            units,
            items,
            blocks,
            h,
            c,
        } = self.layer;
        let (units, items, inputs) = (*units, *items, equations.inputs());
        for (block, first) in (0..items).step_by(V::N).enumerate() {
            if blocks.len() == block {
                blocks.push(Block::new(inputs, E::KEPT));
            }
            let block = &mut blocks[block];
            let these = first..items.min(first + V::N);
            gather::<V, ONE>(&mut block.x, self.x, inputs, these.clone());
            gather::<V, ONE>(&mut block.h, self.h, units, these.clone());
            gather::<V, ONE>(&mut block.c, self.c, units, these.clone());
            equations.forward::<V, ONE>(Place { units }, block);
            scatter::<V, ONE>(h, &block.h_after, units, these.clone());
            scatter::<V, ONE>(c, &block.c_after, units, these);
        }
    }
}

/// A step backward.
struct Backward<'a, T, E> {
    layer: &'a mut NarrowStep<T, E>,
    dh: &'a mut [T],
    dc: &'a mut [T],
    dx: &'a mut [T],
    state: bool,
}

impl<T: Real, E: NarrowEquations<T>> Kernel<T> for Backward<'_, T, E> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        match self.layer.items {
            1 => self.of::<V, true>(),
            _ => self.of::<V, false>(),
        }
    }
}

impl<T: Real, E: NarrowEquations<T>> Backward<'_, T, E> {
    #[inline(always)]
    fn of<V: Lanes<T = T>, const ONE: bool>(self) {
        let NarrowStep {
            equations,
            units,
            items,
            blocks,
            ..
        } = self.layer;
        let (units, items, inputs) = (*units, *items, equations.inputs());
        for (block, first) in blocks.iter_mut().zip((0..items).step_by(V::N)) {
            let these = first..items.min(first + V::N);
            gather::<V, ONE>(&mut block.dh, self.dh, units, these.clone());
            gather::<V, ONE>(&mut block.dc, self.dc, units, these.clone());
            equations.backward::<V, ONE>(Place { units }, block, self.state);
            scatter::<V, ONE>(self.dx, &block.dx, inputs, these.clone());
            if self.state {
                scatter::<V, ONE>(self.dh, &block.dh, units, these.clone());
                scatter::<V, ONE>(self.dc, &block.dc, units, these);
            }
        }
    }
}
