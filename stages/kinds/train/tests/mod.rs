//! Claims about the kind `train`: what it stores is the model, on any number of threads.

mod pretrained;

use arrow::array::AsArray;
use arrow::datatypes::{Float32Type, Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use store::Value;

use super::Train;
use crate::models::loaded::{Loaded, accuracy};
use crate::tables::vectors;
use crate::tables::weights;
use crate::tests::trial;
use crate::tests::trial::{on_threads, reviews, run, stored, text, tokens, vocab};
use crate::{Failure, Outputs};

fn train(model: &str, more: &[(&str, Value)]) -> crate::Outputs {
    let mut given = vec![("model", text(model))];
    if model != "naive-bayes" {
        given.push(("epochs", Value::Int(8)));
    }
    given.extend(more.iter().cloned());
    run(&Train, &[("rows", &tokens(&reviews()))], &given, 3).unwrap()
}

fn number(table: &RecordBatch, name: &str) -> f64 {
    let column = &table[name];
    match column.as_primitive_opt::<Float64Type>() {
        Some(floats) => floats.value(0),
        None => column.as_primitive::<Int64Type>().value(0) as f64,
    }
}

/// The accuracy of stored weights on a split.
fn measured(weights: &RecordBatch, split: &str) -> f64 {
    let loaded = Loaded::open(&stored(weights), None).unwrap();
    let rows = crate::tables::sequences::SequenceTable::read(&tokens(&reviews())).unwrap();
    let examples = rows.examples(&rows.split(split)).unwrap();
    accuracy(loaded.subject().unwrap().victim(), &examples).unwrap()
}

#[test]
fn every_model_learns_and_its_weights_say_what_the_card_says() {
    for model in [
        "lstm",
        "gru",
        "rnn",
        "kim-cnn",
        "transformer",
        "naive-bayes",
        "svm",
    ] {
        let more = [
            ("units", Value::Int(8)),
            ("learning_rate", Value::Float(0.01)),
        ];
        let more = match model {
            "lstm" | "gru" | "rnn" => &more[..],
            "naive-bayes" | "svm" => &[],
            _ => &more[1..],
        };
        let out = train(model, more);
        let card = &out["model"];
        let dev = number(card, "dev_accuracy");
        // Of 40 rows chance gets half, give or take 8 in a hundred.
        assert!(dev > 0.65, "{model}: {dev}");
        assert_eq!(measured(&out["weights"], "dev"), dev, "{model}");
        let history = &out["history"];
        let best = history["dev_accuracy"].as_primitive::<Float64Type>();
        let best = best.values().iter().copied().fold(0.0, f64::max);
        assert_eq!(best, dev, "{model}");
    }
}

#[test]
fn the_last_epoch_is_kept_if_that_is_asked_for() {
    // Dev rows with the wrong classes are done best before anything is learnt.
    let texts = reviews()
        .into_iter()
        .map(|(split, label, tokens)| match split {
            "dev" => (split, 1 - label, tokens),
            _ => (split, label, tokens),
        });
    let rows = tokens(&texts.collect::<Vec<_>>());
    let learnt = |keep: &[(&str, Value)]| {
        let mut given = vec![
            ("model", text("gru")),
            ("epochs", Value::Int(6)),
            ("learning_rate", Value::Float(0.01)),
        ];
        given.extend(keep.iter().cloned());
        run(&Train, &[("rows", &rows)], &given, 3).unwrap()
    };
    let best = learnt(&[("keep", text("best"))]);
    let last = learnt(&[("keep", text("last"))]);
    assert_eq!(
        store::encode(&learnt(&[])["weights"]).unwrap(),
        store::encode(&best["weights"]).unwrap()
    );
    assert_eq!(best["history"], last["history"]);
    assert_ne!(best["weights"], last["weights"]);
    let history = last["history"]["dev_accuracy"].as_primitive::<Float64Type>();
    assert_eq!(number(&last["model"], "best_epoch"), 6.0);
    assert_eq!(number(&last["model"], "dev_accuracy"), history.value(5));
    assert!(number(&best["model"], "dev_accuracy") > history.value(5));
    assert!(number(&best["model"], "best_epoch") < 6.0);
    // What is said of the weights is true of them.
    assert_eq!(
        measured(&last["weights"], "dev"),
        1.0 - number(&last["model"], "dev_accuracy")
    );
}

#[test]
fn settings_that_go_by_dev_need_dev_rows() {
    let texts = reviews().into_iter().filter(|text| text.0 != "dev");
    let rows = tokens(&texts.collect::<Vec<_>>());
    for (name, value) in [
        ("patience", Value::Int(2)),
        ("keep", text("best")),
        ("restarts", Value::Int(1)),
    ] {
        let mut given = vec![("model", text("gru")), (name, value)];
        if name == "restarts" {
            given.push(("accept", Value::Float(0.9)));
        }
        let failure = run(&Train, &[("rows", &rows)], &given, 3).unwrap_err();
        assert_eq!(
            failure.message,
            format!("`{name}` needs dev rows, and no row has the split `dev`")
        );
        assert_eq!(failure.param, Some(name));
    }
    let check = |given: &[(&str, Value)]| {
        let mut all = vec![("model", text("gru"))];
        all.extend(given.iter().cloned());
        let error = crate::complete(&Train, &trial::params(&all)).unwrap_err();
        format!("{} ({})", error.message, error.help.unwrap_or_default())
    };
    assert_eq!(
        check(&[
            ("keep", text("last")),
            ("restarts", Value::Int(2)),
            ("accept", Value::Float(0.9))
        ]),
        "`restarts` and keep = \"last\" are both given (leave one out: attempts are compared by their best epochs)"
    );
    assert_eq!(
        check(&[("keep", text("first"))]),
        "`keep` cannot be `first` (expected one of: best, last)"
    );
    assert_eq!(
        check(&[("accept", Value::Float(0.9))]),
        "`accept` would have no effect without `restarts` (leave it out, or say how often training may start again: restarts = 5)"
    );
}

#[test]
fn the_same_bytes_on_any_number_of_threads_and_another_seed_is_another_model() {
    for model in ["lstm", "svm"] {
        let once = |threads, seed| {
            on_threads(threads, || {
                let given = [("model", text(model)), ("epochs", Value::Int(2))];
                let out = run(&Train, &[("rows", &tokens(&reviews()))], &given, seed).unwrap();
                out.values()
                    .map(|t| store::encode(t).unwrap())
                    .collect::<Vec<_>>()
            })
        };
        let one = once(1, 3);
        assert!(one == once(2, 3) && one == once(8, 3), "{model}");
        assert!(one != once(2, 4), "{model}");
    }
}

/// Vectors for the vocabulary of the trial.
fn table_of_vectors(scale: f32) -> RecordBatch {
    let words = vocab();
    let values = (0..words.num_rows() * 4).map(|i| ((i * 37 % 19) as f32 - 9.0) * scale);
    let item = arrow::datatypes::Field::new("item", arrow::datatypes::DataType::Float32, true);
    let v = arrow::array::FixedSizeListArray::new(
        item.into(),
        4,
        std::sync::Arc::new(arrow::array::Float32Array::from_iter_values(values)),
        None,
    );
    weights::with_metadata(vec![("v", std::sync::Arc::new(v))], Default::default())
}

#[test]
fn frozen_vectors_stay_outside_the_weights_and_must_be_the_same_again() {
    let given = [
        ("model", text("lstm")),
        ("units", Value::Int(4)),
        ("epochs", Value::Int(1)),
    ];
    let (rows, table) = (tokens(&reviews()), table_of_vectors(0.1));
    let inputs = [("rows", &rows), ("vectors", &table)];
    let out = run(&Train, &inputs, &given, 1).unwrap();
    let names = out["weights"]["name"].as_string::<i32>();
    assert!(
        names.iter().flatten().all(|name| name != "embedding"),
        "{names:?}"
    );
    let open = |v: Option<RecordBatch>| {
        let v = v.map(|v| vectors::read(&v).unwrap());
        Loaded::open(&out["weights"], v.as_ref())
    };
    assert!(open(Some(table.clone())).is_ok());
    let message = |failure: Result<Loaded, Failure>| failure.err().unwrap().message;
    assert_eq!(
        message(open(None)),
        "this model reads word vectors that are not among its weights"
    );
    assert_eq!(
        message(open(Some(table_of_vectors(0.2)))),
        "the connected vectors are not those that the model was trained with"
    );
    let trained = [given.as_slice(), &[("vectors", text("trained"))]].concat();
    let out = run(&Train, &inputs, &trained, 1).unwrap();
    let names = out["weights"]["name"].as_string::<i32>();
    assert!(names.iter().flatten().any(|name| name == "embedding"));
    assert!(Loaded::open(&out["weights"], None).is_ok());
}

#[test]
fn safetensors_keep_every_bit() {
    for model in ["lstm", "naive-bayes", "svm"] {
        let table = train(model, &[])["weights"].clone();
        let bytes = weights::to_safetensors(&table).unwrap();
        assert_eq!(
            bytes,
            weights::to_safetensors(&stored(&table)).unwrap(),
            "{model}"
        );
        let back = weights::from_safetensors(&bytes).unwrap();
        assert!(
            store::encode(&back).unwrap() == store::encode(&table).unwrap(),
            "{model}"
        );
        let cut = weights::from_safetensors(&bytes[..bytes.len() - 1]);
        assert!(
            cut.err()
                .unwrap()
                .message
                .starts_with("not a safetensors file of ablate")
        );
    }
}

#[test]
fn counts_of_naive_bayes_are_the_texts_counts() {
    let out = train("naive-bayes", &[]);
    let values = out["weights"]["values"].as_list::<i32>().value(0);
    let counts = values.as_primitive::<Float64Type>();
    let size = vocab().num_rows();
    for class in 0..2 {
        for word in [2, 11, 12, 30] {
            let hits = reviews()
                .iter()
                .filter(|t| t.0 == "train" && t.1 == class as i64)
                .flat_map(|t| t.2.clone())
                .filter(|w| *w == word)
                .count();
            assert_eq!(counts.value(class * size + word as usize), hits as f64);
        }
    }
}

#[test]
fn signals_are_learnt_too() {
    let x = |n: usize| (0..20).map(move |t| ((t * (1 + n % 2)) as f32 * 0.6).sin());
    let mut lists = arrow::array::ListBuilder::new(arrow::array::Float32Builder::new());
    for n in 0..60 {
        x(n).for_each(|v| lists.values().append_value(v + 0.01 * (n / 2) as f32));
        lists.append(true);
    }
    let split = arrow::array::StringArray::from_iter_values(
        (0..60).map(|n| if n < 40 { "train" } else { "dev" }),
    );
    let columns: Vec<(&str, arrow::array::ArrayRef)> = vec![
        (
            "id",
            std::sync::Arc::new(arrow::array::Int64Array::from_iter_values(0..60)),
        ),
        ("split", std::sync::Arc::new(split)),
        (
            "label",
            std::sync::Arc::new(arrow::array::Int64Array::from_iter_values(
                (0..60).map(|n| n % 2),
            )),
        ),
        ("x", std::sync::Arc::new(lists.finish())),
    ];
    let shape = [("ablate.shape".to_owned(), "[20,1]".to_owned())];
    let rows = weights::with_metadata(columns, shape.into_iter().collect());
    let given = [
        ("model", text("gru")),
        ("units", Value::Int(6)),
        ("epochs", Value::Int(30)),
        ("learning_rate", Value::Float(0.02)),
    ];
    let out = run(&Train, &[("rows", &rows)], &given, 1).unwrap();
    assert_eq!(number(&out["model"], "dev_accuracy"), 1.0);
    let values = out["weights"]["values"].as_list::<i32>().value(0);
    assert!(values.as_primitive_opt::<Float32Type>().is_some());
}

/// Fresh weights are tried until dev is good enough, and the best of all attempts are kept.
#[test]
fn a_network_starts_again_until_it_is_accepted() {
    let rows = trial::signals(&trial::waves());
    let train = |accept: f64, restarts: i64| {
        let given = [
            ("model", text("rnn")),
            ("units", Value::Int(2)),
            ("epochs", Value::Int(3)),
            ("learning_rate", Value::Float(0.02)),
            ("final_rate", Value::Float(0.002)),
            ("restarts", Value::Int(restarts)),
            ("accept", Value::Float(accept)),
        ];
        run(&Train, &[("rows", &rows)], &given, 1).unwrap()
    };
    let (once, never) = (train(0.0, 3), train(1.0, 3));
    let attempts = |out: &Outputs| {
        let column = out["history"]["attempt"].as_primitive::<Int64Type>();
        column.values().to_vec()
    };
    assert_eq!(attempts(&once), [1, 1, 1]);
    assert_eq!(attempts(&never), [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
    assert_eq!(number(&never["model"], "attempts"), 4.0);
    let dev = |out: &Outputs| {
        let column = out["history"]["dev_accuracy"].as_primitive::<Float64Type>();
        column.values().iter().fold(0.0f64, |a, b| a.max(*b))
    };
    assert_eq!(number(&never["model"], "dev_accuracy"), dev(&never));
    assert_eq!(
        once["history"],
        never["history"].slice(0, 3),
        "the first attempt is the same"
    );
}

#[test]
fn wrong_parameters_are_named_before_anything_runs() {
    let check = |given: &[(&str, Value)]| {
        let error = crate::complete(&Train, &trial::params(given)).unwrap_err();
        format!(
            "{}: {} ({})",
            error.param,
            error.message,
            error.help.unwrap_or_default()
        )
    };
    assert_eq!(
        check(&[("model", text("lstn"))]),
        "model: `model` cannot be `lstn` (did you mean `lstm`?)"
    );
    assert_eq!(
        check(&[("model", text("svm")), ("units", Value::Int(3))]),
        "units: `units` does not apply to model = \"svm\" (remove it: it is a parameter of lstm, gru, rnn, char-cnn, lstm-lm, seq2seq)"
    );
    assert_eq!(
        check(&[("model", text("gru")), ("restarts", Value::Int(2))]),
        "restarts: `restarts` needs `accept` (write the dev accuracy that makes a restart unnecessary: accept = 0.9)"
    );
    let both = [
        ("model", text("gru")),
        ("decay", Value::Float(0.5)),
        ("final_rate", Value::Float(1e-4)),
    ];
    assert_eq!(
        check(&both),
        "decay: `decay` would have no effect here (remove it: it only applies to schedule = \"step\" or \"plateau\")"
    );
    assert_eq!(
        check(&[("model", text("gru")), ("final_rate", Value::Float(0.1))]),
        "final_rate: `final_rate` is 0.1 (it must be at most the learning rate, 0.001)"
    );
    assert_eq!(
        check(&[("model", text("lstm")), ("dropout", Value::Float(1.5))]),
        "dropout: `dropout` is 1.5 (it must be between 0 and 0.999)"
    );
    assert_eq!(
        check(&[("model", text("transformer")), ("heads", Value::Int(3))]),
        "model: heads is 3: expected a divisor of dim (see the README of `train`)"
    );
    assert_eq!(
        check(&[("model", text("lstm")), ("units", Value::Int(1_000_000))]),
        "units: the model would have 4000206005002 weights, which are too many (lower units)"
    );
    for (model, param, value, help) in [
        (
            "naive-bayes",
            "epochs",
            Value::Int(3),
            "leave it out: `naive-bayes` does not use it",
        ),
        (
            "svm",
            "patience",
            Value::Int(3),
            "leave it out: `svm` does not use it",
        ),
        (
            "svm",
            "learning_rate",
            Value::Float(0.5),
            "leave it out: it only applies to steps = \"constant\"",
        ),
        (
            "lstm",
            "momentum",
            Value::Float(0.9),
            "remove it: it only applies to optimiser = \"sgd\"",
        ),
    ] {
        assert_eq!(
            check(&[("model", text(model)), (param, value)]),
            format!("{param}: `{param}` would have no effect here ({help})")
        );
    }
    let rows = tokens(&reviews());
    let given = [("model", text("svm")), ("train", text("trian"))];
    let failure = run(&Train, &[("rows", &rows)], &given, 1).unwrap_err();
    assert_eq!(failure.message, "no row has the split `trian`");
    assert_eq!(failure.help.as_deref(), Some("splits: dev, test, train"));
}

#[test]
fn classes_are_those_of_the_training_rows() {
    let train = |change: &dyn Fn(&mut trial::Text)| {
        let mut texts = reviews();
        texts.iter_mut().for_each(change);
        let given = [("model", text("naive-bayes"))];
        run(&Train, &[("rows", &tokens(&texts))], &given, 1)
    };
    let plain = train(&|_| {}).unwrap();
    let more = train(&|t| t.1 += if t.0 == "test" { 3 } else { 0 }).unwrap();
    let bytes = |out: &crate::Outputs| store::encode(&out["weights"]).unwrap();
    assert!(
        bytes(&plain) == bytes(&more),
        "labels of other splits decide nothing"
    );
    let message = |out: Result<crate::Outputs, Failure>| out.unwrap_err().message;
    assert_eq!(
        message(train(&|t| t.1 = 0)),
        "all training rows have the class 0: there is only one class"
    );
    assert_eq!(
        message(train(&|t| t.1 += if t.0 == "dev" { 1 } else { 0 })),
        "a dev row has the label 2, but training rows have labels up to 1"
    );
    let given = [("model", text("svm")), ("dev", text("dve"))];
    let failure = run(&Train, &[("rows", &tokens(&reviews()))], &given, 1);
    assert_eq!(message(failure), "no row has the split `dve`");
}
