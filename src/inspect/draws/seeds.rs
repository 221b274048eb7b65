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

    /// Moves numbers with so many executions, to see what depends on them.
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
