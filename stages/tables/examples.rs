//! The table `examples` of an attack: a row for each attacked item.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Builder, Float64Array, Int32Builder, Int64Array,
    ListBuilder, StringArray, StringBuilder,
};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type, Metadata};
use arrow::record_batch::RecordBatch;
use ndarray::Array2;
use nn::batch::Sequence;
use nn::numeric::argmax;

use super::schema::{Column, TableSchema};
use super::weights::with_metadata;
use crate::Failure;

/// What names the item; with `repeats`, `ID#K` is the K-th attack on it, from 0.
pub const ID: &str = "id";
/// The true class.
pub const LABEL: &str = "label";
/// The class predicted before the attack.
pub const PREDICTED_BEFORE: &str = "predicted_before";
/// The class predicted after it.
pub const PREDICTED_AFTER: &str = "predicted_after";
/// Whether the attack succeeded.
pub const SUCCESS: &str = "success";
/// Whether it tried.
pub const ATTACKED: &str = "attacked";
/// How many words were changed.
pub const WORDS_CHANGED: &str = "words_changed";
/// Where edits were made.
pub const POSITIONS: &str = "positions";
/// What was there before each edit.
pub const OLD: &str = "old";
/// What is there after it.
pub const NEW: &str = "new";
/// The row before.
pub const ORIGINAL: &str = "original";
/// The row after.
pub const ADVERSARIAL: &str = "adversarial";
/// Probabilities before.
pub const P_BEFORE: &str = "p_before";
/// Probabilities after.
pub const P_AFTER: &str = "p_after";
/// Forward passes.
pub const FORWARD: &str = "forward";
/// Backward passes.
pub const BACKWARD: &str = "backward";
/// The class to reach.
pub const WANTED: &str = "wanted";
/// The largest change of a number.
pub const LINF: &str = "linf";
/// The mean length of a step's change.
pub const MEAN_L2: &str = "mean_l2";
/// Samples at which a gain was halved.
pub const HALVED: &str = "halved";
/// What was done at each position.
pub const OPERATIONS: &str = "operations";
/// Where in the word each edit was made.
pub const SLOTS: &str = "slots";

const SIGNALS: &str = "signals";
const EDITS: &str = "attacks that insert, delete or change characters";

/// The columns.
pub static SCHEMA: TableSchema = TableSchema {
    name: "examples",
    made_by: "attack",
    summary: "A row for each attacked item.",
    columns: &[
        Column::new(
            ID,
            "string",
            "The id of the row; with `repeats`, `ID#K` is the K-th attack on it.",
        ),
        Column::new(LABEL, "int64", "The true class."),
        Column::new(
            PREDICTED_BEFORE,
            "int64",
            "The class predicted before the attack.",
        ),
        Column::new(
            PREDICTED_AFTER,
            "int64",
            "The class predicted after the attack.",
        ),
        Column::new(
            SUCCESS,
            "bool",
            "Whether the prediction was correct before the attack and is wrong after it, or is the target.",
        ),
        Column::new(ATTACKED, "bool", "Whether the attack tried."),
        Column::new(WORDS_CHANGED, "int64", "How many words were changed."),
        Column::new(
            POSITIONS,
            "list of int32",
            "The token, word or step of each edit, in order.",
        ),
        Column::new(
            OLD,
            "list of string",
            "What was there before each edit; ids if no `vocab` is connected.",
        ),
        Column::new(NEW, "list of string", "What is there after it."),
        Column::new(
            ORIGINAL,
            "list of int32, float32",
            "The row before the attack: ids, or the numbers of a signal.",
        ),
        Column::new(
            ADVERSARIAL,
            "list of int32, float32",
            "The row after the attack.",
        ),
        Column::new(
            P_BEFORE,
            "list of float32",
            "The model's probabilities before the attack.",
        ),
        Column::new(
            P_AFTER,
            "list of float32",
            "The model's probabilities after the attack.",
        ),
        Column::new(FORWARD, "int64", "Forward passes through the model."),
        Column::new(BACKWARD, "int64", "Backward passes through the model."),
        Column::new(
            OPERATIONS,
            "list of string",
            "`replace`, `insert` or `delete`, for each edit.",
        )
        .only(EDITS),
        Column::new(
            SLOTS,
            "list of int32",
            "The character of the word for each edit; 0 for whole words.",
        )
        .only(EDITS),
        Column::new(
            WANTED,
            "int64",
            "The target class; null if any wrong one will do.",
        )
        .only(SIGNALS),
        Column::new(LINF, "float64", "The maximum change of a number.").only(SIGNALS),
        Column::new(
            MEAN_L2,
            "float64",
            "The mean over steps of the L2 norm of the change.",
        )
        .only(SIGNALS),
        Column::new(
            HALVED,
            "int64",
            "For fixed-point: at how many samples alpha was halved.",
        )
        .only(SIGNALS),
    ],
};

/// What an attack counts on an item, by name.
pub type Counters = BTreeMap<&'static str, u64>;

/// One edit, in words.
#[derive(Clone, Debug)]
pub struct EditRow {
    /// `replace`, `insert` or `delete`.
    pub operation: &'static str,
    /// Which token, word or step.
    pub position: usize,
    /// Which character or number of it.
    pub slot: usize,
    /// What was there.
    pub old: String,
    /// What is there now.
    pub new: String,
}

/// One row.
pub struct ExampleRow<'a> {
    /// What names the item.
    pub id: &'a str,
    /// The true class.
    pub label: u32,
    /// Whether the attack succeeded.
    pub success: bool,
    /// Whether it tried.
    pub attacked: bool,
    /// How many words were changed.
    pub words_changed: usize,
    /// What was changed, in order.
    pub edits: Vec<EditRow>,
    /// The row before.
    pub original: &'a Sequence,
    /// The row after.
    pub adversarial: &'a Sequence,
    /// Probabilities before.
    pub before: &'a [f32],
    /// Probabilities after.
    pub after: &'a [f32],
    /// The class to reach, if only one will do.
    pub wanted: Option<u32>,
    /// What was counted.
    pub counters: &'a Counters,
}

/// Columns that not every attack has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// Whether edits are more than replaced words.
    pub edits: bool,
    /// Counts beside those that all attacks have, each a column of its own.
    pub counters: &'static [&'static str],
}

/// The rows as a table.
pub fn write(rows: &[ExampleRow<'_>], layout: Layout) -> RecordBatch {
    let ids = StringArray::from_iter_values(rows.iter().map(|row| row.id));
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (ID, Arc::new(ids)),
        (LABEL, ints(rows, |row| row.label.into())),
        (
            PREDICTED_BEFORE,
            ints(rows, |row| argmax(row.before) as i64),
        ),
        (PREDICTED_AFTER, ints(rows, |row| argmax(row.after) as i64)),
        (SUCCESS, flags(rows, |row| row.success)),
        (ATTACKED, flags(rows, |row| row.attacked)),
        (WORDS_CHANGED, ints(rows, |row| row.words_changed as i64)),
        (
            POSITIONS,
            int_lists(rows, |row| of_edits(row, |edit| edit.position as i32)),
        ),
        (OLD, text_lists(rows, |edit| &edit.old)),
        (NEW, text_lists(rows, |edit| &edit.new)),
        (ORIGINAL, sequences(rows, |row| row.original)),
        (ADVERSARIAL, sequences(rows, |row| row.adversarial)),
        (P_BEFORE, float_lists(rows, |row| row.before)),
        (P_AFTER, float_lists(rows, |row| row.after)),
        (FORWARD, ints(rows, |row| count(row, FORWARD).unwrap_or(0))),
        (
            BACKWARD,
            ints(rows, |row| count(row, BACKWARD).unwrap_or(0)),
        ),
    ];
    if layout.edits {
        let slots = int_lists(rows, |row| of_edits(row, |edit| edit.slot as i32));
        columns.push((OPERATIONS, text_lists(rows, |edit| edit.operation)));
        columns.push((SLOTS, slots));
    }
    let sizes: Option<Vec<(f64, f64)>> = rows.iter().map(sizes).collect();
    if let Some(sizes) = sizes.filter(|sizes| !sizes.is_empty()) {
        let wanted = rows.iter().map(|row| row.wanted.map(i64::from));
        let float = |get: fn(&(f64, f64)) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(sizes.iter().map(get)))
        };
        columns.push((WANTED, Arc::new(Int64Array::from_iter(wanted))));
        columns.push((LINF, float(|sizes| sizes.0)));
        columns.push((MEAN_L2, float(|sizes| sizes.1)));
        columns.push((HALVED, counts(rows, HALVED)));
    }
    let known: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let own = layout.counters.iter().filter(|name| !known.contains(name));
    columns.extend(own.map(|name| (*name, counts(rows, name))));
    with_metadata(columns, Metadata::default())
}

/// The largest change of a number, and the mean over steps of the change's length; of signals.
fn sizes(row: &ExampleRow<'_>) -> Option<(f64, f64)> {
    let (Sequence::Vectors(before), Sequence::Vectors(after)) = (row.original, row.adversarial)
    else {
        return None;
    };
    let pairs = before.iter().zip(after);
    let change: Vec<f64> = pairs.map(|(x, y)| f64::from(*y) - f64::from(*x)).collect();
    let linf = change.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
    let steps = change.chunks(before.ncols());
    let count = steps.len().max(1) as f64;
    let lengths = steps.map(|d| d.iter().map(|d| d * d).sum::<f64>().sqrt());
    Some((linf, lengths.sum::<f64>() / count))
}

fn count(row: &ExampleRow<'_>, name: &str) -> Option<i64> {
    row.counters.get(name).map(|count| *count as i64)
}

fn counts(rows: &[ExampleRow<'_>], name: &str) -> ArrayRef {
    let counts = rows.iter().map(|row| count(row, name));
    Arc::new(Int64Array::from_iter(counts))
}

fn ints(rows: &[ExampleRow<'_>], get: impl Fn(&ExampleRow<'_>) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(get)))
}

fn flags(rows: &[ExampleRow<'_>], get: impl Fn(&ExampleRow<'_>) -> bool) -> ArrayRef {
    let flags = rows.iter().map(|row| Some(get(row)));
    Arc::new(BooleanArray::from_iter(flags))
}

fn of_edits(row: &ExampleRow<'_>, get: impl Fn(&EditRow) -> i32) -> Vec<i32> {
    row.edits.iter().map(get).collect()
}

fn int_lists<'a>(
    rows: &'a [ExampleRow<'a>],
    get: impl Fn(&'a ExampleRow<'a>) -> Vec<i32>,
) -> ArrayRef {
    let mut list = ListBuilder::new(Int32Builder::new());
    for row in rows {
        list.values().append_slice(&get(row));
        list.append(true);
    }
    Arc::new(list.finish())
}

fn float_lists<'a>(
    rows: &'a [ExampleRow<'a>],
    get: impl Fn(&'a ExampleRow<'a>) -> &'a [f32],
) -> ArrayRef {
    let mut list = ListBuilder::new(Float32Builder::new());
    for row in rows {
        list.values().append_slice(get(row));
        list.append(true);
    }
    Arc::new(list.finish())
}

fn text_lists(rows: &[ExampleRow<'_>], get: impl Fn(&EditRow) -> &str) -> ArrayRef {
    let mut list = ListBuilder::new(StringBuilder::new());
    for row in rows {
        for edit in &row.edits {
            list.values().append_value(get(edit));
        }
        list.append(true);
    }
    Arc::new(list.finish())
}

/// Token ids, or the numbers of signals.
fn sequences<'a>(
    rows: &'a [ExampleRow<'a>],
    get: impl Fn(&'a ExampleRow<'a>) -> &'a Sequence,
) -> ArrayRef {
    let signals = rows
        .first()
        .is_some_and(|row| matches!(get(row), Sequence::Vectors(_)));
    if signals {
        return float_lists(rows, |row| match get(row) {
            Sequence::Vectors(rows) => rows.as_slice().expect("the standard layout"),
            _ => &[],
        });
    }
    int_lists(rows, |row| match get(row) {
        Sequence::Tokens(ids) | Sequence::Chars { ids, .. } => {
            ids.iter().map(|id| *id as i32).collect()
        }
        Sequence::Vectors(_) => Vec::new(),
    })
}

/// The table as it is stored: every cell may be missing or of another type.
pub struct Examples<'a> {
    table: &'a RecordBatch,
}

impl<'a> Examples<'a> {
    /// A table with ids.
    pub fn read(table: &'a RecordBatch) -> Result<Examples<'a>, Failure> {
        let ids = table.column_by_name(ID);
        match ids.and_then(|ids| ids.as_string_opt::<i32>()) {
            Some(ids) if ids.null_count() == 0 => Ok(Examples { table }),
            _ => Err(Failure::new(
                "the stored `examples` have no column `id` of strings",
            )),
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.table.num_rows()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What names a row.
    pub fn id(&self, n: usize) -> &'a str {
        self.table[ID].as_string::<i32>().value(n)
    }

    /// Whether there is such a column.
    pub fn has(&self, name: &str) -> bool {
        self.table.column_by_name(name).is_some()
    }

    fn column(&self, name: &str, n: usize) -> Option<&'a ArrayRef> {
        self.table
            .column_by_name(name)
            .filter(|column| column.is_valid(n))
    }

    /// An integer, if there is one.
    pub fn maybe_int(&self, name: &str, n: usize) -> Option<i64> {
        let column = self.column(name, n)?;
        Some(column.as_primitive_opt::<Int64Type>()?.value(n))
    }

    /// An integer.
    pub fn int(&self, name: &str, n: usize) -> Result<i64, Failure> {
        self.maybe_int(name, n).ok_or_else(|| {
            Failure::new(format!(
                "the stored `examples` have no integer `{name}` in row {n}"
            ))
        })
    }

    /// A boolean.
    pub fn flag(&self, name: &str, n: usize) -> Result<bool, Failure> {
        let flags = self
            .column(name, n)
            .and_then(|column| column.as_boolean_opt());
        flags.map(|flags| flags.value(n)).ok_or_else(|| {
            Failure::new(format!(
                "the stored `examples` have no boolean `{name}` in row {n}"
            ))
        })
    }

    fn list(&self, name: &str, n: usize) -> Option<ArrayRef> {
        Some(self.column(name, n)?.as_list_opt::<i32>()?.value(n))
    }

    /// A list of integers.
    pub fn ints(&self, name: &str, n: usize) -> Option<Vec<i32>> {
        let list = self.list(name, n)?;
        Some(list.as_primitive_opt::<Int32Type>()?.values().to_vec())
    }

    /// A list of floats.
    pub fn floats(&self, name: &str, n: usize) -> Option<Vec<f32>> {
        let list = self.list(name, n)?;
        Some(list.as_primitive_opt::<Float32Type>()?.values().to_vec())
    }

    /// A list of strings.
    pub fn texts(&self, name: &str, n: usize) -> Vec<String> {
        let list = self.list(name, n);
        let texts = list.as_ref().and_then(|list| list.as_string_opt::<i32>());
        let texts = texts.into_iter().flatten();
        texts
            .map(|text| text.unwrap_or_default().to_owned())
            .collect()
    }

    /// A stored row of the same kind as another.
    pub fn sequence(&self, name: &str, n: usize, like: &Sequence) -> Option<Sequence> {
        let ids = || -> Option<Vec<u32>> {
            let ids = self.ints(name, n)?;
            ids.into_iter().map(|id| u32::try_from(id).ok()).collect()
        };
        Some(match like {
            Sequence::Tokens(_) => Sequence::Tokens(ids()?),
            Sequence::Chars { width, .. } => Sequence::Chars {
                width: *width,
                ids: ids()?,
            },
            Sequence::Vectors(rows) => {
                let found = self.floats(name, n)?;
                Sequence::Vectors(Array2::from_shape_vec(rows.dim(), found).ok()?)
            }
        })
    }
}
