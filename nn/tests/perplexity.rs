//! Claims about the language model's numbers: perplexity, states and gates beside the equations written out, and
//! carried states beside one long sequence.

use ndarray::ArrayView2;
use nn::autodiff::{Params, Tape, Want};
use nn::batch::{Batch, Example, Sequence, Target};
use nn::models::{LanguageSpec, Model};
use nn::training::evaluate_stream;
use nn::victim::Neural;

fn model(tie_layers: bool) -> (Model, Params<f32>) {
    let spec = LanguageSpec {
        vocabulary: 7,
        dim: 3,
        units: 3,
        layers: 2,
        dropout: 0.0,
        tie_layers,
        init: 0.8,
    };
    let model = Model::new(&spec).unwrap();
    let params = model.init(11);
    (model, params)
}

const TEXT: [u32; 12] = [1, 4, 2, 6, 0, 3, 3, 5, 1, 2, 4, 6];

/// `x W`, by hand.
fn product(model: &Model, params: &Params<f32>, name: &str, x: &[f64]) -> Vec<f64> {
    let w = params.view(model.layout().find(name).unwrap());
    let column = |k: usize| (0..x.len()).map(|j| x[j] * f64::from(w[(j, k)])).sum();
    (0..w.ncols()).map(column).collect()
}

fn row(model: &Model, params: &Params<f32>, name: &str, n: usize) -> Vec<f64> {
    let w = params.view(model.layout().find(name).unwrap());
    w.row(n).iter().map(|x| f64::from(*x)).collect()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// One layer's state and gates.
#[derive(Clone, Default)]
struct Cell {
    h: Vec<f64>,
    c: Vec<f64>,
    gates: Vec<f64>,
}

/// The LSTM and the softmax as a textbook has them: losses of all steps, and the layers after each.
fn by_hand(model: &Model, params: &Params<f32>, tied: bool) -> (Vec<f64>, Vec<Vec<Cell>>) {
    let zero = Cell {
        h: vec![0.0; 3],
        c: vec![0.0; 3],
        gates: Vec::new(),
    };
    let (mut cells, mut losses, mut all) = (vec![zero; 2], Vec::new(), Vec::new());
    for t in 0..TEXT.len() - 1 {
        let mut x = row(model, params, "embedding", TEXT[t] as usize);
        for (l, cell) in cells.iter_mut().enumerate() {
            let name = |part: &str| format!("lstm.{}.{part}", if tied { 0 } else { l });
            let input = product(model, params, &name("input"), &x);
            let state = product(model, params, &name("recurrent"), &cell.h);
            let bias = row(model, params, &name("bias"), 0);
            let z: Vec<f64> = (0..12).map(|k| input[k] + state[k] + bias[k]).collect();
            let gate = |g: usize, k: usize| match g {
                2 => z[6 + k].tanh(),
                g => sigmoid(z[3 * g + k]),
            };
            cell.gates = (0..12).map(|k| gate(k / 3, k % 3)).collect();
            for k in 0..3 {
                cell.c[k] = gate(1, k) * cell.c[k] + gate(0, k) * gate(2, k);
                cell.h[k] = gate(3, k) * cell.c[k].tanh();
            }
            x.clone_from(&cell.h);
        }
        all.push(cells.clone());
        let logits = product(model, params, "head.weight", &x);
        let bias = row(model, params, "head.bias", 0);
        let logits: Vec<f64> = logits.iter().zip(&bias).map(|(z, b)| z + b).collect();
        let total: f64 = logits.iter().map(|z| z.exp()).sum();
        losses.push(total.ln() - logits[TEXT[t + 1] as usize]);
    }
    (losses, all)
}

#[test]
fn perplexity_states_and_gates_are_those_of_the_equations() {
    for tied in [false, true] {
        let (model, params) = model(tied);
        let (losses, cells) = by_hand(&model, &params, tied);
        let mean = losses.iter().sum::<f64>() / 11.0;
        let ours = evaluate_stream(&model, &params, &TEXT, 5).unwrap();
        assert!(
            (ours.loss.exp() - mean.exp()).abs() < 1e-5 * mean.exp(),
            "{tied}"
        );
        let example = Example {
            input: Sequence::Tokens(TEXT[..11].to_vec()),
            target: Target::Tokens(TEXT[1..].to_vec()),
        };
        let victim = Neural::new(&model, &params).unwrap();
        let seen = victim.observe(&[&example]).unwrap().remove(0);
        for (t, layers) in cells.iter().enumerate() {
            assert!((seen.losses[t] - losses[t]).abs() < 1e-5);
            for (l, cell) in layers.iter().enumerate() {
                for k in 0..3 {
                    let found = &seen.layers[l];
                    let near = |x: f32, y: f64| assert!((f64::from(x) - y).abs() < 1e-5, "{x} {y}");
                    near(found.h[(t, k)], cell.h[k]);
                    near(found.c.as_ref().unwrap()[(t, k)], cell.c[k]);
                    for (g, name) in "ifgo".chars().enumerate() {
                        let gate = found
                            .gates
                            .iter()
                            .find(|(known, _)| *known == name)
                            .unwrap();
                        near(gate.1[(t, k)], cell.gates[3 * g + k]);
                    }
                }
            }
        }
    }
}

/// Losses and perplexity that PyTorch has with the same weights, stored by `reference/language.py`.
#[test]
fn perplexity_is_pytorchs_on_the_same_weights() {
    let stored: serde_json::Value =
        serde_json::from_str(include_str!("reference/language.json")).unwrap();
    let numbers = |list: &serde_json::Value| -> Vec<f64> {
        let list = list.as_array().unwrap().iter();
        list.map(|x| x.as_f64().unwrap()).collect()
    };
    let text: Vec<u32> = numbers(&stored["text"]).iter().map(|x| *x as u32).collect();
    let cases = stored["cases"].as_array().unwrap();
    assert_eq!((text.as_slice(), cases.len()), (&TEXT[..], 2));
    for case in cases {
        let (model, mut params) = model(case["tied"].as_bool().unwrap());
        let names: Vec<String> = model
            .layout()
            .entries()
            .map(|(n, _)| n.to_owned())
            .collect();
        assert_eq!(case["weights"].as_object().unwrap().len(), names.len());
        for name in &names {
            let span = model.layout().find(name).unwrap();
            let values = numbers(&case["weights"][name]);
            let values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            let values = ArrayView2::from_shape((span.rows, span.cols), &values).unwrap();
            params.set(span, values).unwrap();
        }
        let example = Example {
            input: Sequence::Tokens(TEXT[..11].to_vec()),
            target: Target::Tokens(TEXT[1..].to_vec()),
        };
        let victim = Neural::new(&model, &params).unwrap();
        let losses = victim.observe(&[&example]).unwrap().remove(0).losses;
        for (ours, theirs) in losses.iter().zip(numbers(&case["losses"])) {
            assert!((ours - theirs).abs() < 1e-5, "{ours}, PyTorch has {theirs}");
        }
        let theirs = case["perplexity"].as_f64().unwrap();
        let ours = evaluate_stream(&model, &params, &TEXT, 5)
            .unwrap()
            .loss
            .exp();
        assert!(
            (ours - theirs).abs() < 1e-5 * theirs,
            "{ours}, PyTorch has {theirs}"
        );
    }
}

/// The logits of a text that is read in windows, states being carried, have the bits of those of the whole text.
#[test]
fn carried_states_are_one_long_sequence_bit_by_bit() {
    let (model, params) = model(false);
    let logits = |from: usize, to: usize, carry| {
        let example = Example {
            input: Sequence::Tokens(TEXT[from..to].to_vec()),
            target: Target::None,
        };
        let mut batch: Batch<f32> = Batch::new(&[&example]).unwrap();
        batch.carry = carry;
        let mut tape = Tape::default();
        tape.reset(Want::NOTHING);
        let out = model.forward(&mut tape, &params, &batch).unwrap();
        (tape.get(out.logits).to_vec(), model.carry(&tape, &out))
    };
    let (whole, _) = logits(0, 12, None);
    for step in [1, 3, 4, 5] {
        let (mut cut, mut carry) = (Vec::new(), None);
        for from in (0..12).step_by(step) {
            let (part, next) = logits(from, 12.min(from + step), carry);
            cut.extend(part);
            carry = Some(next);
        }
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&cut), bits(&whole), "{step}");
    }
}
