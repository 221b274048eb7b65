//! The table of layers: one entry each, from its sizes to a forward pass.

use nn::Stream;
use nn::autodiff::{Init, Layout, Params, Tape, Var};
use nn::batch::Lens;
use nn::layers::*;

pub type Forward = Box<dyn Fn(&mut Tape<f64>, &Params<f64>, Var, &Lens) -> Vec<Var>>;

/// A layer under test.
pub struct Case {
    pub name: &'static str,
    /// (inputs, layout) to a forward pass.
    pub build: fn(usize, &mut Layout) -> Forward,
}

pub const U: Init = Init::Uniform(0.7);

fn recurrent(
    cell: impl RecurrentCell,
    start: Option<LearnedState>,
    direction: Direction,
) -> Forward {
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

pub fn sight(queries: &Lens, keys: &Lens, causal: bool) -> Sight {
    Sight {
        queries: queries.clone(),
        keys: keys.clone(),
        causal,
    }
}

pub const CASES: &[Case] = &[
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
        build: |n, l| recurrent(Rnn::new(l, "r", n, 5, U), None, Direction::Forward),
    },
    Case {
        name: "rnn backward, learned state",
        build: |n, l| {
            let c = Rnn::new(l, "r", n, 3, U);
            recurrent(
                c,
                Some(LearnedState::new(l, "r", 3, false)),
                Direction::Backward,
            )
        },
    },
    Case {
        name: "gru",
        build: |n, l| recurrent(Gru::new(l, "g", n, 4, U), None, Direction::Forward),
    },
    Case {
        name: "gru backward, learned state",
        build: |n, l| {
            let c = Gru::new(l, "g", n, 9, U);
            recurrent(
                c,
                Some(LearnedState::new(l, "g", 9, false)),
                Direction::Backward,
            )
        },
    },
    Case {
        name: "lstm",
        build: |n, l| recurrent(Lstm::new(l, "l", n, 4, U), None, Direction::Forward),
    },
    Case {
        name: "lstm backward, learned state",
        build: |n, l| {
            let c = Lstm::new(l, "l", n, 9, U);
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
        name: "segments",
        build: |n, l| {
            let table = l.add("s", 2, n, U);
            Box::new(move |t, p, x, _| {
                let shape = t.shape(x);
                let ids = (0..shape.time * shape.batch).map(|n| usize::from(n % 3 == 1));
                vec![segments(t, p, x, table, ids.collect())]
            })
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
                let keys = d.weights.keys.forward(t, p, memory);
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
                let keys = d.weights.keys.forward(t, p, memory);
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
