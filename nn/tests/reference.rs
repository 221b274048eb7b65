//! Layers against PyTorch: outputs and gradients stored by `reference/make.py`, read without PyTorch.

use ndarray::Array2;
use nn::Real;
use nn::autodiff::{Init, Layout, Params, Shape, Shard, Tape, Var, Want, reduce};
use nn::batch::Lens;
use nn::batch::Sequence;
use nn::layers::*;
use nn::models::{Model, bert_spec, load_bert};
use nn::victim::{Neural, Victim};
use safetensors::SafeTensors;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    dim: usize,
    lens: Vec<usize>,
    x: Vec<f64>,
    dx: Vec<f64>,
    y: Vec<Vec<f64>>,
    dy: Vec<Vec<f64>>,
    weights: BTreeMap<String, Vec<f64>>,
    dw: BTreeMap<String, Vec<f64>>,
}

const U: Init = Init::Constant(0.0);

/// Builds the layer of that name and runs it.
fn forward<T: Real>(
    name: &str,
    dim: usize,
    layout: &mut Layout,
) -> impl Fn(&mut Tape<T>, &Params<T>, Var, &Lens) -> Vec<Var> + use<T> {
    enum Kind {
        Bi(Lstm, Lstm),
        Rnn(Rnn),
        Gru(Gru),
        Heads(MultiHead),
        Block(Box<Block>),
        Conv(ConvMax),
        Pool(AttentionPool),
        Decoder(Box<(Decoder, Dense, LearnedState)>),
    }
    let size = BlockSize {
        dim,
        heads: 2,
        inner: 7,
        activation: Activation::Gelu,
        dropout: 0.0,
        eps: 1e-3,
    };
    let kind = match name {
        "bidirectional lstm" => Kind::Bi(
            Lstm::new(layout, "a", dim, 4, U),
            Lstm::new(layout, "b", dim, 4, U),
        ),
        "rnn" => Kind::Rnn(Rnn::new(layout, "a", dim, 4, U)),
        "gru" => Kind::Gru(Gru::new(layout, "a", dim, 4, U)),
        "multi-head attention" => Kind::Heads(MultiHead::new(layout, "a", dim, 2, U)),
        "encoder block" => Kind::Block(Box::new(Block::encoder(layout, "a", size, U))),
        "word windows" => Kind::Conv(ConvMax::new(layout, "a", dim, 2, 5, 1, Activation::Relu, U)),
        "attention pooling" => Kind::Pool(AttentionPool::new(layout, "a", dim, 4, U)),
        "bahdanau decoder" => Kind::Decoder(Box::new((
            Decoder::new(layout, "a", dim, 4, 2, 5, U),
            Dense::without_bias(layout, "m", dim, 2, U),
            LearnedState::new(layout, "s", 4, true),
        ))),
        other => panic!("no layer for the stored case {other}"),
    };
    move |t, p, x, lens| {
        let sight = Sight {
            queries: lens.clone(),
            keys: lens.clone(),
            causal: false,
        };
        match &kind {
            Kind::Bi(a, b) => {
                let (a, b) = (
                    a.forward(t, p, x, lens, None, Direction::Forward),
                    b.forward(t, p, x, lens, None, Direction::Backward),
                );
                vec![concat(t, a.h, b.h)]
            }
            Kind::Rnn(cell) => vec![cell.forward(t, p, x, lens, None, Direction::Forward).h],
            Kind::Gru(cell) => vec![cell.forward(t, p, x, lens, None, Direction::Forward).h],
            Kind::Heads(heads) => vec![heads.forward(t, p, x, x, &sight).0],
            Kind::Block(block) => vec![block.forward(t, p, x, &sight, None).0],
            Kind::Conv(conv) => vec![conv.forward(t, p, x, Windows::Items(lens.clone()))],
            Kind::Pool(pool) => vec![pool.forward(t, p, x, lens).0],
            Kind::Decoder(parts) => {
                let (decoder, map, state) = &**parts;
                let memory = map.forward(t, p, x);
                let keys = decoder.weights.keys.forward(t, p, memory);
                let (h, c) = state.forward(t, p, lens.len());
                let out = decoder.forward(
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
            }
        }
    }
}

fn close<T: Real>(what: &str, got: &[T], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!(
            (g.to_f64() - e).abs() < tolerance * (1.0 + e.abs()),
            "{what}[{i}]: {g}, PyTorch has {e}"
        );
    }
}

fn compare<T: Real>(tolerance: f64) {
    let cases: BTreeMap<String, Case> =
        serde_json::from_str(include_str!("reference/vectors.json")).unwrap();
    assert_eq!(cases.len(), 8);
    for (name, case) in &cases {
        let mut layout = Layout::default();
        let run = forward::<T>(name, case.dim, &mut layout);
        let mut params: Params<T> = Params::init(&layout, 0);
        let cast = |v: &[f64]| v.iter().map(|x| T::of(*x)).collect::<Vec<T>>();
        let names: Vec<&str> = layout.entries().map(|(n, _)| n).collect();
        assert_eq!(case.weights.len(), names.len(), "{name}: {names:?}");
        for (weight, values) in &case.weights {
            let span = layout
                .find(weight)
                .unwrap_or_else(|| panic!("{name}: {weight} is not one of {names:?}"));
            let values = Array2::from_shape_vec((span.rows, span.cols), cast(values));
            params.set(span, values.unwrap().view()).unwrap();
        }
        let lens: Lens = case.lens.clone().into();
        let shape = Shape::new(*lens.iter().max().unwrap(), lens.len(), case.dim);
        let mut shard = Shard::default();
        shard.tape.reset(Want::BOTH);
        shard.grads.reset(&layout);
        let x = shard.tape.input(shape, &cast(&case.x));
        let outs = run(&mut shard.tape, &params, x, &lens);
        for ((out, y), dy) in outs.iter().zip(&case.y).zip(&case.dy) {
            let shape = shard.tape.shape(*out);
            // Beyond an item's length PyTorch pads with zeros; only real steps are compared.
            let mut got = shard.tape.get(*out).to_vec();
            if shape.time > 1 && name != "bahdanau decoder" {
                let padding =
                    |i: usize| i / shape.dim / shape.batch >= lens[i / shape.dim % shape.batch];
                got.iter_mut()
                    .enumerate()
                    .filter(|(i, _)| padding(*i))
                    .for_each(|(_, v)| *v = T::ZERO);
            }
            close(&format!("{name} output"), &got, y, tolerance);
            shard.tape.seed(*out).copy_from_slice(&cast(dy));
        }
        shard.tape.backward(&params, &mut shard.grads);
        close(
            &format!("{name} input gradient"),
            shard.tape.grad(x),
            &case.dx,
            tolerance,
        );
        let mut dw = Vec::new();
        reduce(&[shard], &layout, &mut dw).unwrap();
        let gradient = Params {
            trained: dw,
            frozen: vec![],
        };
        for (weight, expected) in &case.dw {
            close(
                &format!("{name} gradient of {weight}"),
                gradient
                    .view(layout.find(weight).unwrap())
                    .as_slice()
                    .unwrap(),
                expected,
                tolerance,
            );
        }
    }
}

#[test]
fn double_precision_agrees_to_nine_digits() {
    compare::<f64>(1e-9);
}

#[test]
fn single_precision_agrees_to_five_digits() {
    compare::<f32>(2e-5);
}

#[test]
fn a_bert_checkpoint_gives_the_pooled_vectors_of_pytorch() {
    #[derive(Deserialize)]
    struct Expected {
        texts: Vec<Vec<u32>>,
        pooled: Vec<Vec<f64>>,
    }
    let expected: Expected = serde_json::from_str(include_str!("reference/bert.json")).unwrap();
    let tensors = SafeTensors::deserialize(include_bytes!("reference/bert.safetensors")).unwrap();
    let spec = bert_spec(&tensors, 2, 3, 0.0).unwrap();
    assert_eq!(
        (
            spec.vocabulary,
            spec.positions,
            spec.dim,
            spec.inner,
            spec.layers,
            spec.pooler
        ),
        (11, 8, 6, 10, 2, true)
    );
    let model = Model::new(&spec).unwrap();
    let mut params = model.init(1);
    load_bert(&model, &mut params, &tensors).unwrap();
    let victim = Neural::new(&model, &params).unwrap();
    let texts: Vec<Sequence> = expected
        .texts
        .iter()
        .map(|t| Sequence::Tokens(t.clone()))
        .collect();
    let got = victim.sentences(&texts.iter().collect::<Vec<_>>()).unwrap();
    for (got, expected) in got.iter().zip(&expected.pooled) {
        close("pooled vector", got.as_slice().unwrap(), expected, 1e-5);
    }
    assert!(
        bert_spec(&tensors, 4, 3, 0.0).is_err(),
        "four heads do not divide six"
    );
}
