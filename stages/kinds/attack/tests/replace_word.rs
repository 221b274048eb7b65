//! Claims about replace-word: the place and the order of candidates are exactly the definitions, on a network with
//! pooling attention and on a transformer; the same rows on any number of threads; true successes; inputs that
//! restrict what it does, and whole messages for what does not fit.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use arrow::array::{ArrayRef, StringArray};
use arrow::record_batch::RecordBatch;
use nn::batch::{Example, Sequence, Target};
use nn::numeric::argmax;
use nn::victim::Victim;
use store::Value;

use super::{Row, rows};
use crate::kinds::attack::AttackStage;
use crate::kinds::train::Train;
use crate::models::loaded::Loaded;
use crate::tables::weights::with_metadata;
use crate::tests::trial::{
    Nobody, Text, completed, listed, on_threads, reviews, run, text, vocabulary, worded_tokens,
};
use crate::{DataHome, Failure, Stage, Task};

/// [CLS], in the place of the last word of the vocabulary.
const CLS: i32 = 49;

fn words() -> Vec<String> {
    let mut words = vocabulary();
    words[CLS as usize] = "[CLS]".to_owned();
    words
}

/// Reviews that begin with [CLS], and have no other.
fn framed() -> RecordBatch {
    let frame = |(split, label, tokens): Text| {
        let words = tokens
            .into_iter()
            .map(|t| if t == CLS { CLS - 1 } else { t });
        (split, label, [CLS].into_iter().chain(words).collect())
    };
    let texts: Vec<Text> = reviews().into_iter().map(frame).collect();
    worded_tokens(&texts, |row| format!("text/{row}"), &words())
}

fn trained(given: &[(&str, Value)]) -> RecordBatch {
    let mut all = vec![
        ("epochs", Value::Int(5)),
        ("learning_rate", Value::Float(0.01)),
        ("dim", Value::Int(8)),
    ];
    all.extend(given.iter().cloned());
    run(&Train, &[("rows", &framed())], &all, 3).unwrap()["weights"].clone()
}

/// A bidirectional LSTM with attention, and a transformer of two layers.
pub fn victims() -> [(&'static str, RecordBatch); 2] {
    static VICTIMS: OnceLock<[(&str, RecordBatch); 2]> = OnceLock::new();
    VICTIMS
        .get_or_init(|| {
            let lstm = [
                ("model", text("lstm")),
                ("units", Value::Int(6)),
                ("bidirectional", Value::Bool(true)),
                ("attention", Value::Int(5)),
            ];
            let transformer = [
                ("model", text("transformer")),
                ("layers", Value::Int(2)),
                ("heads", Value::Int(2)),
                ("positions", Value::Int(20)),
            ];
            [
                ("lstm", trained(&lstm)),
                ("transformer", trained(&transformer)),
            ]
        })
        .clone()
}

fn attack_with(
    victim: &RecordBatch,
    more: &[(&str, &RecordBatch)],
    given: &[(&str, Value)],
) -> Result<RecordBatch, Failure> {
    let (rows, vocab) = (framed(), listed(words()));
    let mut inputs = vec![("victim", victim), ("rows", &rows), ("vocab", &vocab)];
    inputs.extend(more);
    let mut all = vec![("attack", text("replace-word"))];
    all.extend(given.iter().cloned());
    run(&AttackStage, &inputs, &all, 9).map(|outputs| outputs["examples"].clone())
}

fn attack(victim: &RecordBatch, place: &str, replace: &str) -> Vec<Row> {
    let given = [("place", text(place)), ("replace", text(replace))];
    rows(&attack_with(victim, &[], &given).unwrap())
}

fn tokens_of(row: &Row) -> Vec<u32> {
    row.original.iter().map(|id| *id as u32).collect()
}

fn probability(victim: &dyn Victim, input: Sequence, label: i64) -> f32 {
    victim.probabilities(&[&input]).unwrap()[0][[0, label as usize]]
}

/// The first of the largest.
fn first_largest(scores: &[f64]) -> usize {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter().position(|score| *score == most).unwrap()
}

#[test]
fn importance_is_the_fall_of_a_zero_vector_found_by_brute_force() {
    for (name, weights) in victims() {
        let loaded = Loaded::open(&weights, None).unwrap();
        let subject = loaded.subject().unwrap();
        let victim = subject.victim();
        let mut changed = 0;
        for row in attack(&weights, "importance", "random") {
            let [place] = row.positions[..] else { continue };
            let tokens = tokens_of(&row);
            let vectors = victim.embed(&[&Sequence::Tokens(tokens.clone())]).unwrap();
            let before = probability(victim, Sequence::Tokens(tokens.clone()), row.label);
            let fall = |place: usize| {
                let mut vectors = vectors[0].clone();
                vectors.row_mut(place).fill(0.0);
                let after = probability(victim, Sequence::Vectors(vectors), row.label);
                f64::from(before) - f64::from(after)
            };
            let falls: Vec<f64> = (1..tokens.len()).map(fall).collect();
            assert_eq!(
                place as usize,
                1 + first_largest(&falls),
                "{name} {}",
                row.id
            );
            changed += 1;
        }
        assert!(changed > 3, "{name}: {changed} successes say little");
    }
}

#[test]
fn attention_selects_the_least_and_the_most_attended_word_and_never_cls() {
    let settings = [
        ("attention-min", "first", "first-token"),
        ("attention-max", "first", "first-token"),
        ("attention-max", "last", "first-token"),
        ("attention-max", "first", "all-tokens"),
    ];
    for (name, weights) in victims() {
        let loaded = Loaded::open(&weights, None).unwrap();
        let subject = loaded.subject().unwrap();
        for (place, layer, of) in settings {
            let given = [
                ("place", text(place)),
                ("attention_layer", text(layer)),
                ("attention_of", text(of)),
            ];
            for row in rows(&attack_with(&weights, &[], &given).unwrap()) {
                let [selected] = row.positions[..] else {
                    continue;
                };
                let example = Example {
                    input: Sequence::Tokens(tokens_of(&row)),
                    target: Target::None,
                };
                let layers = subject.victim().attention(&[&example]).unwrap().remove(0);
                let weights = match layer {
                    "first" => &layers[0].weights,
                    _ => &layers[layers.len() - 1].weights,
                };
                let (heads, queries, keys) = weights.dim();
                let rows = if of == "all-tokens" { queries } else { 1 };
                let score = |key: usize| {
                    let mut sum = 0.0;
                    for head in 0..heads {
                        for query in 0..rows {
                            sum += f64::from(weights[[head, query, key]]);
                        }
                    }
                    let sign = if place == "attention-min" { -1.0 } else { 1.0 };
                    sign * sum / (heads * rows) as f64
                };
                let scores: Vec<f64> = (1..keys).map(score).collect();
                let best = 1 + first_largest(&scores);
                assert_eq!(selected as usize, best, "{name} {place} {layer} {of}");
            }
        }
    }
}

#[test]
fn nearest_takes_the_success_with_the_least_l1_distance_of_the_sentence() {
    for (name, weights) in victims() {
        let loaded = Loaded::open(&weights, None).unwrap();
        let subject = loaded.subject().unwrap();
        let victim = subject.victim();
        let mut seen = 0;
        for row in attack(&weights, "importance", "nearest") {
            let [place] = row.positions[..] else { continue };
            let tokens = tokens_of(&row);
            let sentence = |tokens: &[u32]| {
                let input = Sequence::Tokens(tokens.to_vec());
                victim.sentences(&[&input]).unwrap().remove(0)
            };
            let before = sentence(&tokens);
            let mut best: Option<(f64, u32)> = None;
            for new in (2..49).filter(|new| *new != tokens[place as usize]) {
                let mut swapped = tokens.clone();
                swapped[place as usize] = new;
                let p = victim.probabilities(&[&Sequence::Tokens(swapped.clone())]);
                let p = p.unwrap()[0].row(0).to_vec();
                let after = sentence(&swapped);
                let pairs = before.iter().zip(&after);
                let l1: f64 = pairs
                    .map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs())
                    .sum();
                let wrong = argmax(&p) as i64 != row.label;
                if wrong && best.is_none_or(|(least, _)| l1 < least) {
                    best = Some((l1, new));
                }
            }
            let found = row.adversarial[place as usize] as u32;
            assert_eq!(Some(found), best.map(|(_, new)| new), "{name} {}", row.id);
            seen += 1;
        }
        assert!(seen > 3, "{name}: {seen} successes say little");
    }
}

#[test]
fn random_and_nearest_succeed_on_the_same_rows_without_a_limit_and_may_differ_with_one() {
    for (name, weights) in victims() {
        for place in ["importance", "attention-max"] {
            let successes = |replace: &str| -> Vec<(String, bool, Vec<i32>)> {
                let all = attack(&weights, place, replace).into_iter();
                all.map(|row| (row.id, row.success, row.positions))
                    .collect()
            };
            assert_eq!(successes("random"), successes("nearest"), "{name} {place}");
        }
        let limited = |n: i64| {
            let given = [
                ("replace", text("nearest")),
                ("max_candidates", Value::Int(n)),
            ];
            let all = rows(&attack_with(&weights, &[], &given).unwrap());
            all.iter().filter(|row| row.success).count()
        };
        assert!(limited(1) < limited(0), "{name}: a limit has no effect");
    }
}

#[test]
fn rows_are_the_same_on_any_number_of_threads() {
    let single = vec![
        ("place", text("random")),
        ("max_candidates", Value::Int(1)),
        ("repeats", Value::Int(5)),
    ];
    let by_attention = vec![
        ("place", text("attention-max")),
        ("replace", text("nearest")),
    ];
    for (name, weights) in victims() {
        for given in [&single, &by_attention] {
            let made = |threads| {
                let table = on_threads(threads, || attack_with(&weights, &[], given));
                store::encode(&table.unwrap()).unwrap()
            };
            let one = made(1);
            assert!(one == made(2) && one == made(8), "{name} {given:?}");
        }
    }
}

#[test]
fn a_single_draw_is_what_one_candidate_in_one_place_is() {
    // In a batch of many items and alone the same word is drawn.
    for (name, weights) in victims() {
        let given = [("place", text("random")), ("max_candidates", Value::Int(1))];
        let all = rows(&attack_with(&weights, &[], &given).unwrap());
        let two = [("place", text("random")), ("max_candidates", Value::Int(2))];
        let two: BTreeMap<String, Row> = rows(&attack_with(&weights, &[], &two).unwrap())
            .into_iter()
            .map(|row| (row.id.clone(), row))
            .collect();
        for row in all.iter().filter(|row| row.success) {
            assert_eq!(
                two[&row.id].adversarial, row.adversarial,
                "{name} {}",
                row.id
            );
        }
        assert!(
            all.iter().any(|row| row.success),
            "{name}: no draw succeeded"
        );
    }
}

fn pairs(rows: &[(&str, &str)]) -> RecordBatch {
    let sources = StringArray::from_iter_values(rows.iter().map(|row| row.0));
    let targets = StringArray::from_iter_values(rows.iter().map(|row| row.1));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("source", std::sync::Arc::new(sources)),
        ("target", std::sync::Arc::new(targets)),
    ];
    with_metadata(columns, Default::default())
}

#[test]
fn synonyms_are_tried_from_the_left_and_in_their_order() {
    let list: Vec<(String, String)> = (0..10)
        .flat_map(|k| {
            let good = (format!("good{k}"), format!("bad{}", (k + 3) % 10));
            let bad = (format!("bad{k}"), format!("good{}", (k + 3) % 10));
            let weak = (format!("good{k}"), format!("word{k}"));
            [weak, good, bad]
        })
        .collect();
    let list: Vec<(&str, &str)> = list.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let table = pairs(&list);
    let given = [("place", text("in-order")), ("replace", text("synonyms"))];
    let words = words();
    for (name, weights) in victims() {
        let loaded = Loaded::open(&weights, None).unwrap();
        let subject = loaded.subject().unwrap();
        let examples = attack_with(&weights, &[("synonyms", &table)], &given).unwrap();
        for row in rows(&examples).iter().filter(|row| row.attacked) {
            let tokens = tokens_of(row);
            let first = (0..tokens.len()).find_map(|place| {
                let old = &words[tokens[place] as usize];
                let synonyms = list.iter().filter(|(source, _)| source == old);
                synonyms.map(|(_, new)| *new).find_map(|new| {
                    let mut swapped = tokens.clone();
                    swapped[place] = words.iter().position(|w| w == new).unwrap() as u32;
                    let p = subject
                        .victim()
                        .probabilities(&[&Sequence::Tokens(swapped)]);
                    let p = p.unwrap()[0].row(0).to_vec();
                    (argmax(&p) as i64 != row.label).then_some((place as i32, new))
                })
            });
            let found = row.positions.first().copied().zip(row.new.first());
            let found = found.map(|(place, new)| (place, new.as_str()));
            assert_eq!(found, first, "{name} {}", row.id);
        }
    }
    let error = attack_with(&victims()[0].1, &[], &given).unwrap_err();
    assert_eq!(
        error.message,
        "the attack `replace-word` needs the input `synonyms`"
    );
}

fn ids(ids: &[&str]) -> RecordBatch {
    let column: ArrayRef = std::sync::Arc::new(StringArray::from(ids.to_vec()));
    with_metadata(vec![("id", column)], Default::default())
}

#[test]
fn only_listed_rows_are_attacked_and_only_listed_words_are_put_in() {
    let (_, weights) = &victims()[0];
    let all = attack(weights, "importance", "random");
    let two = ids(&[&all[4].id, &all[1].id]);
    let some = attack_with(weights, &[("ids", &two)], &[]).unwrap();
    let some = rows(&some);
    assert_eq!(
        some,
        [all[1].clone(), all[4].clone()],
        "in the order of rows"
    );
    let wrong = ids(&[&all[4].id, "text/0"]);
    let error = attack_with(weights, &[("ids", &wrong)], &[]).unwrap_err();
    assert_eq!(
        error.message,
        "the input `ids` has the id text/0, which no row of the split `test` has"
    );
    let candidates = listed(vec![
        "bad1".to_owned(),
        "good1".to_owned(),
        "[UNK]".to_owned(),
    ]);
    let few = attack_with(weights, &[("candidates", &candidates)], &[]).unwrap();
    let new: Vec<String> = rows(&few).into_iter().flat_map(|row| row.new).collect();
    assert!(
        !new.is_empty()
            && new
                .iter()
                .all(|new| ["bad1", "good1"].contains(&new.as_str()))
    );
    let none = listed(vec!["unheard".to_owned()]);
    let error = attack_with(weights, &[("candidates", &none)], &[]).unwrap_err();
    assert_eq!(
        error.message,
        "no word of the input `candidates` is in the vocabulary of the rows"
    );
}

#[test]
fn replay_confirms_rows_of_listed_ids_and_finds_a_row_that_is_not_listed() {
    let (_, weights) = &victims()[1];
    let all = attack(weights, "importance", "nearest");
    let listed_ids = ids(&[&all[0].id, &all[2].id, &all[3].id]);
    let given = [
        ("attack", text("replace-word")),
        ("replace", text("nearest")),
        ("items", Value::Int(2)),
    ];
    let params = completed(&AttackStage, &given);
    let task = |ids: &RecordBatch| Task {
        inputs: [
            ("victim", weights),
            ("rows", &framed()),
            ("vocab", &listed(words())),
            ("ids", ids),
        ]
        .into_iter()
        .map(|(port, table)| (port.to_owned(), table.clone()))
        .collect(),
        params: &params,
        seed: 9,
        files: Default::default(),
        data: Box::leak(Box::new(DataHome::nowhere())),
        place: Box::leak(Box::new(crate::Place::default())),
        watch: &Nobody,
    };
    let outputs = AttackStage.run(&task(&listed_ids)).unwrap();
    let replayed = AttackStage.replay(&task(&listed_ids), &outputs, true);
    let replayed = replayed.unwrap().unwrap();
    assert!(
        replayed.disagreements.is_empty(),
        "{:?}",
        replayed.disagreements
    );
    assert_eq!(
        (replayed.rows, replayed.budget.as_str()),
        (2, "at most 1 word")
    );
    let others = ids(&[&all[5].id, &all[6].id]);
    let replayed = AttackStage.replay(&task(&others), &outputs, true);
    let told = replayed.unwrap().unwrap().disagreements;
    assert!(!told.is_empty(), "rows that are not listed go unnoticed");
}

#[test]
fn a_model_that_lacks_what_is_asked_for_is_refused_by_name() {
    let plain = trained(&[("model", text("lstm")), ("units", Value::Int(4))]);
    let error = attack_with(&plain, &[], &[("place", text("attention-max"))]).unwrap_err();
    assert_eq!(error.param, Some("place"));
    assert_eq!(
        error.help.as_deref(),
        Some(
            "place = \"attention-max\" needs a model with attention: connect another victim, or choose another value"
        )
    );
    let bayes = run(
        &Train,
        &[("rows", &framed())],
        &[("model", text("naive-bayes"))],
        3,
    );
    let bayes = bayes.unwrap()["weights"].clone();
    for (param, value) in [("place", "importance"), ("replace", "nearest")] {
        let given = [("place", text("random")), (param, text(value))];
        let given: BTreeMap<&str, Value> = given.into_iter().collect();
        let given: Vec<(&str, Value)> = given.into_iter().collect();
        let error = attack_with(&bayes, &[], &given).unwrap_err();
        assert_eq!(error.param, Some(param), "{}", error.message);
    }
}
