//! Every model, tiny, with examples it can read: one list that all model tests walk.

pub mod easy;

use ndarray::ArrayView2;
use nn::Stream;
use nn::batch::{Example, Sequence, Target};
use nn::models::*;

pub struct Case {
    pub name: &'static str,
    pub spec: Box<dyn NetworkSpec>,
    /// Numbers in a vector that it reads.
    pub dim: usize,
    pub kind: Kind,
}

pub enum Kind {
    Classes { tokens: usize },
    Signals { dim: usize, classes: usize },
    Characters,
    Next { vocabulary: usize },
    Pairs { source: usize, target: usize },
}

fn recurrent(
    name: &'static str,
    cell: &'static CellKind,
    change: impl Fn(RecurrentSpec) -> RecurrentSpec,
) -> Case {
    let reads = Reads::Tokens {
        vocabulary: 12,
        dim: 4,
        frozen: false,
    };
    Case {
        name,
        spec: Box::new(change(RecurrentSpec::new(cell, reads, 5, 3))),
        dim: 4,
        kind: Kind::Classes { tokens: 12 },
    }
}

pub fn cases() -> Vec<Case> {
    let signals = RecurrentSpec {
        hidden: 4,
        learned_state: true,
        ..RecurrentSpec::new(&GRU, Reads::Vectors { dim: 3 }, 4, 2)
    };
    let words = Reads::Tokens {
        vocabulary: 12,
        dim: 4,
        frozen: false,
    };
    vec![
        recurrent("rnn", &RNN, |s| s),
        recurrent("gru", &GRU, |s| s),
        recurrent("lstm", &LSTM, |s| RecurrentSpec {
            forget_bias: 1.0,
            dropout: 0.3,
            ..s
        }),
        recurrent("lstm, two layers", &LSTM, |s| RecurrentSpec {
            layers: 2,
            learned_state: true,
            ..s
        }),
        recurrent("bilstm with attention", &LSTM, |s| RecurrentSpec {
            bidirectional: true,
            attention: 6,
            ..s
        }),
        recurrent("bigru, two layers", &GRU, |s| RecurrentSpec {
            bidirectional: true,
            layers: 2,
            dropout: 0.2,
            ..s
        }),
        recurrent("lstm through padding", &LSTM, |s| RecurrentSpec {
            run_through_padding: true,
            ..s
        }),
        Case {
            name: "gru on signals",
            spec: Box::new(signals),
            dim: 3,
            kind: Kind::Signals { dim: 3, classes: 2 },
        },
        Case {
            name: "kim cnn",
            spec: Box::new(KimCnnSpec {
                reads: words,
                widths: vec![2, 3],
                kernels: 5,
                padding: 1,
                dropout: 0.4,
                max_norm: 1.0,
                classes: 3,
            }),
            dim: 4,
            kind: Kind::Classes { tokens: 12 },
        },
        Case {
            name: "char cnn lstm",
            spec: Box::new(CharCnnSpec {
                characters: 9,
                dim: 3,
                width: 2,
                kernels: 6,
                highways: 2,
                units: 4,
                layers: 2,
                dropout: 0.3,
                classes: 3,
                init: 0.05,
                forget_bias: 0.0,
                normalise: false,
            }),
            dim: 3,
            kind: Kind::Characters,
        },
        Case {
            name: "transformer",
            spec: Box::new(TransformerSpec {
                vocabulary: 12,
                positions: 9,
                dim: 6,
                heads: 2,
                inner: 8,
                layers: 2,
                dropout: 0.1,
                pooler: true,
                classes: 3,
                separator: None,
            }),
            dim: 6,
            kind: Kind::Classes { tokens: 12 },
        },
        Case {
            name: "language model",
            spec: Box::new(LanguageSpec {
                vocabulary: 12,
                dim: 4,
                units: 4,
                layers: 2,
                dropout: 0.2,
                tie_layers: false,
                init: 0.3,
            }),
            dim: 4,
            kind: Kind::Next { vocabulary: 12 },
        },
        Case {
            name: "language model, tied",
            spec: Box::new(LanguageSpec {
                vocabulary: 12,
                dim: 4,
                units: 4,
                layers: 2,
                dropout: 0.0,
                tie_layers: true,
                init: 0.3,
            }),
            dim: 4,
            kind: Kind::Next { vocabulary: 12 },
        },
        Case {
            name: "seq2seq",
            spec: Box::new(Seq2seqSpec {
                source: 12,
                target: 7,
                go: 0,
                eos: 1,
                dim: 3,
                units: 4,
                layers: 1,
                attention: 5,
                dropout: 0.2,
                reversed: false,
            }),
            dim: 3,
            kind: Kind::Pairs {
                source: 12,
                target: 7,
            },
        },
        Case {
            name: "seq2seq, two layers",
            spec: Box::new(Seq2seqSpec {
                source: 12,
                target: 7,
                go: 0,
                eos: 1,
                dim: 3,
                units: 3,
                layers: 2,
                attention: 4,
                dropout: 0.2,
                reversed: true,
            }),
            dim: 3,
            kind: Kind::Pairs {
                source: 12,
                target: 7,
            },
        },
        Case {
            name: "transformer seq2seq",
            spec: Box::new(TransformerSeq2seqSpec {
                source: 12,
                target: 7,
                go: 0,
                eos: 1,
                positions: 9,
                dim: 4,
                heads: 2,
                inner: 6,
                layers: 1,
                dropout: 0.1,
            }),
            dim: 4,
            kind: Kind::Pairs {
                source: 12,
                target: 7,
            },
        },
    ]
}

impl Case {
    pub fn model(&self) -> Model {
        Model::new(&*self.spec).unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    /// `n` examples of lengths 1 to 9.
    pub fn examples(&self, n: usize) -> Vec<Example> {
        let stream = Stream::new(21, self.name);
        (0..n as u64)
            .map(|i| self.example(stream.item(i)))
            .collect()
    }

    fn example(&self, s: Stream) -> Example {
        let len = 1 + s.below(1000, 9);
        let ids = |n: usize, from: u64, below: usize| {
            (0..n as u64)
                .map(|i| s.below(from + i, below) as u32)
                .collect::<Vec<u32>>()
        };
        let (input, target) = match self.kind {
            Kind::Classes { tokens } => (
                Sequence::Tokens(ids(len, 0, tokens)),
                Target::Class(s.below(999, 3) as u32),
            ),
            Kind::Signals { dim, classes } => {
                let data = (0..(len * dim) as u64)
                    .map(|i| s.normal(i) as f32)
                    .collect();
                (
                    Sequence::of_rows(dim, data),
                    Target::Class(s.below(999, classes) as u32),
                )
            }
            Kind::Characters => (
                Sequence::Chars {
                    width: 4,
                    ids: ids(len * 4, 0, 9),
                },
                Target::Class(s.below(999, 3) as u32),
            ),
            Kind::Next { vocabulary } => (
                Sequence::Tokens(ids(len, 0, vocabulary)),
                Target::Tokens(ids(len, 500, vocabulary)),
            ),
            Kind::Pairs { source, target } => (
                Sequence::Tokens(ids(len, 0, source)),
                Target::Tokens(ids(1 + s.below(998, 6), 500, target)),
            ),
        };
        Example { input, target }
    }
}

/// One item, as the only row; of nothing no row.
pub fn row<T>(item: &[T]) -> ArrayView2<'_, T> {
    ArrayView2::from_shape((usize::from(!item.is_empty()), item.len()), item).unwrap()
}
