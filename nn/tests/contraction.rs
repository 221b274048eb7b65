//! Matrix measures, the condition of Example 1, and the envelope around two runs.

use ndarray::{Array1, Array2, ArrayView2, array};
use nn::autodiff::Params;
use nn::models::{CellKind, GRU, LSTM, Model, RNN, Reads, RecurrentSpec};
use nn::stepping::{Envelope, Stepper, contraction, example_1, measure, norm};
use nn::{Error, Stream};

use crate::common::row;

fn model(cell: &'static CellKind, units: usize) -> Model {
    let spec = RecurrentSpec::new(cell, Reads::Vectors { dim: 2 }, units, 2);
    Model::new(&spec).unwrap()
}

fn weights(model: &Model, set: &[(&str, Vec<f64>)]) -> Params<f64> {
    let mut params: Params<f64> = model.init(1);
    for (name, values) in set {
        let span = model.layout().find(name).unwrap();
        let values = ArrayView2::from_shape((span.rows, span.cols), values);
        params.set(span, values.unwrap()).unwrap();
    }
    params
}

#[test]
fn measures_and_norms_by_hand() {
    let m = array![[-3.0, 1.0, -1.0], [2.0, -5.0, 0.5], [0.0, 0.25, -1.0]];
    assert_eq!(measure(m.view()), -0.75);
    assert_eq!(norm(m.view()), 7.5);
    // The measure is the slope of the norm at the identity: (|I + h M| - 1) / h as h goes to 0.
    let h = 1e-6;
    let near = Array2::eye(3) + h * &m;
    assert!(((norm(near.view()) - 1.0) / h - measure(m.view())).abs() < 1e-6);
}

/// Where `mu(I - Fs) < 0` between two states, a step takes them further apart: Theorems 1 and 3.
#[test]
fn states_part_where_the_measure_is_negative() {
    let model = model(&RNN, 3);
    let u = vec![2.5, 0.1, -0.2, 0.1, 3.0, 0.1, -0.1, 0.2, 2.0];
    let params = weights(
        &model,
        &[
            ("recurrent.0.0.recurrent", u),
            ("recurrent.0.0.bias", vec![0.0; 3]),
        ],
    );
    let mut stepper = Stepper::new(&model, &params).unwrap();
    let s = Stream::new(2, "growth");
    let mut parted = 0;
    for i in 0..400u64 {
        let draw = |k: u64| s.item(i).normal(k);
        let h1: Vec<f64> = (0..3).map(|k| 0.15 * draw(k)).collect();
        let h2: Vec<f64> = (0..3)
            .map(|k| h1[k as usize] + 0.05 * draw(3 + k))
            .collect();
        let x = array![0.1 * draw(6), 0.1 * draw(7)];
        let between = |l: f64| -> Array1<f64> {
            let pairs = h1.iter().zip(&h2);
            pairs.map(|(a, b)| a + l * (b - a)).collect()
        };
        let worst = (0..=20)
            .map(|k| {
                contraction(&mut stepper, between(f64::from(k) / 20.0).view(), x.view()).unwrap()
            })
            .fold(f64::NEG_INFINITY, f64::max);
        if worst >= -0.05 {
            continue;
        }
        let far = |a: &[f64], b: &[f64]| {
            let pairs = a.iter().zip(b);
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let (one, two) = (
            stepper.step(row(&h1), row(x.as_slice().unwrap())).unwrap(),
            stepper.step(row(&h2), row(x.as_slice().unwrap())).unwrap(),
        );
        let (one, two) = (one.as_slice().unwrap(), two.as_slice().unwrap());
        assert!(far(one, two) > far(&h1, &h2), "{worst}");
        parted += 1;
    }
    assert!(parted > 100, "{parted}");
}

/// The condition asks `W_i x + b_i` to be negative, and bounds the unit's argument from one side only:
/// with `U = 5`, `W x + b = -1` it holds, and at `h = 1` the measure is nearly 1.
#[test]
fn example_1_as_printed_does_not_make_the_measure_negative() {
    let model = model(&RNN, 1);
    let params = weights(
        &model,
        &[
            ("recurrent.0.0.recurrent", vec![5.0]),
            ("recurrent.0.0.input", vec![0.5, 0.0]),
            ("recurrent.0.0.bias", vec![-1.5]),
        ],
    );
    let x = array![1.0, 0.0];
    let slack = example_1(&model, &params, x.view()).unwrap();
    assert_eq!(slack.len(), 1);
    assert!((slack[0] - (10.0 - (10.0 - 1.0 + 0.8))).abs() < 1e-12);
    assert!(slack[0] > 0.0, "the condition holds");
    let mut stepper = Stepper::new(&model, &params).unwrap();
    let exact = |h: f64| 1.0 - 5.0 * (1.0 - (5.0 * h - 1.0f64).tanh().powi(2));
    for h in [0.2, 1.0] {
        let mu = contraction(&mut stepper, array![h].view(), x.view()).unwrap();
        assert!((mu - exact(h)).abs() < 1e-12);
    }
    assert!(exact(0.2) < 0.0 && exact(1.0) > 0.9);
}

#[test]
fn example_1_is_about_vanilla_networks_of_any_size() {
    let wide = model(&RNN, 4);
    let params: Params<f64> = wide.init(3);
    assert_eq!(
        example_1(&wide, &params, array![0.1, 0.2].view())
            .unwrap()
            .len(),
        4
    );
    assert_eq!(
        example_1(&wide, &params, array![0.1].view())
            .unwrap_err()
            .to_string(),
        "input: expected 2, got 1"
    );
    let gru = model(&GRU, 4);
    let params: Params<f64> = gru.init(3);
    assert!(matches!(
        example_1(&gru, &params, array![0.1, 0.2].view()),
        Err(Error::Missing { .. })
    ));
}

#[test]
fn two_runs_stay_inside_their_envelope() {
    for cell in [&RNN, &GRU, &LSTM] {
        let model = model(cell, 4);
        let mut params: Params<f64> = model.init(5);
        let s = Stream::new(5, "envelope");
        let moved = params.trained.iter_mut().enumerate();
        moved.for_each(|(k, w)| *w += 0.4 * s.normal(k as u64));
        let mut envelope = Envelope::new(&model, &params, 8).unwrap();
        let mut tight = false;
        for k in 0..40u64 {
            let x: Array1<f64> = (0..2).map(|c| s.item(k).normal(c)).collect();
            let y: Array1<f64> = x.iter().map(|x| x + 0.1 * s.item(k).normal(9)).collect();
            let (bound, distance) = envelope.push(x.view(), y.view()).unwrap();
            assert!(distance <= bound * (1.0 + 1e-6), "{cell:?} step {k}");
            tight |= distance > 0.1 * bound;
        }
        assert!(tight, "{cell:?}: a bound that is never near bounds nothing");
    }
}
