//! Claims about test generation: what is changed, that it is found again by brute force, and that threads change nothing.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Float64Array};
use arrow::datatypes::{Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use store::Value;

use super::RnnTest;
use crate::kinds::evaluate::Evaluate;
use crate::kinds::train::Train;
use crate::tests::trial::{Nobody, Text, completed, listed, run, text, worded_tokens};
use crate::{DataHome, Outputs, Replayed, Stage, Task};

/// A text in which a word decides which may follow, a model of it, and its words.
pub struct TestedText {
    pub inputs: Vec<(&'static str, RecordBatch)>,
}

impl TestedText {
    pub fn new() -> TestedText {
        let words: Vec<String> = (0..30)
            .map(|n| match n {
                0 => "[PAD]".to_owned(),
                1 => "[UNK]".to_owned(),
                n => format!("word{n}"),
            })
            .collect();
        let stream = nn::Stream::new(4, "chain");
        let mut word = 2;
        let mut line = |n: u64| -> Vec<i32> {
            let next = |k: u64| {
                word = 2 + (3 * word + stream.item(n).below(k, 3)) % 28;
                word as i32
            };
            (0..20).map(next).collect()
        };
        let mut texts: Vec<Text> = Vec::new();
        for n in 0..60 {
            let split = ["train", "train", "train", "train", "dev", "test"][n % 6];
            texts.push((split, 0, line(n as u64)));
        }
        let rows = worded_tokens(&texts, |row| format!("text/{row}"), &words);
        let given = TestedText::training();
        let victim = run(&Train, &[("rows", &rows)], &given, 1).unwrap()["weights"].clone();
        TestedText {
            inputs: vec![("victim", victim), ("rows", rows), ("vocab", listed(words))],
        }
    }

    /// How its model is trained.
    pub fn training() -> Given {
        vec![
            ("model", text("lstm-lm")),
            ("units", Value::Int(8)),
            ("dim", Value::Int(8)),
            ("layers", Value::Int(2)),
            ("batch", Value::Int(5)),
            ("bptt", Value::Int(10)),
            ("epochs", Value::Int(8)),
            ("learning_rate", Value::Float(0.02)),
        ]
    }

    /// Two words of four, one of them with its first letters swapped or a letter too many, and a model that corrects.
    pub fn spelling() -> TestedText {
        let letters = [
            "[PAD]", "[UNK]", "[EOS]", "[GO]", " ", "a", "b", "c", "d", "e",
        ];
        let letters = letters.map(str::to_owned).to_vec();
        let stream = nn::Stream::new(6, "spelling");
        let words = ["abcd", "dace", "bead", "eced"].map(|w| {
            w.bytes()
                .map(|b| 5 + i32::from(b - b'a'))
                .collect::<Vec<i32>>()
        });
        let (mut texts, mut second): (Vec<Text>, _) = (Vec::new(), Vec::new());
        for n in 0..600 {
            let s = stream.item(n);
            let right = [s.below(0, 4), s.below(1, 4)].map(|k| words[k].clone());
            let mut wrong = right.clone();
            let word = &mut wrong[s.below(2, 2)];
            match s.below(3, 3) {
                0 => word.swap(0, 1),
                1 => word.insert(2, 5 + s.below(4, 5) as i32),
                _ => {}
            }
            let joined =
                |words: &[Vec<i32>; 2], end: &[i32]| [&words[0], &[4][..], &words[1], end].concat();
            let split = if n < 500 {
                "train"
            } else if n < 530 {
                "dev"
            } else {
                "test"
            };
            texts.push((split, 0, joined(&wrong, &[2])));
            second.push(joined(&right, &[2]));
        }
        let rows = worded_tokens(&texts, |row| format!("text/{row}"), &letters);
        let rows = crate::tests::trial::with_second(&rows, &second);
        let given = [
            ("model", text("seq2seq")),
            ("units", Value::Int(24)),
            ("dim", Value::Int(8)),
            ("attention", Value::Int(12)),
            ("reversed", Value::Bool(true)),
            ("batch", Value::Int(20)),
            ("epochs", Value::Int(14)),
            ("learning_rate", Value::Float(0.01)),
        ];
        let victim = run(&Train, &[("rows", &rows)], &given, 1).unwrap()["weights"].clone();
        TestedText {
            inputs: vec![
                ("victim", victim),
                ("rows", rows),
                ("vocab", listed(letters)),
            ],
        }
    }

    fn run(&self, given: &[(&'static str, Value)]) -> Outputs {
        let inputs: Vec<(&str, &RecordBatch)> = self.inputs.iter().map(|(n, t)| (*n, t)).collect();
        run(&RnnTest, &inputs, given, 9).unwrap()
    }

    fn replay(&self, given: &[(&'static str, Value)], outputs: &Outputs) -> Replayed {
        let params = completed(&RnnTest, given);
        let inputs = self.inputs.iter();
        let task = Task {
            inputs: inputs.map(|(n, t)| ((*n).to_owned(), t.clone())).collect(),
            params: &params,
            seed: 9,
            files: Default::default(),
            data: &DataHome::nowhere(),
            place: &crate::Place::default(),
            watch: &Nobody,
        };
        RnnTest.replay(&task, outputs, true).unwrap().unwrap()
    }
}

type Given = Vec<(&'static str, Value)>;

/// Every orientation, coverage and strategy, and joint ones.
fn methods() -> Vec<Given> {
    let mut all: Vec<Given> = Vec::new();
    for orientation in ["random", "cost", "decision", "state"] {
        all.push(vec![("orientation", text(orientation))]);
    }
    for coverage in ["HS", "CS", "G_i", "G_n", "G_f", "G_o", "DX"] {
        for strategy in ["boosting", "random"] {
            all.push(vec![
                ("coverage", text(coverage)),
                ("strategy", text(strategy)),
                ("states", Value::Int(6)),
            ]);
        }
        all.push(vec![
            ("orientation", text("state")),
            ("coverage", text(coverage)),
        ]);
    }
    all.push(vec![
        ("coverage", text("G_f")),
        ("gate_source", text("authors")),
    ]);
    all.push(vec![
        ("orientation", text("state")),
        ("swap_hc", Value::Bool(true)),
    ]);
    all.push(vec![
        ("orientation", text("cost")),
        ("restricted", Value::Bool(true)),
    ]);
    all
}

#[test]
fn one_position_changes_to_the_nearest_embedding_whatever_the_method() {
    let world = TestedText::new();
    for given in methods() {
        let outputs = world.run(&given);
        let replayed = world.replay(&given, &outputs);
        assert_eq!(replayed.disagreements, [], "{given:?}");
        assert_eq!(replayed.rows, 19, "{given:?}");
        assert!(replayed.successes > 0, "{given:?}: or nothing was tested");
        let coverage = &outputs["coverage"];
        let inputs = coverage["input"].as_primitive::<Int64Type>();
        assert_eq!(coverage.num_rows(), 27 * replayed.successes);
        assert_eq!(inputs.value(inputs.len() - 1) as usize, replayed.successes);
    }
}

#[test]
fn threads_change_nothing_although_the_search_is_ordered() {
    let world = TestedText::new();
    for given in methods() {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| world.run(&given))
        };
        let one = on(1);
        assert_eq!(one, on(2), "{given:?}");
        assert_eq!(one, on(8), "{given:?}");
    }
}

#[test]
fn rates_are_those_of_the_rows() {
    let world = TestedText::new();
    let outputs = world.run(&[
        ("orientation", text("cost")),
        ("scale_last", Value::Float(5.0)),
    ]);
    let (rows, rates) = (&outputs["generated"], &outputs["rates"]);
    let float = |table: &RecordBatch, name: &str| -> Vec<f64> {
        table[name].as_primitive::<Float64Type>().values().to_vec()
    };
    let found = rows["generated"].as_boolean();
    let found: Vec<bool> = found.iter().flatten().collect();
    let count = found.iter().filter(|found| **found).count();
    assert!(
        (1..19).contains(&count),
        "{count}: some are found and some are not"
    );
    assert_eq!(float(rates, "gen_rate"), [count as f64 / 19.0]);
    let (before, after) = (float(rows, "loss_before"), float(rows, "loss_after"));
    for n in 0..19 {
        assert_eq!(
            found[n],
            before[n] != after[n],
            "an input that was not found counts as it was"
        );
    }
    let pp = (after.iter().sum::<f64>() / 190.0).exp();
    assert!((float(rates, "pp")[0] - pp).abs() < 1e-9 * pp);
    let own = after.iter().map(|loss| (loss / 10.0).exp()).sum::<f64>() / 19.0;
    assert!((float(rates, "pp_i")[0] - own).abs() < 1e-9 * own);
    assert!(
        float(rates, "pp")[0] > float(rates, "pp_before")[0],
        "the cost went up"
    );
    assert_eq!(rows["l2"].null_count(), 19 - count);
}

#[test]
fn every_lie_is_found() {
    let world = TestedText::new();
    let given = vec![("orientation", text("state"))];
    let outputs = world.run(&given);
    let with = |table: &str, column: &str, array: arrow::array::ArrayRef| {
        let mut outputs = outputs.clone();
        let old = &outputs[table];
        let at = old.schema().index_of(column).unwrap();
        let mut columns = old.columns().to_vec();
        columns[at] = array;
        let new = RecordBatch::try_new(old.schema(), columns).unwrap();
        outputs.insert(table.to_owned(), new);
        let found = world.replay(&given, &outputs).disagreements;
        found.into_iter().map(|d| d.column).collect::<Vec<_>>()
    };
    let rows = &outputs["generated"];
    // Points of other rows are near other tokens.
    let order: Vec<u32> = (0..19).map(|n| (n + 1) % 19).collect();
    let order = arrow::array::UInt32Array::from(order);
    let turned = arrow::compute::take(&rows["point"], &order, None).unwrap();
    assert!(with("generated", "point", turned).contains(&"point".to_owned()));
    let turned = arrow::compute::take(&rows["adversarial"], &order, None).unwrap();
    assert!(!with("generated", "adversarial", turned).is_empty());
    let losses = rows["loss_after"].as_primitive::<Float64Type>();
    let better: Float64Array = losses
        .iter()
        .map(|loss| loss.map(|loss| loss * 1.5))
        .collect();
    assert_eq!(with("generated", "loss_after", Arc::new(better)).len(), 19);
    let flattered = Arc::new(Float64Array::from(vec![1e9]));
    assert_eq!(with("rates", "pp", flattered), ["rates"]);
    let covered = outputs["coverage"]["covered"].as_primitive::<Float64Type>();
    let more: Float64Array = covered.iter().map(|c| c.map(|c| c / 2.0)).collect();
    assert_eq!(with("coverage", "covered", Arc::new(more)), ["covered"]);
}

#[test]
fn what_would_have_no_effect_is_refused() {
    let world = TestedText::new();
    let inputs: Vec<(&str, &RecordBatch)> = world.inputs.iter().map(|(n, t)| (*n, t)).collect();
    let refused = |given: &[(&'static str, Value)]| {
        let params = given
            .iter()
            .map(|(n, v)| ((*n).to_owned(), v.clone()))
            .collect();
        match crate::complete(&RnnTest, &params) {
            Err(error) => error.message,
            Ok(_) => run(&RnnTest, &inputs, given, 9).err().unwrap().message,
        }
    };
    let message = refused(&[]);
    assert_eq!(
        message,
        "there is nothing to follow: no orientation and no coverage"
    );
    let message = refused(&[
        ("orientation", text("cost")),
        ("scale_last", Value::Float(1.0)),
    ]);
    assert_eq!(message, "`scale_last` is 1, less than `scale_first`, 5");
    let message = refused(&[("orientation", text("cost")), ("fall_back", text("word"))]);
    assert_eq!(message, "`fall_back` would have no effect here");
    let message = refused(&[("orientation", text("random")), ("window", Value::Int(500))]);
    assert_eq!(
        message,
        "the split `test` has 200 tokens, too few for a window of 500 and the token after it"
    );
    refused(&[
        ("orientation", text("cost")),
        ("swap_hc", Value::Bool(true)),
    ]);
    refused(&[("orientation", text("random")), ("coverage", text("CS"))]);
}

#[test]
fn a_spell_checker_is_tested_where_it_corrects() {
    let world = TestedText::spelling();
    for given in methods() {
        if given.contains(&("gate_source", text("authors"))) {
            continue;
        }
        let outputs = world.run(&given);
        let replayed = world.replay(&given, &outputs);
        assert_eq!(replayed.disagreements, [], "{given:?}");
        assert!(replayed.rows > 20, "{given:?}: {}", replayed.rows);
        assert_eq!(
            replayed.successes, replayed.rows,
            "with a fall-back all are found"
        );
        let rates = &outputs["rates"];
        let rate = |name: &str| rates[name].as_primitive::<Float64Type>().value(0);
        assert_eq!(rate("gen_rate"), 1.0);
        assert!(rate("suc_rate") >= 0.0 && rate("suc_rate") <= 1.0);
        assert!(rate("bleu_before") > 0.5 && rate("wer_lev") >= rate("wer_lev_before") - 0.5);
        let rows = &outputs["generated"];
        let old = rows["old"].as_string::<i32>();
        assert!(old.iter().all(|c| c != Some(" ") && c != Some("[EOS]")));
    }
}

#[test]
fn a_fall_back_is_counted() {
    let world = TestedText::spelling();
    let rate = |given: &[(&'static str, Value)], name: &str| {
        let outputs = world.run(given);
        let rates = outputs["rates"][name]
            .as_primitive::<Float64Type>()
            .value(0);
        let by = outputs["generated"]["by"].as_string::<i32>();
        let drawn = by.iter().filter(|by| *by == Some("fall-back")).count();
        (rates, drawn)
    };
    let base = |fall_back: &str, last: f64| {
        vec![
            ("orientation", text("cost")),
            ("fall_back", text(fall_back)),
            ("scale_first", Value::Float(1e-6)),
            ("scale_step", Value::Float(last)),
            ("scale_last", Value::Float(last * 1.5)),
        ]
    };
    // Factors so small that nothing is found by the gradient.
    assert_eq!(rate(&base("none", 1e-6), "gen_rate"), (0.0, 0));
    let (orient_rate, drawn) = rate(&base("word", 1e-6), "orient_rate");
    assert!(orient_rate == 0.0 && drawn > 20, "{orient_rate} {drawn}");
    // A factor that is large enough at some positions and not at others.
    let some = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5].into_iter().find(|last| {
        let alone = rate(&base("none", *last), "gen_rate").0;
        alone > 0.2 && alone < 0.95
    });
    let last = some.expect("between none and all");
    let alone = rate(&base("none", last), "gen_rate").0;
    let first = world.run(&base("word", last));
    let (by, tried) = (&first["generated"]["by"], &first["generated"]["tried"]);
    let tried = tried.as_primitive::<Int64Type>().values().iter();
    let first: Vec<bool> = by
        .as_string::<i32>()
        .iter()
        .zip(tried)
        .map(|(by, tried)| by == Some("gradient") && *tried == 1)
        .collect();
    let share = first.iter().filter(|first| **first).count() as f64 / first.len() as f64;
    assert_eq!(
        share, alone,
        "what is found at the first position is what is found without a fall-back"
    );
    let found = |fall_back| rate(&base(fall_back, last), "orient_rate").0;
    let (word, input) = (found("word"), found("input"));
    assert!(alone < word && word <= input, "{alone} {word} {input}");
}

#[test]
fn evaluated_perplexity_is_that_of_training_and_coverage_is_of_any_recurrent_model() {
    let world = TestedText::new();
    let connected: Vec<(&str, &RecordBatch)> =
        world.inputs[..2].iter().map(|(n, t)| (*n, t)).collect();
    let measure = |name: &str| vec![("measure", text(name)), ("split", text("dev"))];
    let found = run(&Evaluate, &connected, &measure("perplexity"), 0).unwrap();
    let loss = found["perplexity"]["loss"]
        .as_primitive::<Float64Type>()
        .value(0);
    let perplexity = found["perplexity"]["perplexity"]
        .as_primitive::<Float64Type>()
        .value(0);
    assert!((perplexity - loss.exp()).abs() < 1e-9 * perplexity);
    // The model is that of the best epoch.
    let given = TestedText::training();
    let history = run(&Train, &[("rows", &world.inputs[1].1)], &given, 1).unwrap();
    let losses = history["history"]["dev_loss"].as_primitive::<Float64Type>();
    let best = losses
        .values()
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min);
    assert!((loss - best).abs() < 1e-9, "{loss} {best}");
    // One row after the other: what is covered never falls, and the order decides the numbers on the way only.
    let covered = |inputs: &[(&str, &RecordBatch)]| {
        let table = run(&Evaluate, inputs, &measure("coverage"), 0).unwrap();
        table["coverage"].clone()
    };
    let language = covered(&connected);
    assert_eq!(language.num_rows(), 27 * 10);
    let gru = [
        ("model", text("gru")),
        ("units", Value::Int(4)),
        ("epochs", Value::Int(1)),
    ];
    let rows = crate::tests::trial::tokens(&crate::tests::trial::reviews());
    let weights = run(&Train, &[("rows", &rows)], &gru, 1).unwrap()["weights"].clone();
    let by_gru = covered(&[("victim", &weights), ("rows", &rows)]);
    let metrics = by_gru["metric"].as_string::<i32>();
    assert!(
        metrics
            .iter()
            .all(|metric| metric == Some("HS") || metric == Some("DX"))
    );
    for table in [language, by_gru] {
        let inputs = table["input"].as_primitive::<Int64Type>().values().to_vec();
        let covered = table["covered"]
            .as_primitive::<Float64Type>()
            .values()
            .to_vec();
        let each = inputs.iter().filter(|input| **input == 1).count();
        for n in each..covered.len() {
            assert_eq!(inputs[n], inputs[n - each] + 1);
            assert!(covered[n] >= covered[n - each]);
        }
        assert!(covered.last() > covered.first());
    }
}

#[test]
fn perturbations_are_projected_with_their_methods() {
    let tested = TestedText::new();
    let named = |orientation: &str| {
        let made = &tested.run(&[("orientation", text(orientation))])["generated"];
        let names = arrow::array::StringArray::from(vec![orientation; made.num_rows()]);
        let columns = made.schema();
        let columns = columns.fields().iter().map(|f| f.name().as_str());
        let columns = columns.zip(made.columns().iter().cloned());
        let all = columns.chain([("method", Arc::new(names) as _)]);
        let all = all.map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(all).unwrap()
    };
    let tables = ["state", "cost", "random"].map(named);
    let collected = arrow::compute::concat_batches(&tables[0].schema(), &tables).unwrap();
    let by = collected.column_by_name("by").unwrap().as_string::<i32>();
    let along = by.iter().filter(|by| *by == Some("gradient")).count();
    let victim = &tested.inputs[0].1;
    let inputs = [("victim", victim), ("generated", &collected)];
    let measure = |by: &str, samples: i64| {
        let given = [
            ("measure", text("perturbations")),
            ("by", text(by)),
            ("samples", Value::Int(samples)),
        ];
        run(&Evaluate, &inputs, &given, 0).map(|mut made| made.remove("scatter").unwrap())
    };
    let scatter = measure("method", 10_000).unwrap();
    assert_eq!(
        scatter.num_rows(),
        along,
        "random replacements have no gradient"
    );
    for column in ["method", "nearest"] {
        let names = scatter.column_by_name(column).unwrap().as_string::<i32>();
        let known = |name| matches!(name, Some("state" | "cost"));
        assert!(names.iter().all(known) && names.iter().any(|n| n == Some("state")));
    }
    assert_eq!(measure("method", 7).unwrap().num_rows(), 7);
    let refused = measure("family", 7).unwrap_err();
    assert_eq!(
        refused.message,
        "the input `generated` has no column of strings `family`"
    );
}
