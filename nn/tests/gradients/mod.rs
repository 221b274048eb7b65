//! Every layer's gradients, of weights and inputs, against central differences in f64.
//!
//! One table, in `cases.rs`: a layer joins with one entry. The objective is a fixed random weighting of all
//! outputs, so that no derivative hides behind a symmetry.

mod cases;

use nn::Stream;
use nn::autodiff::{Grads, Layout, Params, Shape, Shard, Tape, Var, Want, reduce};
use nn::batch::{Lens, Side};
use nn::layers::*;

use cases::{CASES, Forward, U};

/// Time, lengths, inputs: odd shapes, padding, batch 1, length 1.
const SHAPES: &[(&[usize], usize)] = &[
    (&[1], 1),
    (&[5, 3, 1], 3),
    (&[1, 1], 9),
    (&[7], 2),
    (&[2, 6, 6, 4, 1], 17),
];

fn noise(name: &str, n: usize, scale: f64) -> Vec<f64> {
    let s = Stream::new(11, name);
    (0..n as u64)
        .map(|i| scale * (2.0 * s.uniform(i) - 1.0))
        .collect()
}

/// The objective, with its gradients left in `shard`.
#[allow(clippy::too_many_arguments)]
fn objective(
    forward: &Forward,
    layout: &Layout,
    p: &Params<f64>,
    x: &[f64],
    shape: Shape,
    lens: &Lens,
    want: Want,
    shard: &mut Shard<f64>,
) -> (f64, Var) {
    let tape = &mut shard.tape;
    tape.reset(want);
    if want.weights {
        shard.grads.reset(layout)
    } else {
        shard.grads.forget()
    }
    let input = tape.input(shape, x);
    let outs = forward(tape, p, input, lens);
    let mut value = 0.0;
    for (k, out) in outs.into_iter().enumerate() {
        let weights = noise(&format!("objective {k}"), tape.shape(out).len(), 1.0);
        value += tape
            .get(out)
            .iter()
            .zip(&weights)
            .map(|(y, w)| y * w)
            .sum::<f64>();
        if want != Want::NOTHING {
            tape.seed(out)
                .iter_mut()
                .zip(&weights)
                .for_each(|(s, w)| *s += w);
        }
    }
    tape.backward(p, &mut shard.grads);
    (value, input)
}

fn close(what: &str, i: usize, exact: f64, numeric: f64) {
    assert!(
        (exact - numeric).abs() <= 1e-4 * exact.abs().max(numeric.abs()) + 1e-7,
        "{what}[{i}]: derived {exact}, by differences {numeric}"
    );
}

#[test]
fn derived_gradients_agree_with_differences() {
    for case in CASES {
        for &(lens, inputs) in SHAPES {
            let lens: Lens = lens.into();
            let shape = Shape::new(*lens.iter().max().unwrap(), lens.len(), inputs);
            let mut layout = Layout::default();
            let forward = (case.build)(inputs, &mut layout);
            let mut p: Params<f64> = Params::init(&layout, 5);
            // Biases and initial states start at zero; move them, or half the derivatives are trivial.
            p.trained
                .iter_mut()
                .zip(noise("weights", layout.trained(), 0.3))
                .for_each(|(w, n)| *w += n);
            let mut x = noise("input", shape.len(), 1.5);
            let what = format!("{} {shape:?} {lens:?}", case.name);

            let mut shard = Shard::default();
            let (_, input) = objective(
                &forward,
                &layout,
                &p,
                &x,
                shape,
                &lens,
                Want::BOTH,
                &mut shard,
            );
            let dx = shard.tape.grad(input).to_vec();
            let mut dw = Vec::new();
            if shard.tape.want().weights {
                reduce(std::slice::from_ref(&shard), &layout, &mut dw).unwrap();
            }
            let mut shard = Shard::default();
            let mut value = |p: &Params<f64>, x: &[f64]| {
                objective(
                    &forward,
                    &layout,
                    p,
                    x,
                    shape,
                    &lens,
                    Want::NOTHING,
                    &mut shard,
                )
                .0
            };
            let h = 1e-5;
            for i in 0..x.len() {
                let at = x[i];
                let mut move_to = |to: f64, x: &mut Vec<f64>| {
                    x[i] = to;
                    value(&p, x)
                };
                let numeric = (move_to(at + h, &mut x) - move_to(at - h, &mut x)) / (2.0 * h);
                x[i] = at;
                close(&format!("{what} input"), i, dx[i], numeric);
            }
            for (i, derived) in dw.iter().enumerate() {
                let at = p.trained[i];
                let mut move_to = |to: f64| {
                    p.trained[i] = to;
                    value(&p, &x)
                };
                let numeric = (move_to(at + h) - move_to(at - h)) / (2.0 * h);
                p.trained[i] = at;
                close(&format!("{what} weight"), i, *derived, numeric);
            }
        }
    }
}

#[test]
fn asking_for_one_gradient_gives_the_same_as_asking_for_both() {
    for case in CASES {
        let (lens, shape): (Lens, _) = ([4usize, 2].into(), Shape::new(4, 2, 6));
        let mut layout = Layout::default();
        let forward = (case.build)(6, &mut layout);
        let (p, x) = (Params::init(&layout, 5), noise("input", shape.len(), 1.0));
        let run = |want: Want| {
            let mut shard = Shard::default();
            let (_, input) = objective(&forward, &layout, &p, &x, shape, &lens, want, &mut shard);
            let dx = shard.tape.grad(input).to_vec();
            let mut dw = Vec::new();
            if shard.tape.want().weights {
                reduce(std::slice::from_ref(&shard), &layout, &mut dw).unwrap();
            }
            (dx, dw)
        };
        let (both, weights, input) = (run(Want::BOTH), run(Want::WEIGHTS), run(Want::INPUT));
        assert_eq!(both.0, input.0, "{}", case.name);
        assert_eq!(both.1, weights.1, "{}", case.name);
        assert!(
            weights.0.is_empty() && input.1.is_empty(),
            "{}: a gradient nobody asked for",
            case.name
        );
    }
}

#[test]
fn gradients_ignore_what_lies_beyond_an_items_length() {
    for case in CASES.iter().filter(|c| {
        [
            "rnn",
            "gru",
            "lstm",
            "attention pooling",
            "mean pooling",
            "word windows",
        ]
        .contains(&c.name)
    }) {
        let (lens, shape): (Lens, _) = ([2usize, 5].into(), Shape::new(5, 2, 3));
        let mut layout = Layout::default();
        let forward = (case.build)(3, &mut layout);
        let p = Params::init(&layout, 5);
        let run = |filler: f64| {
            let mut x = noise("input", shape.len(), 1.0);
            (2..5).for_each(|t| x[t * 6..t * 6 + 3].fill(filler));
            let mut shard = Shard::default();
            let (value, input) = objective(
                &forward,
                &layout,
                &p,
                &x,
                shape,
                &lens,
                Want::BOTH,
                &mut shard,
            );
            let dx = shard.tape.grad(input).to_vec();
            assert!(
                (2..5).all(|t| dx[t * 6..t * 6 + 3].iter().all(|d| *d == 0.0)),
                "{}: a gradient in the padding",
                case.name
            );
            let mut dw = Vec::new();
            if shard.tape.want().weights {
                reduce(std::slice::from_ref(&shard), &layout, &mut dw).unwrap();
            }
            (value, dx, dw)
        };
        assert_eq!(run(0.0), run(123.0), "{}", case.name);
    }
}

#[test]
fn a_table_collects_the_gradients_of_repeated_tokens() {
    let mut layout = Layout::default();
    let e = Embedding::new(&mut layout, "e", 4, 2, U);
    let p: Params<f64> = Params::init(&layout, 1);
    let mut shard: Shard<f64> = Shard {
        tape: Tape::default(),
        grads: Grads::default(),
    };
    shard.tape.reset(Want::BOTH);
    shard.grads.reset(&layout);
    let y = e.forward(&mut shard.tape, &p, &[2, 0, 2, 3, 2, 0], 3, 2, Side::Source);
    assert_eq!(shard.tape.get(y)[..2], p.view(e.table).row(2).to_vec());
    shard
        .tape
        .seed(y)
        .iter_mut()
        .enumerate()
        .for_each(|(i, s)| *s = i as f64);
    shard.tape.backward(&p, &mut shard.grads);
    let mut dw = Vec::new();
    reduce(&[shard], &layout, &mut dw).unwrap();
    assert_eq!(
        dw,
        [
            2.0 + 10.0,
            3.0 + 11.0,
            0.0,
            0.0,
            0.0 + 4.0 + 8.0,
            1.0 + 5.0 + 9.0,
            6.0,
            7.0
        ]
    );
}
