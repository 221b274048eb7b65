//! Claims about the kind `evaluate`: every metric by hand, names filled, nothing mixed silently.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, ListBuilder,
    StringArray, StringBuilder,
};
use arrow::datatypes::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use store::Value;

use super::Evaluate;
use crate::tables::weights::with_metadata;
use crate::tests::trial;
use crate::tests::trial::{params, run, text, tokens, vocab};

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
    // The predicted class has 0.9 and 0.6 in turn.
    let p_after = rows.iter().enumerate().map(|(n, r)| {
        let sure = if n % 2 == 0 { 0.9 } else { 0.6 };
        let p = [1.0 - sure, sure];
        Some(vec![Some(p[1 - r.3 as usize]), Some(p[r.3 as usize])])
    });
    let p_after = ListArray::from_iter_primitive::<Float32Type, _, _>(p_after);
    // Ten tokens and two of padding; as many are replaced as words were changed.
    let text = |changed: i64| -> Option<Vec<Option<i32>>> {
        let token = |k: i32| {
            if i64::from(k) < changed {
                50 + k
            } else {
                5 + k
            }
        };
        Some((0..10).map(token).chain([0, 0]).map(Some).collect())
    };
    let texts = |changed: fn(i64) -> i64| -> ArrayRef {
        let texts = rows.iter().map(|r| text(changed(r.4)));
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(texts))
    };
    let words = |word: &str| -> ArrayRef {
        let mut list = ListBuilder::new(StringBuilder::new());
        for row in &rows {
            (0..row.4).for_each(|_| list.values().append_value(word));
            list.append(true);
        }
        Arc::new(list.finish())
    };
    // Edits are replacements, inserts and deletes in turn.
    let mut operations = ListBuilder::new(StringBuilder::new());
    for row in &rows {
        for k in 0..row.4 as usize {
            let operation = ["replace", "insert", "delete"][k % 3];
            operations.values().append_value(operation);
        }
        operations.append(true);
    }
    let columns = vec![
        ("operations", Arc::new(operations.finish()) as ArrayRef),
        ("p_after", Arc::new(p_after) as ArrayRef),
        ("original", texts(|_| 0)),
        ("adversarial", texts(|changed| changed)),
        ("old", words("good")),
        ("new", words("goof")),
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
    let shows = |cell: &Value| {
        ["{true}", "{class}"]
            .iter()
            .any(|name| cell.to_string().contains(name))
    };
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

/// By hand: the cosine of the vectors after the highway layers, of every listed word.
#[test]
fn neighbours_are_the_words_with_the_largest_cosines() {
    use crate::kinds::attack::tests::characters::Characters;
    let world = Characters::new(60, 7);
    let pair = |word: &str, edited: &str| {
        Value::Table(params(&[("word", text(word)), ("edited", text(edited))]))
    };
    // An edit that changes nothing, and one that does.
    let pairs = Value::List(vec![pair("good", "goodz"), pair("film", "xqxq")]);
    let given = [
        ("measure", text("neighbours")),
        ("pairs", pairs),
        ("strongest", Value::Int(3)),
    ];
    let inputs = [
        ("victim", &world.victim),
        ("vocab", &world.vocab),
        ("words", &world.words),
    ];
    let table = run(&Evaluate, &inputs, &given, 0).unwrap()["neighbours"].clone();
    assert_eq!(table.num_rows(), 6);
    let column = |name: &str| -> Vec<String> {
        table[name]
            .as_string::<i32>()
            .iter()
            .flatten()
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(column("word")[..3], ["good", "good", "good"]);
    let cosines = table["cosine"].as_primitive::<Float64Type>().values();
    assert!(cosines[..3].is_sorted_by(|a, b| a >= b) && cosines[0] <= 1.0 + 1e-6);
    let original = table["original"].as_boolean();
    for (n, neighbour) in column("neighbour").iter().enumerate() {
        assert_eq!(original.value(n), *neighbour == column("word")[n]);
    }
    assert!(
        original.value(0),
        "the nearest to `goodz` is `good`: {:?}",
        column("neighbour")
    );
    let none = [("measure", text("neighbours"))];
    let refused = crate::complete(&Evaluate, &params(&none)).unwrap_err();
    assert_eq!(
        refused.message,
        "`pairs` has no words with their edited forms"
    );
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

/// Labels and predictions of `n = 1`: 00 01 11 10; of `n = 3`: 01 01 10 11.
#[test]
fn classification_by_hand() {
    let found = |metric: &str, row: &str| -> Vec<(String, Option<f64>, i64)> {
        let found = measured(metric, row).into_iter();
        found
            .map(|(name, value, n)| (name, value, n.unwrap()))
            .collect()
    };
    let is = |name: &str, value: f64, n: i64| (name.to_owned(), Some(value), n);
    assert_eq!(
        found("precision", "{class}"),
        [
            is("neg/1", 0.5, 2),
            is("pos/1", 0.5, 2),
            is("neg/3", 0.0, 1),
            is("pos/3", 1.0 / 3.0, 3)
        ]
    );
    assert_eq!(
        found("recall", "{class}"),
        [
            is("neg/1", 0.5, 2),
            is("pos/1", 0.5, 2),
            is("neg/3", 0.0, 2),
            is("pos/3", 0.5, 2)
        ]
    );
    // 2 x 1/3 x 1/2 / (1/3 + 1/2) = 0.4
    assert_eq!(
        found("f1", "{class}"),
        [
            is("neg/1", 0.5, 4),
            is("pos/1", 0.5, 4),
            is("neg/3", 0.0, 4),
            is("pos/3", 0.4, 4)
        ]
    );
    assert_eq!(
        found("macro_f1", "a"),
        [is("a/1", 0.5, 4), is("a/3", 0.2, 4)]
    );
    assert_eq!(found("micro_f1", "a"), found("accuracy", "a"));
    // Scores of class 1 for n = 1: negative 0.1, 0.6; positive 0.9, 0.4. Of four pairs three are in order.
    // For n = 3: negative 0.9, 0.6; positive 0.1, 0.6: none in order, one tied.
    assert_eq!(found("auc", "a"), [is("a/1", 0.75, 4), is("a/3", 0.125, 4)]);
    let near = |metric: &str, expected: [f64; 2]| {
        for ((_, value, n), expected) in found(metric, "a").into_iter().zip(expected) {
            assert!(
                (value.unwrap() - expected).abs() < 1e-6,
                "{metric}: {value:?}"
            );
            assert_eq!(n, 4);
        }
    };
    // The rows of 0.9 are in one bin, those of 0.6 in another: n = 1 has |1.8 - 2| and |1.2 - 0|, n = 3 has
    // |1.8 - 0| and |1.2 - 1|.
    near("ece", [0.35, 0.5]);
}

#[test]
fn attacks_by_hand() {
    let found = |metric: &str| -> Vec<(f64, i64)> {
        let found = measured(metric, "a").into_iter();
        found
            .map(|(_, value, n)| (value.unwrap(), n.unwrap()))
            .collect()
    };
    // Successes: one row of four with n = 1, three of four with n = 3, and three were correct before.
    assert_eq!(found("success_rate_all"), [(0.25, 4), (0.75, 4)]);
    assert_eq!(found("success_rate_correct"), [(1.0 / 3.0, 3), (1.0, 3)]);
    assert_eq!(found("success_rate"), found("success_rate_correct"));
    // Passes: words changed and one; of n = 3: 3, 4, 8, 4, of which the last is not a success.
    assert_eq!(found("median_queries"), [(2.0, 4), (4.0, 4)]);
    assert_eq!(found("success_queries"), [(2.0, 1), (5.0, 3)]);
    // Words of ten, the padding not counted: 1; and 2, 3, 7.
    assert_eq!(
        found("changed_share"),
        [(0.1, 1), ((0.2 + 0.3 + 0.7) / 3.0, 3)]
    );
    let kept = found("kept_share");
    for ((kept, n), (changed, m)) in kept.into_iter().zip(found("changed_share")) {
        assert!((kept + changed - 1.0).abs() < 1e-12, "replaced words only");
        assert_eq!(n, m);
    }
    // Ten characters and two of padding: as many edits as words here.
    assert_eq!(found("changed_characters"), found("changed_share"));
    // Of n = 1 one edit, of n = 3 two, three and seven.
    let shares = measured("operation_share", "{operation}").into_iter();
    let shares: Vec<(String, f64)> = shares
        .map(|(name, value, _)| (name, value.unwrap()))
        .collect();
    let share = |name: &str, value: f64| (name.to_owned(), value);
    assert_eq!(
        shares,
        [
            share("replace/1", 1.0),
            share("insert/1", 0.0),
            share("delete/1", 0.0),
            share("replace/3", 5.0 / 12.0),
            share("insert/3", 4.0 / 12.0),
            share("delete/3", 3.0 / 12.0),
        ]
    );
    // One character of each word: good becomes goof.
    assert_eq!(found("mean_characters"), found("mean_words"));
}

#[test]
fn options_of_metrics_are_read_and_checked() {
    let with = |metric: &str, bins: i64| {
        let Value::Table(mut cell) = cell("x", metric, "a", "{n}") else {
            unreachable!()
        };
        cell.insert("bins".to_owned(), Value::Int(bins));
        Value::List(vec![Value::Table(cell)])
    };
    // One bin: the distance between mean probability and accuracy.
    let Value::List(cells) = with("ece", 1) else {
        unreachable!()
    };
    let found = evaluate(cells, &[("x", &examples())]).unwrap();
    assert!((found[0].1.unwrap() - 0.25).abs() < 1e-6, "{found:?}");
    let refused = |cells: Value| {
        let error = crate::complete(&Evaluate, &trial::params(&[("cells", cells)])).unwrap_err();
        error.message
    };
    assert_eq!(
        refused(with("ece", 0)),
        "`bins` of cell 1 must be an integer from 1 to 10000, not 0"
    );
    assert_eq!(refused(with("auc", 3)), "cell 1 has the key `bins`");
}

#[test]
fn too_few_names_of_classes_are_refused() {
    let cells = Value::List(vec![cell("x", "miss_rate", "{true}", "{n}")]);
    let given = [("cells", cells), ("labels", Value::List(vec![text("neg")]))];
    let failure = run(&Evaluate, &[("x", &examples())], &given, 0).unwrap_err();
    assert_eq!(failure.message, "`labels` has no name for the class 1");
    assert_eq!(failure.param, Some("labels"));
}

#[test]
fn characters_of_ids_are_refused() {
    let examples = examples();
    let ids = |row: usize| -> Vec<String> {
        let words = examples["words_changed"].as_primitive::<Int64Type>();
        (0..words.value(row)).map(|k| (5 + k).to_string()).collect()
    };
    let mut list = ListBuilder::new(StringBuilder::new());
    for row in 0..examples.num_rows() {
        ids(row)
            .iter()
            .for_each(|id| list.values().append_value(id));
        list.append(true);
    }
    let list: ArrayRef = Arc::new(list.finish());
    let schema = examples.schema();
    let columns = schema.fields().iter().map(|field| {
        let name = field.name().as_str();
        let column = match name {
            "old" | "new" => &list,
            name => &examples[name],
        };
        (name, column.clone())
    });
    let table = with_metadata(columns.collect(), Default::default());
    let cells = vec![cell("x", "mean_characters", "a", "{n}")];
    let failure = evaluate(cells, &[("x", &table)]).unwrap_err();
    assert_eq!(
        failure.message,
        "the edits of these examples are ids, which have no characters to compare"
    );
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
        "cell 1 is from `z`, which is neither a stage nor an input (inputs: x, y)"
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
        let measured =
            |table: &RecordBatch| super::metrics::measure(*metric, table, &all, &BTreeMap::new());
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
