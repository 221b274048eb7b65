//! Our side of each workload; `benches/nn/side.py` has the same ones.

use ndarray::{Array2, ArrayView2, Axis};
use nn::Stream;
use nn::autodiff::{Init, Layout, Params, Shape, Shard, Want};
use nn::batch::{Batch, Example, Sequence, Target};
use nn::layers::{Activation, ConvMax, Windows};
use nn::models::{
    CellKind, CharCnnSpec, GRU, LSTM, LanguageSpec, Model, NetworkSpec, RNN, Reads, RecurrentSpec,
    Seq2seqSpec, TransformerSpec,
};
use nn::numeric::gemm::{Into, Mat, gemm};
use nn::objectives::Objective;
use nn::stepping::Stepper;
use nn::training::{Clip, Optimiser, Trainer, shards};
use nn::victim::{Neural, Victim};
use rayon::prelude::*;

pub type Step = Box<dyn FnMut() + Send>;

pub struct Workload {
    pub name: &'static str,
    /// Steps in a round.
    pub repeats: usize,
    /// Floating-point operations of the matrix products in a step, 0 where not counted.
    pub flops: f64,
    pub make: fn() -> Step,
}

/// Forward, input gradient and weight gradient are one product each: 2 * 3 * rows * inputs * outputs.
const fn products(rows: usize, inputs: usize, outputs: usize) -> f64 {
    6.0 * (rows * inputs * outputs) as f64
}

/// The signal wants no gradient, so its 50 numbers take two products, the 64 of the state three.
const fn lstm_products(rows: usize) -> f64 {
    products(rows, 64, 256) + 4.0 * (rows * 50 * 256) as f64
}

pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "GEMM",
        repeats: 5,
        flops: 2.0 * 1024.0 * 1024.0 * 1024.0,
        make: peak,
    },
    Workload {
        name: "W1",
        repeats: 5,
        flops: lstm_products(250 * 24),
        make: || lstm(24),
    },
    Workload {
        name: "W1b",
        repeats: 1,
        flops: lstm_products(250 * 256),
        make: || lstm(256),
    },
    Workload {
        name: "W3x1",
        repeats: 20,
        flops: 0.0,
        make: || input_gradient(1),
    },
    Workload {
        name: "W3x64",
        repeats: 1,
        flops: 0.0,
        make: || input_gradient(64),
    },
    Workload {
        name: "W2",
        repeats: 2,
        flops: products(400, 400, 800) * 2.0 + products(400, 200, 10_000),
        make: language,
    },
    Workload {
        name: "W4",
        repeats: 1,
        flops: 0.0,
        make: characters,
    },
    Workload {
        name: "char-cnn",
        repeats: 1,
        flops: 0.0,
        make: char_cnn,
    },
    Workload {
        name: "transformer",
        repeats: 1,
        flops: 0.0,
        make: transformer,
    },
    Workload {
        name: "swap-trafo",
        repeats: 1,
        flops: 0.0,
        make: || swaps(build(transformer_spec())),
    },
    Workload {
        name: "swap-bilstm",
        repeats: 1,
        flops: 0.0,
        make: || swaps(build(bilstm_spec())),
    },
    Workload {
        name: "seq2seq",
        repeats: 2,
        flops: 0.0,
        make: || seq2seq(30, 32, [32, 64, 64], Clip::No),
    },
    Workload {
        name: "speller",
        repeats: 1,
        flops: 0.0,
        make: || seq2seq(40, 64, [64, 128, 64], Clip::Value(5.0)),
    },
    Workload {
        name: "GRU",
        repeats: 5,
        flops: 0.0,
        make: || recurrent(&GRU, 128, 64, 9, 50, 6, 50),
    },
    Workload {
        name: "RNN",
        repeats: 10,
        flops: 0.0,
        make: || recurrent(&RNN, 28, 128, 28, 56, 10, 0),
    },
    Workload {
        name: "step-GRU2",
        repeats: 2,
        flops: 0.0,
        make: || steps(&GRU, 1, 2, 2),
    },
    Workload {
        name: "step-RNN56",
        repeats: 2,
        flops: 0.0,
        make: || steps(&RNN, 28, 56, 10),
    },
    Workload {
        name: "step-GRU50",
        repeats: 2,
        flops: 0.0,
        make: || steps(&GRU, 9, 50, 6),
    },
];

fn noise(n: usize) -> Vec<f32> {
    let s = Stream::new(1, "bench");
    (0..n as u64).map(|i| s.normal(i) as f32).collect()
}

/// A product of 1024 x 1024 matrices in blocks of rows: the machine's practical peak.
fn peak() -> Step {
    let (a, b, mut c) = (noise(1 << 20), noise(1 << 20), vec![0.0; 1 << 20]);
    Box::new(move || {
        c.par_chunks_mut(128 * 1024)
            .zip(a.par_chunks(128 * 1024))
            .for_each(|(c, a)| {
                gemm(
                    Into::Set,
                    c,
                    Mat::new(a, 128, 1024),
                    Mat::new(&b, 1024, 1024),
                )
            });
    })
}

fn signals(time: usize, items: usize, dim: usize, classes: usize) -> Vec<Example> {
    let example = |b: usize| Example {
        input: Sequence::of_rows(dim, noise(time * dim)),
        target: Target::Class((b % classes) as u32),
    };
    (0..items).map(example).collect()
}

fn build(spec: impl NetworkSpec) -> &'static Model {
    Box::leak(Box::new(Model::new(&spec).expect("a model")))
}

fn classifier(
    cell: &'static CellKind,
    dim: usize,
    units: usize,
    classes: usize,
    hidden: usize,
) -> &'static Model {
    build(RecurrentSpec {
        hidden,
        ..RecurrentSpec::new(cell, Reads::Vectors { dim }, units, classes)
    })
}

fn recurrent(
    cell: &'static CellKind,
    time: usize,
    items: usize,
    dim: usize,
    units: usize,
    classes: usize,
    hidden: usize,
) -> Step {
    let model = classifier(cell, dim, units, classes, hidden);
    train(model, signals(time, items, dim, classes))
}

fn train(model: &'static Model, examples: Vec<Example>) -> Step {
    train_clipped(model, examples, Clip::No)
}

fn train_clipped(model: &'static Model, examples: Vec<Example>, clip: Clip) -> Step {
    let mut trainer =
        Trainer::new(model, model.init(1), Optimiser::ADAM, clip, 1).expect("a trainer");
    Box::new(move || {
        let batch: Vec<&Example> = examples.iter().collect();
        trainer
            .step_on(&batch, &Objective::CrossEntropy, 1e-3)
            .expect("a step");
    })
}

fn lstm(items: usize) -> Step {
    recurrent(&LSTM, 250, items, 50, 64, 2, 0)
}

fn input_gradient(items: usize) -> Step {
    let model = classifier(&LSTM, 50, 64, 2, 0);
    let params = Box::leak(Box::new(model.init(1)));
    let victim = Neural::new(model, params).expect("a victim");
    let examples = signals(250, items, 50, 2);
    Box::new(move || {
        let batch: Vec<&Example> = examples.iter().collect();
        victim
            .gradients(&batch, &Objective::CrossEntropy)
            .expect("gradients");
    })
}

/// A hundred steps of one sequence as they arrive: at each, the new state, its logits, and the gradient of one
/// logit with respect to the input of that step.
fn steps(cell: &'static CellKind, dim: usize, units: usize, classes: usize) -> Step {
    let model = classifier(cell, dim, units, classes, 0);
    let params: &'static Params<f32> = Box::leak(Box::new(model.init(1)));
    let mut stepper = Stepper::new(model, params).expect("a stepper");
    let (x, mut d) = (noise(100 * dim), Array2::zeros((1, classes)));
    d[[0, 0]] = 1.0;
    Box::new(move || {
        let mut state = stepper.start().insert_axis(Axis(0));
        for x in x.chunks_exact(dim) {
            let x = ArrayView2::from_shape((1, dim), x).expect("one input");
            let next = stepper.step(state.view(), x).expect("a step");
            let v = stepper.logits_vjp(next.view(), d.view());
            let v = v.expect("the head's gradient");
            let (dx, _) = stepper.vjp(state.view(), x, v.view()).expect("a gradient");
            assert!(dx[[0, 0]].is_finite());
            state = next;
        }
    })
}

fn ids(n: usize, below: usize, purpose: &str) -> Vec<u32> {
    let s = Stream::new(2, purpose);
    (0..n as u64).map(|i| s.below(i, below) as u32).collect()
}

/// States are carried from step to step, as PyTorch's side does.
fn language() -> Step {
    let model = build(LanguageSpec {
        vocabulary: 10_000,
        dim: 200,
        units: 200,
        layers: 2,
        dropout: 0.0,
        tie_layers: false,
        init: 0.1,
    });
    let mut trainer =
        Trainer::new(model, model.init(1), Optimiser::SGD, Clip::Norm(5.0), 1).expect("a trainer");
    let example = |k: usize| Example {
        input: Sequence::Tokens(ids(20, 10_000, &format!("x{k}"))),
        target: Target::Tokens(ids(20, 10_000, &format!("y{k}"))),
    };
    let examples: Vec<Example> = (0..20).map(example).collect();
    let mut batches: Vec<Batch<f32>> = shards(20)
        .into_iter()
        .map(|r| Batch::new(&examples[r].iter().collect::<Vec<_>>()).expect("a batch"))
        .collect();
    for batch in &mut batches {
        batch.carry = Some(vec![
            (
                vec![0.0; batch.items() * 200],
                vec![0.0; batch.items() * 200]
            );
            2
        ]);
    }
    Box::new(move || {
        let step = trainer
            .step(&batches, &Objective::CrossEntropy, 1.0)
            .expect("a step");
        batches
            .iter_mut()
            .zip(step.carry)
            .for_each(|(batch, carry)| batch.carry = Some(carry));
    })
}

fn characters() -> Step {
    let mut layout = Layout::default();
    let conv = ConvMax::new(
        &mut layout,
        "c",
        25,
        6,
        1000,
        0,
        Activation::Tanh,
        Init::Uniform(0.08),
    );
    let params: Params<f32> = Params::init(&layout, 1);
    let x = noise(3840 * 20 * 25);
    let mut shard: Shard<f32> = Shard::default();
    Box::new(move || {
        shard.tape.reset(Want::BOTH);
        shard.grads.reset(&layout);
        let x = shard.tape.input(Shape::new(80, 48 * 20, 25), &x);
        let y = conv.forward(&mut shard.tape, &params, x, Windows::Words(20));
        shard.tape.seed(y).fill(1.0);
        shard.tape.backward(&params, &mut shard.grads);
    })
}

/// The victim of HotFlip at the size of its `cpu` profile: 64 documents of 80 words of 20 characters.
fn char_cnn() -> Step {
    let spec = CharCnnSpec {
        characters: 90,
        dim: 25,
        width: 6,
        kernels: 100,
        highways: 2,
        units: 64,
        layers: 2,
        dropout: 0.5,
        classes: 4,
        init: 0.15,
        forget_bias: 1.0,
        normalise: false,
    };
    let example = |k: usize| Example {
        input: Sequence::Chars {
            width: 20,
            ids: ids(80 * 20, 90, &format!("c{k}")),
        },
        target: Target::Class(k as u32 % 4),
    };
    train(build(spec), (0..64).map(example).collect())
}

fn transformer_spec() -> TransformerSpec {
    TransformerSpec {
        vocabulary: 5000,
        positions: 64,
        dim: 128,
        heads: 4,
        inner: 512,
        layers: 3,
        dropout: 0.0,
        pooler: false,
        classes: 2,
        separator: None,
    }
}

fn transformer() -> Step {
    let example = |k: usize| Example {
        input: Sequence::Tokens(ids(64, 5000, &format!("t{k}"))),
        target: Target::Class(k as u32 % 2),
    };
    train(build(transformer_spec()), (0..32).map(example).collect())
}

fn bilstm_spec() -> RecurrentSpec {
    let reads = Reads::Tokens {
        vocabulary: 5000,
        dim: 64,
        frozen: false,
    };
    RecurrentSpec {
        bidirectional: true,
        attention: 64,
        ..RecurrentSpec::new(&LSTM, reads, 64, 2)
    }
}

/// Logits and sentence vectors of a text of 64 tokens with each of 1,000 candidates in one place.
fn swaps(model: &'static Model) -> Step {
    let params = Box::leak(Box::new(model.init(1)));
    let victim = Neural::new(model, params).expect("a victim");
    let (text, candidates) = (ids(64, 5000, "text"), ids(1000, 5000, "candidates"));
    Box::new(move || {
        victim.substituted(&text, 20, &candidates).expect("answers");
    })
}

/// Characters to as many characters. The spell checker of P4's `cpu` profile is `speller`, without its dropout.
fn seq2seq(time: usize, items: usize, [dim, units, attention]: [usize; 3], clip: Clip) -> Step {
    let spec = Seq2seqSpec {
        source: 80,
        target: 80,
        go: 0,
        eos: 1,
        dim,
        units,
        layers: 1,
        attention,
        dropout: 0.0,
        reversed: false,
    };
    let example = |k: usize| Example {
        input: Sequence::Tokens(ids(time, 80, &format!("s{k}"))),
        target: Target::Tokens(ids(time, 80, &format!("d{k}"))),
    };
    train_clipped(build(spec), (0..items).map(example).collect(), clip)
}
