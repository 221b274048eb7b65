//! `tanh(h W + b)` of additive attention where the rows of `h` stand in several values side by side: `pool.rs` has the
//! rest.
//!
//! Rows are read where they stand, and the sum over the beginning of a row that all items share is made once. Sums are
//! those of `numeric::gemm`, term by term.

use crate::layers::steps::Steps;
use crate::layers::tile::{TERM, UNITS, add_terms, rows_of};
use crate::numeric::gemm::BLOCK;
use crate::numeric::simd::{Kernel, Lanes};
use crate::numeric::{Lines, Real};

/// `W`, (dim, size), for the loop: for some columns all terms; zero beyond the last column.
pub(super) fn pack<T: Real>(w: &[T], size: usize) -> Lines<T> {
    let (dim, mut lines) = (w.len() / size, Lines::default());
    let panels = lines.room(size.div_ceil(TERM) * dim * TERM);
    panels.fill(T::ZERO);
    for (panel, first) in panels
        .chunks_exact_mut(dim * TERM)
        .zip((0..size).step_by(TERM))
    {
        let width = TERM.min(size - first);
        for (to, from) in panel.chunks_exact_mut(TERM).zip(w.chunks_exact(size)) {
            to[..width].copy_from_slice(&from[first..first + width]);
        }
    }
    lines
}

/// One step of all items, or of the one row that they share.
pub(super) struct Squashed<'a, T> {
    /// `W` by [`pack`].
    pub panels: &'a [T],
    pub bias: &'a [T],
    /// What stands side by side in a row of `h`.
    pub parts: &'a [Steps<T>],
    pub t: usize,
    /// (items, size)
    pub squashed: &'a mut [T],
}

/// Sums of some rows on the way: of whole blocks, of the block that was begun, and how many terms there were.
#[derive(Clone, Copy)]
struct Sums<V, const M: usize> {
    whole: [[V; 4]; M],
    begun: [[V; 4]; M],
    terms: usize,
}

/// Some columns: a panel of `W`, the first of its columns, and the lane at which vectors start.
#[derive(Clone, Copy)]
struct Columns<'a, T> {
    panel: &'a [T],
    first: usize,
    lane: usize,
}

impl<T: Real> Kernel<T> for Squashed<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(mut self) {
        let (size, tile) = (self.bias.len(), rows_of::<V>());
        let dim: usize = self.parts.iter().map(Steps::dim).sum();
        let items = self.squashed.len() / size;
        let leading = self.parts.iter().take_while(|part| part.is_shared(self.t));
        let shared = leading.count();
        for (i, panel) in self.panels.chunks_exact(dim * TERM).enumerate() {
            for lane in (0..UNITS).step_by(V::N) {
                let first = i * TERM;
                let columns = Columns { panel, first, lane };
                let mut start = self.start::<V>(columns);
                self.add::<V, 1>(&mut start, 0..shared, columns, 0);
                for item in (0..items).step_by(tile) {
                    match tile.min(items - item) {
                        6 => self.tile::<V, 6>(start, shared, columns, item),
                        5 => self.tile::<V, 5>(start, shared, columns, item),
                        4 => self.tile::<V, 4>(start, shared, columns, item),
                        3 => self.tile::<V, 3>(start, shared, columns, item),
                        2 => self.tile::<V, 2>(start, shared, columns, item),
                        _ => self.tile::<V, 1>(start, shared, columns, item),
                    }
                }
            }
        }
    }
}

impl<T: Real> Squashed<'_, T> {
    /// The bias.
    #[inline(always)]
    fn start<V: Lanes<T = T>>(&self, columns: Columns<'_, T>) -> Sums<V, 1> {
        let (none, size) = ([V::splat(T::ZERO); 4], self.bias.len());
        let mut bias = none;
        for (k, bias) in bias.iter_mut().enumerate() {
            let j = size.min(columns.first + k * UNITS + columns.lane);
            *bias = V::load(&self.bias[j..size.min(j + V::N)]);
        }
        Sums {
            whole: [bias],
            begun: [none],
            terms: 0,
        }
    }

    /// Adds the products with these parts of the rows of `M` items from `item` on.
    #[inline(always)]
    fn add<V: Lanes<T = T>, const M: usize>(
        &self,
        sums: &mut Sums<V, M>,
        parts: std::ops::Range<usize>,
        columns: Columns<'_, T>,
        item: usize,
    ) {
        for part in &self.parts[parts] {
            let mut from = 0;
            while from < part.dim() {
                let length = (part.dim() - from).min(BLOCK - sums.terms % BLOCK);
                let mut rows = [&part.row(self.t, item)[..0]; M];
                for (r, row) in rows.iter_mut().enumerate() {
                    *row = &part.row(self.t, item + r)[from..][..length];
                }
                let terms = &columns.panel[sums.terms * TERM..][..length * TERM];
                add_terms(&mut sums.begun, rows, terms, columns.lane);
                from += length;
                sums.terms += length;
                if sums.terms.is_multiple_of(BLOCK) {
                    sums.end_block();
                }
            }
        }
    }

    /// `M` items from `item` on, whose sums start from those of the parts that all items share.
    #[inline(always)]
    fn tile<V: Lanes<T = T>, const M: usize>(
        &mut self,
        start: Sums<V, 1>,
        shared: usize,
        columns: Columns<'_, T>,
        item: usize,
    ) {
        let mut sums = Sums {
            whole: [start.whole[0]; M],
            begun: [start.begun[0]; M],
            terms: start.terms,
        };
        self.add(&mut sums, shared..self.parts.len(), columns, item);
        if !sums.terms.is_multiple_of(BLOCK) {
            sums.end_block();
        }
        let size = self.bias.len();
        for (r, sums) in sums.whole.into_iter().enumerate() {
            let row = &mut self.squashed[(item + r) * size..][..size];
            for (k, sum) in sums.into_iter().enumerate() {
                let j = size.min(columns.first + k * UNITS + columns.lane);
                sum.tanh().store(&mut row[j..size.min(j + V::N)]);
            }
        }
    }
}

impl<V: Lanes, const M: usize> Sums<V, M>
where
    V::T: Real,
{
    /// Sums of a block are added to those before.
    #[inline(always)]
    fn end_block(&mut self) {
        for (whole, begun) in self.whole.iter_mut().zip(&mut self.begun) {
            for (whole, begun) in whole.iter_mut().zip(begun) {
                *whole = whole.add(*begun);
                *begun = V::splat(V::T::ZERO);
            }
        }
    }
}
