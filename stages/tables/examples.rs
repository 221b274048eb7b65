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

use super::schema::table;
use super::weights::with_metadata;
use crate::Failure;

table!("examples", "attack", "A row for each attacked item.", {
    ID = "id": "string", "The id of the row; with `repeats`, `ID#K` is the K-th attack on it.";
    LABEL = "label": "int64", "The true class.";
    PREDICTED_BEFORE = "predicted_before": "int64", "The class predicted before the attack.";
    PREDICTED_AFTER = "predicted_after": "int64", "The class predicted after the attack.";
    SUCCESS = "success": "bool", "Whether the prediction was correct before the attack and is wrong after it, or is the target.";
    ATTACKED = "attacked": "bool", "Whether the attack tried.";
    WORDS_CHANGED = "words_changed": "int64", "How many words were changed.";
    POSITIONS = "positions": "list of int32", "The token, word or step of each edit, in order.";
    OLD = "old": "list of string", "What was there before each edit; ids if no `vocab` is connected.";
    NEW = "new": "list of string", "What is there after it.";
    ORIGINAL = "original": "list of int32, float32", "The row before the attack: ids, or the numbers of a signal.";
    ADVERSARIAL = "adversarial": "list of int32, float32", "The row after the attack.";
    P_BEFORE = "p_before": "list of float32", "The model's probabilities before the attack.";
    P_AFTER = "p_after": "list of float32", "The model's probabilities after the attack.";
    FORWARD = "forward": "int64", "Forward passes through the model.";
    BACKWARD = "backward": "int64", "Backward passes through the model.";
    QUERIES = "queries": "int64", "How many texts the attack asked the model about; of replace-word, how many candidates it tried, up to and including the one that succeeded.", only "replace-word, textfooler, pwws, genetic, deepwordbug and external";
    REJECTED = "rejected": "int64", "1 if what the program gave back broke the budget or a constraint, so that the row stayed as it was.", only "external";
    OPERATIONS = "operations": "list of string", "`replace`, `insert` or `delete`, for each edit.", only "attacks that insert, delete or change characters";
    SLOTS = "slots": "list of int32", "The character of the word for each edit; 0 for whole words.", only "attacks that insert, delete or change characters";
    WANTED = "wanted": "int64", "The target class; null if any wrong one will do.", only "signals";
    LINF = "linf": "float64", "The maximum change of a number.", only "signals";
    MEAN_L2 = "mean_l2": "float64", "The mean over steps of the L2 norm of the change.", only "signals";
    HALVED = "halved": "int64", "For fixed-point: at how many samples alpha was halved.", only "signals";
});

/// What an edit does, as the column `operations` has it.
pub const OPERATION_NAMES: [&str; 3] = ["replace", "insert", "delete"];

/// The name of an operation by its place in that list.
pub fn operation_name(n: i64) -> &'static str {
    let name = usize::try_from(n).ok().and_then(|n| OPERATION_NAMES.get(n));
    name.copied().unwrap_or_default()
}

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
    /// A table that may lack columns.
    pub fn of(table: &'a RecordBatch) -> Examples<'a> {
        Examples { table }
    }

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
