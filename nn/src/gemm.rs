//! The matrix product behind every layer: `C = A B` or `C += A B`.
//!
//! `A` is (m, k), `B` is (k, n), both with any strides; `C` is (m, n), rows contiguous.
//! Each element of `C` is summed over `k` in blocks of [`KC`], in order, one fused
//! multiply-add after the other. So a row of the result has the same bits whatever the
//! other rows are, how many there are, and whether `B` was packed beforehand: a text
//! classified alone gets exactly the logits it gets in a batch.
//!
//! One thread: callers cut the work into shards whose number depends on the data only.

use crate::Real;
use crate::simd::{Kernel, Lanes};

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
        assert!(
            rows == 0 || cols == 0 || data.len() >= (rows - 1) * stride + cols,
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

/// `B` packed once and used many times, as recurrent weights are.
#[derive(Clone, Debug, Default)]
pub struct Packed<T> {
    data: Vec<T>,
    k: usize,
    n: usize,
}

impl<T: Real> Packed<T> {
    /// Packs `b`, reusing this value's memory.
    pub fn pack(&mut self, b: Mat<T>) {
        (self.k, self.n) = (b.rows, b.cols);
        self.data.clear();
        for pc in (0..b.rows).step_by(KC) {
            pack_b(&mut self.data, b, pc, KC.min(b.rows - pc), 0, b.cols);
        }
    }
}

/// `C = A B` or `C += A B`; rows of `C` are contiguous.
pub fn gemm<T: Real>(into: Into, c: &mut [T], a: Mat<T>, b: Mat<T>) {
    let n = b.cols;
    gemm_strided(into, c, n, a, b);
}

/// As [`gemm`], with rows of `C` that start `ldc` apart.
///
/// # Panics
/// If the shapes do not fit.
pub fn gemm_strided<T: Real>(into: Into, c: &mut [T], ldc: usize, a: Mat<T>, b: Mat<T>) {
    let (m, n, k) = (a.rows, b.cols, a.cols);
    assert_eq!(k, b.rows, "inner dimensions differ");
    if !prepare(into, c, ldc, m, n, k) {
        return;
    }
    if m <= TILE && a.col_stride == 1 && b.col_stride == 1 && n.is_multiple_of(PANEL) {
        // So few rows that packing B would cost more than the product.
        for pc in (0..k).step_by(KC) {
            let kc = KC.min(k - pc);
            let panels = Panels {
                data: &b.data[pc * b.row_stride..],
                step: b.row_stride,
                next: PANEL,
            };
            let first = Rows {
                data: &a.data[pc..],
                row: a.row_stride,
                step: 1,
                tile: TILE * a.row_stride,
            };
            T::launch(Block {
                add: into == Into::Add || pc > 0,
                c,
                ldc,
                a: first,
                b: panels,
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
                pb.clear();
                pack_b(pb, b, pc, kc, jc, nc);
                let panels = Panels {
                    data: pb,
                    step: PANEL,
                    next: kc * PANEL,
                };
                rows(
                    into == Into::Add || pc > 0,
                    &mut c[jc..],
                    ldc,
                    a,
                    panels,
                    pc,
                    kc,
                    nc,
                    pa,
                );
            }
        }
    });
}

/// As [`gemm`], with `B` packed beforehand.
///
/// # Panics
/// If the shapes do not fit.
pub fn gemm_packed<T: Real>(into: Into, c: &mut [T], a: Mat<T>, b: &Packed<T>) {
    let (m, n, k) = (a.rows, b.n, a.cols);
    assert_eq!(k, b.k, "inner dimensions differ");
    if !prepare(into, c, n, m, n, k) {
        return;
    }
    let width = n.next_multiple_of(PANEL);
    T::with_pack(|pa, _| {
        for pc in (0..k).step_by(KC) {
            let kc = KC.min(k - pc);
            let panels = Panels {
                data: &b.data[pc * width..],
                step: PANEL,
                next: kc * PANEL,
            };
            rows(into == Into::Add || pc > 0, c, n, a, panels, pc, kc, n, pa);
        }
    });
}

/// Checks `C` and settles empty products; true when there is work left.
fn prepare<T: Real>(into: Into, c: &mut [T], ldc: usize, m: usize, n: usize, k: usize) -> bool {
    if m == 0 || n == 0 {
        return false;
    }
    assert!(
        ldc >= n && c.len() >= (m - 1) * ldc + n,
        "result of {m} x {n} needs more than {} numbers",
        c.len()
    );
    if k == 0 && into == Into::Set {
        for row in c.chunks_mut(ldc).take(m) {
            row[..n].fill(T::ZERO);
        }
    }
    k > 0
}

/// All rows of `A` against one packed block of `B`.
#[expect(clippy::too_many_arguments, reason = "the loop bounds of one block")]
fn rows<T: Real>(
    add: bool,
    c: &mut [T],
    ldc: usize,
    a: Mat<T>,
    b: Panels<T>,
    pc: usize,
    kc: usize,
    nc: usize,
    pa: &mut Vec<T>,
) {
    for ic in (0..a.rows).step_by(MC) {
        let mc = MC.min(a.rows - ic);
        let c = &mut c[ic * ldc..];
        if a.col_stride == 1 {
            let block = Rows {
                data: &a.data[ic * a.row_stride + pc..],
                row: a.row_stride,
                step: 1,
                tile: TILE * a.row_stride,
            };
            T::launch(Block {
                add,
                c,
                ldc,
                a: block,
                b,
                m: mc,
                n: nc,
                k: kc,
            });
        } else {
            pack_a(pa, a, ic, mc, pc, kc);
            let block = Rows {
                data: pa,
                row: 1,
                step: TILE,
                tile: TILE * kc,
            };
            T::launch(Block {
                add,
                c,
                ldc,
                a: block,
                b,
                m: mc,
                n: nc,
                k: kc,
            });
        }
    }
}

/// Appends columns `jc..jc+nc` of rows `pc..pc+kc`, panel after panel, the last one padded with zeros.
fn pack_b<T: Real>(out: &mut Vec<T>, b: Mat<T>, pc: usize, kc: usize, jc: usize, nc: usize) {
    let start = out.len();
    out.resize(start + nc.div_ceil(PANEL) * PANEL * kc, T::ZERO);
    for (panel, j) in out[start..]
        .chunks_exact_mut(PANEL * kc)
        .zip((jc..jc + nc).step_by(PANEL))
    {
        let width = PANEL.min(jc + nc - j);
        if b.col_stride == 1 {
            for (p, to) in panel.chunks_exact_mut(PANEL).enumerate() {
                let at = (pc + p) * b.row_stride + j;
                if width == PANEL {
                    to.copy_from_slice(&b.data[at..at + PANEL]);
                } else {
                    to[..width].copy_from_slice(&b.data[at..at + width]);
                }
            }
        } else {
            // Sixteen columns side by side, each read in its own order.
            for (p, to) in panel.chunks_exact_mut(PANEL).enumerate() {
                let at = j * b.col_stride + (pc + p) * b.row_stride;
                for (w, to) in to[..width].iter_mut().enumerate() {
                    *to = b.data[at + w * b.col_stride];
                }
            }
        }
    }
}

/// Rows `ic..ic+mc` of columns `pc..pc+kc`, tiles of [`TILE`] rows, element by element of the sum.
fn pack_a<T: Real>(out: &mut Vec<T>, a: Mat<T>, ic: usize, mc: usize, pc: usize, kc: usize) {
    out.clear();
    out.resize(mc.div_ceil(TILE) * TILE * kc, T::ZERO);
    for (tile, i) in out
        .chunks_exact_mut(TILE * kc)
        .zip((ic..ic + mc).step_by(TILE))
    {
        let height = TILE.min(ic + mc - i);
        for (p, to) in tile.chunks_exact_mut(TILE).enumerate() {
            let at = i * a.row_stride + (pc + p) * a.col_stride;
            if a.row_stride == 1 && height == TILE {
                to.copy_from_slice(&a.data[at..at + TILE]);
                continue;
            }
            for (r, to) in to[..height].iter_mut().enumerate() {
                *to = a.data[at + r * a.row_stride];
            }
        }
    }
}

/// `B` as panels of [`PANEL`] columns: `step` between elements of the sum, `next` between panels.
#[derive(Clone, Copy)]
struct Panels<'a, T> {
    data: &'a [T],
    step: usize,
    next: usize,
}

/// `A` as tiles of [`TILE`] rows.
#[derive(Clone, Copy)]
struct Rows<'a, T> {
    data: &'a [T],
    row: usize,
    step: usize,
    tile: usize,
}

struct Block<'a, 'c, T> {
    add: bool,
    c: &'c mut [T],
    ldc: usize,
    a: Rows<'a, T>,
    b: Panels<'a, T>,
    m: usize,
    n: usize,
    k: usize,
}

impl<T: Real> Kernel<T> for Block<'_, '_, T> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = T>>(self) {
        let Block {
            add,
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
                // Fewer rows leave registers for more columns, which hides the latency of the additions.
                macro_rules! tile {
                    ($mr:literal, $nv:literal) => {{
                        // SAFETY: the assertions above cover every read; writes are checked.
                        unsafe {
                            micro::<V, $mr, $nv>(
                                add, out, ldc, pa, a.row, a.step, pb, b.step, b.next, cols, k,
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
                } else if left * per >= 2 {
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
    add: bool,
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
            let sum = if add { V::load(to).add(sum) } else { sum };
            sum.store(to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        (0..n as u64)
            .map(|i| ((i * 2_654_435_761 + seed * 97) % 2003) as f64 / 1001.0 - 1.0)
            .collect()
    }

    fn naive(a: Mat<f64>, b: Mat<f64>) -> Vec<f64> {
        let at = |m: Mat<f64>, i, j| m.data[i * m.row_stride + j * m.col_stride];
        (0..a.rows * b.cols)
            .map(|c| {
                (0..a.cols)
                    .map(|p| at(a, c / b.cols, p) * at(b, p, c % b.cols))
                    .sum()
            })
            .collect()
    }

    #[test]
    fn every_shape_and_layout_agrees_with_the_definition() {
        for (m, n, k) in [
            (1, 1, 1),
            (1, 256, 64),
            (2, 33, 7),
            (3, 64, 40),
            (5, 16, 300),
            (6, 17, 5),
            (7, 100, 257),
            (13, 530, 30),
            (100, 31, 520),
            (4, 128, 3),
            (6, 0, 3),
            (3, 5, 0),
        ] {
            let (x, y) = (numbers(m * k, 1), numbers(k * n, 2));
            for layout in 0..4 {
                let a = if layout & 1 == 0 {
                    Mat::new(&x, m, k)
                } else {
                    Mat::new(&x, k, m).t()
                };
                let b = if layout & 2 == 0 {
                    Mat::new(&y, k, n)
                } else {
                    Mat::new(&y, n, k).t()
                };
                let expected = naive(a, b);
                let mut c = vec![1.0; m * n];
                gemm(Into::Set, &mut c, a, b);
                gemm(Into::Add, &mut c, a, b);
                let mut packed = Packed::default();
                packed.pack(b);
                gemm_packed(Into::Add, &mut c, a, &packed);
                for (got, one) in c.iter().zip(&expected) {
                    assert!(
                        (got - 3.0 * one).abs() < 1e-9,
                        "{m} {n} {k} layout {layout}: {got} {one}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_alone_in_a_batch_and_packed() {
        let (m, n, k) = (50, 80, 600);
        let x: Vec<f32> = numbers(m * k, 3).iter().map(|v| *v as f32).collect();
        let y: Vec<f32> = numbers(k * n, 4).iter().map(|v| *v as f32).collect();
        let (a, b) = (Mat::new(&x, m, k), Mat::new(&y, k, n));
        let mut all = vec![0.0; m * n];
        gemm(Into::Set, &mut all, a, b);
        let mut packed = Packed::default();
        packed.pack(b);
        let mut same = vec![0.0; m * n];
        gemm_packed(Into::Set, &mut same, a, &packed);
        assert_eq!(all, same);
        for r in 0..m {
            let mut one = vec![0.0; n];
            gemm(Into::Set, &mut one, Mat::new(&x[r * k..], 1, k), b);
            assert_eq!(one, all[r * n..(r + 1) * n], "row {r}");
        }
    }

    #[test]
    fn the_result_may_be_a_window_of_a_larger_matrix() {
        let (x, y) = (numbers(12, 5), numbers(12, 6));
        let (a, b) = (Mat::new(&x, 3, 4), Mat::new(&y, 4, 3));
        let mut wide = vec![7.0; 3 * 10];
        gemm_strided(Into::Set, &mut wide, 10, a, b);
        let expected = naive(a, b);
        for (i, row) in wide.chunks(10).enumerate() {
            assert!(
                row[..3]
                    .iter()
                    .zip(&expected[i * 3..])
                    .all(|(g, e)| (g - e).abs() < 1e-12)
            );
            assert!(row[3..].iter().all(|v| *v == 7.0));
        }
    }
}
