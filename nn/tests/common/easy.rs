//! A task that small models learn in seconds, and settings to learn it with.

use nn::Stream;
use nn::batch::{Example, Sequence, Target};
use nn::models::{CellKind, Model, Reads, RecurrentSpec};
use nn::training::{Clip, Event, FitSpec, Flow, Keep, Loss, Metric, Optimiser, Schedule};

pub fn spec() -> FitSpec {
    FitSpec {
        epochs: 3,
        batch: 20,
        optimiser: Optimiser::ADAM,
        rate: 0.01,
        schedule: Schedule::Constant,
        clip: Clip::Norm(5.0),
        weight_decay: 0.0,
        loss: Loss::CrossEntropy,
        metric: Metric::Loss,
        patience: 0,
        dev_checks: 1,
        keep: Keep::Best,
        window: 3,
        seed: 5,
        balanced: false,
        restarts: 0,
        accept: 0.0,
        probe: 0,
    }
}

pub fn go_on(_: &Event) -> Flow {
    Flow::Continue
}

/// Texts whose first token decides the class.
pub fn easy(n: usize, tokens: usize) -> Vec<Example> {
    let s = Stream::new(3, "easy");
    let text = |i: u64| {
        let ids: Vec<u32> = (0..2 + s.item(i).below(99, 7) as u64)
            .map(|t| s.item(i).below(t, tokens) as u32)
            .collect();
        let class = ids[0] % 2;
        Example {
            input: Sequence::Tokens(ids),
            target: Target::Class(class),
        }
    };
    (0..n as u64).map(text).collect()
}

pub fn classifier(cell: &'static CellKind) -> Model {
    Model::new(&RecurrentSpec::new(
        cell,
        Reads::Tokens {
            vocabulary: 20,
            dim: 8,
            frozen: false,
        },
        16,
        2,
    ))
    .unwrap()
}
