//! Tables with a row, or several, for each item, and how they look when items are resampled.
//!
//! Tables that hold items of the same data share a population: an item is in a draw equally often in all of them. A
//! repeated item gets a new id, the same everywhere, so that a join by id pairs each copy with itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, UInt32Array};
use arrow::compute::take;
use arrow::record_batch::RecordBatch;
use nn::Stream;
use stages::tables::examples;

use crate::results::statistics::resample;

/// The column that names an item.
pub const ID: &str = examples::ID;

/// A table of items.
pub struct ItemTable {
    /// The rows as they are stored, of the columns that are read.
    pub table: RecordBatch,
    /// The item of each row, by its position in the population.
    items: Vec<u32>,
    /// Which population.
    pub population: usize,
}

/// Items that tables share.
pub struct Population {
    /// How many.
    pub size: usize,
    /// Its own random numbers.
    stream: Stream,
}

/// The item behind an id: with `repeats`, `ID#K` is the K-th attack on `ID`.
fn item(id: &str) -> &str {
    match id.rsplit_once('#') {
        Some((item, k)) if !k.is_empty() && k.bytes().all(|b| b.is_ascii_digit()) => item,
        _ => id,
    }
}

/// The items of a table, if it names them and has more than one.
pub fn items_of(table: &RecordBatch) -> Option<Vec<&str>> {
    let ids = table.column_by_name(ID)?.as_string_opt::<i32>()?;
    let all: Vec<&str> = ids.iter().map(|id| item(id.unwrap_or_default())).collect();
    let several = all.iter().any(|other| *other != all[0]);
    several.then_some(all)
}

/// Populations from the names of data and the items of each table.
pub fn populations<'a>(
    tables: impl Iterator<Item = (&'a str, Vec<&'a str>)>,
) -> (Vec<Population>, Vec<(usize, Vec<u32>)>) {
    let tables: Vec<(&str, Vec<&str>)> = tables.collect();
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (data, items) in &tables {
        all.entry(data).or_default().extend(items);
    }
    let places: BTreeMap<&str, BTreeMap<&str, u32>> = all
        .iter()
        .map(|(data, items)| (*data, items.iter().copied().zip(0..).collect()))
        .collect();
    let names: Vec<&str> = all.keys().copied().collect();
    let populations = all.iter().map(|(data, items)| Population {
        size: items.len(),
        stream: Stream::new(SEED, "items").item(hash(data)),
    });
    let placed = tables.iter().map(|(data, items)| {
        let population = names.iter().position(|name| name == data);
        let each = items.iter().map(|item| places[data][item]);
        (population.expect("listed"), each.collect())
    });
    (populations.collect(), placed.collect())
}

/// The seed of all draws: they are part of the method, not of a pipeline.
pub const SEED: u64 = 1;

/// A number for a name.
pub fn hash(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes"))
}

impl Population {
    /// How often each item is in a draw.
    pub fn counts(&self, draw: u64) -> Vec<u32> {
        resample(self.size, self.stream.item(draw))
    }
}

impl ItemTable {
    /// A table whose rows belong to these items of a population.
    pub fn new(table: RecordBatch, items: Vec<u32>, population: usize) -> ItemTable {
        ItemTable {
            table,
            items,
            population,
        }
    }

    /// The table without its column of ids, which nobody reads.
    pub fn without_ids(self) -> ItemTable {
        let schema = self.table.schema();
        let kept: Vec<usize> = (0..schema.fields().len())
            .filter(|n| schema.field(*n).name() != ID)
            .collect();
        // A table of no columns would have no rows either.
        let table = match kept.is_empty() {
            true => self.table,
            false => self.table.project(&kept).expect("its own columns"),
        };
        ItemTable { table, ..self }
    }

    /// The table of a draw: each row as often as its item. If none of its items was drawn it stays as it is, since
    /// nothing can be measured on no rows: that happens to tables of a few items only.
    pub fn resampled(&self, counts: &[u32]) -> RecordBatch {
        let mut rows: Vec<u32> = Vec::with_capacity(self.items.len());
        let mut copies: Vec<u32> = Vec::with_capacity(self.items.len());
        for (row, item) in (0..).zip(&self.items) {
            for copy in 0..counts[*item as usize] {
                rows.push(row);
                copies.push(copy);
            }
        }
        if rows.is_empty() {
            return self.table.clone();
        }
        let places = UInt32Array::from(rows);
        let schema = self.table.schema();
        let columns = schema.fields().iter().zip(self.table.columns());
        let columns: Vec<ArrayRef> = columns
            .map(|(field, column)| {
                let taken = take(column.as_ref(), &places, None).expect("rows of the table");
                match field.name() == ID {
                    true => renamed(&taken, &copies),
                    false => taken,
                }
            })
            .collect();
        RecordBatch::try_new(schema, columns).expect("the same columns")
    }
}

/// Ids of copies: the first keeps its own.
fn renamed(ids: &ArrayRef, copies: &[u32]) -> ArrayRef {
    let Some(ids) = ids.as_string_opt::<i32>() else {
        return ids.clone();
    };
    let each = (0..ids.len()).map(|n| match (ids.is_null(n), copies[n]) {
        (true, _) => None,
        (false, 0) => Some(std::borrow::Cow::Borrowed(ids.value(n))),
        (false, copy) => Some(format!("{}~{copy}", ids.value(n)).into()),
    });
    Arc::new(StringArray::from_iter(each))
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::Int64Type;

    use super::*;

    fn table(ids: &[&str]) -> RecordBatch {
        let x: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ids.len() as i64));
        let ids: ArrayRef = Arc::new(StringArray::from(ids.to_vec()));
        RecordBatch::try_from_iter([(ID, ids), ("x", x)]).unwrap()
    }

    fn ids(table: &RecordBatch) -> Vec<&str> {
        let ids = table.column(0).as_string::<i32>();
        ids.iter().flatten().collect()
    }

    #[test]
    fn copies_have_the_same_names_in_every_table() {
        let (a, b) = (table(&["p", "q", "r"]), table(&["r", "p#1", "p#2"]));
        let lists = [
            ("data", items_of(&a).unwrap()),
            ("data", items_of(&b).unwrap()),
        ];
        let (populations, placed) = populations(lists.into_iter());
        assert_eq!(populations.len(), 1);
        assert_eq!(populations[0].size, 3);
        let [first, second] = &placed[..] else {
            panic!("two tables");
        };
        let first = ItemTable::new(a.clone(), first.1.clone(), 0);
        let second = ItemTable::new(b.clone(), second.1.clone(), 0);
        let drawn = first.resampled(&[2, 0, 1]);
        assert_eq!(ids(&drawn), ["p", "p~1", "r"]);
        assert_eq!(
            drawn.column(1).as_primitive::<Int64Type>().values(),
            &[0, 0, 2]
        );
        let drawn = second.resampled(&[2, 0, 1]);
        assert_eq!(ids(&drawn), ["r", "p#1", "p#1~1", "p#2", "p#2~1"]);
        assert_eq!(first.resampled(&[0, 0, 0]), a, "nothing was drawn");
        assert_eq!(second.without_ids().resampled(&[1, 0, 0]).num_columns(), 1);
    }

    #[test]
    fn one_item_cannot_be_resampled() {
        assert_eq!(items_of(&table(&["p#1", "p#2"])), None);
        assert_eq!(items_of(&table(&[])), None);
        assert_eq!(item("a#b"), "a#b");
    }

    #[test]
    fn draws_are_the_populations_own() {
        let lists = [
            ("a", vec!["p", "q", "r", "s"]),
            ("b", vec!["p", "q", "r", "s"]),
        ];
        let (populations, _) = populations(lists.into_iter());
        let counts = |n: usize| (0..8).map(|d| populations[n].counts(d)).collect::<Vec<_>>();
        assert_eq!(counts(0), counts(0));
        assert_ne!(counts(0), counts(1));
    }
}
