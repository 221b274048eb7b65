//! Claims about attacks on characters: estimates are derivatives, edits are legal, budgets are kept, and rows are the
//! same in any company.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use ndarray::Array3;
use nn::Stream;
use nn::autodiff::{Tape, Want};
use nn::batch::{Batch, Example, Input, Sequence, Target};
use nn::objectives::Objective;
use nn::victim::Victim;
use proptest::prelude::*;
use store::Value;

use crate::kinds::attack::AttackStage;
use crate::kinds::attack::candidates::characters::{GridText, Spelling, edit};
use crate::kinds::attack::candidates::estimates::{Estimate, Estimator, Operations};
use crate::kinds::attack::context::AttackContext;
use crate::kinds::attack::edit::{Change, Edit};
use crate::kinds::attack::inputs::AttackInputs;
use crate::kinds::table::Table;
use crate::kinds::tokenize::Tokenize;
use crate::kinds::train::Train;
use crate::tables::sequences::SequenceTable;
use crate::tests::trial::{Nobody, completed, on_threads, params, run, text};
use crate::{DataHome, Outputs, Replayed, Stage, Task};

/// Texts in characters, the words of their training split, and a network that reads them.
pub struct Characters {
    pub rows: RecordBatch,
    pub vocab: RecordBatch,
    pub words: RecordBatch,
    pub victim: RecordBatch,
}

/// Texts whose class shows in some words: 2 in 3 train, then dev and test.
pub fn texts(count: usize) -> RecordBatch {
    const CLASSES: [[&str; 5]; 2] = [
        ["bad", "awful", "poor", "dull", "sad"],
        ["good", "great", "fine", "happy", "nice"],
    ];
    const OTHERS: [&str; 10] = [
        "the", "film", "was", "a", "story", "of", "night", "and", "day,", "city.",
    ];
    let stream = Stream::new(21, "texts");
    let row = |n: usize| {
        let (s, label) = (stream.item(n as u64), n % 2);
        let word = |k: u64| match s.below(2 * k, 3) {
            0 => CLASSES[label][s.below(2 * k + 1, 5)],
            _ => OTHERS[s.below(2 * k + 1, 10)],
        };
        let words: Vec<&str> = (0..5 + s.below(999, 5) as u64).map(word).collect();
        let split = ["train", "train", "train", "train", "dev", "test"][n / 2 % 6];
        Value::Table(params(&[
            ("id", text(&format!("t{n}"))),
            ("split", text(split)),
            ("label", Value::Int(label as i64)),
            ("text", text(&words.join(" "))),
        ]))
    };
    let rows = Value::List((0..count).map(row).collect());
    run(&Table, &[], &[("rows", rows)], 0).unwrap()["rows"].clone()
}

impl Characters {
    /// A grid of words with this number of slots each.
    pub fn new(count: usize, width: i64) -> Characters {
        let texts = texts(count);
        let made = |given: &[(&str, Value)]| run(&Tokenize, &[("rows", &texts)], given, 0).unwrap();
        let grid = made(&[
            ("scheme", text("char-grid")),
            ("word_width", Value::Int(width)),
        ]);
        let words = made(&[
            ("scheme", text("words-punctuation")),
            ("lowercase", Value::Bool(false)),
        ]);
        let given = [
            ("model", text("char-cnn")),
            ("epochs", Value::Int(6)),
            ("learning_rate", Value::Float(0.02)),
            ("units", Value::Int(8)),
            ("kernels", Value::Int(10)),
            ("width", Value::Int(3)),
            ("dim", Value::Int(5)),
            ("forget_bias", Value::Float(0.0)),
        ];
        let victim = run(&Train, &[("rows", &grid["tokens"])], &given, 3).unwrap();
        Characters {
            victim: victim["weights"].clone(),
            rows: grid["tokens"].clone(),
            vocab: grid["vocab"].clone(),
            words: words["vocab"].clone(),
        }
    }

    pub fn inputs(&self) -> Vec<(&'static str, RecordBatch)> {
        vec![
            ("victim", self.victim.clone()),
            ("rows", self.rows.clone()),
            ("vocab", self.vocab.clone()),
            ("known_words", self.words.clone()),
        ]
    }

    fn attack(&self, name: &str, more: &[(&str, Value)]) -> Outputs {
        let mut given = vec![("attack", text(name))];
        given.extend(more.iter().cloned());
        let inputs = self.inputs();
        let inputs: Vec<(&str, &RecordBatch)> = inputs.iter().map(|(n, t)| (*n, t)).collect();
        run(&AttackStage, &inputs, &given, 9).unwrap()
    }

    /// What replay says of outputs.
    fn replay(&self, name: &str, more: &[(&str, Value)], outputs: &Outputs) -> Replayed {
        let mut given = vec![("attack", text(name))];
        given.extend(more.iter().cloned());
        let given = completed(&AttackStage, &given);
        with_task(&self.inputs(), &given, |task| {
            let replayed = AttackStage.replay(task, outputs, true);
            replayed.expect("attacks are replayed").unwrap()
        })
    }

    /// Calls `test` with what the attack sees and the rows of the test split.
    fn with<R>(&self, test: impl FnOnce(&AttackContext<'_>, &[Example]) -> R) -> R {
        let given = completed(&AttackStage, &[("attack", text("hotflip"))]);
        with_task(&self.inputs(), &given, |task| {
            let inputs = AttackInputs::open(task).unwrap();
            let subject = inputs.loaded().subject().unwrap();
            let rows = &inputs.rows;
            let context = AttackContext {
                subject: &subject,
                params: &given,
                seed: 1,
                words: inputs.words.as_ref(),
                vectors: None,
                connected: None,
                lemmas: None,
                synonyms: None,
                candidates: None,
                bayes: None,
                language: None,
                known_words: inputs.known_words(),
                special: [0, 1],
                pad: 0,
                classes: 2,
                task: None,
            };
            test(&context, &rows.examples(&rows.split("test")).unwrap())
        })
    }
}

fn with_task<R>(
    inputs: &[(&'static str, RecordBatch)],
    params: &store::Params,
    f: impl FnOnce(&Task<'_>) -> R,
) -> R {
    let inputs = inputs.iter();
    f(&Task {
        inputs: inputs.map(|(n, t)| ((*n).to_owned(), t.clone())).collect(),
        params,
        seed: 9,
        files: Default::default(),
        data: &DataHome::nowhere(),
        place: &crate::Place::default(),
        watch: &Nobody,
    })
}

static WORLD: LazyLock<Characters> = LazyLock::new(|| Characters::new(180, 7));

const ALL: Operations = Operations {
    flip: true,
    insert: true,
    delete: true,
};

fn estimator<'a>(context: &'a AttackContext<'a>, operations: Operations) -> Estimator<'a> {
    let (model, params) = context.network("hotflip").unwrap().parts();
    let span = model.layout().find("characters").unwrap();
    let spelling = Spelling::new(context, "hotflip", false).unwrap();
    Estimator::new(spelling, operations, params.view(span))
}

/// Every legal edit of a text, one by one.
fn every_edit(grid: &GridText<'_>, spelling: &Spelling<'_>) -> Vec<Edit> {
    let mut all = Vec::new();
    for word in grid.words() {
        let len = word.letters.len();
        let at = |slot: usize| word.letters.get(slot).copied();
        let mut add = |slot: usize, change: Change<u32>| {
            if !word.edited[slot] && spelling.is_new(word.letters, slot, change) {
                all.push(edit(word.position, slot, change, 0));
            }
        };
        for slot in 0..=len {
            for &new in spelling
                .letters
                .iter()
                .filter(|new| Some(**new) != at(slot))
            {
                if let Some(old) = at(slot) {
                    add(slot, Change::Replace { old, new });
                }
                if len < grid.width {
                    add(slot, Change::Insert { new });
                }
            }
            // Of equal neighbours the last one.
            if let Some(old) = at(slot).filter(|old| len > 1 && at(slot + 1) != Some(*old)) {
                add(slot, Change::Delete { old });
            }
        }
    }
    all
}

/// The loss in 64 bits of vectors between those of two texts.
fn loss(context: &AttackContext<'_>, example: &Example, other: &Sequence, share: f64) -> f64 {
    let (model, params) = context.network("hotflip").unwrap().parts();
    let table = params.view(model.layout().find("characters").unwrap());
    let (params, dim) = (params.cast::<f64>(), table.ncols());
    let (Sequence::Chars { width, ids }, Sequence::Chars { ids: new, .. }) =
        (&example.input, other)
    else {
        panic!("not characters");
    };
    let between = |k: usize| {
        let row = |ids: &[u32]| f64::from(table[[ids[k / dim] as usize, k % dim]]);
        row(ids) + share * (row(new) - row(ids))
    };
    let numbers: Vec<f64> = (0..ids.len() * dim).map(between).collect();
    let mut batch = Batch::<f64>::new(&[example]).unwrap();
    let shape = (ids.len() / width, 1, width * dim);
    batch.input = Input::Vectors(Array3::from_shape_vec(shape, numbers).unwrap());
    let mut tape = Tape::default();
    tape.reset(Want::NOTHING);
    let out = model.forward(&mut tape, &params, &batch).unwrap();
    let values = Objective::CrossEntropy.apply(&mut tape, &out, &batch, 1.0);
    values.unwrap()[0]
}

/// The slope of the loss towards the edited text, which is made by the edit itself and not by the formulas: of a flip a
/// component of the one-hot relaxation, of inserts and deletes the sum over all that moves.
#[test]
fn estimates_are_the_slope_towards_the_edited_text() {
    WORLD.with(|context, examples| {
        let estimator = estimator(context, ALL);
        let network = context.network("hotflip").unwrap();
        let (mut seen, mut kinks) = (BTreeSet::new(), 0);
        for (n, example) in examples.iter().take(6).enumerate() {
            let gradient = network
                .gradients(&[example], &Objective::CrossEntropy)
                .unwrap();
            let grid = GridText::new(&example.input, &[], 0).unwrap();
            let derivatives = estimator.derivatives(&grid, &gradient[0].input);
            let all = every_edit(&grid, &estimator.spelling);
            let stream = Stream::new(n as u64, "edits");
            for k in 0..40 {
                let chosen = all[stream.below(k, all.len())];
                let mut edited = example.input.clone();
                chosen.apply(&mut edited).unwrap();
                let step = 1e-6;
                let at = |share: f64| loss(context, example, &edited, share);
                let (left, right) = (at(0.0) - at(-step), at(step) - at(0.0));
                // Equal windows, such as those of padding, tie in the maximum: there is no slope there.
                if (left - right).abs() > 1e-3 * step * (1e-2 + right.abs() / step) {
                    kinks += 1;
                    continue;
                }
                let slope = (left + right) / (2.0 * step);
                let estimate = estimator.estimate(&grid, &derivatives, chosen).unwrap();
                let off = (estimate.raw - slope).abs();
                assert!(off < 1e-3 * slope.abs() + 1e-5, "{estimate:?} and {slope}");
                let slots = changed_slots(&example.input, &edited);
                assert_eq!(estimate.slots, slots, "{chosen:?}");
                let root = (2.0 * slots as f64).sqrt();
                assert!((estimate.normalised - estimate.raw / root).abs() < 1e-12);
                let Edit::Character { change, .. } = chosen else {
                    panic!()
                };
                seen.insert(change.operation());
            }
        }
        assert_eq!(seen.len(), 3, "{seen:?}");
        assert!(kinks < 60, "{kinks} of 240");
    });
}

fn changed_slots(old: &Sequence, new: &Sequence) -> usize {
    let (Sequence::Chars { ids: a, .. }, Sequence::Chars { ids: b, .. }) = (old, new) else {
        panic!("not characters");
    };
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// The running order finds what trying everything finds, with edits made before and with budgets of slots.
#[test]
fn the_best_edits_are_the_best_of_all() {
    WORLD.with(|context, examples| {
        let network = context.network("hotflip").unwrap();
        for (n, example) in examples.iter().take(5).enumerate() {
            let mut text = example.clone();
            let mut done: Vec<Edit> = Vec::new();
            for affordable in [usize::MAX, 3, 1] {
                let estimator = estimator(context, ALL);
                let gradient = network
                    .gradients(&[&text], &Objective::CrossEntropy)
                    .unwrap();
                let gradient = &gradient[0].input;
                let grid = GridText::new(&text.input, &done, 0).unwrap();
                let derivatives = estimator.derivatives(&grid, gradient);
                let all = every_edit(&grid, &estimator.spelling).into_iter();
                let estimate = |e| estimator.estimate(&grid, &derivatives, e).unwrap();
                let mut all: Vec<Estimate> = all.map(estimate).collect();
                all.retain(|e| e.slots <= affordable);
                all.sort_by(|a, b| b.normalised.total_cmp(&a.normalised));
                let best = estimator.best(&grid, gradient, 12, affordable);
                assert_eq!(best.len(), 12);
                for (found, expected) in best.iter().zip(&all) {
                    let off = (found.normalised - expected.normalised).abs();
                    assert!(off < 1e-6, "{n}: {found:?} {expected:?}");
                }
                let next = best[0].edit;
                next.apply(&mut text.input).unwrap();
                done.push(next);
            }
        }
    });
}

/// One row of `examples`, as far as it matters here.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    id: String,
    success: bool,
    attacked: bool,
    edits: Vec<(String, i32, i32, String, String)>,
    adversarial: Vec<i32>,
    queries: [i64; 2],
}

fn rows(table: &RecordBatch) -> Vec<Row> {
    let ints = |name: &str, n: usize| {
        let list = table[name].as_list::<i32>().value(n);
        list.as_primitive::<Int32Type>().values().to_vec()
    };
    let texts = |name: &str, n: usize| -> Vec<String> {
        let list = table[name].as_list::<i32>().value(n);
        let list = list.as_string::<i32>();
        list.iter().flatten().map(str::to_owned).collect()
    };
    let int = |name: &str, n: usize| table[name].as_primitive::<Int64Type>().value(n);
    let row = |n: usize| {
        let (positions, slots) = (ints("positions", n), ints("slots", n));
        let (old, new) = (texts("old", n), texts("new", n));
        let operations = texts("operations", n).into_iter().enumerate();
        let edits = operations.map(|(k, operation)| {
            let (old, new) = (old[k].clone(), new[k].clone());
            (operation, positions[k], slots[k], old, new)
        });
        Row {
            id: table["id"].as_string::<i32>().value(n).to_owned(),
            success: table["success"].as_boolean().value(n),
            attacked: table["attacked"].as_boolean().value(n),
            edits: edits.collect(),
            adversarial: ints("adversarial", n),
            queries: [int("forward", n), int("backward", n)],
        }
    };
    (0..table.num_rows()).map(row).collect()
}

/// The settings that differ most.
pub fn every_setting() -> Vec<(&'static str, Vec<(&'static str, Value)>)> {
    let list = |names: &[&str]| Value::List(names.iter().map(|name| text(name)).collect());
    vec![
        ("hotflip", vec![("budget", Value::Float(0.3))]),
        (
            "hotflip",
            vec![
                ("beam", Value::Int(1)),
                ("budget", Value::Float(0.3)),
                ("confidence", Value::Float(0.9)),
            ],
        ),
        (
            "hotflip",
            vec![
                ("beam", Value::Int(3)),
                ("unit", text("slots")),
                ("cumulative", text("raw")),
                ("keep_last_pad", Value::Bool(true)),
                ("confidence", Value::Float(0.6)),
                ("budget", Value::Float(0.5)),
            ],
        ),
        (
            "hotflip",
            vec![
                ("mode", text("one-shot")),
                ("edits", list(&["flip"])),
                ("budget", Value::Float(0.3)),
            ],
        ),
        (
            "key-star",
            vec![
                ("confidence", Value::Float(0.5)),
                ("budget", Value::Float(0.5)),
            ],
        ),
        (
            "key-star",
            vec![("mode", text("one-shot")), ("budget", Value::Float(0.3))],
        ),
        ("deepwordbug", vec![]),
        (
            "deepwordbug",
            vec![
                ("score", text("replace-1")),
                ("typo", text("substitute")),
                ("max_characters", Value::Int(6)),
            ],
        ),
        (
            "deepwordbug",
            vec![("score", text("head")), ("typo", text("insert"))],
        ),
        (
            "deepwordbug",
            vec![("score", text("tail")), ("typo", text("delete"))],
        ),
        ("deepwordbug", vec![("typo", text("random"))]),
    ]
}

/// Legality, budgets, probabilities and successes, worked out from the stored rows by other code.
#[test]
fn every_row_passes_replay_and_some_attacks_succeed() {
    for (name, more) in every_setting() {
        let outputs = WORLD.attack(name, &more);
        let replayed = WORLD.replay(name, &more, &outputs);
        assert_eq!(replayed.disagreements, [], "{name} {more:?}");
        let one_shot = more.contains(&("mode", text("one-shot")));
        assert!(replayed.successes > 0 || one_shot, "{name} {more:?}");
        let examples = rows(&outputs["examples"]);
        assert!(examples.iter().any(|row| row.edits.len() > 1), "{name}");
    }
}

#[test]
fn a_row_is_the_same_alone_and_on_any_number_of_threads() {
    for (name, more) in every_setting() {
        let all = on_threads(2, || WORLD.attack(name, &more));
        for threads in [1, 8] {
            let again = on_threads(threads, || WORLD.attack(name, &more));
            for (output, table) in &all {
                let same = store::encode(table).unwrap() == store::encode(&again[output]).unwrap();
                assert!(same, "{name} {output}");
            }
        }
        let test = rows(&all["examples"]);
        let places: Vec<usize> = {
            let splits = WORLD.rows["split"].as_string::<i32>();
            (0..splits.len())
                .filter(|n| splits.value(*n) != "test")
                .collect()
        };
        for alone in [0, 7] {
            // The training split stays: the words are compared with it.
            let id = &test[alone].id;
            let ids = WORLD.rows["id"].as_string::<i32>();
            let kept = (0..ids.len()).filter(|n| places.contains(n) || ids.value(*n) == id);
            let kept = arrow::array::UInt32Array::from_iter_values(kept.map(|n| n as u32));
            let world = Characters {
                rows: arrow::compute::take_record_batch(&WORLD.rows, &kept).unwrap(),
                vocab: WORLD.vocab.clone(),
                words: WORLD.words.clone(),
                victim: WORLD.victim.clone(),
            };
            let found = rows(&world.attack(name, &more)["examples"]);
            assert_eq!(found, [test[alone].clone()], "{name}");
        }
    }
}

/// A beam of one text takes the best edit at each step, and stops where the goal is reached.
#[test]
fn a_beam_of_width_one_is_greedy() {
    let more = [("beam", Value::Int(1)), ("budget", Value::Float(0.3))];
    let found = rows(&WORLD.attack("hotflip", &more)["examples"]);
    WORLD.with(|context, examples| {
        let network = context.network("hotflip").unwrap();
        let symbols = context.words.unwrap();
        let mut long = 0;
        for (row, example) in found.iter().zip(examples).filter(|(row, _)| row.attacked) {
            let estimator = estimator(context, ALL);
            let (mut text, mut done) = (example.clone(), Vec::new());
            let Target::Class(label) = example.target else {
                panic!()
            };
            for (operation, position, slot, _, new) in &row.edits {
                let gradient = network
                    .gradients(&[&text], &Objective::CrossEntropy)
                    .unwrap();
                let z = gradient[0].logits.row(0).to_vec();
                assert_eq!(nn::numeric::argmax(&z), label as usize, "it stops too late");
                let grid = GridText::new(&text.input, &done, 0).unwrap();
                let best = estimator.best(&grid, &gradient[0].input, 1, usize::MAX)[0].edit;
                let Edit::Character {
                    position: p,
                    slot: s,
                    change,
                    ..
                } = best
                else {
                    panic!()
                };
                assert_eq!((p as i32, s as i32), (*position, *slot));
                assert_eq!(change.operation(), operation);
                let put = change.after().map_or("", |id| symbols.value(id as usize));
                assert_eq!(put, new);
                best.apply(&mut text.input).unwrap();
                done.push(best);
            }
            let looks = row.edits.len() as i64 + 1;
            assert_eq!(row.queries, [looks, looks]);
            long += usize::from(row.edits.len() > 1);
        }
        assert!(long > 3, "{long}: nothing was searched");
    });
}

/// One run gives every point of the curve: the rows of a confidence are what an attack for that confidence finds.
#[test]
fn lower_confidences_are_those_of_attacks_that_stop_there() {
    let given = |confidence: f64| {
        vec![
            ("beam", Value::Int(3)),
            ("budget", Value::Float(0.4)),
            ("confidence", Value::Float(confidence)),
        ]
    };
    let all = &WORLD.attack("hotflip", &given(0.9))["by_confidence"];
    let confidences = all["confidence"].as_primitive::<Float64Type>();
    let mut rates = Vec::new();
    for confidence in [0.0, 0.5, 0.7, 0.9] {
        let alone = rows(&WORLD.attack("hotflip", &given(confidence))["examples"]);
        let at = (0..all.num_rows()).filter(|n| confidences.value(*n) == confidence);
        let at = arrow::array::UInt32Array::from_iter_values(at.map(|n| n as u32));
        let at = rows(&arrow::compute::take_record_batch(all, &at).unwrap());
        assert_eq!(at.len(), alone.len());
        for (at, alone) in at.iter().zip(&alone) {
            assert_eq!(at.success, alone.success, "{confidence} {}", at.id);
            // An attack that fails goes on to the end, wherever that is.
            if at.success {
                assert_eq!(
                    (&at.edits, &at.adversarial),
                    (&alone.edits, &alone.adversarial)
                );
                assert_eq!(at.queries, alone.queries);
            }
        }
        rates.push(at.iter().filter(|row| row.success).count());
    }
    assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
    assert!(
        rates[0] > rates[3],
        "{rates:?}: the confidence says nothing"
    );
}

#[test]
fn rows_that_are_wrong_before_are_left_alone_unless_all_is_done_at_once() {
    let one_shot = [
        ("mode", text("one-shot")),
        ("edits", Value::List(vec![text("flip")])),
    ];
    let shot = rows(&WORLD.attack("hotflip", &one_shot)["examples"]);
    assert!(shot.iter().all(|row| row.attacked && !row.edits.is_empty()));
    assert!(shot.iter().all(|row| row.queries == [1, 1]));
    for name in ["hotflip", "key-star"] {
        let table = &WORLD.attack(name, &[])["examples"];
        let class = |name: &str, n: usize| table[name].as_primitive::<Int64Type>().value(n);
        for (n, row) in rows(table).iter().enumerate() {
            let right = class("label", n) == class("predicted_before", n);
            assert_eq!(row.attacked, right);
            assert!(right || row.edits.is_empty() && row.queries == [0, 0]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Whatever the settings, what is stored keeps them: replay counts again.
    #[test]
    fn budgets_are_never_exceeded(
        budget in 0.01..0.6,
        beam in 1..4_i64,
        slots: bool,
        kinds in 1..8_u32,
        name in prop_oneof![Just("hotflip"), Just("hotflip"), Just("key-star")],
    ) {
        let mut more = vec![("budget", Value::Float(budget)), ("items", Value::Int(8))];
        if name == "hotflip" {
            let kinds: Vec<Value> = ["flip", "insert", "delete"]
                .into_iter()
                .enumerate()
                .filter(|(k, _)| kinds >> k & 1 == 1)
                .map(|(_, kind)| text(kind))
                .collect();
            if slots && kinds != [text("flip")] {
                more.push(("unit", text("slots")));
            }
            more.extend([("edits", Value::List(kinds)), ("beam", Value::Int(beam))]);
        }
        let outputs = WORLD.attack(name, &more);
        let replayed = WORLD.replay(name, &more, &outputs);
        prop_assert_eq!(replayed.disagreements, []);
    }
}

#[test]
fn lies_about_characters_are_found() {
    let more = [
        ("budget", Value::Float(0.3)),
        ("confidence", Value::Float(0.9)),
    ];
    let outputs = WORLD.attack("hotflip", &more);
    let found = |outputs: &Outputs, more: &[(&str, Value)]| -> Vec<String> {
        let list = WORLD.replay("hotflip", more, outputs).disagreements;
        list.into_iter()
            .map(|d| format!("{}: {}", d.column, d.found))
            .collect()
    };
    assert!(found(&outputs, &more).is_empty());
    // A smaller budget, and another confidence, than the rows were made with.
    let budget = [("budget", Value::Float(0.05)), more[1].clone()];
    assert!(
        found(&outputs, &budget)
            .iter()
            .any(|d| d.starts_with("budget: "))
    );
    let sure = [more[0].clone(), ("confidence", Value::Float(0.8))];
    assert!(
        found(&outputs, &sure)
            .iter()
            .any(|d| d.starts_with("confidence: "))
    );
    // A vocabulary that has one of the words that were made.
    let row = rows(&outputs["examples"]);
    let row = row.iter().find(|row| !row.edits.is_empty()).unwrap();
    let (width, position) = (7, row.edits[0].1 as usize);
    let symbols = WORLD.vocab["token"].as_string::<i32>();
    let made = row.adversarial[position * width..][..width].iter();
    let made: String = made
        .filter(|id| **id != 0)
        .map(|id| symbols.value(*id as usize))
        .collect();
    let words = WORLD.words["token"].as_string::<i32>().iter().flatten();
    let words: Vec<String> = words.map(str::to_owned).chain([made]).collect();
    let world = Characters {
        rows: WORLD.rows.clone(),
        vocab: WORLD.vocab.clone(),
        victim: WORLD.victim.clone(),
        words: crate::tests::trial::listed(words),
    };
    let lies = world.replay("hotflip", &more, &outputs).disagreements;
    assert!(
        lies.iter()
            .any(|d| d.found == "no word of the vocabulary is made"),
        "{lies:?}"
    );
}

#[test]
fn what_does_not_fit_is_refused_with_a_message() {
    let check = |given: &[(&str, Value)]| {
        let mut all = vec![("attack", text("hotflip"))];
        all.extend(given.iter().cloned());
        let refused = crate::complete(&AttackStage, &params(&all)).unwrap_err();
        format!("{} ({})", refused.message, refused.help.unwrap_or_default())
    };
    assert_eq!(
        check(&[("beam", Value::Int(0))]),
        "`beam` is 0 (it must be at least 1)"
    );
    assert_eq!(
        check(&[("confidence", Value::Float(1.5))]),
        "`confidence` is 1.5 (it must be between 0 and 1)"
    );
    assert_eq!(
        check(&[("edits", Value::List(vec![text("flop")]))]),
        "`edits` cannot be `flop` (did you mean `flip`?)"
    );
    assert_eq!(
        check(&[("mode", text("one-shot"))]),
        "mode = \"one-shot\" makes flips only (write edits = [\"flip\"])"
    );
    let refused = |world: &Characters| {
        let inputs = world.inputs();
        let inputs: Vec<(&str, &RecordBatch)> = inputs.iter().map(|(n, t)| (*n, t)).collect();
        run(&AttackStage, &inputs, &[("attack", text("hotflip"))], 1)
            .unwrap_err()
            .message
    };
    let with = |rows: RecordBatch, words: RecordBatch| Characters {
        rows,
        words,
        vocab: WORLD.vocab.clone(),
        victim: WORLD.victim.clone(),
    };
    let other = crate::tests::trial::listed(vec!["the".to_owned(), "film".to_owned()]);
    let message = refused(&with(WORLD.rows.clone(), other));
    assert!(
        message.starts_with("`known_words` lacks ")
            && message.contains("words of the split `train`"),
        "{message}"
    );
    // Words that fill their slots: nothing could move.
    let full = SequenceTable::read(&WORLD.rows).unwrap();
    let lists = full.examples.iter().map(|example| match &example.input {
        Sequence::Chars { ids, .. } => Some(
            ids.iter()
                .map(|id| Some(*id as i32 + i32::from(*id == 0) * 2))
                .collect::<Vec<_>>(),
        ),
        _ => None,
    });
    let lists = arrow::array::ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let schema = WORLD.rows.schema();
    let mut columns = WORLD.rows.columns().to_vec();
    columns[schema.index_of("ids").unwrap()] = std::sync::Arc::new(lists);
    let rows = RecordBatch::try_new(schema, columns).unwrap();
    let message = refused(&with(rows, WORLD.words.clone()));
    assert_eq!(
        message,
        "word 0 of the row with the id t0 has no padding at its end"
    );
}
