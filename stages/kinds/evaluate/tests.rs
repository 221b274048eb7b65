//! Claims about the kind `evaluate`: every metric by hand, names filled, nothing mixed silently.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use store::Value;

use super::Evaluate;
use crate::tables::weights::with_metadata;
use crate::tests::trial;
use crate::tests::trial::{run, text, tokens, vocab};

/// Examples of two instances of an axis: (n, label, before, after, words).
fn examples() -> RecordBatch {
    let rows: [(i64, i64, i64, i64, i64); 8] = [
        (1, 0, 0, 0, 1),
        (1, 0, 0, 1, 1),
        (1, 1, 1, 1, 1),
        (1, 1, 0, 0, 1),
        (3, 0, 0, 1, 2),
        (3, 0, 0, 1, 3),
        (3, 1, 1, 0, 7),
        (3, 1, 0, 1, 3),
    ];
    let whole = |k: fn(&(i64, i64, i64, i64, i64)) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(k)))
    };
    let success = rows.iter().map(|r| Some(r.2 == r.1 && r.3 != r.1));
    let columns = vec![
        ("n", whole(|r| r.0)),
        ("label", whole(|r| r.1)),
        ("predicted_before", whole(|r| r.2)),
        ("predicted_after", whole(|r| r.3)),
        (
            "success",
            Arc::new(BooleanArray::from_iter(success)) as ArrayRef,
        ),
        ("words_changed", whole(|r| r.4)),
        ("forward", whole(|r| r.4)),
        ("backward", whole(|_| 1)),
    ];
    with_metadata(columns, Default::default())
}

fn cell(from: &str, metric: &str, row: &str, col: &str) -> Value {
    let entries = [
        ("from", from),
        ("metric", metric),
        ("table", "t"),
        ("row", row),
        ("col", col),
    ];
    Value::Table(entries.map(|(k, v)| (k.to_owned(), text(v))).into())
}

/// A cell's name, its value and how many rows are behind it.
type Measured = (String, Option<f64>, Option<i64>);

fn evaluate(
    cells: Vec<Value>,
    inputs: &[(&str, &RecordBatch)],
) -> Result<Vec<Measured>, crate::Failure> {
    let shows = |cell: &Value| cell.to_string().contains("{true}");
    let labels = Value::List(vec![text("neg"), text("pos")]);
    let labelled = cells.iter().any(shows);
    let given = [("cells", Value::List(cells)), ("labels", labels)];
    let given = &given[..1 + usize::from(labelled)];
    let table = run(&Evaluate, inputs, given, 0)?["results"].clone();
    let word = |name: &str, i| table[name].as_string::<i32>().value(i).to_owned();
    let value = |i| {
        let values = table["value"].as_primitive::<Float64Type>();
        values.is_valid(i).then(|| values.value(i))
    };
    let n = |i| {
        let counts = table["n"].as_primitive::<Int64Type>();
        counts.is_valid(i).then(|| counts.value(i))
    };
    let row = |i| {
        (
            format!("{}/{}", word("row", i), word("col", i)),
            value(i),
            n(i),
        )
    };
    Ok((0..table.num_rows()).map(row).collect())
}

fn measured(metric: &str, row: &str) -> Vec<Measured> {
    evaluate(vec![cell("x", metric, row, "{n}")], &[("x", &examples())]).unwrap()
}

#[test]
fn every_metric_is_what_a_hand_counts() {
    let found = |metric: &str, row: &str| {
        let found = measured(metric, row).into_iter();
        found
            .map(|(name, value, n)| (name, value.unwrap(), n.unwrap()))
            .collect::<Vec<_>>()
    };
    let is = |name: &str, value: f64, n: i64| (name.to_owned(), value, n);
    assert_eq!(
        found("accuracy", "a"),
        [is("a/1", 0.5, 4), is("a/3", 0.25, 4)]
    );
    assert_eq!(
        found("accuracy_before", "a"),
        [is("a/1", 0.75, 4), is("a/3", 0.75, 4)]
    );
    assert_eq!(
        found("success_rate", "a"),
        [is("a/1", 1.0 / 3.0, 3), is("a/3", 1.0, 3)]
    );
    assert_eq!(
        found("miss_rate", "{true}"),
        [
            is("neg/1", 0.5, 2),
            is("pos/1", 0.5, 2),
            is("neg/3", 1.0, 2),
            is("pos/3", 0.5, 2)
        ]
    );
    assert_eq!(
        found("confusion", "{true} as {predicted}")[4..],
        [
            is("neg as neg/3", 0.0, 4),
            is("neg as pos/3", 2.0, 4),
            is("pos as neg/3", 1.0, 4),
            is("pos as pos/3", 1.0, 4)
        ]
    );
    assert_eq!(
        found("median_words", "a"),
        [is("a/1", 1.0, 1), is("a/3", 3.0, 3)]
    );
    assert_eq!(
        found("mean_words", "a"),
        [is("a/1", 1.0, 1), is("a/3", 4.0, 3)]
    );
    assert_eq!(
        found("mean_queries", "a"),
        [is("a/1", 2.0, 4), is("a/3", 4.75, 4)]
    );
    let words: BTreeMap<String, f64> = found("words", "{words} words")
        .into_iter()
        .map(|(name, value, _)| (name, value))
        .collect();
    assert_eq!(words["2 words/3"], 1.0);
    assert_eq!(words["3 words/3"], 1.0);
    assert_eq!(words["4 words/3"], 0.0);
    assert_eq!(words["7 words/3"], 1.0);
    assert_eq!(words["1 words/1"], 1.0);
}

#[test]
fn nothing_to_measure_is_no_number() {
    let none = examples().slice(3, 1);
    let cells = vec![
        cell("x", "median_words", "a", "{n}"),
        cell("x", "success_rate", "b", "{n}"),
    ];
    let found = evaluate(cells, &[("x", &none)]).unwrap();
    assert_eq!(
        found,
        [
            ("a/1".to_owned(), None, Some(0)),
            ("b/1".to_owned(), None, Some(0))
        ]
    );
}

fn numbers() -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("seed", Arc::new(Int64Array::from(vec![4, 5]))),
        ("model", Arc::new(StringArray::from(vec!["a", "a"]))),
        ("score", Arc::new(Float64Array::from(vec![Some(0.5), None]))),
    ];
    with_metadata(columns, Default::default())
}

#[test]
fn numbers_that_are_there_are_taken_over_with_seed_and_paper_value() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("table", Arc::new(StringArray::from(vec!["t"]))),
        ("row", Arc::new(StringArray::from(vec!["a"]))),
        ("col", Arc::new(StringArray::from(vec!["score"]))),
        ("value", Arc::new(Float64Array::from(vec![0.75]))),
    ];
    let paper = with_metadata(columns, Default::default());
    let given = [
        (
            "cells",
            Value::List(vec![cell("x", "score", "{model}", "score")]),
        ),
        ("paper", text("P9")),
        ("profile", text("cpu")),
    ];
    let table = run(
        &Evaluate,
        &[("x", &numbers()), ("paper", &paper)],
        &given,
        0,
    )
    .unwrap()["results"]
        .clone();
    let schema = table.schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(
        names,
        [
            "paper",
            "table",
            "row",
            "col",
            "seed",
            "value",
            "n",
            "paper_value",
            "profile"
        ]
    );
    assert_eq!(
        table["seed"].as_primitive::<Int64Type>().values().as_ref(),
        [4, 5]
    );
    assert_eq!(table["value"].as_primitive::<Float64Type>().value(0), 0.5);
    assert!(table["value"].is_null(1));
    assert_eq!(
        table["paper_value"]
            .as_primitive::<Float64Type>()
            .values()
            .as_ref(),
        [0.75, 0.75]
    );
    assert_eq!(table["paper"].as_string::<i32>().value(0), "P9");
    assert_eq!(table["profile"].as_string::<i32>().value(0), "cpu");
}

#[test]
fn how_many_rows_are_behind_a_number_is_what_its_table_says() {
    let table = |n: Option<ArrayRef>| {
        let score: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
        let mut columns = vec![("score", score)];
        columns.extend(n.map(|n| ("n", n)));
        with_metadata(columns, Default::default())
    };
    let behind = |n: Option<ArrayRef>, row: &str| {
        let found = evaluate(vec![cell("x", "score", row, "b")], &[("x", &table(n))]);
        found.map(|found| found[0].2).map_err(|f| f.message)
    };
    let whole = |n: Option<i64>| -> Option<ArrayRef> { Some(Arc::new(Int64Array::from(vec![n]))) };
    assert_eq!(behind(None, "a"), Ok(None));
    assert_eq!(behind(whole(Some(40)), "a"), Ok(Some(40)));
    assert_eq!(behind(whole(None), "a"), Ok(None));
    // An axis of that name that names the cell is not a count.
    assert_eq!(behind(whole(Some(40)), "swap{n}"), Ok(None));
    let wrong = Err("the column `n` does not hold numbers of rows".to_owned());
    assert_eq!(behind(whole(Some(-1)), "a"), wrong);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![2.0]));
    assert_eq!(behind(Some(floats), "a"), wrong);
}

#[test]
fn what_would_be_mixed_or_missed_is_refused() {
    let fail = |cells: Vec<Value>| {
        let numbers = numbers();
        let failure = evaluate(cells, &[("x", &examples()), ("y", &numbers)]).unwrap_err();
        format!("{} ({})", failure.message, failure.help.unwrap_or_default())
    };
    assert_eq!(
        fail(vec![cell("x", "accuracy", "a", "b")]),
        "`x` was collected over `n`, and the cell would mix its values (put {n} into a name of the cell)"
    );
    assert_eq!(
        fail(vec![cell("x", "accuracy", "a", "{m}")]),
        "`x` has no column `m` ({name} in a cell stands for the value of an axis that the input was collected over)"
    );
    assert_eq!(
        fail(vec![cell("z", "accuracy", "a", "b")]),
        "cell 1 is from `z`, which is not an input (inputs: x, y)"
    );
    assert_eq!(
        fail(vec![
            cell("x", "accuracy", "a", "{n}"),
            cell("x", "success_rate", "a", "{n}")
        ]),
        "two numbers would be the cell t / a / 1 of one seed (give them different names: {axis} in a name stands for an axis's value)"
    );
    assert_eq!(
        fail(vec![cell("y", "scoer", "a", "b")]),
        "`y` has no metric `scoer` (did you mean `score`? it has seed, score)"
    );
    let check = |cells: Value| {
        let error = crate::complete(&Evaluate, &trial::params(&[("cells", cells)])).unwrap_err();
        format!("{} ({})", error.message, error.help.unwrap_or_default())
    };
    let mut wrong = BTreeMap::new();
    wrong.insert("form".to_owned(), text("x"));
    assert_eq!(
        check(Value::List(vec![Value::Table(wrong)])),
        "cell 1 has the key `form` (did you mean `from`?)"
    );
}

#[test]
fn components_of_two_clouds_tell_them_apart() {
    // Class 0 uses one set of words, class 1 another; some words are anybody's.
    let stream = nn::Stream::new(1, "clouds");
    let text_of = |n: usize| {
        let label = (n % 2) as i64;
        let s = stream.item(n as u64);
        let words = (0..12).map(|k| match s.below(2 * k, 3) {
            0 => 22 + s.below(2 * k + 1, 28) as i32,
            _ => 2 + 10 * label as i32 + s.below(2 * k + 1, 10) as i32,
        });
        ("train", label, words.collect())
    };
    let texts: Vec<trial::Text> = (0..60).map(text_of).collect();
    let given = [("measure", text("pca"))];
    let out = run(&Evaluate, &[("rows", &tokens(&texts))], &given, 0).unwrap();
    assert_eq!(
        out["results"]["value"]
            .as_primitive::<Float64Type>()
            .value(0),
        1.0
    );
    let part = |name: &str| {
        out["scatter"][name]
            .as_primitive::<Float64Type>()
            .values()
            .to_vec()
    };
    let (x, y) = (part("pc1"), part("pc2"));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    assert!(
        dot(&x, &x) > dot(&y, &y),
        "the first has the larger variance"
    );
    assert!(
        dot(&x, &y).abs() < 1e-6 * dot(&x, &x),
        "they are uncorrelated"
    );
    assert!(x.iter().sum::<f64>().abs() < 1e-9, "and centred");
    // No direction has more variance: the first component is the power method's.
    let dense = |t: &trial::Text| {
        let mut row = vec![0.0; vocab().num_rows()];
        t.2.iter().for_each(|w| row[*w as usize] = 1.0);
        row
    };
    let mut rows: Vec<Vec<f64>> = texts.iter().map(dense).collect();
    let columns = rows[0].len();
    for c in 0..columns {
        let mean = rows.iter().map(|r| r[c]).sum::<f64>() / rows.len() as f64;
        rows.iter_mut().for_each(|r| r[c] -= mean);
    }
    let mut v = vec![1.0; columns];
    v[3] = 0.0;
    let mut variance = 0.0;
    for _ in 0..500 {
        let u: Vec<f64> = rows.iter().map(|r| dot(r, &v)).collect();
        variance = dot(&u, &u);
        let next: Vec<f64> = (0..columns)
            .map(|c| rows.iter().zip(&u).map(|(r, u)| r[c] * u).sum())
            .collect();
        let norm = dot(&next, &next).sqrt();
        v = next.iter().map(|n| n / norm).collect();
    }
    assert!(
        (variance / dot(&x, &x) - 1.0).abs() < 1e-6,
        "{variance} {}",
        dot(&x, &x)
    );
}

#[test]
fn a_metric_reads_the_columns_that_it_names_and_no_others() {
    let examples = examples();
    let schema = examples.schema();
    let all: Vec<usize> = (0..examples.num_rows()).collect();
    let only = |names: &[&str]| {
        let places: Vec<usize> = names.iter().map(|n| schema.index_of(n).unwrap()).collect();
        examples.project(&places).unwrap()
    };
    for metric in super::metrics::METRICS {
        let entry = metric.entry();
        let measured = |table: &RecordBatch| super::metrics::measure(*metric, table, &all);
        let whole = measured(&examples).unwrap();
        assert_eq!(measured(&only(entry.columns)).unwrap(), whole);
        assert!(!whole.is_empty(), "{}", entry.name);
        let about = |number: &super::metrics::entry::Number| -> Vec<&str> {
            number.about.iter().map(|(name, _)| *name).collect()
        };
        assert!(whole.iter().all(|n| about(n) == entry.placeholders));
        for missing in entry.columns {
            let rest: Vec<&str> = entry
                .columns
                .iter()
                .copied()
                .filter(|name| name != missing)
                .collect();
            let failure = measured(&only(&rest)).unwrap_err();
            assert_eq!(failure.message, format!("no column `{missing}`"));
        }
    }
}
