//! Claims about keyword detectors: they say what greedy decoding writes, by the margin that the formula gives; they see
//! no target; and whole messages for what does not fit.

use arrow::record_batch::RecordBatch;
use nn::batch::{Example, Sequence, Side, Target};
use nn::numeric::argmax;
use nn::victim::{Neural, Victim};
use store::Value;

use super::KeywordDetector;
use crate::kinds::train::Train;
use crate::models::loaded::Loaded;
use crate::tests::trial::{listed, reversals, reviews, run, stored, text, tokens};
use crate::{Failure, Stage};

/// The words of [`reversals`].
pub fn words() -> Vec<String> {
    let words = ["[PAD]", "[UNK]", "[EOS]", "a", "b", "c", "d", "e"];
    words.map(str::to_owned).to_vec()
}

/// The texts of [`reversals`], alone and with the label 0.
pub fn sources() -> RecordBatch {
    reversals(80).project(&[0, 1, 2, 3]).unwrap()
}

/// Both translators, which have learnt a little.
pub fn translators() -> [(&'static str, RecordBatch); 2] {
    let trained = |name: &'static str, more: &[(&'static str, Value)]| {
        let mut given = vec![
            ("model", text(name)),
            ("dim", Value::Int(8)),
            ("epochs", Value::Int(12)),
            ("learning_rate", Value::Float(0.02)),
        ];
        given.extend(more.iter().cloned());
        let weights = run(&Train, &[("rows", &reversals(80))], &given, 3);
        (name, weights.unwrap()["weights"].clone())
    };
    let small = [("heads", 2), ("inner", 8), ("positions", 30)];
    [
        trained("seq2seq", &[("units", Value::Int(8))]),
        trained(
            "transformer-seq2seq",
            &small.map(|(p, n)| (p, Value::Int(n))),
        ),
    ]
}

/// A detector of that keyword.
pub fn detector(translator: &RecordBatch, keyword: &str) -> Result<RecordBatch, Failure> {
    made(translator, &sources(), keyword)
}

fn made(victim: &RecordBatch, rows: &RecordBatch, keyword: &str) -> Result<RecordBatch, Failure> {
    let vocab = listed(words());
    let inputs = [("victim", victim), ("rows", rows), ("vocab", &vocab)];
    let made = run(&KeywordDetector, &inputs, &[("keyword", text(keyword))], 0);
    made.map(|outputs| stored(&outputs["weights"]))
}

fn texts() -> Vec<Vec<u32>> {
    let rows = crate::tables::sequences::SequenceTable::read(&sources()).unwrap();
    let tokens = rows
        .examples
        .into_iter()
        .map(|example| match example.input {
            Sequence::Tokens(ids) => ids,
            _ => unreachable!(),
        });
    tokens.collect()
}

/// By how much the keyword is above all other words, at the best step of these logits.
fn margin(logits: &ndarray::Array2<f32>, keyword: usize) -> f32 {
    let mut best = f32::NEG_INFINITY;
    for z in logits.rows() {
        let mut other = f32::NEG_INFINITY;
        for (word, z) in z.iter().enumerate() {
            if word != keyword {
                other = other.max(*z);
            }
        }
        best = best.max(z[keyword] - other);
    }
    best
}

#[test]
fn class_1_is_an_output_with_the_keyword_and_its_logit_is_the_margin() {
    for (name, weights) in translators() {
        let translator = Loaded::open(&weights, None).unwrap();
        let (model, params) = translator.network().unwrap();
        let translator = Neural::new(model, params).unwrap();
        let end = model.decoding().unwrap().end;
        let mut counts = [0, 0];
        for (keyword, word) in words().iter().enumerate().skip(3) {
            let loaded = Loaded::open(&detector(&weights, word).unwrap(), None).unwrap();
            let subject = loaded.subject().unwrap();
            for text in texts() {
                let input = Sequence::Tokens(text.clone());
                let said = subject.victim().probabilities(&[&input]).unwrap();
                let class = argmax(said[0].as_slice().unwrap());
                let most = 2 * text.len() + 10;
                let mut output = translator.decode(&[&input], most).unwrap().remove(0);
                let has = output.contains(&(keyword as u32));
                assert_eq!(class, usize::from(has), "{name} {word} {text:?}");
                if output.len() < most {
                    output.push(end);
                }
                let taught = Example {
                    input: input.clone(),
                    target: Target::Tokens(output),
                };
                let logits = translator.forced_logits(&[&taught]).unwrap();
                let found = subject.victim().logits(&[&input]).unwrap().remove(0);
                assert_eq!(found, ndarray::array![[0.0, margin(&logits[0], keyword)]]);
                counts[class] += 1;
            }
        }
        assert!(counts.iter().all(|n| *n > 20), "{name}: {counts:?}");
    }
}

#[test]
fn a_zero_vector_is_asked_about_and_a_sentence_is_what_the_decoder_attends_to() {
    for (name, weights) in translators() {
        let translator = Loaded::open(&weights, None).unwrap();
        let (model, params) = translator.network().unwrap();
        let translator = Neural::new(model, params).unwrap();
        let loaded = Loaded::open(&detector(&weights, "c").unwrap(), None).unwrap();
        let subject = loaded.subject().unwrap();
        let detector = subject.victim();
        for text in texts().into_iter().take(20) {
            let input = Sequence::Tokens(text.clone());
            let places: Vec<usize> = (0..text.len()).collect();
            let without = detector.without(&text, &places).unwrap();
            let vectors = translator.embed(&[&input]).unwrap().remove(0);
            for (place, without) in places.into_iter().zip(without) {
                let mut vectors = vectors.clone();
                vectors.row_mut(place).fill(0.0);
                let logits = translator.logits(&[&Sequence::Vectors(vectors)]).unwrap();
                assert_eq!(without[[0, 1]], margin(&logits[0], 5), "{name} {place}");
            }
            assert!(detector.without(&text, &[text.len()]).is_err());
            // Whatever the decoder is taught, the encoder is the same.
            let taught = Example {
                input: input.clone(),
                target: Target::Tokens(vec![3, 4, 2]),
            };
            let expected: Vec<f32> = match name {
                "seq2seq" => {
                    let layers = translator.states(&[&taught]).unwrap().remove(0);
                    let encoder = layers.iter().filter(|layer| layer.side == Side::Source);
                    encoder.flat_map(|layer| layer.h.iter().copied()).collect()
                }
                _ => {
                    let layers = translator.hidden(&[&taught]).unwrap().remove(0);
                    let mut encoder = layers.iter().filter(|layer| layer.side == Side::Source);
                    encoder
                        .next_back()
                        .unwrap()
                        .vectors
                        .iter()
                        .copied()
                        .collect()
                }
            };
            let sentence = detector.sentences(&[&input]).unwrap().remove(0);
            assert_eq!(sentence.to_vec(), expected, "{name}");
            assert!(sentence.len().is_multiple_of(text.len()) && !sentence.is_empty());
        }
        assert!(detector.queries().forwards > 0 && !detector.has_gradients());
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let [(_, translator), _] = translators();
    let told = |error: Failure| (error.message, error.help.unwrap_or_default());
    let error = told(detector(&translator, "cc").unwrap_err());
    assert_eq!(
        (error.0.as_str(), error.1.as_str()),
        (
            "the vocabulary has no word `cc`",
            "choose a word of the translator's vocabulary"
        )
    );
    let mut given = store::Params::new();
    given.insert("keyword".to_owned(), text("[EOS]"));
    let error = KeywordDetector.check(&given).unwrap_err();
    assert_eq!(error.message, "`[EOS]` is a special token");
    let labelled = [("train", 0, vec![3, 4]), ("train", 1, vec![5])];
    let rows = crate::tests::trial::worded_tokens(&labelled, |n| format!("text/{n}"), &words());
    let error = told(made(&translator, &rows, "c").unwrap_err());
    assert_eq!(
        (error.0.as_str(), error.1.as_str()),
        (
            "the row with the id text/1 has the label 1, but the class of a text whose translation should not have the keyword is 0",
            "give all rows the label 0: SELECT id, split, text, 0 AS label"
        )
    );
    let others = tokens(&[("train", 0, vec![3, 4])]);
    let error = made(&translator, &others, "c").unwrap_err();
    assert!(
        error
            .message
            .starts_with("`rows` and `vocab` number their words by different"),
        "{}",
        error.message
    );
    let given = [("model", text("naive-bayes"))];
    let bayes = run(&Train, &[("rows", &tokens(&reviews()))], &given, 3);
    let error = told(detector(&bayes.unwrap()["weights"], "c").unwrap_err());
    assert_eq!(
        (error.0.as_str(), error.1.as_str()),
        (
            "the model `naive-bayes` does not translate",
            "connect `victim` to a train stage with model = \"seq2seq\" or \"transformer-seq2seq\""
        )
    );
}
