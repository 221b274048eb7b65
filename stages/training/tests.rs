//! Claims about training by task: language models and translation are learnt, schedules and metrics do what they say.

use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use nn::autodiff::Tape;
use nn::batch::{Batch, Example};
use store::Value;

use super::translate;
use crate::kinds::train::Train;
use crate::models::loaded::Loaded;
use crate::tables::sequences::SequenceTable;
use crate::tests::trial::{Text, reversals, reviews, run, stored, text, tokens, worded_tokens};

fn floats(table: &RecordBatch, column: &str) -> Vec<f64> {
    table[column]
        .as_primitive::<Float64Type>()
        .values()
        .to_vec()
}

fn best_epoch(model: &RecordBatch) -> i64 {
    model["best_epoch"].as_primitive::<Int64Type>().value(0)
}

/// Sentences of a chain in which four words in five follow from the one before.
fn chain() -> (Vec<Text>, Vec<String>) {
    let stream = nn::Stream::new(5, "chain");
    let mut word = 0;
    let sentence = |n: usize| {
        let s = stream.item(n as u64);
        let next = |k: u64| {
            word = match s.below(2 * k, 5) {
                0 => s.below(2 * k + 1, 10),
                _ => (3 * word + 1) % 10,
            };
            2 + word as i32
        };
        let split = ["train", "train", "train", "dev"][n % 4];
        (split, 0, (0..20).map(next).collect())
    };
    let texts = (0..120).map(sentence).collect();
    let mut words = vec!["[PAD]".to_owned(), "[UNK]".to_owned()];
    words.extend((0..10).map(|k| format!("w{k}")));
    (texts, words)
}

/// What a model knows that has only counted the words.
fn unigram_perplexity(texts: &[Text]) -> f64 {
    let of = |split: &'static str| {
        let rows = texts.iter().filter(move |text| text.0 == split);
        rows.flat_map(|text| text.2.iter().copied())
    };
    let mut counts = [0.0; 12];
    of("train").for_each(|word| counts[word as usize] += 1.0);
    let total: f64 = counts.iter().sum();
    let loss: f64 = of("dev")
        .map(|word| -(counts[word as usize] / total).ln())
        .sum();
    (loss / of("dev").count() as f64).exp()
}

#[test]
fn a_language_model_learns_what_counting_words_cannot() {
    let (texts, words) = chain();
    let rows = worded_tokens(&texts, |row| format!("text/{row}"), &words);
    let given = [
        ("model", text("lstm-lm")),
        ("units", Value::Int(16)),
        ("dim", Value::Int(8)),
        ("batch", Value::Int(10)),
        ("bptt", Value::Int(10)),
        ("epochs", Value::Int(12)),
        ("learning_rate", Value::Float(0.02)),
        ("clip_norm", Value::Float(5.0)),
    ];
    let out = run(&Train, &[("rows", &rows)], &given, 1).unwrap();
    let losses = floats(&out["history"], "dev_loss");
    let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let unigram = unigram_perplexity(&texts);
    assert!(unigram > 8.0, "{unigram}");
    // The chain's own perplexity is 2.6.
    assert!((2.3..4.0).contains(&best.exp()), "{losses:?}");
    // The best epoch is that of the least dev loss, and losses are per token.
    let kept = best_epoch(&out["model"]) as usize;
    assert_eq!(losses[kept - 1], best);
    let train = floats(&out["history"], "loss");
    assert!((train[11] - losses[11]).abs() < 0.5, "{train:?}");
    // What was stored is the model that was measured.
    let loaded = Loaded::open(&stored(&out["weights"]), None).unwrap();
    let (model, params) = loaded.network().unwrap();
    let dev = texts.iter().filter(|text| text.0 == "dev");
    let dev: Vec<u32> = dev
        .flat_map(|text| text.2.iter().map(|id| *id as u32))
        .collect();
    let again = nn::training::evaluate_stream(model, params, &dev, 10).unwrap();
    assert!((again.loss - best).abs() < 1e-9);
    let refused = loaded.subject().err().unwrap().message;
    assert_eq!(refused, "the model `lstm-lm` is not a classifier");
}

#[test]
fn both_translation_models_learn_to_reverse() {
    for (model, more) in [
        ("seq2seq", vec![("units", 24), ("attention", 16)]),
        ("transformer-seq2seq", vec![("layers", 1), ("positions", 8)]),
    ] {
        let rows = reversals(800);
        let mut given = vec![
            ("model", text(model)),
            ("dim", Value::Int(32)),
            ("epochs", Value::Int(30)),
            ("batch", Value::Int(20)),
            ("learning_rate", Value::Float(0.005)),
        ];
        given.extend(more.into_iter().map(|(name, n)| (name, Value::Int(n))));
        let out = run(&Train, &[("rows", &rows)], &given, 1).unwrap();
        let accuracy = floats(&out["model"], "dev_accuracy")[0];
        assert!(accuracy > 0.97, "{model}: {accuracy}");
        // Without the targets, by its own tokens.
        let loaded = Loaded::open(&stored(&out["weights"]), None).unwrap();
        let (network, params) = loaded.network().unwrap();
        let rows = SequenceTable::read_pairs(&rows).unwrap();
        let dev = translate::examples(&rows, &rows.split("dev")).unwrap();
        let items: Vec<&Example> = dev.iter().collect();
        let batch: Batch<f32> = Batch::new(&items).unwrap();
        let made = network
            .decode(&mut Tape::default(), params, &batch, 8)
            .unwrap();
        let right = made.iter().zip(&dev).filter(|(made, example)| {
            let nn::batch::Target::Tokens(target) = &example.target else {
                return false;
            };
            made[..] == target[..target.len() - 1]
        });
        let right = right.count();
        assert!(
            right * 10 > dev.len() * 9,
            "{model}: {right} of {}",
            dev.len()
        );
    }
}

#[test]
fn translation_needs_targets_that_end() {
    let given = [("model", text("seq2seq"))];
    let message = |rows: &RecordBatch| run(&Train, &[("rows", rows)], &given, 1).unwrap_err();
    let failure = message(&tokens(&reviews()));
    assert_eq!(
        failure.message,
        "the rows have no second text to produce (column `ids_b`)"
    );
    let texts = reviews();
    let second: Vec<Vec<i32>> = texts.iter().map(|text| text.2.clone()).collect();
    let failure = message(&crate::tests::trial::with_second(&tokens(&texts), &second));
    assert_eq!(
        failure.message,
        "the targets do not all end with the same end token"
    );
    assert_eq!(
        failure.help.as_deref(),
        Some("tokenize with eos = true, so that every text ends with [EOS]")
    );
}

/// A classifier that is trained so fast that dev gets worse at times.
fn wild(more: &[(&str, Value)]) -> crate::Outputs {
    let mut given = vec![
        ("model", text("gru")),
        ("units", Value::Int(4)),
        ("epochs", Value::Int(8)),
        ("learning_rate", Value::Float(0.2)),
    ];
    given.extend(more.iter().cloned());
    run(&Train, &[("rows", &tokens(&reviews()))], &given, 3).unwrap()
}

#[test]
fn the_best_epoch_is_that_of_the_chosen_metric() {
    let (accuracy, loss) = (wild(&[]), wild(&[("best", text("loss"))]));
    assert_eq!(accuracy["history"], loss["history"]);
    let of = |column: &str| floats(&loss["history"], column);
    let first = |best: f64, all: &[f64]| all.iter().position(|x| *x == best).unwrap() as i64 + 1;
    let (losses, accuracies) = (of("dev_loss"), of("dev_accuracy"));
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let most = accuracies.iter().copied().fold(0.0, f64::max);
    assert_eq!(best_epoch(&loss["model"]), first(least, &losses));
    assert_eq!(best_epoch(&accuracy["model"]), first(most, &accuracies));
    assert_ne!(loss["weights"], accuracy["weights"]);
    assert_eq!(
        accuracy["weights"],
        wild(&[("best", text("accuracy"))])["weights"]
    );
}

#[test]
fn schedules_lower_the_rate_when_they_should() {
    let history = |more: &[(&str, Value)]| floats(&wild(more)["history"], "loss");
    let constant = history(&[]);
    // Step: the same until the first decay.
    let after = [
        ("schedule", text("step")),
        ("decay", Value::Float(0.1)),
        ("decay_after", Value::Int(3)),
    ];
    let step = history(&after);
    assert_eq!(constant[..3], step[..3]);
    assert_ne!(constant[3], step[3]);
    // Plateau: the same until dev has failed to improve once.
    let plateau = [("schedule", text("plateau")), ("decay", Value::Float(0.1))];
    let dev = floats(&wild(&[])["history"], "dev_accuracy");
    let failed = (1..8).find(|n| dev[*n] <= dev[..*n].iter().copied().fold(0.0, f64::max));
    let failed = failed.expect("dev gets worse at least once");
    assert!(failed < 7, "and not in the last epoch");
    let plateau = history(&plateau);
    assert_eq!(constant[..=failed], plateau[..=failed]);
    assert_ne!(constant[failed + 1], plateau[failed + 1]);
    // A parameter of a schedule implies it.
    let implied = |name: &'static str, value: f64, schedule: &str| {
        let value = Value::Float(value);
        let short = history(&[(name, value.clone())]);
        assert_eq!(
            short,
            history(&[(name, value), ("schedule", text(schedule))])
        );
        assert_ne!(short, constant);
    };
    implied("decay", 0.5, "step");
    implied("final_rate", 0.01, "exponential");
}
