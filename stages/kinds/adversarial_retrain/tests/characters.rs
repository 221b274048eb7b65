//! Claims about training against attacks on characters: white-box and black-box rows in every batch, and noise in
//! embeddings.

use std::sync::LazyLock;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Float32Type;
use arrow::record_batch::RecordBatch;
use nn::batch::{Example, Sequence};
use nn::training::ExtraExamples;
use store::Value;

use crate::Task;
use crate::kinds::adversarial_retrain::AdversarialRetrain;
use crate::kinds::adversarial_retrain::mixing::{AdversarialMixer, Mix};
use crate::kinds::adversarial_retrain::noise::EmbeddingNoise;
use crate::kinds::attack::AttackInputs;
use crate::kinds::attack::tests::characters::Characters;
use crate::tests::trial::{Nobody, completed, on_threads, run, text};
use crate::{Failure, Outputs};

static WORLD: LazyLock<Characters> = LazyLock::new(|| Characters::new(150, 7));

type Given = Vec<(&'static str, Value)>;

/// Adversarial copies of each batch: the best flips, or random ones.
fn at_once(attack: &str) -> Given {
    let mut given = vec![
        ("attack", text(attack)),
        ("mode", text("one-shot")),
        ("mix", text("batch")),
        ("share", Value::Float(1.0)),
        ("budget", Value::Float(0.2)),
    ];
    if attack == "hotflip" {
        given.push(("edits", Value::List(vec![text("flip")])));
    }
    given
}

fn noise(more: &[(&'static str, Value)]) -> Given {
    let given = [("attack", text("none")), ("mix", text("noise"))];
    given.into_iter().chain(more.iter().cloned()).collect()
}

fn retrained(given: &Given) -> Result<Outputs, Failure> {
    let mut given = given.clone();
    given.extend([
        ("epochs", Value::Int(2)),
        ("batch", Value::Int(20)),
        ("learning_rate", Value::Float(0.02)),
    ]);
    let inputs = WORLD.inputs();
    let inputs: Vec<(&str, &RecordBatch)> = inputs.iter().map(|(n, t)| (*n, t)).collect();
    run(&AdversarialRetrain, &inputs, &given, 5)
}

fn bytes(outputs: &Outputs) -> Vec<Vec<u8>> {
    outputs
        .values()
        .map(|table| store::encode(table).unwrap())
        .collect()
}

#[test]
fn the_same_bytes_on_any_number_of_threads_from_scratch_and_from_weights() {
    let continued = [("from", text("weights")), ("normalise", Value::Bool(false))];
    for given in [
        at_once("hotflip"),
        at_once("key-star"),
        noise(&[]),
        noise(&continued),
    ] {
        let two = on_threads(2, || bytes(&retrained(&given).unwrap()));
        for threads in [1, 8] {
            assert!(
                two == on_threads(threads, || bytes(&retrained(&given).unwrap())),
                "{given:?}"
            );
        }
        if given[1] == ("mode", text("one-shot")) {
            let mut given = given;
            given.push(("from", text("weights")));
            let from_weights = bytes(&retrained(&given).unwrap());
            assert!(from_weights != two);
        }
    }
}

fn with_mixer<R>(
    given: &Given,
    mix: Mix,
    f: impl FnOnce(&AttackInputs, &mut AdversarialMixer<'_>) -> R,
) -> R {
    let params = completed(&AdversarialRetrain, given);
    let inputs = WORLD.inputs().into_iter();
    let task = Task {
        inputs: inputs
            .map(|(name, table)| (name.to_owned(), table))
            .collect(),
        params: &params,
        seed: 5,
        files: Default::default(),
        data: &crate::DataHome::nowhere(),
        place: &crate::Place::default(),
        watch: &Nobody,
    };
    let inputs = AttackInputs::open(&task).unwrap();
    let mut mixer = AdversarialMixer::new(&task, &inputs, mix, 0, 1.0, None).unwrap();
    f(&inputs, &mut mixer)
}

fn flips(before: &Example, after: &Example) -> usize {
    let (Sequence::Chars { ids: a, .. }, Sequence::Chars { ids: b, .. }) =
        (&before.input, &after.input)
    else {
        panic!("not characters");
    };
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// Every sample of a batch has a copy with a fifth of its characters flipped and its own label, also if the model
/// misclassifies it. White-box copies depend on the weights alone, black-box ones are drawn anew for every step.
#[test]
fn every_sample_of_a_batch_has_an_adversarial_copy() {
    for attack in ["hotflip", "key-star"] {
        with_mixer(&at_once(attack), Mix::Batch, |inputs, mixer| {
            let (_, weights) = inputs.loaded().network().unwrap();
            let batch: Vec<usize> = (0..20).collect();
            let mut made = |step: u64| mixer.batch(step, weights, &batch).unwrap();
            let (first, again, later) = (made(0), made(0), made(1));
            assert_eq!(first, again);
            assert_eq!(first == later, attack == "hotflip");
            let train = inputs.rows.split("train");
            let clean = inputs.rows.examples(&train[..20]).unwrap();
            assert_eq!(first.len(), 20);
            for (clean, copy) in clean.iter().zip(&first) {
                assert_eq!(clean.target, copy.target);
                let Sequence::Chars { ids, .. } = &clean.input else {
                    panic!()
                };
                let characters = ids.iter().filter(|id| **id != 0).count();
                assert_eq!(flips(clean, copy), (characters / 5).max(1), "{attack}");
            }
        });
    }
}

#[test]
fn noise_has_the_norm_that_is_asked_for_and_grows_the_loss() {
    with_mixer(&noise(&[]), Mix::Noise, |inputs, _| {
        let (model, weights) = inputs.loaded().network().unwrap();
        let examples = inputs.rows.examples(&inputs.rows.split("test")).unwrap();
        let batch: Vec<&Example> = examples.iter().collect();
        let subject = inputs.loaded().subject().unwrap();
        let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
        let vectors = subject.victim().embed(&texts).unwrap();
        for relative in [false, true] {
            let noise = EmbeddingNoise {
                epsilon: 0.01,
                relative,
            };
            let noise = noise.of(model, weights, &batch).unwrap();
            let (mut before, mut after) = (0.0, 0.0);
            for ((noise, vectors), example) in noise.iter().zip(&vectors).zip(&examples) {
                let Sequence::Chars { width, .. } = example.input else {
                    panic!()
                };
                let norm =
                    |m: ndarray::ArrayView2<'_, f32>| m.iter().map(|x| x * x).sum::<f32>().sqrt();
                let words = noise.axis_chunks_iter(ndarray::Axis(0), width);
                for (n, word) in words.enumerate() {
                    let own = vectors.slice(ndarray::s![n * width..(n + 1) * width, ..]);
                    let wanted = 0.01 * if relative { norm(own) } else { 1.0 };
                    let length = norm(word);
                    assert!(length == 0.0 || (length / wanted - 1.0).abs() < 1e-3);
                }
                let read = |vectors: ndarray::Array2<f32>| {
                    let steps = vectors.nrows() / width;
                    let dim = width * vectors.ncols();
                    let flat = vectors.into_shape_with_order((steps, dim)).unwrap();
                    let example = Example {
                        input: Sequence::Vectors(flat),
                        ..example.clone()
                    };
                    subject.victim().losses(&[&example]).unwrap()[0][0]
                };
                before += read(vectors.clone());
                after += read(vectors + noise);
            }
            assert!(after > before, "{before} {after}");
        }
    });
}

/// The stored embeddings are normalised, and attacks read them as they are.
#[test]
fn embeddings_are_normalised_where_that_is_asked_for() {
    let spread = |outputs: &Outputs| -> Vec<(f64, f64)> {
        let table = &outputs["weights"];
        let names = table["name"].as_string::<i32>();
        let at = (0..names.len())
            .find(|n| names.value(*n) == "characters")
            .unwrap();
        let values = table["values"].as_list::<i32>().value(at);
        let values = values.as_primitive::<Float32Type>().values().to_vec();
        let column = |k: usize| -> Vec<f64> {
            values
                .iter()
                .skip(k)
                .step_by(5)
                .map(|x| f64::from(*x))
                .collect()
        };
        let moments = |x: Vec<f64>| {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            let square = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
            (mean, square)
        };
        (0..5).map(|k| moments(column(k))).collect()
    };
    let normal = |(mean, square): &(f64, f64)| mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-4;
    let with = retrained(&noise(&[])).unwrap();
    assert!(spread(&with).iter().all(normal), "{:?}", spread(&with));
    let without = retrained(&noise(&[("normalise", Value::Bool(false))])).unwrap();
    assert!(!spread(&without).iter().any(normal));
    assert!(bytes(&with) != bytes(&without));
}

#[test]
fn what_noise_cannot_do_is_refused_before_training() {
    let refused = retrained(&noise(&[("from", text("weights"))])).unwrap_err();
    assert_eq!(
        refused.message,
        "`normalise` would change the weights that training is to continue from"
    );
    let words = super::trained("lstm");
    let refused = super::retrain(&words, "noise", &[("attack", text("none"))]).unwrap_err();
    assert_eq!(
        refused.message,
        "`lstm` has no character embeddings to add noise to"
    );
}
