//! Our side of each workload; `benches/nn/side.py` has the same ones.

use nn::Stream;
use nn::batch::{Example, Sequence, Target};
use nn::gemm::{Into, Mat, gemm};
use nn::model::{Model, Reads, Spec};
use nn::models::{CellKind, RecurrentSpec};
use nn::objective::Objective;
use nn::optimiser::{Clip, Optimiser};
use nn::trainer::Trainer;
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

pub const WORKLOADS: &[Workload] = &[
    Workload { name: "GEMM", repeats: 5, flops: 2.0 * 1024.0 * 1024.0 * 1024.0, make: peak },
    Workload { name: "W1", repeats: 5, flops: products(250 * 24, 114, 256), make: || lstm(24) },
    Workload { name: "W1b", repeats: 1, flops: products(250 * 256, 114, 256), make: || lstm(256) },
    Workload { name: "W3x1", repeats: 20, flops: 0.0, make: || input_gradient(1) },
    Workload { name: "W3x64", repeats: 1, flops: 0.0, make: || input_gradient(64) },
    Workload { name: "GRU", repeats: 5, flops: 0.0, make: || recurrent(CellKind::Gru, 128, 64, 9, 50, 6, 50) },
    Workload { name: "RNN", repeats: 10, flops: 0.0, make: || recurrent(CellKind::Rnn, 28, 128, 28, 56, 10, 0) },
];

fn noise(n: usize) -> Vec<f32> {
    let s = Stream::new(1, "bench");
    (0..n as u64).map(|i| s.normal(i) as f32).collect()
}

/// A product of 1024 x 1024 matrices in blocks of rows: the machine's practical peak.
fn peak() -> Step {
    let (a, b, mut c) = (noise(1 << 20), noise(1 << 20), vec![0.0; 1 << 20]);
    Box::new(move || {
        c.par_chunks_mut(128 * 1024).zip(a.par_chunks(128 * 1024)).for_each(|(c, a)| gemm(Into::Set, c, Mat::new(a, 128, 1024), Mat::new(&b, 1024, 1024)));
    })
}

fn signals(time: usize, items: usize, dim: usize, classes: usize) -> Vec<Example> {
    let example = |b: usize| Example { input: Sequence::Vectors { dim, data: noise(time * dim) }, target: Target::Class((b % classes) as u32) };
    (0..items).map(example).collect()
}

fn classifier(cell: CellKind, dim: usize, units: usize, classes: usize, hidden: usize) -> &'static Model {
    let spec = RecurrentSpec {
        cell,
        reads: Reads::Vectors { dim },
        units,
        classes,
        layers: 1,
        bidirectional: false,
        attention: 0,
        learned_state: false,
        dropout: 0.0,
        hidden,
        forget_bias: 0.0,
        run_through_padding: false,
    };
    Box::leak(Box::new(Model::new(&Spec::Recurrent(spec)).expect("a model")))
}

fn recurrent(cell: CellKind, time: usize, items: usize, dim: usize, units: usize, classes: usize, hidden: usize) -> Step {
    let model = classifier(cell, dim, units, classes, hidden);
    train(model, signals(time, items, dim, classes))
}

fn train(model: &'static Model, examples: Vec<Example>) -> Step {
    let mut trainer = Trainer::new(model, model.init(1), Optimiser::ADAM, Clip::No, 1).expect("a trainer");
    Box::new(move || {
        let batch: Vec<&Example> = examples.iter().collect();
        trainer.step_on(&batch, &Objective::CrossEntropy, 1e-3).expect("a step");
    })
}

fn lstm(items: usize) -> Step {
    recurrent(CellKind::Lstm, 250, items, 50, 64, 2, 0)
}

fn input_gradient(items: usize) -> Step {
    let model = classifier(CellKind::Lstm, 50, 64, 2, 0);
    let params = Box::leak(Box::new(model.init(1)));
    let victim = Neural::new(model, params).expect("a victim");
    let examples = signals(250, items, 50, 2);
    Box::new(move || {
        let batch: Vec<&Example> = examples.iter().collect();
        victim.gradients(&batch, &Objective::CrossEntropy).expect("gradients");
    })
}
