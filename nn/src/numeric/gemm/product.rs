//! The loops of a product around the micro-kernel.

use super::kernel::{Block, Panels, Rows, Start};
use super::matrix::{Into, KC, MC, Mat, NC, PANEL, TILE};
use super::pack::{Packed, fill_b, pack_a};
use crate::numeric::{Lines, Real};

fn start_of<T>(into: Into) -> Start<'static, T> {
    if into == Into::Set {
        Start::Zero
    } else {
        Start::Old
    }
}

/// `C = A B` or `C += A B`; rows of `C` are contiguous.
pub fn gemm<T: Real>(into: Into, c: &mut [T], a: Mat<T>, b: Mat<T>) {
    product(start_of(into), c, b.cols, a, b);
}

/// As [`gemm`], with rows of `C` that start `ldc` apart.
pub fn gemm_strided<T: Real>(into: Into, c: &mut [T], ldc: usize, a: Mat<T>, b: Mat<T>) {
    product(start_of(into), c, ldc, a, b);
}

/// `C = A B + bias`, the same bias in every row.
pub fn gemm_bias<T: Real>(c: &mut [T], a: Mat<T>, b: Mat<T>, bias: &[T]) {
    assert_eq!(b.cols, bias.len(), "a bias for every column");
    product(Start::Row(bias), c, b.cols, a, b);
}

/// As [`gemm`], with `B` packed beforehand.
///
/// # Panics
/// If the shapes do not fit.
pub fn gemm_packed<T: Real>(into: Into, c: &mut [T], a: Mat<T>, b: &Packed<T>) {
    packed_product(start_of(into), c, a, b);
}

/// As [`gemm_bias`], with `B` packed beforehand.
///
/// # Panics
/// If the shapes do not fit.
pub fn gemm_packed_bias<T: Real>(c: &mut [T], a: Mat<T>, b: &Packed<T>, bias: &[T]) {
    assert_eq!(b.n, bias.len(), "a bias for every column");
    packed_product(Start::Row(bias), c, a, b);
}

fn packed_product<T: Real>(start: Start<T>, c: &mut [T], a: Mat<T>, b: &Packed<T>) {
    let (m, n, k) = (a.rows, b.n, a.cols);
    assert_eq!(k, b.k, "inner dimensions differ");
    if !prepare(start, c, n, m, n, k) {
        return;
    }
    if lies_well(a, n) && m <= MC && n <= NC && k <= KC {
        // One block, which needs no buffer: the loops around it would take longer than a small product.
        T::launch(Block {
            start,
            c,
            ldc: n,
            a: where_it_lies(a),
            b: Panels {
                data: b.data.get(),
                step: PANEL,
                next: k * PANEL,
            },
            m,
            n,
            k,
        });
        return;
    }
    let width = n.next_multiple_of(PANEL);
    T::with_pack(|pa, _| {
        for pc in (0..k).step_by(KC) {
            let kc = KC.min(k - pc);
            // As many columns at a time as stay in the second-level cache for all rows.
            for jc in (0..n).step_by(NC) {
                let panels = Panels {
                    data: &b.data.get()[pc * width + jc * kc..],
                    step: PANEL,
                    next: kc * PANEL,
                };
                let start = if pc > 0 { Start::Old } else { start.from(jc) };
                let nc = NC.min(n - jc);
                rows(start, &mut c[jc..], n, a, panels, pc..pc + kc, nc, pa);
            }
        }
    });
}

fn product<T: Real>(start: Start<T>, c: &mut [T], ldc: usize, a: Mat<T>, b: Mat<T>) {
    let (m, n, k) = (a.rows, b.cols, a.cols);
    assert_eq!(k, b.rows, "inner dimensions differ");
    if !prepare(start, c, ldc, m, n, k) {
        return;
    }
    if m <= TILE && a.col_stride == 1 && b.col_stride == 1 && n.is_multiple_of(PANEL) {
        // So few rows that packing B would cost more than the product.
        for pc in (0..k).step_by(KC) {
            let kc = KC.min(k - pc);
            let b = Panels {
                data: &b.data[pc * b.row_stride..],
                step: b.row_stride,
                next: PANEL,
            };
            let a = Rows {
                data: &a.data[pc..],
                row: a.row_stride,
                step: 1,
                tile: 0,
            };
            let start = if pc > 0 { Start::Old } else { start };
            T::launch(Block {
                start,
                c,
                ldc,
                a,
                b,
                m,
                n,
                k: kc,
            });
        }
        return;
    }
    T::with_pack(|pa, pb| {
        for jc in (0..n).step_by(NC) {
            let nc = NC.min(n - jc);
            for pc in (0..k).step_by(KC) {
                let kc = KC.min(k - pc);
                let size = nc.next_multiple_of(PANEL) * kc;
                fill_b(pb.room(size), b, pc, kc, jc, nc);
                let panels = Panels {
                    data: pb.get(),
                    step: PANEL,
                    next: kc * PANEL,
                };
                let start = if pc > 0 { Start::Old } else { start.from(jc) };
                rows(start, &mut c[jc..], ldc, a, panels, pc..pc + kc, nc, pa);
            }
        }
    });
}

/// Checks `C` and settles empty products; true when there is work left.
fn prepare<T: Real>(
    start: Start<T>,
    c: &mut [T],
    ldc: usize,
    m: usize,
    n: usize,
    k: usize,
) -> bool {
    if m == 0 || n == 0 {
        return false;
    }
    let fits = ldc >= n && c.len() >= (m - 1) * ldc + n;
    assert!(
        fits,
        "result of {m} x {n} needs more than {} numbers",
        c.len()
    );
    if k == 0 {
        for row in c.chunks_mut(ldc).take(m) {
            match start {
                Start::Zero => row[..n].fill(T::ZERO),
                Start::Old => {}
                Start::Row(bias) => row[..n].copy_from_slice(bias),
            }
        }
    }
    k > 0
}

/// All rows of `A` against one packed block of `B`.
#[expect(clippy::too_many_arguments, reason = "the loop bounds of one block")]
fn rows<T: Real>(
    start: Start<T>,
    c: &mut [T],
    ldc: usize,
    a: Mat<T>,
    b: Panels<T>,
    sum: std::ops::Range<usize>,
    n: usize,
    pa: &mut Lines<T>,
) {
    let k = sum.len();
    for ic in (0..a.rows).step_by(MC) {
        let m = MC.min(a.rows - ic);
        let c = &mut c[ic * ldc..];
        let block = if lies_well(a, n) {
            where_it_lies(Mat {
                data: &a.data[ic * a.row_stride + sum.start..],
                ..a
            })
        } else {
            pack_a(pa, a, ic, m, sum.start, k);
            Rows {
                data: pa.get(),
                row: 1,
                step: TILE,
                tile: TILE * k,
            }
        };
        T::launch(Block {
            start,
            c,
            ldc,
            a: block,
            b,
            m,
            n,
            k,
        });
    }
}

/// Tiles of a matrix that is not copied.
fn where_it_lies<T>(a: Mat<T>) -> Rows<T> {
    Rows {
        data: a.data,
        row: a.row_stride,
        step: 1,
        tile: TILE * a.row_stride,
    }
}

/// Whether the rows of `A` are read where they lie: contiguous, and not so far apart that they would share the few places
/// that a first-level cache has for them, if there are enough columns to be worth a copy. Copies change no bit.
fn lies_well<T>(a: Mat<T>, columns: usize) -> bool {
    let collide = (a.row_stride * size_of::<T>()).is_multiple_of(4096) && columns >= 4 * PANEL;
    a.col_stride == 1 && !collide
}
