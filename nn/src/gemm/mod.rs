//! The matrix product behind every layer: `C = A B`, `C += A B`, or `C = A B + bias`.
//!
//! `A` is (m, k), `B` is (k, n), both with any strides; `C` is (m, n).
//! Each element of `C` is summed over `k` in blocks of [`KC`], in order, one fused
//! multiply-add after the other. So a row of the result has the same bits whatever the
//! other rows are, how many there are, and whether `B` was packed beforehand: a text
//! classified alone gets exactly the logits it gets in a batch.
//!
//! One thread: callers cut the work into shards whose number depends on the data only.

mod kernel;
mod pack;

use crate::Real;
use kernel::{Block, Panels, Rows, Start};
pub use pack::Packed;
use pack::{fill_b, pack_a};

/// Length of a block of the sum.
const KC: usize = 256;
/// Rows of `A` that stay in the second-level cache.
const MC: usize = 96;
/// Columns of `B` packed at a time.
const NC: usize = 512;
/// Columns in a panel of packed `B`.
const PANEL: usize = 16;
/// Rows in a tile of packed `A`.
const TILE: usize = 6;

/// A read-only matrix with strides.
#[derive(Clone, Copy)]
pub struct Mat<'a, T> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a, T> Mat<'a, T> {
    /// Contiguous rows.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    /// Rows that start `stride` apart.
    ///
    /// # Panics
    /// If the slice is too short.
    pub fn strided(data: &'a [T], rows: usize, cols: usize, stride: usize) -> Self {
        let fits = rows == 0 || cols == 0 || data.len() >= (rows - 1) * stride + cols;
        assert!(
            fits,
            "matrix {rows} x {cols} needs more than {} numbers",
            data.len()
        );
        Mat {
            data,
            rows,
            cols,
            row_stride: stride,
            col_stride: 1,
        }
    }

    /// The transpose, without moving anything.
    pub fn t(self) -> Self {
        Mat {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// What happens to the old contents of `C`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Into {
    /// `C = A B`
    Set,
    /// `C += A B`
    Add,
}

impl Into {
    fn start<T>(self) -> Start<'static, T> {
        if self == Into::Set {
            Start::Zero
        } else {
            Start::Old
        }
    }
}

/// `C = A B` or `C += A B`; rows of `C` are contiguous.
pub fn gemm<T: Real>(into: Into, c: &mut [T], a: Mat<T>, b: Mat<T>) {
    product(into.start(), c, b.cols, a, b);
}

/// As [`gemm`], with rows of `C` that start `ldc` apart.
pub fn gemm_strided<T: Real>(into: Into, c: &mut [T], ldc: usize, a: Mat<T>, b: Mat<T>) {
    product(into.start(), c, ldc, a, b);
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
    packed_product(into.start(), c, a, b);
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
    let width = n.next_multiple_of(PANEL);
    T::with_pack(|pa, _| {
        for pc in (0..k).step_by(KC) {
            let kc = KC.min(k - pc);
            // As many columns at a time as stay in the second-level cache for all rows.
            for jc in (0..n).step_by(NC) {
                let panels = Panels {
                    data: &b.data[pc * width + jc * kc..],
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
                if pb.len() < size {
                    pb.resize(size, T::ZERO);
                }
                fill_b(&mut pb[..size], b, pc, kc, jc, nc);
                let panels = Panels {
                    data: &pb[..size],
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
    pa: &mut Vec<T>,
) {
    let k = sum.len();
    for ic in (0..a.rows).step_by(MC) {
        let m = MC.min(a.rows - ic);
        let c = &mut c[ic * ldc..];
        let block = if a.col_stride == 1 && !collide::<T>(a.row_stride, n) {
            let data = &a.data[ic * a.row_stride + sum.start..];
            Rows {
                data,
                row: a.row_stride,
                step: 1,
                tile: TILE * a.row_stride,
            }
        } else {
            pack_a(pa, a, ic, m, sum.start, k);
            Rows {
                data: pa,
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

/// Whether rows this far apart would share the few places that a first-level cache has for them, and
/// there are enough columns to be worth a copy. Copies change no bit.
fn collide<T>(stride: usize, columns: usize) -> bool {
    (stride * size_of::<T>()).is_multiple_of(2048) && columns >= 4 * PANEL
}

#[cfg(test)]
mod tests;
