//! Every model: gradients against differences, an item alone against a batch, `f32` against `f64`, honest bills.

use crate::common::cases;
use ndarray::{Array2, Array3};
use nn::autodiff::{Params, Shard, Tape, Want, reduce};
use nn::batch::{Batch, Example, Input, Sequence, Target};
use nn::models::{KimCnnSpec, Model, Reads};
use nn::objectives::Objective;
use nn::victim::{Neural, Queries, Victim};
use nn::{Error, Real, Stream};

fn batch<T: Real>(examples: &[Example]) -> Batch<T> {
    Batch::new(&examples.iter().collect::<Vec<_>>()).unwrap()
}

/// The sum of losses, the gradient of the weights, and the gradient of the input vectors.
fn gradients<T: Real>(
    model: &Model,
    params: &Params<T>,
    batch: &Batch<T>,
    objective: &Objective,
) -> (f64, Vec<T>, Vec<T>) {
    let mut shard = Shard::default();
    shard.tape.reset(Want::BOTH);
    shard.grads.reset(model.layout());
    let out = model.forward(&mut shard.tape, params, batch).unwrap();
    let value = objective
        .apply(&mut shard.tape, &out, batch, 1.0)
        .unwrap()
        .iter()
        .sum();
    shard.tape.backward(params, &mut shard.grads);
    let (dx, mut dw) = (shard.tape.grad(out.input).to_vec(), Vec::new());
    reduce(&[shard], model.layout(), &mut dw).unwrap();
    (value, dw, dx)
}

fn value(model: &Model, params: &Params<f64>, batch: &Batch<f64>, objective: &Objective) -> f64 {
    let mut tape = Tape::default();
    tape.reset(Want::NOTHING);
    let out = model.forward(&mut tape, params, batch).unwrap();
    objective
        .apply(&mut tape, &out, batch, 1.0)
        .unwrap()
        .iter()
        .sum()
}

fn close(what: &str, exact: f64, numeric: f64) {
    assert!(
        (exact - numeric).abs() <= 1e-4 * exact.abs().max(numeric.abs()) + 1e-7,
        "{what}: derived {exact}, by differences {numeric}"
    );
}

/// The batch with its input as the vectors that the model reads, which may then be moved.
fn as_vectors(model: &Model, params: &Params<f64>, b: &Batch<f64>) -> Batch<f64> {
    let mut tape = Tape::default();
    tape.reset(Want::NOTHING);
    let out = model.forward(&mut tape, params, b).unwrap();
    let data = tape.get(out.input).to_vec();
    let dim = data.len() / (b.time() * b.items());
    let rows = Array3::from_shape_vec((b.time(), b.items(), dim), data);
    Batch {
        input: Input::Vectors(rows.unwrap()),
        ..b.clone()
    }
}

#[test]
fn gradients_agree_with_differences() {
    for case in cases() {
        let model = case.model();
        let examples = case.examples(3);
        let mut params: Params<f64> = model.init(1);
        let noise = Stream::new(2, "move");
        params
            .trained
            .iter_mut()
            .enumerate()
            .for_each(|(i, w)| *w += 0.2 * noise.normal(i as u64));
        let b: Batch<f64> = batch(&examples);
        for objective in [
            Objective::CrossEntropy,
            Objective::Margin,
            Objective::Logit(1),
        ] {
            let (_, dw, _) = gradients(&model, &params, &b, &objective);
            let h = 1e-5;
            for (i, derived) in dw.iter().enumerate() {
                let at = params.trained[i];
                let mut to = |x: f64| {
                    params.trained[i] = x;
                    value(&model, &params, &b, &objective)
                };
                let numeric = (to(at + h) - to(at - h)) / (2.0 * h);
                params.trained[i] = at;
                close(
                    &format!("{} {objective:?} weight {i}", case.name),
                    *derived,
                    numeric,
                );
            }
            let mut moved = as_vectors(&model, &params, &b);
            assert_eq!(
                gradients(&model, &params, &moved, &objective).2,
                gradients(&model, &params, &b, &objective).2,
                "{}: ids and their vectors",
                case.name
            );
            // Repeated characters tie for the maximum, where differences see half of each; move them apart.
            if let Input::Vectors(v) = &mut moved.input {
                v.iter_mut()
                    .enumerate()
                    .for_each(|(i, v)| *v += 0.01 * noise.normal(1_000_000 + i as u64));
            }
            let (_, _, dx) = gradients(&model, &params, &moved, &objective);
            for (i, exact) in dx.into_iter().enumerate() {
                let mut to = |step: f64| {
                    if let Input::Vectors(v) = &mut moved.input {
                        v.as_slice_mut().unwrap()[i] += step;
                    }
                    value(&model, &params, &moved, &objective)
                };
                let numeric = (to(h) - to(-2.0 * h)) / (2.0 * h);
                to(h);
                close(
                    &format!("{} {objective:?} input {i}", case.name),
                    exact,
                    numeric,
                );
            }
        }
    }
}

#[test]
fn single_precision_follows_double() {
    for case in cases() {
        let (model, examples) = (case.model(), case.examples(6));
        let params: Params<f32> = model.init(1);
        let (v32, dw32, dx32) =
            gradients(&model, &params, &batch(&examples), &Objective::CrossEntropy);
        let (v64, dw64, dx64) = gradients(
            &model,
            &params.cast::<f64>(),
            &batch(&examples),
            &Objective::CrossEntropy,
        );
        assert!(
            (v32 - v64).abs() < 1e-4 * v64.abs(),
            "{}: {v32} {v64}",
            case.name
        );
        for (a, b) in dw32.iter().zip(&dw64).chain(dx32.iter().zip(&dx64)) {
            assert!(
                (f64::from(*a) - b).abs() < 2e-4 * (b.abs() + 0.1),
                "{}: {a} {b}",
                case.name
            );
        }
    }
}

#[test]
fn an_item_alone_has_the_bits_it_has_in_company() {
    for case in cases().iter().filter(|c| c.name != "lstm through padding") {
        let (model, examples) = (case.model(), case.examples(40));
        let params = model.init(3);
        let victim = Neural::new(&model, &params).unwrap();
        let together = victim
            .gradients(
                &examples.iter().collect::<Vec<_>>(),
                &Objective::CrossEntropy,
            )
            .unwrap();
        for (e, all) in examples.iter().zip(together) {
            let alone = victim
                .gradients(&[e], &Objective::CrossEntropy)
                .unwrap()
                .remove(0);
            assert_eq!(alone.logits, all.logits, "{}", case.name);
            assert_eq!(alone.input, all.input, "{}", case.name);
        }
        assert_eq!(
            victim.queries(),
            Queries {
                forwards: 80,
                backwards: 80
            }
        );
    }
}

#[test]
fn padding_read_as_text_changes_the_answer() {
    let list = cases();
    let case = list
        .iter()
        .find(|c| c.name == "lstm through padding")
        .unwrap();
    let (model, mut examples) = (case.model(), case.examples(1));
    let params = model.init(3);
    let victim = Neural::new(&model, &params).unwrap();
    let short = Example {
        input: Sequence::Tokens(vec![4]),
        target: Target::Class(0),
    };
    examples[0].input = Sequence::Tokens(vec![3; 9]);
    let items = [&short.input, &examples[0].input];
    let pair = victim.logits(&items).unwrap();
    assert_ne!(pair[0], victim.logits(&items[..1]).unwrap()[0]);
    assert_eq!(pair[1], victim.logits(&items[1..]).unwrap()[0]);
}

#[test]
fn attention_weights_are_a_distribution_over_real_steps() {
    // Those that generate a sequence are in `generating.rs`.
    for case in cases().iter().filter(|c| c.model().decoding().is_none()) {
        let (model, examples) = (case.model(), case.examples(5));
        let params = model.init(3);
        let victim = Neural::new(&model, &params).unwrap();
        let items: Vec<&Example> = examples.iter().collect();
        let expected = case.name == "bilstm with attention" || case.name == "transformer";
        match victim.attention(&items) {
            Ok(all) => {
                assert!(expected, "{}", case.name);
                for (item, layers) in items.iter().zip(all) {
                    assert_eq!(layers.len(), if case.name == "transformer" { 2 } else { 1 });
                    for m in layers {
                        let steps = item.input.len();
                        let shape = match case.name {
                            "transformer" => (2, steps, steps),
                            _ => (1, 1, steps),
                        };
                        assert_eq!(m.weights.dim(), shape);
                        for row in m.weights.rows() {
                            assert!((row.sum() - 1.0).abs() < 1e-5);
                            assert!(row.iter().all(|p| *p >= 0.0));
                        }
                    }
                }
            }
            Err(e) => assert!(
                !expected && matches!(e, Error::Missing { .. }),
                "{}: {e}",
                case.name
            ),
        }
    }
}

#[test]
fn states_obey_the_cell_equations() {
    let list = cases();
    let case = list.iter().find(|c| c.name == "lstm, two layers").unwrap();
    let (model, examples) = (case.model(), case.examples(4));
    let params = model.init(3);
    let victim = Neural::new(&model, &params).unwrap();
    for layers in victim.states(&examples.iter().collect::<Vec<_>>()).unwrap() {
        assert_eq!(layers.len(), 2);
        for layer in layers {
            let (c, gate) = (layer.c.unwrap(), |name: char| {
                &layer.gates.iter().find(|g| g.0 == name).unwrap().1
            });
            let (i, f, g, o) = (gate('i'), gate('f'), gate('g'), gate('o'));
            for ((t, u), now) in c.indexed_iter() {
                let k = [t, u];
                let before = if t > 0 { c[[t - 1, u]] } else { 0.0 };
                assert!((now - (f[k] * before + i[k] * g[k])).abs() < 1e-6);
                assert!((layer.h[k] - o[k] * now.tanh()).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn decoders_say_what_their_taught_logits_say() {
    // Feeding the answer back as the target must make every step's best token the answer itself.
    for case in cases().iter().filter(|c| c.name.contains("seq2seq")) {
        let (model, examples) = (case.model(), case.examples(4));
        let mut params: Params<f32> = model.init(3);
        params.trained.iter_mut().for_each(|w| *w *= 3.0);
        for e in &examples {
            let mut b: Batch<f32> = batch(std::slice::from_ref(e));
            let mut tape = Tape::default();
            let mut printed = model.decode(&mut tape, &params, &b, 6).unwrap().remove(0);
            if printed.len() < 6 {
                printed.push(1);
            }
            b.targets = nn::batch::Targets::Tokens(printed.clone(), vec![printed.len()].into());
            tape.reset(Want::NOTHING);
            let out = model.forward(&mut tape, &params, &b).unwrap();
            let best: Vec<u32> = tape
                .get(out.logits)
                .chunks(7)
                .map(|z| nn::numeric::argmax(z) as u32)
                .collect();
            assert_eq!(best, printed, "{}", case.name);
        }
    }
}

#[test]
fn a_window_of_padding_alone_may_be_the_largest() {
    // Windows of 3 between paddings of 4: the first and the last of them see no word, and win where words speak
    // against a kernel.
    let reads = Reads::Tokens {
        vocabulary: 5,
        dim: 2,
        frozen: false,
    };
    let model = Model::new(&KimCnnSpec {
        reads,
        widths: vec![3],
        kernels: 2,
        padding: 4,
        dropout: 0.0,
        max_norm: 3.0,
        classes: 2,
    })
    .unwrap();
    let mut params = model.init(1);
    for (name, span) in model.layout().entries() {
        let number = match name {
            "embedding" => 1.0,
            name if name.starts_with("windows") && span.rows > 1 => -1.0,
            name if name.starts_with("windows") => 0.5,
            _ => continue,
        };
        let values = Array2::from_elem((span.rows, span.cols), number);
        params.set(span, values.view()).unwrap();
    }
    let example = Example {
        input: Sequence::Tokens(vec![1, 2, 3]),
        target: Target::Class(1),
    };
    let neural = Neural::new(&model, &params).unwrap();
    let gradients = neural
        .gradients(&[&example], &Objective::CrossEntropy)
        .unwrap();
    assert!(gradients[0].input.iter().all(|number| *number == 0.0));
}
