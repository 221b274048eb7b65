//! Step by step, and objectives on states: what attacks that run as the sequence arrives differentiate.

use crate::common::{cases, row};
use ndarray::{Array2, Array3, ArrayView1};
use nn::autodiff::{Params, Tape, Want};
use nn::batch::{Batch, Example, Input, Sequence, Target};
use nn::models::{CellKind, GRU, LSTM, Model, RNN, Reads, RecurrentSpec};
use nn::objectives::{Objective, StateKind, StateTerm};
use nn::stepping::Stepper;
use nn::victim::{Neural, Victim};
use nn::{Error, Stream};

fn model(cell: &'static CellKind, layers: usize, learned_state: bool) -> Model {
    Model::new(&RecurrentSpec {
        layers,
        learned_state,
        hidden: 5,
        ..RecurrentSpec::new(cell, Reads::Vectors { dim: 3 }, 4, 2)
    })
    .unwrap()
}

fn noise(name: &str, n: usize) -> Vec<f64> {
    let s = Stream::new(8, name);
    (0..n as u64).map(|i| s.normal(i)).collect()
}

fn moved(model: &Model) -> Params<f64> {
    let mut params = model.init::<f64>(2);
    let n = params.trained.len();
    params
        .trained
        .iter_mut()
        .zip(noise("weights", n))
        .for_each(|(w, d)| *w += 0.2 * d);
    params
}

fn one(numbers: &[f64]) -> ArrayView1<'_, f64> {
    numbers.into()
}

fn unlabelled(input: &Sequence) -> Example {
    Example {
        input: input.clone(),
        target: Target::None,
    }
}

#[test]
fn steps_add_up_to_the_whole_sequence() {
    for (cell, layers, learned) in [(&RNN, 1, false), (&GRU, 2, true), (&LSTM, 2, true)] {
        let model = model(cell, layers, learned);
        let params: Params<f32> = moved(&model).cast();
        let victim = Neural::new(&model, &params).unwrap();
        let data: Vec<f32> = noise("signal", 6 * 3).iter().map(|x| *x as f32).collect();
        let whole = Sequence::of_rows(3, data.clone());
        let states = victim.states(&[&unlabelled(&whole)]).unwrap().remove(0);
        let mut stepper = Stepper::new(&model, &params).unwrap();
        let mut s = stepper.start().to_vec();
        for (t, x) in data.chunks(3).enumerate() {
            s = stepper
                .step(row(&s), row(x))
                .unwrap()
                .into_raw_vec_and_offset()
                .0;
            let step = |m: &Array2<f32>| m.row(t).to_vec();
            let expected: Vec<f32> = states
                .iter()
                .flat_map(|l| [Some(step(&l.h)), l.c.as_ref().map(step)])
                .flatten()
                .flatten()
                .collect();
            assert_eq!(s, expected, "{cell:?} step {t}");
        }
        assert_eq!(
            stepper.logits(row(&s)).unwrap(),
            victim.logits(&[&whole]).unwrap()[0],
            "{cell:?}"
        );
        assert_eq!(stepper.queries().forwards, 7);
    }
}

#[test]
fn derivatives_of_a_step_agree_with_differences() {
    for (cell, layers) in [(&RNN, 1), (&GRU, 1), (&LSTM, 1), (&LSTM, 2)] {
        let model = model(cell, layers, false);
        let params = moved(&model);
        let mut stepper = Stepper::new(&model, &params).unwrap();
        let n = stepper.state_len();
        let (s, x, v) = (noise("state", n), noise("input", 3), noise("v", n));
        let j = stepper
            .jacobian(s.as_slice().into(), x.as_slice().into())
            .unwrap();
        let (h, mut fx, mut fs) = (1e-6, vec![0.0; n * 3], vec![0.0; n * n]);
        let mut column =
            |s: (&[f64], &[f64]), x: (&[f64], &[f64]), out: &mut [f64], k: usize, width: usize| {
                let (up, down) = (
                    stepper.step(row(s.0), row(x.0)).unwrap(),
                    stepper.step(row(s.1), row(x.1)).unwrap(),
                );
                (0..n).for_each(|i| out[i * width + k] = (up[[0, i]] - down[[0, i]]) / (2.0 * h));
            };
        let nudge = |v: &[f64], k: usize, by: f64| {
            v.iter()
                .enumerate()
                .map(|(i, x)| if i == k { x + by } else { *x })
                .collect::<Vec<_>>()
        };
        (0..3).for_each(|k| {
            column(
                (&s, &s),
                (&nudge(&x, k, h), &nudge(&x, k, -h)),
                &mut fx,
                k,
                3,
            )
        });
        (0..n).for_each(|k| {
            column(
                (&nudge(&s, k, h), &nudge(&s, k, -h)),
                (&x, &x),
                &mut fs,
                k,
                n,
            )
        });
        let close = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-7)
        };
        assert!(
            close(j.input.as_slice().unwrap(), &fx) && close(j.state.as_slice().unwrap(), &fs),
            "{cell:?}"
        );
        let times = |m: &[f64], width: usize| {
            (0..width)
                .map(|k| (0..n).map(|i| m[i * width + k] * v[i]).sum())
                .collect::<Vec<f64>>()
        };
        let (dx, ds) = stepper.vjp(row(&s), row(&x), row(&v)).unwrap();
        let (dx, ds) = (dx.as_slice().unwrap(), ds.as_slice().unwrap());
        assert!(
            close(dx, &times(&fx, 3)) && close(ds, &times(&fs, n)),
            "{cell:?}"
        );
        let (a, b) = (noise("ds", n), noise("dx", 3));
        let product: Vec<f64> = (0..n)
            .map(|i| {
                (0..n).map(|k| fs[i * n + k] * a[k]).sum::<f64>()
                    + (0..3).map(|k| fx[i * 3 + k] * b[k]).sum::<f64>()
            })
            .collect();
        let (a, b) = (a.as_slice().into(), b.as_slice().into());
        let tangent = stepper.jvp(s.as_slice().into(), x.as_slice().into(), a, b);
        assert!(
            close(tangent.unwrap().as_slice().unwrap(), &product),
            "{cell:?}"
        );
        let d = [0.7, -1.3];
        let gradient = stepper.logits_vjp(row(&s), row(&d)).unwrap();
        for (k, derived) in gradient.iter().enumerate() {
            let mut at = |by: f64| {
                stepper
                    .logits(row(&nudge(&s, k, by)))
                    .unwrap()
                    .iter()
                    .zip(d)
                    .map(|(z, d)| z * d)
                    .sum::<f64>()
            };
            assert!(
                (derived - (at(h) - at(-h)) / (2.0 * h)).abs() < 1e-7,
                "{cell:?} {k}"
            );
        }
    }
}

#[test]
fn a_step_refuses_what_is_not_a_state_or_an_input() {
    let model = model(&LSTM, 2, false);
    let params: Params<f64> = moved(&model);
    let mut stepper = Stepper::new(&model, &params).unwrap();
    let (n, s, x) = (stepper.state_len(), stepper.start().to_vec(), vec![0.5; 3]);
    assert_eq!(n, 16);
    let printed = |e: Error| e.to_string();
    assert_eq!(
        printed(stepper.step(row(&[]), row(&[])).unwrap_err()),
        "list of states is empty: give at least one"
    );
    assert_eq!(
        printed(stepper.step(row(&s[1..]), row(&x)).unwrap_err()),
        "states: expected 16, got 15"
    );
    assert_eq!(
        printed(stepper.step(row(&s), row(&x[1..])).unwrap_err()),
        "inputs: expected 3, got 2"
    );
    for (bad, word) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let expected = |what: &str, at: usize| {
            format!("{what} holds {word} at index {at}: expected a finite number")
        };
        let (mut s, mut x, mut v) = (s.clone(), x.clone(), vec![1.0; n]);
        x[1] = bad;
        assert_eq!(
            printed(stepper.step(row(&s), row(&x)).unwrap_err()),
            expected("input", 1)
        );
        x[1] = 0.0;
        v[3] = bad;
        assert_eq!(
            printed(stepper.vjp(row(&s), row(&x), row(&v)).unwrap_err()),
            expected("v", 3)
        );
        assert_eq!(
            printed(stepper.jvp(one(&s), one(&x), one(&v), one(&x)).unwrap_err()),
            expected("ds", 3)
        );
        s[2] = bad;
        assert_eq!(
            printed(stepper.logits(row(&s)).unwrap_err()),
            expected("state", 2)
        );
    }
    assert_eq!(
        printed(stepper.vjp(row(&s), row(&x), row(&[1.0])).unwrap_err()),
        "v: expected 16, got 1"
    );
    assert_eq!(
        printed(stepper.logits_vjp(row(&s), row(&[1.0])).unwrap_err()),
        "d: expected 2, got 1"
    );
    assert_eq!(stepper.queries().backwards, 0);
}

#[test]
fn models_that_look_at_everything_cannot_step() {
    for case in cases()
        .iter()
        .filter(|c| ["bilstm with attention", "transformer", "kim cnn"].contains(&c.name))
    {
        let model = case.model();
        let params: Params<f32> = model.init(1);
        assert!(
            matches!(Stepper::new(&model, &params), Err(Error::Missing { .. })),
            "{}",
            case.name
        );
    }
}

/// RNN-Test's objectives, on a language model: states, decision, and their sum.
#[test]
fn objectives_on_states_and_ranks_agree_with_differences() {
    let list = cases();
    let case = list.iter().find(|c| c.name == "language model").unwrap();
    let model = case.model();
    let params = moved(&model);
    let term = |kind, step, unit, weight| StateTerm {
        layer: 1,
        kind,
        step,
        unit,
        weight,
    };
    let states = Objective::States(vec![
        term(StateKind::Hidden, 1, None, 1.0),
        term(StateKind::Cell, 2, None, -1.0),
        term(StateKind::Gate('f'), 2, Some(3), 0.5),
        StateTerm {
            layer: 0,
            ..term(StateKind::Gate('o'), 0, Some(1), 2.0)
        },
    ]);
    let ranks = Objective::Ranks { step: 2, last: 3 };
    let tokens = Example {
        input: Sequence::Tokens(vec![3, 1, 7, 2]),
        target: Target::Tokens(vec![1, 7, 2, 5]),
    };
    let b: Batch<f64> = Batch::new(&[&tokens]).unwrap();
    for objective in [
        states.clone(),
        ranks.clone(),
        Objective::Hinge,
        Objective::Sum(vec![
            (0.5, states),
            (2.0, ranks),
            (1.0, Objective::CrossEntropy),
        ]),
    ] {
        let run = |b: &Batch<f64>, want: Want| {
            let mut shard = nn::autodiff::Shard::<f64>::default();
            shard.tape.reset(want);
            let out = model.forward(&mut shard.tape, &params, b).unwrap();
            let value = objective.apply(&mut shard.tape, &out, b, 1.0).unwrap()[0];
            let x = shard.tape.get(out.input).to_vec();
            shard.tape.backward(&params, &mut shard.grads);
            (value, x, shard.tape.grad(out.input).to_vec())
        };
        let (_, x, dx) = run(&b, Want::INPUT);
        for i in 0..x.len() {
            let at = |by: f64| {
                let mut moved = x.clone();
                moved[i] += by;
                let moved = Array3::from_shape_vec((b.time(), b.items(), 4), moved);
                run(
                    &Batch {
                        input: Input::Vectors(moved.unwrap()),
                        ..b.clone()
                    },
                    Want::NOTHING,
                )
                .0
            };
            let numeric = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!(
                (dx[i] - numeric).abs() < 1e-7 * (1.0 + numeric.abs()),
                "{objective:?} {i}: {} {numeric}",
                dx[i]
            );
        }
    }
    let mut tape = Tape::default();
    tape.reset(Want::NOTHING);
    let out = model.forward(&mut tape, &params, &b).unwrap();
    for wrong in [
        Objective::Logit(12),
        Objective::Ranks { step: 4, last: 3 },
        Objective::States(vec![term(StateKind::Gate('q'), 0, None, 1.0)]),
        Objective::States(vec![term(StateKind::Hidden, 4, None, 1.0)]),
    ] {
        assert!(wrong.apply(&mut tape, &out, &b, 1.0).is_err(), "{wrong:?}");
    }
}
