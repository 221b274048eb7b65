//! Results without information: a model that predicts one class, an attack that changed nothing, a
//! variant that is equal to another in every digit, a number that was measured on one row. Computed from what is
//! stored, shown beside the numbers, part of no result. Knows neither the terminal nor pages.

use stages::tables::history;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use stages::tables::examples as example_columns;
use stages::{NOTICE, Role, Stage};
use store::{Digest, Execution, StageKey, Store};

use crate::plan::{Plan, Wire};
use crate::results::columns;
use crate::results::recorded::{Recorded, Step, role_of};

/// The columns of examples that are looked at: the texts beside them may be large.
const EXAMPLES: [&str; 7] = [
    example_columns::LABEL,
    example_columns::PREDICTED_BEFORE,
    example_columns::SUCCESS,
    example_columns::ATTACKED,
    example_columns::WORDS_CHANGED,
    example_columns::LINF,
    example_columns::REJECTED,
];

/// A stage instance with what it made.
pub struct Piece {
    /// `name` or `name[axis=value]`.
    label: String,
    kind: String,
    role: Role,
    /// The attack, of a stage that has one; none for a control, which changes nothing.
    attack: Option<String>,
    /// What decides its result: equal for instances that are one execution.
    identity: String,
    /// Its outputs by name.
    outputs: Vec<(String, Digest)>,
    /// What the stage itself found odd.
    notices: Vec<String>,
}

/// Whose results are looked at.
pub fn concerns(role: Role) -> bool {
    VARIANTS.contains(&role) || role == Role::Results
}

/// Whose results are expected to differ as soon as anything about them does.
const VARIANTS: [Role; 3] = [Role::Model, Role::Attack, Role::Program];

impl Piece {
    /// What an execution made under this name, unless nothing about its kind is looked at.
    pub fn new(label: &str, execution: &Execution) -> Option<Piece> {
        let key = &execution.key;
        let outputs = execution.outputs.iter();
        let role = role_of(&key.kind);
        concerns(role).then(|| Piece {
            role,
            label: label.to_owned(),
            kind: key.kind.clone(),
            attack: attack_of(key).map(str::to_owned),
            identity: execution.key_digest.to_string(),
            outputs: outputs.map(|o| (o.name.clone(), o.digest)).collect(),
            notices: notices(&execution.log),
        })
    }
}

/// The lines of a log that are for people.
fn notices(log: &str) -> Vec<String> {
    let lines = log.lines().filter_map(|line| line.strip_prefix(NOTICE));
    lines.map(str::to_owned).collect()
}

fn attack_of(key: &StageKey) -> Option<&str> {
    attack(stages::find(&key.kind)?, &key.params)
}

fn attack<'p>(kind: &dyn Stage, params: &'p store::Params) -> Option<&'p str> {
    kind.attack(params).filter(|_| !kind.is_control(params))
}

/// Notes on these instances of a plan and on all that they read. `outputs` are those of every
/// instance, as far as they are stored.
pub fn behind(
    plan: &Plan<'_>,
    store: &Store,
    outputs: &[Option<Vec<Digest>>],
    asked: impl Iterator<Item = usize>,
) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<usize> = asked.collect();
    while let Some(n) = open.pop() {
        if seen.insert(n) {
            open.extend(plan.instances[n].sources().map(|source| source.instance));
        }
    }
    let digest = |instance: usize, output: usize| outputs[instance].as_ref()?.get(output).copied();
    let piece = |n: &usize| {
        let (instance, kind) = (&plan.instances[*n], plan.decl(*n).kind);
        let made = outputs[*n].as_ref().filter(|_| concerns(kind.role()))?;
        let read = |wire: &Wire| {
            let sources = wire.from.sources();
            let read = sources.map(|s| digest(s.instance, s.output));
            (wire.port.clone(), read.collect::<Vec<_>>())
        };
        let inputs: Vec<_> = instance.wires.iter().map(read).collect();
        Some(Piece {
            label: instance.label.clone(),
            kind: kind.describe().kind.to_owned(),
            role: kind.role(),
            attack: attack(kind, &instance.params).map(str::to_owned),
            identity: format!("{:?}{:?}{inputs:?}", instance.params, instance.seed),
            outputs: instance
                .outputs
                .iter()
                .cloned()
                .zip(made.iter().copied())
                .collect(),
            // They are in its execution: the run that made it has shown them.
            notices: Vec::new(),
        })
    };
    let pieces: Vec<Piece> = seen.iter().filter_map(piece).collect();
    notes(store, &pieces)
}

/// The same of steps of a run and all that they read.
pub fn behind_steps(
    store: &Store,
    recorded: &Recorded,
    asked: impl Iterator<Item = usize>,
) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<usize> = asked.collect();
    while let Some(n) = open.pop() {
        if seen.insert(n) {
            open.extend(recorded.steps[n].reads.iter().filter_map(|read| read.step));
        }
    }
    // Instances with equal inputs are one execution, which names one of them: their siblings count as well.
    let names: BTreeSet<&str> = seen.iter().map(|n| recorded.steps[*n].name()).collect();
    let steps = recorded.steps.iter();
    let steps = steps.filter(|step| names.contains(step.name()));
    let piece = |step: &Step| Piece::new(&step.label, step.execution.as_ref()?);
    let pieces: Vec<Piece> = steps.filter_map(piece).collect();
    notes(store, &pieces)
}

/// Notes on instances, in their order. Results that cannot be read are skipped: they are reported elsewhere.
pub fn notes(store: &Store, pieces: &[Piece]) -> Vec<String> {
    // A note on several is given once.
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for piece in pieces {
        let output = |name: &str| piece.outputs.iter().find(|(known, _)| known == name);
        let table = |name: &str, columns: &[&str]| {
            let (_, digest) = output(name)?;
            store.peek_columns(digest, columns).ok()
        };
        let found = match piece.role {
            Role::Attack => table(example_columns::SCHEMA.name, &EXAMPLES)
                .map(|examples| of_examples(&examples, piece.attack.as_deref())),
            Role::Model => table(
                history::SCHEMA.name,
                &[
                    history::ATTEMPT,
                    history::TRAIN_ACCURACY,
                    history::DEV_ACCURACY,
                ],
            )
            .map(|history| of_history(&history).into_iter().collect()),
            Role::Results => table("results", &["table", "row", "col", "seed", "value", "n"])
                .map(|results| of_results(&results)),
            _ => None,
        };
        let found = found.into_iter().flatten();
        for note in found.chain(piece.notices.iter().cloned()) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, labels)) => labels.push(&piece.label),
                None => notes.push((note, vec![&piece.label])),
            }
        }
    }
    let each = notes.into_iter();
    let each = each.map(|(note, labels)| format!("{}: {note}", listed(&labels)));
    each.chain(equal(pieces)).collect()
}

/// Notes on the examples of an attack: on the model, and on the attack unless it is a control.
pub fn of_examples(table: &RecordBatch, attack: Option<&str>) -> Vec<String> {
    let attack = attack.and_then(|name| no_change(table, name));
    let model = one_class(table).into_iter();
    model.chain(rejected(table)).chain(attack).collect()
}

/// Rows that an attack of the user gave back and that do not count.
fn rejected(table: &RecordBatch) -> Option<String> {
    let rejected = columns::wholes(table, example_columns::REJECTED)?;
    let count = rejected.iter().filter(|n| **n == Some(1)).count();
    let tried = columns::flags(table, example_columns::ATTACKED)?;
    let tried = tried.iter().filter(|tried| **tried).count();
    (count > 0).then(|| {
        format!(
            "{count} of {tried} attacked rows were rejected, because they broke the budget or a constraint, and stay as they were: `ablate show` with --log says which"
        )
    })
}

/// A model that predicts the same class for rows of several.
fn one_class(table: &RecordBatch) -> Option<String> {
    let labels = columns::wholes(table, example_columns::LABEL)?;
    let predicted = columns::wholes(table, example_columns::PREDICTED_BEFORE)?;
    let classes: BTreeSet<_> = labels.iter().collect();
    let distinct: BTreeSet<_> = predicted.iter().flatten().collect();
    let (true, Some(class), 1) = (classes.len() > 1, distinct.first(), distinct.len()) else {
        return None;
    };
    let (rows, classes) = (table.num_rows(), classes.len());
    Some(format!(
        "the model predicts class {class} for all {rows} rows, which have {classes} classes"
    ))
}

/// An attack that tried nothing, or changed nothing.
fn no_change(table: &RecordBatch, name: &str) -> Option<String> {
    let attacked = table.column_by_name(example_columns::ATTACKED)?;
    let (rows, tried) = (table.num_rows(), attacked.as_boolean_opt()?.true_count());
    if rows > 0 && tried == 0 {
        return Some(format!("{name} attacked none of {rows} rows"));
    }
    let sizes = columns::numbers(table, example_columns::LINF);
    let words = columns::wholes(table, example_columns::WORDS_CHANGED);
    let unchanged = match (sizes, words) {
        (Some(sizes), _) => sizes.iter().all(|size| *size == Some(0.0)),
        (None, Some(words)) => words.iter().all(|words| *words == Some(0)),
        (None, None) => false,
    };
    (rows > 0 && unchanged).then(|| format!("{name} attacked {tried} rows and changed none"))
}

/// A note on the history of a training.
pub fn of_history(table: &RecordBatch) -> Option<String> {
    let attempts = columns::wholes(table, "attempt")?;
    let last = attempts.iter().max()?;
    let constant = |name: &str| {
        let numbers = columns::numbers(table, name)?;
        let pairs = numbers.iter().zip(&attempts);
        let of_last = pairs
            .filter(|(_, attempt)| *attempt == last)
            .map(|(x, _)| *x);
        let numbers: Vec<f64> = of_last.collect::<Option<_>>()?;
        let first = *numbers.first()?;
        // Being right from the first epoch on is not a fault.
        let same = numbers.len() > 1 && first < 1.0 && numbers.iter().all(|x| *x == first);
        same.then_some((first, numbers.len()))
    };
    let (accuracy, epochs) = constant(history::TRAIN_ACCURACY)?;
    let dev = columns::numbers(table, history::DEV_ACCURACY);
    if dev.is_some_and(|dev| dev.iter().any(Option::is_some)) {
        constant(history::DEV_ACCURACY)?;
    }
    Some(format!(
        "accuracy is the same after each of {epochs} epochs ({} on training rows): nothing was learnt",
        columns::short(accuracy)
    ))
}

/// What tidy results tell of themselves: rows of a table that are equal in every digit, and single rows behind
/// numbers.
pub fn of_results(table: &RecordBatch) -> Vec<String> {
    let texts = |name: &str| columns::texts(table, name);
    let (Some(tables), Some(rows), Some(cols)) = (texts("table"), texts("row"), texts("col"))
    else {
        return Vec::new();
    };
    let Some(values) = columns::numbers(table, "value") else {
        return Vec::new();
    };
    let seeds = columns::wholes(table, "seed").unwrap_or_else(|| vec![None; values.len()]);
    type Cells<'a> = BTreeMap<(&'a str, Option<i64>), Option<u64>>;
    let mut grids: BTreeMap<&str, BTreeMap<&str, Cells<'_>>> = BTreeMap::new();
    for line in 0..table.num_rows() {
        let grid = grids.entry(&tables[line]).or_default();
        let cells = grid.entry(&rows[line]).or_default();
        let bits = values[line].map(f64::to_bits);
        cells.insert((&cols[line], seeds[line]), bits);
    }
    let mut notes = Vec::new();
    for (name, grid) in &grids {
        let mut like: HashMap<&Cells<'_>, Vec<&str>> = HashMap::new();
        // One number may be equal by chance, and so may counts; several measured numbers hardly are.
        let comparable = |cells: &&Cells<'_>| {
            let numbers: BTreeSet<u64> = cells.values().flatten().copied().collect();
            let measured = |bits: &u64| f64::from_bits(*bits).fract() != 0.0;
            numbers.len() > 1 && numbers.iter().any(measured)
        };
        for (row, cells) in grid.iter().filter(|(_, cells)| comparable(cells)) {
            like.entry(cells).or_default().push(row);
        }
        let mut equal: Vec<(&Cells<'_>, Vec<&str>)> = like
            .into_iter()
            .filter(|(_, rows)| rows.len() > 1)
            .collect();
        equal.sort_by(|a, b| a.1.cmp(&b.1));
        for (cells, rows) in equal {
            let count = cells.len();
            notes.push(format!(
                "rows {} of table {name} are equal in every digit of {count} numbers",
                listed(&rows)
            ));
        }
    }
    let counts = columns::wholes(table, "n").unwrap_or_default();
    let single = counts.iter().filter(|n| **n == Some(1)).count();
    if single > 0 {
        notes.push(match single {
            1 => "1 number was measured on a single row (n = 1)".to_owned(),
            many => format!("{many} numbers were measured on a single row each (n = 1)"),
        });
    }
    notes
}

/// Instances of one kind that differ in what was asked of them and in nothing that they made.
pub fn equal(pieces: &[Piece]) -> Vec<String> {
    let mut made: BTreeMap<(&str, Digest), Vec<&Piece>> = BTreeMap::new();
    for piece in pieces.iter().filter(|p| VARIANTS.contains(&p.role)) {
        if let Some((_, digest)) = piece.outputs.first() {
            made.entry((&piece.kind, *digest)).or_default().push(piece);
        }
    }
    let mut notes = Vec::new();
    for pieces in made.values() {
        let mut identities = BTreeSet::new();
        let mut labels: Vec<&str> = Vec::new();
        for piece in pieces {
            if identities.insert(&piece.identity) {
                labels.push(&piece.label);
            }
        }
        if labels.len() > 1 {
            let output = &pieces[0].outputs[0].0;
            notes.push(format!(
                "{} have equal {output} in every digit: what differs between them had no effect",
                listed(&labels)
            ));
        }
    }
    notes
}

/// `a`, `b` and 3 more.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => match shown.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => String::new(),
        },
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The table without rows that were measured on a single row (`n` = 1), and how many these are; nothing if
/// there are none.
pub fn without_single_rows(table: &RecordBatch) -> Option<(RecordBatch, usize)> {
    let column = table.column_by_name("n")?;
    let counts = cast(column, &DataType::Int64).ok()?;
    let counts = counts.as_primitive_opt::<Int64Type>()?;
    let kept: BooleanArray = counts.iter().map(|n| Some(n != Some(1))).collect();
    let single = kept.len() - kept.true_count();
    if single == 0 || !column.data_type().is_integer() {
        return None;
    }
    Some((filter_record_batch(table, &kept).ok()?, single))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;

    fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn wholes(numbers: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(numbers.to_vec()))
    }

    fn floats(numbers: &[f64]) -> ArrayRef {
        Arc::new(Float64Array::from(numbers.to_vec()))
    }

    fn flags(flags: &[bool]) -> ArrayRef {
        Arc::new(BooleanArray::from(flags.to_vec()))
    }

    fn texts(texts: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(texts.to_vec()))
    }

    #[test]
    fn a_model_that_predicts_one_class() {
        let printed = |labels: &[i64], predicted: &[i64]| {
            let columns = vec![
                ("label", wholes(labels)),
                ("predicted_before", wholes(predicted)),
            ];
            of_examples(&table(columns), Some("none"))
        };
        assert_eq!(
            printed(&[0, 1, 1], &[1, 1, 1]),
            ["the model predicts class 1 for all 3 rows, which have 2 classes"]
        );
        assert!(printed(&[0, 1, 1], &[1, 0, 1]).is_empty());
        // Rows of one class say nothing of the model.
        assert!(printed(&[1, 1, 1], &[1, 1, 1]).is_empty());
    }

    #[test]
    fn an_attack_that_changed_nothing() {
        let notes = |attack: &str, attacked: &[bool], words: &[i64], linf: Option<&[f64]>| {
            let mut columns = vec![
                ("attacked", flags(attacked)),
                ("words_changed", wholes(words)),
            ];
            columns.extend(linf.map(|sizes| ("linf", floats(sizes))));
            of_examples(
                &table(columns),
                Some(attack).filter(|name| !name.is_empty()),
            )
        };
        let both = &[true, true];
        assert_eq!(
            notes("swap", both, &[0, 0], None),
            ["swap attacked 2 rows and changed none"]
        );
        assert!(notes("swap", both, &[0, 1], None).is_empty());
        assert!(notes("", &[false, false], &[0, 0], None).is_empty());
        assert_eq!(
            notes("jsma", &[false, false], &[0, 0], None),
            ["jsma attacked none of 2 rows"]
        );
        // Signals have no words: their numbers count.
        assert!(notes("dynamic", both, &[0, 0], Some(&[0.0, 0.1])).is_empty());
        assert_eq!(
            notes("dynamic", both, &[0, 0], Some(&[0.0, 0.0])),
            ["dynamic attacked 2 rows and changed none"]
        );
    }

    #[test]
    fn rows_that_were_rejected() {
        let notes = |rejected: &[i64]| {
            let columns = vec![
                ("attacked", flags(&[true, true, false])),
                ("words_changed", wholes(&[0, 1, 0])),
                ("rejected", wholes(rejected)),
            ];
            of_examples(&table(columns), Some("external"))
        };
        assert_eq!(
            notes(&[1, 0, 0]),
            [
                "1 of 2 attacked rows were rejected, because they broke the budget or a constraint, and stay as they were: `ablate show` with --log says which"
            ]
        );
        assert!(notes(&[0, 0, 0]).is_empty());
    }

    #[test]
    fn what_a_stage_found_odd() {
        let log = "loading\nnotice: the gradient says little\nnotice:not this\n";
        assert_eq!(notices(log), ["the gradient says little"]);
    }

    #[test]
    fn a_training_that_learnt_nothing() {
        let printed = |attempt: &[i64], train: &[f64], dev: &[f64]| {
            of_history(&table(vec![
                ("attempt", wholes(attempt)),
                ("train_accuracy", floats(train)),
                ("dev_accuracy", floats(dev)),
            ]))
        };
        assert_eq!(
            printed(&[1, 1], &[0.5, 0.5], &[0.4, 0.4]).as_deref(),
            Some(
                "accuracy is the same after each of 2 epochs (0.5 on training rows): nothing was learnt"
            )
        );
        assert_eq!(printed(&[1, 1], &[0.5, 0.5], &[0.4, 0.5]), None);
        assert_eq!(printed(&[1, 1], &[1.0, 1.0], &[1.0, 1.0]), None);
        assert_eq!(printed(&[1], &[0.5], &[0.5]), None);
        // The last attempt is the one that is kept, or the best of them.
        assert_eq!(
            printed(&[1, 1, 2, 2], &[0.5, 0.5, 0.5, 0.9], &[0.5; 4]),
            None
        );
    }

    #[test]
    fn variants_that_are_equal_in_every_digit() {
        let results = |second: &[f64]| {
            table(vec![
                ("table", texts(&["t"; 4])),
                ("row", texts(&["base", "base", "variant", "variant"])),
                ("col", texts(&["a", "b", "a", "b"])),
                ("value", floats(&[0.5, 0.25, second[0], second[1]])),
            ])
        };
        assert_eq!(
            of_results(&results(&[0.5, 0.25])),
            ["rows `base` and `variant` of table t are equal in every digit of 2 numbers"]
        );
        assert!(of_results(&results(&[0.5, 0.250_000_000_000_000_1])).is_empty());
        let piece = |label: &str, identity: &str, bytes: &str| Piece {
            label: label.to_owned(),
            kind: "train".to_owned(),
            role: Role::Model,
            attack: None,
            identity: identity.to_owned(),
            outputs: vec![("weights".to_owned(), Digest::of(bytes.as_bytes()))],
            notices: Vec::new(),
        };
        let same = [
            piece("m[lr=1]", "1", "x"),
            piece("m[lr=2]", "2", "x"),
            piece("m[lr=3]", "3", "y"),
        ];
        assert_eq!(
            equal(&same),
            [
                "`m[lr=1]` and `m[lr=2]` have equal weights in every digit: what differs between them had no effect"
            ]
        );
        // One execution under two names is one result.
        assert!(equal(&[piece("a", "1", "x"), piece("b", "1", "x")]).is_empty());
    }

    #[test]
    fn numbers_that_were_measured_on_one_row() {
        let results = table(vec![
            ("table", texts(&["t", "t"])),
            ("row", texts(&["a", "a"])),
            ("col", texts(&["x", "y"])),
            ("value", floats(&[0.5, 0.25])),
            ("n", wholes(&[1, 40])),
        ]);
        assert_eq!(
            of_results(&results),
            ["1 number was measured on a single row (n = 1)"]
        );
        let (left, single) = without_single_rows(&results).unwrap();
        assert_eq!((left.num_rows(), single), (1, 1));
        assert!(without_single_rows(&left).is_none());
    }
}
