//! Attacks that run while a sequence arrives, beside the same algorithms in PyTorch (autograd a step) and JAX
//! (compiled as a whole).
//!
//! `cargo bench --bench online [-- --pytorch PYTHON] [--jax PYTHON] [--rounds 20] [--only "GRU-50 dynamic"]`: steps a second of every attack on the
//! three models of P1, alone and 256 side by side, how the time grows with the sequence, and how long
//! 10,000 images by rows take at five sizes. Medians of rounds; run it on a quiet machine.

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use nn::models::{CellKind, GRU, Model, RNN, Reads, RecurrentSpec};
use rayon::prelude::*;
use stages::kinds::attack::AttackStream;
use stages::tables::model_card::ModelCard;
use stages::tables::weights::{Numbers, Tensor, table};
use store::{Params, Value};

/// The program's own, so that what is measured is what a user gets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A model of the paper: what it is called there, its cell, units, numbers in a sample, classes.
const MODELS: [(&str, &CellKind, usize, usize, usize); 3] = [
    ("GRU-2", &GRU, 2, 1, 2),
    ("RNN-56", &RNN, 56, 28, 10),
    ("GRU-50", &GRU, 50, 9, 6),
];

const ATTACKS: [&str; 3] = ["gradient-sign", "dynamic", "fixed-point"];

/// Sequences that share products, as in the stage.
const GROUP: usize = 32;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |flag: &str| {
        let at = arguments.iter().position(|a| a == flag)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let (pytorch, jax, only) = (given("--pytorch"), given("--jax"), given("--only"));
    let rounds = given("--rounds").and_then(|rounds| rounds.parse().ok());
    let rounds: usize = rounds.unwrap_or(20).max(1);
    println!("steps a second (sequences x steps / seconds), median of rounds");
    println!("| model | attack | batch | ours | PyTorch | times | JAX | times | 400 / 100 steps |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for model in MODELS {
        for attack in ATTACKS {
            let name = format!("{} {attack}", model.0);
            if only.is_some_and(|only| !name.contains(only)) {
                continue;
            }
            for batch in [1, 256] {
                let live = live(model, attack);
                // Both lengths in turn, and before and after the peer: what else the machine does hits all.
                let (short, long) = (Case::new(model, batch, 100), Case::new(model, batch, 400));
                let (mut shorts, mut longs) = (Vec::new(), Vec::new());
                let mut measure = || {
                    for _ in 0..rounds.div_ceil(2) {
                        shorts.push(short.seconds(&live));
                        longs.push(long.seconds(&live));
                    }
                };
                measure();
                let peer =
                    |python: Option<&str>, script| side(python?, script, model, attack, batch);
                let theirs = [peer(pytorch, "side.py"), peer(jax, "side_jax.py")];
                measure();
                let pairs = longs.iter().zip(&shorts);
                let longer = median(pairs.map(|(long, short)| long / short).collect());
                let ours = (batch * 100) as f64 / median(shorts);
                let cell = |x: Option<f64>, digits: usize| {
                    x.map_or("-".to_owned(), |x| format!("{x:.digits$}"))
                };
                println!(
                    "| {} | {attack} | {batch} | {ours:.0} | {} | {} | {} | {} | {longer:.2} |",
                    model.0,
                    cell(theirs[0], 0),
                    cell(theirs[0].map(|t| ours / t), 1),
                    cell(theirs[1], 0),
                    cell(theirs[1].map(|t| ours / t), 1)
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
fn live(model: (&str, &'static CellKind, usize, usize, usize), attack: &str) -> AttackStream {
    live_of(model, attack, 0.15)
}

fn live_of(
    model: (&str, &'static CellKind, usize, usize, usize),
    attack: &str,
    alpha: f64,
) -> AttackStream {
    let (_, cell, units, dim, classes) = model;
    let spec = RecurrentSpec::new(cell, Reads::Vectors { dim }, units, classes);
    let network = Model::new(&spec).expect("a model of the paper");
    let params: nn::autodiff::Params<f32> = network.init(1);
    let tensors: Vec<Tensor> = network
        .layout()
        .entries()
        .map(|(name, span)| Tensor {
            name: name.to_owned(),
            shape: [span.rows, span.cols],
            numbers: Numbers::Single(params.view(span).iter().copied().collect()),
        })
        .collect();
    let card = ModelCard::network(network.spec(), None, None);
    let given: Params = [
        ("attack".to_owned(), Value::Text(attack.to_owned())),
        ("alpha".to_owned(), Value::Float(alpha)),
    ]
    .into();
    let kind = stages::find("attack").expect("a kind");
    let given = stages::complete(kind, &given).expect("parameters of that attack");
    AttackStream::open(&table(&card, &tensors), given).expect("weights of that model")
}

/// So many sequences of so many steps, in groups. Signals are there before the clock starts, as the peer's are.
struct Case {
    groups: Vec<Vec<f32>>,
    steps: usize,
    width: usize,
}

impl Case {
    fn new(
        model: (&str, &'static CellKind, usize, usize, usize),
        batch: usize,
        steps: usize,
    ) -> Case {
        let width = model.3;
        let group = |from: usize| {
            let numbers = GROUP.min(batch - from) * width;
            let number = |n: usize| {
                let (k, i) = (n / numbers, n % numbers);
                ((i + from) as f32 * 0.7 + k as f32 * 0.13).sin()
            };
            (0..steps * numbers).map(number).collect()
        };
        Case {
            groups: (0..batch).step_by(GROUP).map(group).collect(),
            steps,
            width,
        }
    }

    /// Seconds that all take once, of as many times as last twenty milliseconds; groups in parallel.
    fn seconds(&self, live: &AttackStream) -> f64 {
        let group = |signal: &Vec<f32>| {
            let items = signal.len() / self.steps / self.width;
            let mut run = live.start_many(&vec![Some(0); items]).expect("a goal");
            for sample in signal.chunks_exact(items * self.width) {
                black_box(run.push(sample).expect("a sample"));
            }
        };
        let start = Instant::now();
        for times in 1.. {
            self.groups.par_iter().for_each(group);
            let seconds = start.elapsed().as_secs_f64();
            if seconds > 0.02 {
                return seconds / f64::from(times);
            }
        }
        unreachable!("twenty milliseconds pass")
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The same of a peer; nothing if it cannot be run.
fn side(
    python: &str,
    script: &str,
    model: (&str, &'static CellKind, usize, usize, usize),
    attack: &str,
    batch: usize,
) -> Option<f64> {
    let script = format!("{}/benches/online/{script}", env!("CARGO_MANIFEST_DIR"));
    let (_, cell, units, dim, classes) = model;
    let cell = if cell == &RNN { "rnn" } else { "gru" };
    let numbers = [units, dim, classes, batch].map(|n| n.to_string());
    let said = Command::new(python)
        .args([&script, cell, attack])
        .args(numbers)
        .output()
        .ok()?;
    if !said.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&said.stderr));
    }
    String::from_utf8(said.stdout).ok()?.trim().parse().ok()
}
