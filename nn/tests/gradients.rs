//! Every layer's gradients, of weights and inputs, against central differences in f64.
//!
//! One table: a layer joins with one line. The objective is a fixed random weighting of all
//! outputs, so that no derivative hides behind a symmetry.

use nn::Stream;
use nn::grads::{Grads, Shard, reduce};
use nn::layers::*;
use nn::params::{Init, Layout, Params};
use nn::tape::{Shape, Tape, Var, Want};

type Forward = Box<dyn Fn(&mut Tape<f64>, &Params<f64>, Var, &Lens) -> Vec<Var>>;

struct Case {
    name: &'static str,
    /// (inputs, layout) to a forward pass.
    build: fn(usize, &mut Layout) -> Forward,
}

const U: Init = Init::Uniform(0.7);

fn recurrent(cell: Cell, start: Option<LearnedState>, direction: Direction) -> Forward {
    Box::new(move |tape, p, x, lens| {
        let initial = start.map(|s| s.forward(tape, p, lens.len()));
        let s = cell.forward(tape, p, x, lens, initial, direction);
        let mut all: Vec<Var> = [Some(s.h), s.c].into_iter().flatten().collect();
        for gate in s.gates {
            if !all.contains(&gate.var) {
                all.push(gate.var);
            }
        }
        all.push(last(tape, s.h, direction));
        all
    })
}

const SIZE: BlockSize = BlockSize {
    dim: 4,
    heads: 2,
    inner: 7,
    activation: Activation::Gelu,
    dropout: 0.0,
    eps: 1e-3,
};

fn sight(queries: &Lens, keys: &Lens, causal: bool) -> Sight {
    Sight {
        queries: queries.clone(),
        keys: keys.clone(),
        causal,
    }
}

const CASES: &[Case] = &[
    Case {
        name: "dense",
        build: |n, l| {
            let d = Dense::new(l, "d", n, 3, U);
            Box::new(move |t, p, x, _| vec![d.forward(t, p, x)])
        },
    },
    Case {
        name: "dense without bias",
        build: |n, l| {
            let d = Dense::without_bias(l, "d", n, 4, U);
            Box::new(move |t, p, x, _| vec![d.forward(t, p, x)])
        },
    },
    Case {
        name: "tanh",
        build: |_, _| Box::new(|t, _, x, _| vec![activate(t, x, Activation::Tanh)]),
    },
    Case {
        name: "sigmoid",
        build: |_, _| Box::new(|t, _, x, _| vec![activate(t, x, Activation::Sigmoid)]),
    },
    Case {
        name: "relu",
        build: |_, _| Box::new(|t, _, x, _| vec![activate(t, x, Activation::Relu)]),
    },
    Case {
        name: "gelu",
        build: |_, _| Box::new(|t, _, x, _| vec![activate(t, x, Activation::Gelu)]),
    },
    Case {
        name: "dropout",
        build: |_, _| {
            Box::new(|t, _, x, _| {
                t.train(Stream::new(1, "dropout"), 0);
                vec![dropout(t, x, 0.4)]
            })
        },
    },
    Case {
        name: "rnn",
        build: |n, l| {
            recurrent(
                Cell::Rnn(Rnn::new(l, "r", n, 5, U)),
                None,
                Direction::Forward,
            )
        },
    },
    Case {
        name: "rnn backward, learned state",
        build: |n, l| {
            let c = Cell::Rnn(Rnn::new(l, "r", n, 3, U));
            recurrent(
                c,
                Some(LearnedState::new(l, "r", 3, false)),
                Direction::Backward,
            )
        },
    },
    Case {
        name: "gru",
        build: |n, l| {
            recurrent(
                Cell::Gru(Gru::new(l, "g", n, 4, U)),
                None,
                Direction::Forward,
            )
        },
    },
    Case {
        name: "gru backward, learned state",
        build: |n, l| {
            let c = Cell::Gru(Gru::new(l, "g", n, 9, U));
            recurrent(
                c,
                Some(LearnedState::new(l, "g", 9, false)),
                Direction::Backward,
            )
        },
    },
    Case {
        name: "lstm",
        build: |n, l| {
            recurrent(
                Cell::Lstm(Lstm::new(l, "l", n, 4, U)),
                None,
                Direction::Forward,
            )
        },
    },
    Case {
        name: "lstm backward, learned state",
        build: |n, l| {
            let c = Cell::Lstm(Lstm::new(l, "l", n, 9, U));
            recurrent(
                c,
                Some(LearnedState::new(l, "l", 9, true)),
                Direction::Backward,
            )
        },
    },
    Case {
        name: "concat",
        build: |n, l| {
            let d = Dense::new(l, "d", n, 2, U);
            Box::new(move |t, p, x, _| {
                let y = d.forward(t, p, x);
                vec![concat(t, x, y)]
            })
        },
    },
    Case {
        name: "sum",
        build: |_, _| {
            Box::new(|t, _, x, _| {
                let y = activate(t, x, Activation::Tanh);
                vec![sum(t, x, y)]
            })
        },
    },
    Case {
        name: "attention pooling",
        build: |n, l| {
            let a = AttentionPool::new(l, "a", n, 5, U);
            Box::new(move |t, p, x, lens| vec![a.forward(t, p, x, lens).0])
        },
    },
    Case {
        name: "highway",
        build: |n, l| {
            let h = Highway::new(l, "h", n, -0.5, U);
            Box::new(move |t, p, x, _| vec![h.forward(t, p, x)])
        },
    },
    Case {
        name: "layer norm",
        build: |n, l| {
            let h = LayerNorm::new(l, "n", n, 1e-3);
            Box::new(move |t, p, x, _| vec![h.forward(t, p, x)])
        },
    },
    Case {
        name: "word windows",
        build: |n, l| {
            let c = ConvMax::new(l, "c", n, 3, 5, 2, Activation::Relu, U);
            Box::new(move |t, p, x, lens| vec![c.forward(t, p, x, Windows::Items(lens.clone()))])
        },
    },
    Case {
        name: "windows longer than the text",
        build: |n, l| {
            let c = ConvMax::new(l, "c", n, 4, 19, 0, Activation::Tanh, U);
            Box::new(move |t, p, x, lens| vec![c.forward(t, p, x, Windows::Items(lens.clone()))])
        },
    },
    Case {
        name: "characters in a word",
        build: |n, l| {
            let c = ConvMax::new(l, "c", n, 2, 300, 0, Activation::Tanh, U);
            Box::new(move |t, p, x, lens| vec![c.forward(t, p, x, Windows::Words(lens.len()))])
        },
    },
    Case {
        name: "multi-head attention",
        build: |n, l| {
            let (d, a) = (Dense::new(l, "d", n, 6, U), MultiHead::new(l, "a", 6, 2, U));
            Box::new(move |t, p, x, lens| {
                let x = d.forward(t, p, x);
                vec![a.forward(t, p, x, x, &sight(lens, lens, false)).0]
            })
        },
    },
    Case {
        name: "causal attention",
        build: |n, l| {
            let (d, a) = (Dense::new(l, "d", n, 6, U), MultiHead::new(l, "a", 6, 3, U));
            Box::new(move |t, p, x, lens| {
                let x = d.forward(t, p, x);
                vec![a.forward(t, p, x, x, &sight(lens, lens, true)).0]
            })
        },
    },
    Case {
        name: "encoder block",
        build: |n, l| {
            let (d, b) = (Dense::new(l, "d", n, 4, U), Block::encoder(l, "b", SIZE, U));
            Box::new(move |t, p, x, lens| {
                let x = d.forward(t, p, x);
                vec![b.forward(t, p, x, &sight(lens, lens, false), None).0]
            })
        },
    },
    Case {
        name: "decoder block",
        build: |n, l| {
            let (d, m, b) = (
                Dense::new(l, "d", n, 4, U),
                Dense::new(l, "m", n, 4, U),
                Block::decoder(l, "b", SIZE, U),
            );
            Box::new(move |t, p, x, lens| {
                let (y, m) = (d.forward(t, p, x), m.forward(t, p, x));
                vec![
                    b.forward(
                        t,
                        p,
                        y,
                        &sight(lens, lens, true),
                        Some((m, &sight(lens, lens, false))),
                    )
                    .0,
                ]
            })
        },
    },
    Case {
        name: "positions",
        build: |n, l| {
            let table = l.add("p", 9, n, U);
            Box::new(move |t, p, x, _| vec![positions(t, p, x, table)])
        },
    },
    Case {
        name: "bahdanau decoder",
        build: |n, l| {
            let (d, m) = (
                Decoder::new(l, "d", n, 5, 3, 9, U),
                Dense::new(l, "m", n, 3, U),
            );
            let (s, u) = (
                LearnedState::new(l, "s", 5, true),
                LearnedState::new(l, "u", 3, false),
            );
            Box::new(move |t, p, x, lens| {
                let memory = m.forward(t, p, x);
                let keys = d.keys.forward(t, p, memory);
                let ((h, c), (context, _)) =
                    (s.forward(t, p, lens.len()), u.forward(t, p, lens.len()));
                let out = d.forward(
                    t,
                    p,
                    x,
                    memory,
                    keys,
                    lens,
                    Start {
                        h,
                        c: c.unwrap(),
                        context: Some(context),
                    },
                );
                vec![
                    out.states.h,
                    out.states.c.unwrap(),
                    out.states.gates[0].var,
                    out.context,
                ]
            })
        },
    },
    Case {
        name: "bahdanau decoder from zero context",
        build: |n, l| {
            let (d, m, s) = (
                Decoder::new(l, "d", n, 4, 2, 3, U),
                Dense::new(l, "m", n, 2, U),
                LearnedState::new(l, "s", 4, true),
            );
            Box::new(move |t, p, x, lens| {
                let memory = m.forward(t, p, x);
                let keys = d.keys.forward(t, p, memory);
                let (h, c) = s.forward(t, p, lens.len());
                let out = d.forward(
                    t,
                    p,
                    x,
                    memory,
                    keys,
                    lens,
                    Start {
                        h,
                        c: c.unwrap(),
                        context: None,
                    },
                );
                vec![out.states.h, out.context]
            })
        },
    },
    Case {
        name: "mean pooling",
        build: |_, _| Box::new(|t, _, x, lens| vec![mean(t, x, lens)]),
    },
];

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
            let mut p: Params<f64> = layout.init(5);
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
        let (p, x) = (layout.init(5), noise("input", shape.len(), 1.0));
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
        let p = layout.init(5);
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
    let p: Params<f64> = layout.init(1);
    let mut shard: Shard<f64> = Shard {
        tape: Tape::default(),
        grads: Grads::default(),
    };
    shard.tape.reset(Want::BOTH);
    shard.grads.reset(&layout);
    let y = e.forward(&mut shard.tape, &p, &[2, 0, 2, 3, 2, 0], 3, 2);
    assert_eq!(shard.tape.get(y)[..2], p.get(e.table)[4..6]);
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
