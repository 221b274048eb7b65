//! Instruction sets beside each other, on whole models.

use super::launch::CHOSEN;
use super::*;
use crate::autodiff::{Shard, Want};
use crate::batch::{Batch, Example, Sequence, Target};
use crate::models::{GRU, LSTM, Model, NetworkSpec, RNN, Reads, RecurrentSpec, TransformerSpec};
use crate::objectives::Objective;

/// Logits and all input gradients of a model, on one instruction set.
fn run(isa: Isa, spec: &dyn NetworkSpec) -> Vec<f32> {
    CHOSEN.set(Some(isa));
    let model = Model::new(spec).unwrap();
    let params = model.init::<f32>(1);
    let text = |k: u32| Example {
        input: Sequence::Tokens((0..5 + 3 * k).map(|i| (i * 7 + k) % 20).collect()),
        target: Target::Class(k % 2),
    };
    let texts: Vec<Example> = (0..7).map(text).collect();
    let batch = Batch::new(&texts.iter().collect::<Vec<_>>()).unwrap();
    let mut shard: Shard<f32> = Shard::default();
    shard.tape.reset(Want::BOTH);
    shard.grads.reset(model.layout());
    let out = model.forward(&mut shard.tape, &params, &batch).unwrap();
    let logits = shard.tape.get(out.logits).to_vec();
    Objective::CrossEntropy
        .apply(&mut shard.tape, &out, &batch, 1.0)
        .unwrap();
    shard.tape.backward(&params, &mut shard.grads);
    CHOSEN.set(None);
    logits
        .into_iter()
        .chain(shard.tape.grad(out.input).to_vec())
        .collect()
}

#[test]
fn avx2_and_avx512_give_the_same_bits_and_portable_nearly() {
    let reads = Reads::Tokens {
        vocabulary: 20,
        dim: 19,
        frozen: false,
    };
    let recurrent = |cell| RecurrentSpec {
        attention: 9,
        ..RecurrentSpec::new(cell, reads.clone(), 37, 2)
    };
    let transformer = TransformerSpec {
        vocabulary: 20,
        positions: 40,
        dim: 36,
        heads: 3,
        inner: 50,
        layers: 2,
        dropout: 0.0,
        pooler: true,
        classes: 2,
        separator: None,
    };
    let cells = [&RNN, &GRU, &LSTM].map(recurrent);
    let cells = cells.iter().map(|spec| spec as &dyn NetworkSpec);
    for spec in cells.chain([&transformer as &dyn NetworkSpec]) {
        let all: Vec<(Isa, Vec<f32>)> = available()
            .into_iter()
            .map(|isa| (isa, run(isa, spec)))
            .collect();
        let wide: Vec<_> = all
            .iter()
            .filter(|(isa, _)| *isa != Isa::Portable)
            .collect();
        assert!(wide.windows(2).all(|w| w[0].1 == w[1].1), "{spec:?}");
        for (isa, values) in &all {
            let close = values
                .iter()
                .zip(&all[0].1)
                .all(|(a, b)| (a - b).abs() < 2e-5 * (1.0 + b.abs()));
            assert!(close, "{isa:?} against portable, {spec:?}");
        }
    }
}

/// Copies a row of any length, vector by vector.
struct Copy<'a>(&'a [f32], &'a mut [f32]);
impl Kernel<f32> for Copy<'_> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes<T = f32>>(self) {
        for (from, to) in self.0.chunks(V::N).zip(self.1.chunks_mut(V::N)) {
            V::load(from).store(to);
        }
    }
}

#[test]
fn rows_of_every_length_are_read_and_written_to_their_end() {
    let from: Vec<f32> = (1..=50).map(|i| i as f32).collect();
    for isa in available() {
        for length in 0..50 {
            let mut to = [-1.0; 50];
            launch_on(isa, Copy(&from[..length], &mut to[..length]));
            assert_eq!(to[..length], from[..length], "{isa:?}");
            assert!(to[length..].iter().all(|x| *x == -1.0), "{isa:?} {length}");
        }
    }
}
