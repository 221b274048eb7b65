//! The numbers of an evaluation, and how a draw changes them: by a term for the seeds, and, where items are not at
//! hand, by a binomial draw of a proportion.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use nn::Stream;
use stages::proportions::{is_proportion, origin};
use stages::tables::results::{COL, N, ROW, SEED, TABLE, VALUE};
use statrs::distribution::{Binomial, DiscreteCDF};
use store::Params;

use super::executions::{AxisTexts, Representatives};
use crate::results::statistics::SeedDraw;

/// What is behind an input of an evaluation.
pub struct Behind {
    /// The seeds that it is collected over.
    pub representatives: Representatives,
    /// Whether another seed might have given something else.
    pub seeded: bool,
    /// Whether it changes with the items of a draw.
    pub items: bool,
}

/// The numbers of an evaluation.
#[derive(Debug)]
pub struct ResultCells {
    cells: Vec<ResultCell>,
    by_name: BTreeMap<[String; 3], usize>,
}

/// One number, over seeds.
#[derive(Debug)]
struct ResultCell {
    /// Its value in each execution, with the seed of that.
    values: Vec<(Option<i64>, f64)>,
    /// Whether another seed might have given something else.
    seeded: bool,
    /// Whether it is a proportion of items that are not at hand.
    binomial: bool,
}

/// The columns of results, if a table has them.
struct Columns<'a> {
    names: [&'a arrow::array::StringArray; 3],
    seed: &'a arrow::array::Int64Array,
    value: &'a Float64Array,
    n: &'a arrow::array::Int64Array,
}

impl<'a> Columns<'a> {
    fn of(table: &'a RecordBatch) -> Option<Columns<'a>> {
        let text = |name| table.column_by_name(name)?.as_string_opt::<i32>();
        let int = |name| table.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        let value = table.column_by_name(VALUE)?;
        Some(Columns {
            names: [text(TABLE)?, text(ROW)?, text(COL)?],
            seed: int(SEED)?,
            value: value.as_primitive_opt::<Float64Type>()?,
            n: int(N)?,
        })
    }

    fn rows(&self) -> std::ops::Range<usize> {
        0..self.value.len()
    }

    fn name(&self, row: usize) -> [&'a str; 3] {
        self.names.map(|names| names.value(row))
    }

    fn seed(&self, row: usize) -> Option<i64> {
        self.seed.is_valid(row).then(|| self.seed.value(row))
    }

    fn value(&self, row: usize) -> Option<f64> {
        self.value.is_valid(row).then(|| self.value.value(row))
    }

    fn n(&self, row: usize) -> Option<u64> {
        let n = self.n.is_valid(row).then(|| self.n.value(row))?;
        u64::try_from(n).ok()
    }
}

impl ResultCells {
    /// The numbers of a stored table, if it is one of results. `behind` tells of an input.
    pub fn read(
        table: &RecordBatch,
        params: &Params,
        behind: impl Fn(&str, &AxisTexts) -> Option<Behind>,
    ) -> Option<ResultCells> {
        let columns = Columns::of(table)?;
        let mut found = ResultCells {
            cells: Vec::new(),
            by_name: BTreeMap::new(),
        };
        let mut known: BTreeMap<(String, AxisTexts), Option<Behind>> = BTreeMap::new();
        for row in columns.rows() {
            let names = columns.name(row);
            let origin = origin(params, names);
            let behind = origin.as_ref().and_then(|origin| {
                let key = (origin.from.to_owned(), origin.values.clone());
                let known = known.entry(key);
                let look = || behind(origin.from, &origin.values);
                known.or_insert_with(look).as_ref()
            });
            let cell = found.cell(names, || ResultCell {
                values: Vec::new(),
                seeded: behind.is_none_or(|behind| behind.seeded),
                binomial: origin
                    .as_ref()
                    .is_some_and(|origin| is_proportion(origin.metric))
                    && behind.is_some_and(|behind| !behind.items)
                    && columns.n(row).is_some(),
            });
            let seed = columns.seed(row).map(|seed| {
                let known = behind.and_then(|behind| behind.representatives.get(&seed));
                *known.unwrap_or(&seed)
            });
            let values = &mut found.cells[cell].values;
            let new = values.iter().all(|(other, _)| *other != seed);
            values.extend(
                columns
                    .value(row)
                    .filter(|_| new)
                    .map(|value| (seed, value)),
            );
        }
        Some(found)
    }

    fn cell(&mut self, names: [&str; 3], new: impl FnOnce() -> ResultCell) -> usize {
        let next = self.cells.len();
        let at = *self.by_name.entry(names.map(str::to_owned)).or_insert(next);
        if at == next {
            self.cells.push(new());
        }
        at
    }

    /// Whether any number is a proportion of items that are not at hand.
    pub fn any_binomial(&self) -> bool {
        self.cells.iter().any(|cell| cell.binomial)
    }

    /// Whether any number has several executions.
    pub fn vary(&self) -> bool {
        self.cells.iter().any(|cell| cell.values.len() > 1)
    }

    /// How many executions the numbers have that another seed might have changed, smallest first.
    pub fn executions(&self) -> BTreeSet<usize> {
        let seeded = self.cells.iter().filter(|cell| cell.seeded);
        seeded
            .map(|cell| cell.values.len())
            .filter(|n| *n > 0)
            .collect()
    }

    /// The seeds whose results are executions of their own.
    pub fn executed_seeds(&self) -> BTreeSet<i64> {
        let seeded = self
            .cells
            .iter()
            .filter(|cell| cell.seeded && cell.values.len() > 1);
        seeded
            .flat_map(|cell| cell.values.iter().filter_map(|(seed, _)| *seed))
            .collect()
    }

    /// The table with other values.
    fn changed(
        &self,
        table: &RecordBatch,
        change: impl Fn(usize, &Columns<'_>, usize, f64) -> f64,
    ) -> RecordBatch {
        let Some(columns) = Columns::of(table) else {
            return table.clone();
        };
        let values = columns.rows().map(|row| {
            let value = columns.value(row)?;
            let names = columns.name(row).map(str::to_owned);
            Some(match self.by_name.get(&names) {
                Some(cell) => change(*cell, &columns, row, value),
                None => value,
            })
        });
        let values: ArrayRef = Arc::new(Float64Array::from_iter(values));
        let schema = table.schema();
        let place = schema.index_of(VALUE).expect("it has values");
        let mut all = table.columns().to_vec();
        all[place] = values;
        RecordBatch::try_new(schema, all).expect("the same columns")
    }

    /// Adds the term of the seeds to every number.
    pub fn with_seeds(&self, table: &RecordBatch, draw: &SeedDraw) -> RecordBatch {
        let terms: Vec<f64> = self
            .cells
            .iter()
            .map(|cell| draw.term(&cell.values))
            .collect();
        self.changed(table, |cell, _, _, value| value + terms[cell])
    }

    /// Draws proportions anew whose items are not at hand. One number decides all seeds of a cell, which share items:
    /// drawn one by one, their mean would vary too little.
    pub fn with_binomials(&self, table: &RecordBatch, stream: Stream) -> RecordBatch {
        self.changed(table, |cell, columns, row, value| {
            let n = columns.n(row).filter(|_| self.cells[cell].binomial);
            let binomial = n.and_then(|n| Some((n, Binomial::new(value, n).ok()?)));
            match binomial {
                Some((n, binomial)) if n > 0 => {
                    let uniform = stream.uniform(cell as u64);
                    binomial.inverse_cdf(uniform) as f64 / n as f64
                }
                _ => value,
            }
        })
    }

    /// Moves numbers with this number of executions, to see what depends on them.
    pub fn nudged(&self, table: &RecordBatch, executions: usize, by: f64) -> RecordBatch {
        self.changed(table, |cell, _, _, value| {
            let cell = &self.cells[cell];
            match cell.seeded && cell.values.len() == executions {
                true => value + by * (0.01 + 0.1 * value.abs()),
                false => value,
            }
        })
    }

    /// The rows of one seed, and those without one.
    pub fn of_seed(&self, table: &RecordBatch, seed: i64) -> RecordBatch {
        let Some(columns) = Columns::of(table) else {
            return table.clone();
        };
        let kept = columns
            .rows()
            .map(|row| columns.seed(row).is_none_or(|own| own == seed));
        let kept = BooleanArray::from(kept.collect::<Vec<bool>>());
        filter_record_batch(table, &kept).expect("as many rows")
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};
    use store::Value;

    use super::*;

    /// Rows of one table: row, seed, value.
    fn table(rows: &[(&str, Option<i64>, f64)]) -> RecordBatch {
        let texts = |get: fn(&(&str, Option<i64>, f64)) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(get)))
        };
        let columns: Vec<(&str, ArrayRef)> = vec![
            (TABLE, texts(|_| "t".to_owned())),
            (ROW, texts(|row| row.0.to_owned())),
            (COL, texts(|_| "c".to_owned())),
            (
                SEED,
                Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.1))),
            ),
            (
                VALUE,
                Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.2))),
            ),
            (
                N,
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|_| 50))),
            ),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    /// Cells `lstm` and `gru` from inputs of these names, with several seeds; `nb`, the same for each; `kept`, whose items
    /// are not at hand.
    fn cells(table: &RecordBatch) -> ResultCells {
        let cell = |name: &str| {
            let keys = [
                ("from", name),
                ("metric", "accuracy"),
                ("table", "t"),
                ("row", name),
                ("col", "c"),
            ];
            let keys = keys.map(|(key, value)| (key.to_owned(), Value::Text(value.to_owned())));
            Value::Table(keys.into())
        };
        let list = ["lstm", "gru", "nb", "kept"].map(cell).to_vec();
        let params = [("cells".to_owned(), Value::List(list))].into();
        let behind = |port: &str, _: &AxisTexts| {
            let same = |seed: i64| (seed, if port == "nb" { 1 } else { seed });
            Some(Behind {
                representatives: (1..=3).map(same).collect(),
                seeded: port != "nb",
                items: port != "kept",
            })
        };
        ResultCells::read(table, &params, behind).unwrap()
    }

    fn values(table: &RecordBatch) -> Vec<f64> {
        let values = table.column_by_name(VALUE).unwrap();
        values.as_primitive::<Float64Type>().values().to_vec()
    }

    fn results() -> RecordBatch {
        let rows = |name, values: [f64; 3]| {
            (1..)
                .zip(values)
                .map(move |(seed, x)| (name, Some(seed), x))
        };
        let lstm = rows("lstm", [0.8, 0.9, 0.7]);
        let gru = rows("gru", [0.7, 0.8, 0.6]);
        let nb = rows("nb", [0.5; 3]);
        let kept = rows("kept", [0.5, 0.5, 0.6]);
        table(&lstm.chain(gru).chain(nb).chain(kept).collect::<Vec<_>>())
    }

    #[test]
    fn seeds_move_numbers_together_and_copies_not_at_all() {
        let (table, draw) = (results(), SeedDraw::new(Stream::new(1, "test")));
        let cells = cells(&table);
        let (before, after) = (values(&table), values(&cells.with_seeds(&table, &draw)));
        let moved: Vec<f64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
        assert!(moved[0].abs() > 1e-3, "{moved:?}");
        for n in 1..6 {
            // The differences of gru to its mean are those of lstm.
            assert!((moved[n] - moved[0]).abs() < 1e-12, "{moved:?}");
        }
        assert_eq!(moved[6..9], [0.0; 3], "one execution");
        assert_eq!(cells.executions(), BTreeSet::from([3]));
        assert_eq!(cells.executed_seeds(), BTreeSet::from([1, 2, 3]));
    }

    #[test]
    fn a_proportion_without_items_is_drawn_once_for_all_its_seeds() {
        let table = results();
        let cells = cells(&table);
        assert!(cells.any_binomial());
        let (mut sum, mut squares, draws) = (0.0, 0.0, 2000);
        for draw in 0..draws {
            let drawn = values(&cells.with_binomials(&table, Stream::new(draw, "test")));
            assert_eq!(drawn[..9], values(&table)[..9], "their items are at hand");
            assert_eq!(drawn[9], drawn[10], "equal proportions of the same items");
            sum += drawn[9];
            squares += drawn[9] * drawn[9];
        }
        let mean = sum / draws as f64;
        let variance = squares / draws as f64 - mean * mean;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert!((variance / (0.25 / 50.0) - 1.0).abs() < 0.15, "{variance}");
    }

    #[test]
    fn seeds_can_be_looked_at_one_by_one_and_numbers_moved_by_their_executions() {
        let rows = [
            ("lstm", Some(1), 0.8),
            ("lstm", Some(2), 0.9),
            ("gru", None, 0.5),
            ("nb", Some(1), 0.4),
        ];
        let table = table(&rows);
        let cells = cells(&table);
        assert_eq!(values(&cells.of_seed(&table, 2)), [0.9, 0.5]);
        assert_eq!(cells.executions(), BTreeSet::from([1, 2]), "gru has one");
        let before = values(&table);
        let moved = |executions| -> Vec<bool> {
            let after = values(&cells.nudged(&table, executions, 1.0));
            after.iter().zip(&before).map(|(a, b)| a > b).collect()
        };
        assert_eq!(moved(1), [false, false, true, false]);
        assert_eq!(moved(2), [true, true, false, false]);
    }

    #[test]
    fn other_tables_are_no_results() {
        let plain: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        let plain = RecordBatch::try_from_iter([(VALUE, plain)]).unwrap();
        assert!(ResultCells::read(&plain, &Params::new(), |_, _| None).is_none());
    }
}
