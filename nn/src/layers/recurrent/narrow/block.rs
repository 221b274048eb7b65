//! The numbers of one block of items: its inputs and states, what the derivatives need, and gradients.

use super::UNITS;
use crate::numeric::Real;
use crate::numeric::simd::Lanes;
use std::ops::Range;

/// The most lanes of a vector.
const LANES: usize = 16;

/// Where vectors of a block lie. All are whole, so lanes beyond the last item or unit hold numbers that nobody reads.
#[derive(Clone, Copy)]
pub struct Place<const ONE: bool> {
    /// Hidden units.
    pub units: usize,
}

impl<const ONE: bool> Place<ONE> {
    /// Vectors of a group of numbers, one for each unit: of many items as many as units.
    #[inline(always)]
    pub fn vectors(self) -> usize {
        if ONE { 1 } else { self.units }
    }

    #[inline(always)]
    fn at<V: Lanes>(self, group: usize, vector: usize) -> usize {
        (group * self.vectors() + vector) * V::N
    }

    /// One vector of a group.
    #[inline(always)]
    pub fn load<V: Lanes>(self, from: &[V::T], group: usize, vector: usize) -> V {
        V::load(&from[self.at::<V>(group, vector)..][..V::N])
    }

    /// Puts one vector of a group.
    #[inline(always)]
    pub fn store<V: Lanes>(self, to: &mut [V::T], group: usize, vector: usize, numbers: V) {
        numbers.store(&mut to[self.at::<V>(group, vector)..][..V::N]);
    }
}

/// A block.
#[derive(Default)]
pub struct Block<T> {
    /// The inputs.
    pub x: Vec<T>,
    /// The hidden states before.
    pub h: Vec<T>,
    /// The cell states before.
    pub c: Vec<T>,
    /// What an equation keeps for its derivatives.
    pub kept: Vec<T>,
    /// The hidden states after.
    pub h_after: Vec<T>,
    /// The cell states after.
    pub c_after: Vec<T>,
    /// Gradients of inputs.
    pub dx: Vec<T>,
    /// Gradients of hidden states.
    pub dh: Vec<T>,
    /// Gradients of cell states.
    pub dc: Vec<T>,
    /// Gradients before the activations, and numbers that last one call.
    pub slope: Vec<T>,
}

impl<T: Real> Block<T> {
    /// Buffers wide enough for any vector; `kept` is the number of values per unit that the derivatives need.
    pub fn new(inputs: usize, kept: usize) -> Self {
        let room = |numbers: usize| vec![T::ZERO; numbers * LANES];
        Block {
            x: room(inputs),
            h: room(UNITS),
            c: room(UNITS),
            kept: room(kept * UNITS),
            h_after: room(UNITS),
            c_after: room(UNITS),
            dx: room(inputs),
            dh: room(UNITS),
            dc: room(UNITS),
            slope: room(4 * UNITS),
        }
    }
}

/// Rows of this many numbers, from one on, into a block, for this many items; after the last row comes the first again.
#[inline(always)]
pub fn gather<V: Lanes, const ONE: bool>(
    block: &mut [V::T],
    rows: &[V::T],
    width: usize,
    items: Range<usize>,
) {
    if rows.is_empty() {
        // A layer without a cell state has no rows of it.
        return;
    }
    if ONE {
        for (to, row) in block.chunks_exact_mut(V::N).zip(rows.chunks(V::N)) {
            V::load(row).store(to);
        }
        return;
    }
    let (start, end) = (items.start * width, items.end * width);
    if let Some(rows) = rows.get(start..end) {
        match width {
            1 => turn::<V, 1>(block, rows),
            2 => turn::<V, 2>(block, rows),
            4 => turn::<V, 4>(block, rows),
            _ => {
                for (lane, row) in rows.chunks_exact(width).enumerate() {
                    for (x, column) in row.iter().zip(block.chunks_exact_mut(V::N)) {
                        column[lane] = *x;
                    }
                }
            }
        }
        return;
    }
    let mut from = start % rows.len();
    for lane in 0..items.len() {
        let columns = block.chunks_exact_mut(V::N).take(width);
        for (x, column) in rows[from..].iter().zip(columns) {
            column[lane] = *x;
        }
        from += width;
        if from >= rows.len() {
            from = 0;
        }
    }
}

/// Rows of a known width into a block.
#[inline(always)]
fn turn<V: Lanes, const WIDTH: usize>(block: &mut [V::T], rows: &[V::T]) {
    let (rows, _) = rows.as_chunks::<WIDTH>();
    // Whole vectors apart, since the compiler makes shuffles of as many lanes as it knows.
    match rows.get(..V::N) {
        Some(rows) => turn_rows::<V, WIDTH>(block, rows),
        None => turn_rows::<V, WIDTH>(block, rows),
    }
}

#[inline(always)]
fn turn_rows<V: Lanes, const WIDTH: usize>(block: &mut [V::T], rows: &[[V::T; WIDTH]]) {
    for j in 0..WIDTH {
        let column = &mut block[j * V::N..][..V::N];
        for (to, row) in column.iter_mut().zip(rows) {
            *to = row[j];
        }
    }
}

/// The numbers of a block's items as rows.
#[inline(always)]
pub fn scatter<V: Lanes, const ONE: bool>(
    rows: &mut [V::T],
    block: &[V::T],
    width: usize,
    items: Range<usize>,
) {
    if rows.is_empty() {
        return;
    }
    if ONE {
        for (row, from) in rows.chunks_mut(V::N).zip(block.chunks_exact(V::N)) {
            V::load(from).store(row);
        }
        return;
    }
    let rows = &mut rows[items.start * width..items.end * width];
    match width {
        1 => turn_back::<V, 1>(rows, block),
        2 => turn_back::<V, 2>(rows, block),
        4 => turn_back::<V, 4>(rows, block),
        _ => {
            for (lane, row) in rows.chunks_exact_mut(width).enumerate() {
                for (to, column) in row.iter_mut().zip(block.chunks_exact(V::N)) {
                    *to = column[lane];
                }
            }
        }
    }
}

/// A block's numbers as rows of a known width.
#[inline(always)]
fn turn_back<V: Lanes, const WIDTH: usize>(rows: &mut [V::T], block: &[V::T]) {
    let (rows, _) = rows.as_chunks_mut::<WIDTH>();
    if rows.len() >= V::N {
        turn_rows_back::<V, WIDTH>(&mut rows[..V::N], block);
    } else {
        turn_rows_back::<V, WIDTH>(rows, block);
    }
}

#[inline(always)]
fn turn_rows_back<V: Lanes, const WIDTH: usize>(rows: &mut [[V::T; WIDTH]], block: &[V::T]) {
    for j in 0..WIDTH {
        let column = &block[j * V::N..][..V::N];
        for (row, x) in rows.iter_mut().zip(column) {
            row[j] = *x;
        }
    }
}
