//! Claims about replays: the truth passes, and every lie is found with its row.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float32Builder, Float64Array, Int32Builder, Int64Array,
    ListBuilder, StringArray,
};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use store::Value;

use super::replay;
use crate::kinds::attack::AttackStage;
use crate::kinds::train::Train;
use crate::tests::trial::{Nobody, completed, reviews, run, text, tokens, vocab};
use crate::{DataHome, Disagreement, Outputs, Replayed, Task};

struct World {
    inputs: Vec<(&'static str, RecordBatch)>,
    given: Vec<(&'static str, Value)>,
    outputs: Outputs,
}

/// An LSTM under `swap`, which changes two words of each row.
fn swapped() -> World {
    let rows = tokens(&reviews());
    let train = |model: &str| {
        let given = [("model", text(model)), ("epochs", Value::Int(6))];
        let given = &given[..if model == "lstm" { 2 } else { 1 }];
        run(&Train, &[("rows", &rows)], given, 3).unwrap()["weights"].clone()
    };
    let (weights, bayes) = (train("lstm"), train("naive-bayes"));
    let inputs = vec![
        ("victim", weights),
        ("bayes", bayes),
        ("rows", rows),
        ("vocab", vocab()),
    ];
    let given = vec![
        ("attack", text("swap")),
        ("n", Value::Int(2)),
        ("split", text("test")),
    ];
    let connected: Vec<(&str, &RecordBatch)> = inputs.iter().map(|(n, t)| (*n, t)).collect();
    let outputs = run(&AttackStage, &connected, &given, 9).unwrap();
    World {
        inputs,
        given,
        outputs,
    }
}

impl World {
    fn replay(&self, outputs: &Outputs) -> Replayed {
        let params = completed(&AttackStage, &self.given);
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
        replay(&task, outputs, true).unwrap()
    }

    /// What is found when a column of an output is another.
    fn with(&self, output: &str, column: &str, array: ArrayRef) -> Vec<Disagreement> {
        let mut outputs = self.outputs.clone();
        let table = &outputs[output];
        let at = table.schema().index_of(column).unwrap();
        let mut columns = table.columns().to_vec();
        columns[at] = array;
        let changed = RecordBatch::try_new(table.schema(), columns).unwrap();
        outputs.insert(output.to_owned(), changed);
        self.replay(&outputs).disagreements
    }
}

fn found(row: Option<usize>, id: &str, column: &str, stored: &str, found: &str) -> Disagreement {
    Disagreement {
        row,
        id: id.to_owned(),
        column: column.to_owned(),
        stored: stored.to_owned(),
        found: found.to_owned(),
    }
}

#[test]
fn the_truth_passes_and_every_lie_is_found() {
    let world = swapped();
    let truth = world.replay(&world.outputs);
    assert_eq!(truth.disagreements, []);
    assert_eq!((truth.rows, truth.asked), (40, 80));
    assert!(truth.successes > 0, "or the lies below say nothing");
    assert_eq!(truth.budget, "at most 2 words");
    let examples = &world.outputs["examples"];
    let id = |n: usize| examples["id"].as_string::<i32>().value(n).to_owned();

    // A success that was none.
    let flags: Vec<bool> = examples["success"].as_boolean().values().iter().collect();
    let row = flags.iter().position(|flag| !flag).unwrap();
    let lie: Vec<bool> = flags
        .iter()
        .enumerate()
        .map(|(n, flag)| *flag || n == row)
        .collect();
    let lies = world.with("examples", "success", Arc::new(BooleanArray::from(lie)));
    assert_eq!(
        lies,
        [found(Some(row), &id(row), "success", "true", "false")]
    );

    // A probability that is one bit off.
    let mut lists = ListBuilder::new(Float32Builder::new());
    for n in 0..examples.num_rows() {
        let list = examples["p_after"].as_list::<i32>().value(n);
        let mut list = list.as_primitive::<Float32Type>().values().to_vec();
        if n == 7 {
            list[0] = f32::from_bits(list[0].to_bits() ^ 1);
        }
        lists.values().append_slice(&list);
        lists.append(true);
    }
    let lies = world.with("examples", "p_after", Arc::new(lists.finish()));
    let [lie] = &lies[..] else { panic!("{lies:?}") };
    assert_eq!((lie.row, lie.column.as_str()), (Some(7), "p_after"));

    // A summary that flatters.
    let rate = Arc::new(Float64Array::from(vec![1.5]));
    let lies = world.with("summary", "success_rate", rate);
    let [lie] = &lies[..] else { panic!("{lies:?}") };
    assert_eq!(
        (lie.row, lie.column.as_str(), lie.stored.as_str()),
        (None, "success_rate", "1.5")
    );
}

#[test]
fn rows_that_are_left_out_or_listed_twice_are_found() {
    let world = swapped();
    let examples = &world.outputs["examples"];
    let with = |rows: &[u32]| {
        let rows = arrow::array::UInt32Array::from(rows.to_vec());
        let mut outputs = world.outputs.clone();
        let table = arrow::compute::take_record_batch(examples, &rows).unwrap();
        outputs.insert("examples".to_owned(), table);
        world.replay(&outputs).disagreements
    };
    let all: Vec<u32> = (0..40).collect();
    assert_eq!(with(&all), []);
    let id = |n: usize| examples["id"].as_string::<i32>().value(n).to_owned();
    let missing = found(
        Some(39),
        &id(39),
        "id",
        "missing",
        "one row per sampled item",
    );
    assert_eq!(with(&all[..39]), std::slice::from_ref(&missing));
    let mut twice = all.clone();
    twice[39] = 0;
    let doubled = found(Some(39), &id(0), "id", "twice", "each row once");
    let missing = Disagreement {
        row: Some(40),
        ..missing
    };
    assert_eq!(with(&twice), [doubled, missing]);
}

#[test]
fn changes_that_are_not_listed_and_budgets_that_are_not_kept_are_found() {
    let world = swapped();
    let examples = &world.outputs["examples"];
    // Another word of row 3 is changed in secret.
    let mut lists = ListBuilder::new(Int32Builder::new());
    for n in 0..examples.num_rows() {
        let list = |name: &str| {
            let list = examples[name].as_list::<i32>().value(n);
            list.as_primitive::<Int32Type>().values().to_vec()
        };
        let mut adversarial = list("adversarial");
        if n == 3 {
            let listed = list("positions");
            let place = (0..).find(|at| !listed.contains(&(*at as i32))).unwrap();
            adversarial[place] = if adversarial[place] == 30 { 31 } else { 30 };
        }
        lists.values().append_slice(&adversarial);
        lists.append(true);
    }
    let lies = world.with("examples", "adversarial", Arc::new(lists.finish()));
    assert!(lies.iter().all(|lie| lie.row == Some(3)), "{lies:?}");
    let wrong = "edits that turn the original into it";
    assert!(
        lies.iter()
            .any(|lie| lie.column == "adversarial" && lie.found == wrong),
        "{lies:?}"
    );

    // The same table under a smaller budget.
    let strict = World {
        given: vec![
            ("attack", text("swap")),
            ("n", Value::Int(1)),
            ("split", text("test")),
        ],
        ..swapped()
    };
    let lies = strict.replay(&strict.outputs).disagreements;
    assert_eq!(lies.len(), 40);
    assert_eq!(
        (lies[0].column.as_str(), lies[0].found.as_str()),
        ("budget", "2 words changed")
    );

    // Another label than the row has.
    let labels = examples["label"].as_primitive::<Int64Type>().values();
    let lie: Vec<i64> = labels
        .iter()
        .enumerate()
        .map(|(n, l)| if n == 5 { 1 - l } else { *l })
        .collect();
    let lies = world.with("examples", "label", Arc::new(Int64Array::from(lie)));
    assert_eq!((lies[0].row, lies[0].column.as_str()), (Some(5), "label"));
}

/// Synonyms of words for a class: those of the other class with the same number.
fn opposites() -> RecordBatch {
    let pairs = (0..10).flat_map(|k| [("bad", "good", k), ("good", "bad", k)]);
    let pairs: Vec<(String, String)> = pairs
        .map(|(a, b, k)| (format!("{a}{k}"), format!("{b}{k}")))
        .collect();
    let column = |of: fn(&(String, String)) -> &String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(pairs.iter().map(of)))
    };
    RecordBatch::try_from_iter([("source", column(|p| &p.0)), ("target", column(|p| &p.1))])
        .unwrap()
}

#[test]
fn words_that_are_no_synonyms_are_found() {
    let world = swapped();
    let mut inputs = world.inputs;
    inputs.retain(|(port, _)| *port != "bayes");
    inputs.push(("synonyms", opposites()));
    let given = vec![("attack", text("pwws")), ("split", text("test"))];
    let connected: Vec<(&str, &RecordBatch)> = inputs.iter().map(|(n, t)| (*n, t)).collect();
    let outputs = run(&AttackStage, &connected, &given, 9).unwrap();
    let mut world = World {
        inputs,
        given,
        outputs,
    };
    let truth = world.replay(&world.outputs);
    assert_eq!(truth.disagreements, []);
    assert!(truth.successes > 0, "nothing was replaced");
    // The same rows, where the words have other synonyms.
    let turned = opposites();
    let turned = RecordBatch::try_from_iter([
        ("source", turned["source"].slice(2, 18)),
        ("target", turned["target"].slice(0, 18)),
    ]);
    world.inputs.last_mut().unwrap().1 = turned.unwrap();
    let lies = world.replay(&world.outputs).disagreements;
    let changed = world.outputs["examples"]["words_changed"].as_primitive::<Int64Type>();
    let changed = changed.values().iter().filter(|words| **words > 0).count();
    assert_eq!(lies.len(), changed, "{lies:?}");
    for lie in lies {
        let (rule, found) = (lie.column.as_str(), lie.found.as_str());
        assert_eq!((rule, found), ("constraints", "a synonym of the word"));
    }
}
