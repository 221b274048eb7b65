//! Claims about retraining: what it says of the old model is what the attack says, every way of
//! mixing learns, and the bytes are the same on any number of threads.

mod characters;

use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use arrow::record_batch::RecordBatch;
use store::Value;

use super::AdversarialRetrain;
use crate::kinds::attack::AttackStage;
use crate::kinds::train::Train;
use crate::tests::trial::{
    grids, on_threads, params, reviews, run, signals, text, tokens, vocab, waves,
};

fn trained(model: &str) -> RecordBatch {
    let given = [
        ("model", text(model)),
        ("epochs", Value::Int(6)),
        ("learning_rate", Value::Float(0.01)),
    ];
    let given = match model {
        "naive-bayes" => &given[..1],
        "svm" => &given[..2],
        _ => &given[..],
    };
    run(&Train, &[("rows", &tokens(&reviews()))], given, 3).unwrap()["weights"].clone()
}

fn retrain(
    weights: &RecordBatch,
    mix: &str,
    attack: &[(&str, Value)],
) -> Result<crate::Outputs, crate::Failure> {
    let mut given = vec![
        ("mix", text(mix)),
        ("epochs", Value::Int(4)),
        ("learning_rate", Value::Float(0.01)),
    ];
    if !["batch", "noise"].contains(&mix) {
        given.push(("items", Value::Int(80)));
    }
    given.extend(attack.iter().cloned());
    let (rows, vocab, bayes) = (tokens(&reviews()), vocab(), trained("naive-bayes"));
    let inputs = [
        ("victim", weights),
        ("rows", &rows),
        ("vocab", &vocab),
        ("bayes", &bayes),
    ];
    run(&AdversarialRetrain, &inputs, &given, 5)
}

fn column(table: &RecordBatch, name: &str) -> Vec<f64> {
    table[name].as_primitive::<Float64Type>().values().to_vec()
}

#[test]
fn the_old_model_s_numbers_are_the_attack_s() {
    let lstm = trained("lstm");
    let attack = [("attack", text("swap")), ("n", Value::Int(3))];
    let out = retrain(&lstm, "append", &attack).unwrap();
    let comparison = &out["comparison"];
    let names = comparison["model"].as_string::<i32>();
    assert_eq!(
        names.iter().flatten().collect::<Vec<_>>(),
        ["before", "after"]
    );
    let (rows, vocab, bayes) = (tokens(&reviews()), vocab(), trained("naive-bayes"));
    let inputs = [
        ("victim", &lstm),
        ("rows", &rows),
        ("vocab", &vocab),
        ("bayes", &bayes),
    ];
    let summary = run(&AttackStage, &inputs, &attack, 5).unwrap()["summary"].clone();
    assert_eq!(
        column(comparison, "clean_accuracy")[0],
        column(&summary, "accuracy_before")[0]
    );
    assert_eq!(
        column(comparison, "attacked_accuracy")[0],
        column(&summary, "accuracy_after")[0]
    );
    assert_eq!(
        column(comparison, "success_rate")[0],
        column(&summary, "success_rate")[0]
    );
    // The new model's numbers are the attack's on the new weights.
    let inputs = [
        ("victim", &out["weights"]),
        ("rows", &rows),
        ("vocab", &vocab),
        ("bayes", &bayes),
    ];
    let summary = run(&AttackStage, &inputs, &attack, 5).unwrap()["summary"].clone();
    assert_eq!(
        column(comparison, "attacked_accuracy")[1],
        column(&summary, "accuracy_after")[0]
    );
}

#[test]
fn every_mix_learns_with_the_same_bytes_on_any_number_of_threads() {
    let lstm = trained("lstm");
    let plain = [
        ("model", text("lstm")),
        ("epochs", Value::Int(4)),
        ("learning_rate", Value::Float(0.01)),
    ];
    let plain = run(&Train, &[("rows", &tokens(&reviews()))], &plain, 5).unwrap();
    let mut seen = vec![store::encode(&plain["weights"]).unwrap()];
    for mix in ["append", "epoch", "batch"] {
        let attack = [("attack", text("jsma")), ("max_words", Value::Int(2))];
        let once = |threads| {
            on_threads(threads, || {
                let out = retrain(&lstm, mix, &attack).unwrap();
                out.values()
                    .map(|t| store::encode(t).unwrap())
                    .collect::<Vec<_>>()
            })
        };
        let one = once(1);
        assert!(one == once(2), "{mix}");
        let weights = one.last().unwrap().clone();
        assert!(
            !seen.contains(&weights),
            "{mix} gives the weights of another mix"
        );
        seen.push(weights);
    }
}

#[test]
fn learning_from_swaps_helps_against_swaps() {
    let lstm = trained("lstm");
    let attack = [
        ("attack", text("swap")),
        ("n", Value::Int(3)),
        ("epochs", Value::Int(8)),
    ];
    let out = retrain(&lstm, "append", &attack).unwrap();
    let attacked = column(&out["comparison"], "attacked_accuracy");
    assert!(attacked[1] > attacked[0] + 0.1, "{attacked:?}");
}

#[test]
fn machines_learn_once_or_not_at_all() {
    let svm = trained("svm");
    let attack = [("attack", text("swap"))];
    let (rows, vocab, bayes) = (tokens(&reviews()), vocab(), trained("naive-bayes"));
    let inputs = [
        ("victim", &svm),
        ("rows", &rows),
        ("vocab", &vocab),
        ("bayes", &bayes),
    ];
    assert!(run(&AdversarialRetrain, &inputs, &attack, 5).is_ok());
    let failure = retrain(&svm, "batch", &attack).unwrap_err();
    assert_eq!(
        failure.message,
        "`svm` is fitted in one call, not batch by batch"
    );
    assert_eq!(failure.help.as_deref(), Some("choose mix = \"append\""));
    let going_on = [("attack", text("swap")), ("from", text("weights"))];
    let failure = retrain(&svm, "append", &going_on).unwrap_err();
    assert_eq!(
        failure.message,
        "`svm` is fitted in one call, and cannot continue from weights"
    );
    let failure = retrain(&svm, "append", &attack).unwrap_err();
    assert_eq!(failure.message, "`epochs` would have no effect here");
    assert_eq!(
        failure.help.as_deref(),
        Some("leave it out: `svm` is trained again with the settings that it had")
    );
}

/// The weights that rows of any kind give, retrained with or without rows of the attack in every batch.
fn with_and_without(model: &str, rows: &RecordBatch, attack: &[(&str, Value)]) -> [Vec<u8>; 2] {
    let settings = [
        ("epochs", Value::Int(2)),
        ("learning_rate", Value::Float(0.01)),
    ];
    let mut given = vec![("model", text(model)), ("units", Value::Int(6))];
    given.extend(settings.clone());
    let old = run(&Train, &[("rows", rows)], &given, 3).unwrap();
    let plain = run(&Train, &[("rows", rows)], &given, 5).unwrap();
    let mut given = vec![("mix", text("batch"))];
    given.extend(settings);
    given.extend(attack.iter().cloned());
    let inputs = [("victim", &old["weights"]), ("rows", rows)];
    let new = run(&AdversarialRetrain, &inputs, &given, 5).unwrap();
    [&new["weights"], &plain["weights"]].map(|table| store::encode(table).unwrap())
}

#[test]
fn batches_of_signals_and_of_characters_get_their_rows_too() {
    let attack = [
        ("attack", text("gradient-sign")),
        ("alpha", Value::Float(0.5)),
    ];
    let [new, plain] = with_and_without("gru", &signals(&waves()), &attack);
    assert!(new != plain, "nothing was added to batches of signals");
    // No attack changes characters; rows as they are still weigh more when they are there twice.
    let attack = [("attack", text("none"))];
    let [new, plain] = with_and_without("char-cnn", &grids(&reviews()), &attack);
    assert!(new != plain, "nothing was added to batches of characters");
}

#[test]
fn rows_that_read_the_same_keep_their_own_labels() {
    // Two texts with the same words and different classes: found by their words, both were attacked as one.
    let mut texts = reviews();
    let twin = texts[0].2.clone();
    texts.push(("train", 1 - texts[0].1, twin));
    let rows = tokens(&texts);
    let lstm = trained("lstm");
    let armed = crate::Task {
        inputs: [("victim".to_owned(), lstm), ("rows".to_owned(), rows)].into(),
        params: &params(&[("attack", text("none")), ("mix", text("batch"))]),
        seed: 5,
        files: Default::default(),
        data: &crate::DataHome::nowhere(),
        place: &crate::Place::default(),
        watch: &crate::tests::trial::Nobody,
    };
    let inputs = crate::kinds::attack::AttackInputs::open(&armed).unwrap();
    let mut mixing =
        super::AdversarialMixer::new(&armed, &inputs, super::Mix::Batch, 0, 1.0, None).unwrap();
    let train = inputs.rows.split("train");
    let (_, weights) = inputs.loaded().network().unwrap();
    let made =
        nn::training::ExtraExamples::batch(&mut mixing, 0, weights, &[0, train.len() - 1]).unwrap();
    let labels: Vec<_> = made.into_iter().map(|example| example.target).collect();
    let class = |label: i64| nn::batch::Target::Class(label as u32);
    assert_eq!(labels, [class(texts[0].1), class(1 - texts[0].1)]);
}

#[test]
fn settings_without_an_effect_are_refused() {
    let check = |mix: &str, param: &'static str, value: Value| {
        let given = [("attack", text("swap")), ("mix", text(mix)), (param, value)];
        let error = crate::complete(&AdversarialRetrain, &params(&given)).unwrap_err();
        format!("{} ({})", error.message, error.help.unwrap_or_default())
    };
    assert_eq!(
        check("batch", "items", Value::Int(7)),
        "`items` would have no effect here (remove it: it only applies to mix = \"append\" or \"epoch\")"
    );
    assert_eq!(
        check("epoch", "share", Value::Float(0.1)),
        "`share` would have no effect here (remove it: it only applies to mix = \"batch\")"
    );
}

#[test]
fn a_split_that_is_not_there_is_blamed_on_its_own_parameter() {
    let (lstm, missing) = (
        trained("lstm"),
        [("attack", text("swap")), ("test", text("tset"))],
    );
    let failure = retrain(&lstm, "append", &missing).unwrap_err();
    assert_eq!(failure.message, "no row has the split `tset`");
    assert_eq!(failure.param, Some("test"));
}
