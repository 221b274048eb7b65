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
/// The loop over `k` is unrolled, and terms are still added one after the other, so no bit depends on it: counting and
/// computing addresses for every term is slower (benches/README.md has the figures).
///
/// # Safety
/// `a` must reach `(MR - 1) * a_row + (k - 1) * a_step`, `b` the last vector of its last panel, and `c` the last
/// of `cols` columns in row `MR - 1`; so must the row that the sum starts from.
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
    let mut acc = [[V::splat(V::T::ZERO); NV]; MR];
    // SAFETY: promised by the caller. Strides that the compiler knows spare it the arithmetic of addresses.
    unsafe {
        match (a_row, a_step, b_step) {
            (1, TILE, PANEL) if V::TURN > 1 => {
                sum(&mut acc, a.as_ptr(), 1, TILE, b.as_ptr(), PANEL, b_next, k)
            }
            (_, 1, PANEL) if V::TURN > 1 => {
                sum(&mut acc, a.as_ptr(), a_row, 1, b.as_ptr(), PANEL, b_next, k)
            }
            _ => sum(
                &mut acc,
                a.as_ptr(),
                a_row,
                a_step,
                b.as_ptr(),
                b_step,
                b_next,
                k,
            ),
        }
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

/// The whole sum of `micro`, several elements a turn.
///
/// # Safety
/// As for `micro`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "strides of two matrices")]
unsafe fn sum<V: Lanes, const MR: usize, const NV: usize>(
    acc: &mut [[V; NV]; MR],
    mut pa: *const V::T,
    a_row: usize,
    a_step: usize,
    mut pb: *const V::T,
    b_step: usize,
    b_next: usize,
    k: usize,
) {
    for _ in 0..k / V::TURN {
        for u in 0..V::TURN {
            let (pa, pb) = (pa.wrapping_add(u * a_step), pb.wrapping_add(u * b_step));
            // SAFETY: within `a` and `b`, promised by the caller.
            unsafe { step::<V, MR, NV>(acc, pa, a_row, pb, b_next) };
        }
        pa = pa.wrapping_add(V::TURN * a_step);
        pb = pb.wrapping_add(V::TURN * b_step);
    }
    for _ in 0..k % V::TURN {
        // SAFETY: as above.
        unsafe { step::<V, MR, NV>(acc, pa, a_row, pb, b_next) };
        pa = pa.wrapping_add(a_step);
        pb = pb.wrapping_add(b_step);
    }
}

/// One element of the sum: a column of `MR` numbers times `NV` vectors.
///
/// # Safety
/// `pa` must be valid for reading at `(MR - 1) * a_row`, and `pb` for every vector.
#[inline(always)]
unsafe fn step<V: Lanes, const MR: usize, const NV: usize>(
    acc: &mut [[V; NV]; MR],
    pa: *const V::T,
    a_row: usize,
    pb: *const V::T,
    b_next: usize,
) {
    let per = PANEL / V::N;
    // SAFETY: promised by the caller.
    let right: [V; NV] =
        std::array::from_fn(|v| unsafe { V::read(pb.add(v / per * b_next + v % per * V::N)) });
    for (r, acc) in acc.iter_mut().enumerate() {
        // SAFETY: promised by the caller.
        let left = V::splat(unsafe { *pa.add(r * a_row) });
        for (acc, right) in acc.iter_mut().zip(right) {
            *acc = left.fma(right, *acc);
        }
    }
}
