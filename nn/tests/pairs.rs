//! Pairs of texts in one sequence: what segment vectors change, and that they are learned.

use nn::autodiff::{Params, Shard, Tape, Want, reduce};
use nn::batch::{Batch, Example, Sequence, Target};
use nn::models::{Model, TransformerSpec};
use nn::objectives::Objective;
use nn::training::{FitSpec, Flow, fit};
use nn::{Error, Stream};

const SEPARATOR: u32 = 0;

fn spec(separator: Option<u32>) -> TransformerSpec {
    TransformerSpec {
        vocabulary: 8,
        positions: 9,
        dim: 6,
        heads: 2,
        inner: 8,
        layers: 1,
        dropout: 0.0,
        pooler: false,
        classes: 2,
        separator,
    }
}

fn pair(first: &[u32], second: &[u32], class: u32) -> Example {
    Example {
        input: Sequence::Tokens([first, &[SEPARATOR], second].concat()),
        target: Target::Class(class),
    }
}

fn batch(examples: &[Example]) -> Batch<f64> {
    Batch::new(&examples.iter().collect::<Vec<_>>()).unwrap()
}

/// The sum of losses, and its gradient.
fn loss(model: &Model, params: &Params<f64>, batch: &Batch<f64>) -> (f64, Vec<f64>) {
    let mut shard = Shard::default();
    shard.tape.reset(Want::WEIGHTS);
    shard.grads.reset(model.layout());
    let out = model.forward(&mut shard.tape, params, batch).unwrap();
    let losses = Objective::CrossEntropy.apply(&mut shard.tape, &out, batch, 1.0);
    let sum = losses.unwrap().iter().sum();
    shard.tape.backward(params, &mut shard.grads);
    let mut gradient = Vec::new();
    reduce(&[shard], model.layout(), &mut gradient).unwrap();
    (sum, gradient)
}

#[test]
fn gradients_with_segments_agree_with_differences() {
    let model = Model::new(&spec(Some(SEPARATOR))).unwrap();
    let batch = batch(&[
        pair(&[3, 4, 5], &[6], 1),
        pair(&[2], &[3, 3, 7], 0),
        pair(&[1, 2], &[2, 1], 1),
    ]);
    let mut params: Params<f64> = model.init(1);
    let noise = Stream::new(2, "move");
    let moved = params.trained.iter_mut().enumerate();
    moved.for_each(|(i, w)| *w += 0.2 * noise.normal(i as u64));
    let (_, gradient) = loss(&model, &params, &batch);
    for (i, derived) in gradient.iter().enumerate() {
        let (at, h) = (params.trained[i], 1e-5);
        let mut at_offset = |offset: f64| {
            params.trained[i] = at + offset;
            loss(&model, &params, &batch).0
        };
        let numeric = (at_offset(h) - at_offset(-h)) / (2.0 * h);
        params.trained[i] = at;
        let allowed = 1e-4 * derived.abs().max(numeric.abs()) + 1e-7;
        assert!(
            (derived - numeric).abs() <= allowed,
            "weight {i}: derived {derived}, by differences {numeric}"
        );
    }
    let segments = model.layout().find("segments").unwrap();
    let entries = model.layout().entries();
    let before: usize = entries
        .take_while(|(name, _)| *name != "segments")
        .map(|(_, span)| span.len())
        .sum();
    let of_segments = &gradient[before..before + segments.len()];
    assert!(of_segments.iter().all(|g| *g != 0.0), "{of_segments:?}");
}

/// A model without segments has no such weights, and a specification without a separator is written as it always was.
#[test]
fn models_of_single_texts_are_what_they_were() {
    let (plain, pairs) = (spec(None), spec(Some(SEPARATOR)));
    let (plain, pairs) = (Model::new(&plain).unwrap(), Model::new(&pairs).unwrap());
    assert!(plain.layout().find("segments").is_none());
    assert!(!plain.spec().contains("separator"), "{}", plain.spec());
    assert!(pairs.spec().ends_with(r#""separator":0}"#));
    let (a, b): (Params<f32>, Params<f32>) = (plain.init(3), pairs.init(3));
    for (name, span) in plain.layout().entries() {
        let other = pairs.layout().find(name).unwrap();
        assert_eq!(a.view(span), b.view(other), "{name} starts differently");
    }
}

/// Attention alone cannot tell `a | b` from `b | a` if positions say nothing: segments can.
#[test]
fn segments_tell_the_two_texts_apart() {
    let model = Model::new(&spec(Some(SEPARATOR))).unwrap();
    let mut params: Params<f64> = model.init(1);
    let positions = model.layout().find("positions").unwrap();
    params.view_mut(positions).fill(0.0);
    let logits = |first: &[u32], second: &[u32]| {
        let mut tape = Tape::default();
        tape.reset(Want::NOTHING);
        let batch = batch(&[pair(first, second, 0)]);
        let out = model.forward(&mut tape, &params, &batch).unwrap();
        tape.get(out.logits).to_vec()
    };
    // The first token, which is classified, is the same.
    let (one, other) = (logits(&[5, 1], &[2]), logits(&[5, 2], &[1]));
    let distance = |a: &[f64], b: &[f64]| (a[0] - b[0]).abs();
    assert!(distance(&one, &other) > 1e-6, "{one:?} {other:?}");
    let segments = model.layout().find("segments").unwrap();
    let mut without = params.clone();
    without.view_mut(segments).fill(0.0);
    params = without;
    let logits = |first: &[u32], second: &[u32]| {
        let mut tape = Tape::default();
        tape.reset(Want::NOTHING);
        let batch = batch(&[pair(first, second, 0)]);
        let out = model.forward(&mut tape, &params, &batch).unwrap();
        tape.get(out.logits).to_vec()
    };
    let (one, other) = (logits(&[5, 1], &[2]), logits(&[5, 2], &[1]));
    assert!(distance(&one, &other) < 1e-12, "{one:?} {other:?}");
}

#[test]
fn a_relation_between_two_texts_is_learned() {
    let random = Stream::new(4, "pairs");
    let draw = |n: u64, most: u32| 1 + (random.uniform(n) * f64::from(most)) as u32;
    let example = |n: u64| {
        let (first, second) = (draw(2 * n, 7), draw(2 * n + 1, 7));
        // Half of the pairs are equal.
        let second = if n.is_multiple_of(2) { first } else { second };
        pair(&[7, first], &[second], u32::from(first == second))
    };
    let train: Vec<Example> = (0..400).map(example).collect();
    let dev: Vec<Example> = (400..500).map(example).collect();
    let model = Model::new(&TransformerSpec {
        dim: 16,
        inner: 32,
        layers: 2,
        ..spec(Some(SEPARATOR))
    });
    let model = model.unwrap();
    let settings = FitSpec::new(25, 16, 3e-3);
    let start = model.init(1);
    let mut best = 0.0_f64;
    let mut watch = |event: &nn::training::Event| {
        if let nn::training::Event::Epoch { dev: Some(dev), .. } = event {
            best = best.max(dev.accuracy);
        }
        Flow::Continue
    };
    fit(&model, start, &train, &dev, &settings, None, &mut watch).unwrap();
    assert!(best >= 0.95, "dev accuracy {best}");
}

#[test]
fn vectors_have_no_separator() {
    let model = Model::new(&spec(Some(SEPARATOR))).unwrap();
    let params: Params<f64> = model.init(1);
    let vectors = Example {
        input: Sequence::of_rows(6, vec![0.1; 12]),
        target: Target::Class(0),
    };
    let mut tape = Tape::default();
    let error = model.forward(&mut tape, &params, &batch(&[vectors]));
    assert!(matches!(error, Err(Error::Missing { .. })));
}
