//! The micro-kernel: a few rows times a few vectors of columns, summed in registers.
//!
//! It reads without bounds checks, which would halve its speed; [`Block`] asserts the last
//! element of every operand before it starts. Writes are checked.

use super::matrix::{PANEL, TILE};
use crate::numeric::Real;
use crate::numeric::simd::{Kernel, Lanes};

/// `B` as panels of [`PANEL`] columns: `step` between elements of the sum, `next` between panels.
#[derive(Clone, Copy)]
pub(super) struct Panels<'a, T> {
    pub data: &'a [T],
    pub step: usize,
    pub next: usize,
}

/// `A` as tiles of [`TILE`] rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    pub data: &'a [T],
    pub row: usize,
    pub step: usize,
    pub tile: usize,
}

/// What the sum starts from.
#[derive(Clone, Copy)]
pub(super) enum Start<'a, T> {
    Zero,
    /// What `C` holds.
    Old,
    /// The same row for every row of `C`.
    Row(&'a [T]),
}

impl<'a, T> Start<'a, T> {
    /// Without the first `columns` columns.
    pub(super) fn from(self, columns: usize) -> Self {
        if let Start::Row(row) = self {
            Start::Row(&row[columns..])
        } else {
            self
        }
    }
}

/// One block of the product.
pub(super) struct Block<'a, 'c, T> {
    pub start: Start<'a, T>,
    pub c: &'c mut [T],
    pub ldc: usize,
    pub a: Rows<'a, T>,
    pub b: Panels<'a, T>,
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

impl<T: Real> Kernel<T> for Block<'_, '_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let Block {
            start,
            c,
            ldc,
            a,
            b,
            m,
            n,
            k,
        } = self;
        let panels = n.div_ceil(PANEL);
        // The micro-kernel reads without checks; these are the last elements it touches.
        assert!(b.data.len() >= (panels - 1) * b.next + (k - 1) * b.step + PANEL);
        assert!(c.len() >= (m - 1) * ldc + n);
        let per = PANEL / V::N;
        let mut j = 0;
        while j < panels {
            let left = panels - j;
            let mut group = 1;
            for i in (0..m).step_by(TILE) {
                let height = TILE.min(m - i);
                let at = i / TILE * a.tile;
                assert!(a.data.len() > at + (height - 1) * a.row + (k - 1) * a.step);
                let (pa, pb) = (&a.data[at..], &b.data[j * b.next..]);
                let out = &mut c[i * ldc + j * PANEL..];
                let cols = n - j * PANEL;
                let from = start.from(j * PANEL);
                // Fewer rows leave registers for more columns, which hides the latency of the additions.
                macro_rules! tile {
                    ($mr:literal, $nv:literal) => {{
                        // SAFETY: the assertions above cover every read; writes are checked.
                        unsafe {
                            micro::<V, $mr, $nv>(
                                from, out, ldc, pa, a.row, a.step, pb, b.step, b.next, cols, k,
                            )
                        }
                    }};
                }
                if m <= 3 && left * per >= 8 && m == 1 {
                    group = 8 / per;
                    tile!(1, 8)
                } else if m <= 3 && left * per >= 4 {
                    group = 4 / per;
                    match height {
                        3 => tile!(3, 4),
                        2 => tile!(2, 4),
                        _ => tile!(1, 4),
                    }
                } else if left * per >= 2 && cols > V::N {
                    group = 2 / per;
                    match height {
                        6 => tile!(6, 2),
                        5 => tile!(5, 2),
                        4 => tile!(4, 2),
                        3 => tile!(3, 2),
                        2 => tile!(2, 2),
                        _ => tile!(1, 2),
                    }
                } else {
                    // The rest of the last panel is padding, if there is a rest.
                    match height {
                        6 => tile!(6, 1),
                        5 => tile!(5, 1),
                        4 => tile!(4, 1),
                        3 => tile!(3, 1),
                        2 => tile!(2, 1),
                        _ => tile!(1, 1),
                    }
                }
            }
            j += group;
        }
    }
}

/// `MR` rows times `NV` vectors of columns, held in registers.
///
/// # Safety
/// `a` must reach `(MR - 1) * a_row + (k - 1) * a_step`, and `b` the last vector of its last panel.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "strides of three matrices")]
unsafe fn micro<V: Lanes, const MR: usize, const NV: usize>(
    start: Start<V::T>,
    c: &mut [V::T],
    ldc: usize,
    a: &[V::T],
    a_row: usize,
    a_step: usize,
    b: &[V::T],
    b_step: usize,
    b_next: usize,
    cols: usize,
    k: usize,
) where
    V::T: Real,
{
    let per = PANEL / V::N;
    let mut acc = [[V::splat(V::T::ZERO); NV]; MR];
    let (mut pa, mut pb) = (a.as_ptr(), b.as_ptr());
    for _ in 0..k {
        let mut right = [V::splat(V::T::ZERO); NV];
        for (v, right) in right.iter_mut().enumerate() {
            // SAFETY: within `b`, promised by the caller.
            *right = unsafe { V::read(pb.add(v / per * b_next + v % per * V::N)) };
        }
        for (r, acc) in acc.iter_mut().enumerate() {
            // SAFETY: within `a`, promised by the caller.
            let left = V::splat(unsafe { *pa.add(r * a_row) });
            for (acc, right) in acc.iter_mut().zip(right) {
                *acc = left.fma(right, *acc);
            }
        }
        pa = pa.wrapping_add(a_step);
        pb = pb.wrapping_add(b_step);
    }
    for (r, acc) in acc.iter().enumerate() {
        for (v, &sum) in acc.iter().enumerate() {
            let j = v * V::N;
            if j >= cols {
                break;
            }
            let to = &mut c[r * ldc + j..r * ldc + cols.min(j + V::N)];
            let sum = match start {
                Start::Zero => sum,
                Start::Old => V::load(to).add(sum),
                Start::Row(row) => V::load(&row[j..cols.min(j + V::N)]).add(sum),
            };
            sum.store(to);
        }
    }
}
