//! One thread, the shapes that the bench of models has: medians of rounds in which the sides take turns, by wall time.

use std::hint::black_box;
use std::time::Instant;

use nn::numeric::gemm::{Into, Mat};

/// Rows, inner dimension and columns, and where they come from.
const SHAPES: [(&str, [usize; 3]); 5] = [
    ("1024 x 1024 x 1024", [1024, 1024, 1024]),
    ("language model, gates", [400, 400, 800]),
    ("language model, output", [400, 200, 10_000]),
    ("transformer, inner layer", [2048, 128, 512]),
    ("LSTM of 64, a step", [24, 64, 256]),
];
const ROUNDS: usize = 21;

struct Operands {
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    shape: [usize; 3],
}

type Product = fn(&mut Operands);
const SIDES: [(&str, Product); 3] = [
    ("ours", ours),
    ("gemm", gemm_crate),
    ("matrixmultiply", matrixmultiply_crate),
];

fn ours(o: &mut Operands) {
    let [m, k, n] = o.shape;
    nn::numeric::gemm::gemm(
        Into::Set,
        &mut o.c,
        Mat::new(&o.a, m, k),
        Mat::new(&o.b, k, n),
    );
}

fn gemm_crate(o: &mut Operands) {
    let [m, k, n] = o.shape.map(|x| x as isize);
    // SAFETY: the three hold as many numbers as their shapes say, row after row.
    unsafe {
        gemm::gemm(
            m as usize,
            n as usize,
            k as usize,
            o.c.as_mut_ptr(),
            1,
            n,
            false,
            o.a.as_ptr(),
            1,
            k,
            o.b.as_ptr(),
            1,
            n,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

fn matrixmultiply_crate(o: &mut Operands) {
    let [m, k, n] = o.shape;
    let (a, b, c) = (o.a.as_ptr(), o.b.as_ptr(), o.c.as_mut_ptr());
    // SAFETY: as above.
    unsafe {
        matrixmultiply::sgemm(
            m, k, n, 1.0, a, k as isize, 1, b, n as isize, 1, 0.0, c, n as isize, 1,
        );
    }
}

fn noise(n: usize) -> Vec<f32> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn main() {
    println!("GFLOP/s of one thread, medians of {ROUNDS} rounds, and ours / theirs");
    for (name, shape @ [m, k, n]) in SHAPES {
        let flops = 2.0 * (m * k * n) as f64;
        let repeats = (1e9 / flops).ceil() as usize;
        let mut operands = Operands {
            a: noise(m * k),
            b: noise(k * n),
            c: vec![0.0; m * n],
            shape,
        };
        let mut times = SIDES.map(|_| Vec::new());
        let mut made: Vec<Vec<f32>> = Vec::new();
        for round in 0..ROUNDS {
            for ((_, product), times) in SIDES.iter().zip(&mut times) {
                let start = Instant::now();
                for _ in 0..repeats {
                    product(black_box(&mut operands));
                }
                times.push(start.elapsed().as_secs_f64() / repeats as f64);
                if round == 0 {
                    made.push(operands.c.clone());
                }
            }
        }
        for (theirs, (side, _)) in made.iter().zip(SIDES).skip(1) {
            let most = theirs
                .iter()
                .zip(&made[0])
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            assert!(most < 1e-2, "{side} differs by {most}");
        }
        let rates = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            flops / times[ROUNDS / 2] / 1e9
        });
        let sides: Vec<String> = SIDES
            .iter()
            .zip(rates)
            .map(|((side, _), rate)| format!("{side} {rate:.1}"))
            .collect();
        println!(
            "{name}: {}; {:.2} and {:.2}",
            sides.join(", "),
            rates[0] / rates[1],
            rates[0] / rates[2]
        );
    }
}
