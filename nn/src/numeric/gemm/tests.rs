//! The product against its definition, in every layout; a row's bits whatever its company.

use crate::numeric::gemm::*;

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
        (13, 70, 512),
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
            let bias = numbers(n, 7);
            let mut biased = vec![9.0; m * n];
            gemm_bias(&mut biased, a, b, &bias);
            for (i, (got, one)) in biased.iter().zip(&expected).enumerate() {
                assert!((got - one - bias[i % n]).abs() < 1e-9, "bias {m} {n} {k}");
            }
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
    // The second is larger than every block.
    for (m, n, k) in [(50, 80, 600), (100, 1100, 512)] {
        let x: Vec<f32> = numbers(m * k, 3).iter().map(|v| *v as f32).collect();
        let y: Vec<f32> = numbers(k * n, 4).iter().map(|v| *v as f32).collect();
        let turned: Vec<f32> = (0..k * n).map(|i| y[i % k * n + i / k]).collect();
        let (a, b) = (Mat::new(&x, m, k), Mat::new(&y, k, n));
        let bias: Vec<f32> = numbers(n, 9).iter().map(|v| *v as f32).collect();
        let (mut all, mut biased) = (vec![0.0; m * n], vec![0.0; m * n]);
        gemm(Into::Set, &mut all, a, b);
        gemm_bias(&mut biased, a, b, &bias);
        for b in [b, Mat::new(&turned, n, k).t()] {
            let (mut packed, mut parallel) = (Packed::default(), Packed::default());
            packed.pack(b);
            parallel.pack_in_parallel(b);
            for packed in [packed, parallel] {
                let mut same = vec![0.0; m * n];
                gemm_packed(Into::Set, &mut same, a, &packed);
                assert!(all == same, "{m} {n} {k}");
                gemm_packed_bias(&mut same, a, &packed, &bias);
                assert!(biased == same, "{m} {n} {k} with a bias");
            }
        }
        for r in 0..m {
            let mut one = vec![0.0; n];
            gemm(Into::Set, &mut one, Mat::new(&x[r * k..], 1, k), b);
            assert!(one == all[r * n..(r + 1) * n], "row {r} of {m} {n} {k}");
        }
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
