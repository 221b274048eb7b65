//! Attacks that run while a sequence arrives, beside the same algorithms in PyTorch (autograd a step).
//!
//! `cargo bench --bench online [-- --pytorch PYTHON] [--rounds 15]`: steps a second of every attack on the
//! three models of P1, alone and 256 side by side, how the time grows with the sequence, and how long
//! 10,000 images by rows take at five sizes. Medians of rounds; run it on a quiet machine.

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use nn::model::{Model, Reads, Spec};
use nn::models::{CellKind, RecurrentSpec};
use rayon::prelude::*;
use stages::attack::Live;
use stages::weights::{Card, Numbers, Tensor, table};
use store::{Params, Value};

/// The program's own, so that what is measured is what a user gets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A model of the paper: what it is called there, its cell, units, numbers in a sample, classes.
const MODELS: [(&str, CellKind, usize, usize, usize); 3] = [
    ("GRU-2", CellKind::Gru, 2, 1, 2),
    ("RNN-56", CellKind::Rnn, 56, 28, 10),
    ("GRU-50", CellKind::Gru, 50, 9, 6),
];

const ATTACKS: [&str; 3] = ["gradient-sign", "dynamic", "fixed-point"];

/// Sequences that share products, as in the stage.
const GROUP: usize = 32;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let python = arguments.iter().position(|a| a == "--pytorch");
    let python = python.and_then(|at| arguments.get(at + 1));
    let rounds = arguments.iter().position(|a| a == "--rounds");
    let rounds = rounds.and_then(|at| arguments.get(at + 1)?.parse().ok());
    let rounds = rounds.unwrap_or(15).max(1);
    println!("steps a second (sequences x steps / seconds), median of rounds");
    println!("| model | attack | batch | ours | PyTorch | times | 400 / 100 steps |");
    println!("|---|---|---|---|---|---|---|");
    for model in MODELS {
        for attack in ATTACKS {
            for batch in [1, 256] {
                let live = live(model, attack);
                let ours = rate(&live, model, batch, 100, rounds);
                let longer = rate(&live, model, batch, 400, rounds);
                let theirs = python.and_then(|python| pytorch(python, model, attack, batch));
                let cell = |x: Option<f64>, digits: usize| {
                    x.map_or("-".to_owned(), |x| format!("{x:.digits$}"))
                };
                println!(
                    "| {} | {attack} | {batch} | {ours:.0} | {} | {} | {:.2} |",
                    model.0,
                    cell(theirs, 0),
                    cell(theirs.map(|t| ours / t), 1),
                    4.0 * ours / longer
                );
            }
        }
    }
    images();
}

/// 10,000 images, row by row, at the sizes of the paper's table, and what the model says in the end.
fn images() {
    let start = Instant::now();
    for size in [0.0, 0.05, 0.1, 0.2, 0.3] {
        let live = live_of(MODELS[1], "gradient-sign", size);
        let groups: Vec<usize> = (0..10_000).step_by(GROUP).collect();
        groups.par_iter().for_each(|from| {
            let items = GROUP.min(10_000 - from);
            let mut run = live.start_many(&vec![Some(0); items]).expect("a goal");
            for k in 0..28 {
                let number = |i: usize| ((i + from) as f32 * 0.7 + k as f32 * 0.13).sin().abs();
                let sample: Vec<f32> = (0..items * 28).map(number).collect();
                black_box(run.push(&sample).expect("a sample"));
            }
            black_box(run.probabilities().expect("an answer"));
        });
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "\n10,000 images of 28 x 28 under gradient-sign at five sizes, answers included: {seconds:.2} s"
    );
}

/// The model with weights from a seed, and the attack with the parameters that the peer has too.
fn live(model: (&str, CellKind, usize, usize, usize), attack: &str) -> Live {
    live_of(model, attack, 0.15)
}

fn live_of(model: (&str, CellKind, usize, usize, usize), attack: &str, alpha: f64) -> Live {
    let (_, cell, units, dim, classes) = model;
    let spec = Spec::Recurrent(RecurrentSpec::new(
        cell,
        Reads::Vectors { dim },
        units,
        classes,
    ));
    let network = Model::new(&spec).expect("a model of the paper");
    let params: nn::params::Params<f32> = network.init(1);
    let tensors: Vec<Tensor> = network
        .layout()
        .entries()
        .map(|(name, span)| Tensor {
            name: name.to_owned(),
            shape: [span.rows, span.cols],
            numbers: Numbers::Single(params.get(span).to_vec()),
        })
        .collect();
    let card = Card::Network {
        spec,
        words: None,
        vectors: None,
    };
    let given: Params = [
        ("attack".to_owned(), Value::Text(attack.to_owned())),
        ("alpha".to_owned(), Value::Float(alpha)),
    ]
    .into();
    Live::open(&table(&card, &tensors), given).expect("weights of that model")
}

/// Sequences x steps a second, groups in parallel.
fn rate(
    live: &Live,
    model: (&str, CellKind, usize, usize, usize),
    batch: usize,
    steps: usize,
    rounds: usize,
) -> f64 {
    let width = model.3;
    let once = || {
        let groups: Vec<usize> = (0..batch).step_by(GROUP).collect();
        let group = |from: &usize| {
            let items = GROUP.min(batch - from);
            let mut run = live.start_many(&vec![Some(0); items]).expect("a goal");
            for k in 0..steps {
                let number = |i: usize| ((i + from) as f32 * 0.7 + k as f32 * 0.13).sin();
                let sample: Vec<f32> = (0..items * width).map(number).collect();
                black_box(run.push(&sample).expect("a sample"));
            }
        };
        groups.par_iter().for_each(group);
    };
    once();
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            once();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (batch * steps) as f64 / times[times.len() / 2]
}

/// The same of the peer; nothing if it cannot be run.
fn pytorch(
    python: &str,
    model: (&str, CellKind, usize, usize, usize),
    attack: &str,
    batch: usize,
) -> Option<f64> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/online/side.py");
    let (_, cell, units, dim, classes) = model;
    let cell = if cell == CellKind::Rnn { "rnn" } else { "gru" };
    let numbers = [units, dim, classes, batch].map(|n| n.to_string());
    let said = Command::new(python)
        .args([script, cell, attack])
        .args(numbers)
        .output()
        .ok()?;
    if !said.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&said.stderr));
    }
    String::from_utf8(said.stdout).ok()?.trim().parse().ok()
}
