//! Tidy results (`table, row, col, value`, and perhaps `seed`, `n`, `paper_value`) as a paper
//! prints them: a grid of cells for each table, seeds as mean and sd, the paper's number
//! beside ours.

use stages::tables::results;
use std::collections::{BTreeMap, BTreeSet};

use arrow::record_batch::RecordBatch;
use serde::Serialize;

use super::cell_source::{CellSource, sources};
use crate::results::columns;
use crate::results::recorded::Recorded;
use crate::results::replicates::representatives;
use crate::results::statistics::{CellSummary, Interval, Method, Replicate};
use stages::proportions::{is_proportion, origin};

/// A table of a paper.
pub struct PaperTable {
    /// The step whose output it is in.
    pub step: usize,
    /// The position of that output.
    pub output: usize,
    /// The paper, if the results name one.
    pub paper: String,
    /// The table's name.
    pub name: String,
    /// Names of its rows, in the order of the results.
    pub rows: Vec<String>,
    /// Names of its columns, likewise.
    pub cols: Vec<String>,
    /// Cells by row and column.
    pub cells: BTreeMap<(usize, usize), Cell>,
    /// What was measured, where all cells measure the same.
    pub metric: Option<String>,
    /// What rows and columns count up, where all cells say the same of it.
    pub counted: [Option<String>; 2],
    /// The profile that it was made with, if the results or the run name one.
    pub profile: String,
}

/// The profile of every paper here that has small data in place of the paper's.
const SMALL: &str = "smoke";

/// One number of a paper's table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// A number for each seed, in the order of the results.
    pub values: Vec<Measured>,
    /// Their mean, if there is any.
    pub mean: Option<f64>,
    /// The standard deviation over executions, if there are several.
    pub sd: Option<f64>,
    /// How many executions: seeds that give the same count as one.
    pub executions: usize,
    /// The 95% interval of the mean, with its method.
    pub interval: Option<Interval>,
    /// What the paper has.
    pub paper: Option<f64>,
    /// How it was measured, if the stage's parameters say so.
    pub source: Option<CellSource>,
}

/// A number of one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The seed, if the results have one.
    pub seed: Option<i64>,
    /// The number; nothing where there was nothing to measure.
    pub value: Option<f64>,
    /// How many rows it was measured on.
    pub n: Option<i64>,
}

impl PaperTable {
    /// Whether any cell has a number of the paper beside it.
    pub fn has_paper(&self) -> bool {
        self.cells.values().any(|cell| cell.paper.is_some())
    }

    /// Whether its numbers are of the paper's data, so that differences mean something.
    pub fn is_comparable(&self) -> bool {
        self.profile != SMALL
    }

    /// The methods of its intervals, in words; none if it has none.
    pub fn methods(&self) -> Option<String> {
        let methods = self.cells.values().filter_map(|cell| cell.interval);
        let methods: BTreeSet<Method> = methods.map(|interval| interval.method).collect();
        let names: Vec<&str> = methods.into_iter().map(Method::name).collect();
        (!names.is_empty()).then(|| format!("95% intervals by {}", names.join(" or ")))
    }

    /// Whether all its numbers are whole.
    pub fn is_whole(&self) -> bool {
        let numbers = self.cells.values().flat_map(|cell| [cell.mean, cell.paper]);
        let mut numbers = numbers.flatten();
        numbers.all(|number| number.fract() == 0.0)
    }
}

impl Cell {
    /// How many rows it was measured on: `10`, `3 × 10` over seeds, `3 seeds, 8 to 10`.
    pub fn behind(&self) -> Option<String> {
        let counts: Option<Vec<i64>> = self.values.iter().map(|one| one.n).collect();
        let counts = counts?;
        let (least, most) = (counts.iter().min()?, counts.iter().max()?);
        Some(match counts.len() {
            1 => most.to_string(),
            seeds if least == most => format!("{seeds} × {most}"),
            seeds => format!("{seeds} seeds, {least} to {most}"),
        })
    }

    /// `[0.781, 0.862]`, the 95% interval.
    pub fn between(&self, digits: impl Fn(f64) -> String) -> Option<String> {
        let interval = self.interval?;
        Some(format!(
            "[{}, {}]",
            digits(interval.low),
            digits(interval.high)
        ))
    }

    /// Ours minus the paper's.
    pub fn difference(&self) -> Option<f64> {
        Some(self.mean? - self.paper?)
    }

    /// From 0 (as the paper says) to 3 (far from it): a difference of 1, 3 and 10 points where
    /// numbers are shares, and otherwise of 1, 3 and 10 percent of the paper's number.
    pub fn shade(&self) -> Option<usize> {
        let (difference, paper) = (self.difference()?.abs(), self.paper?);
        let share =
            (0.0..=1.0).contains(&paper) && self.mean.is_some_and(|m| (0.0..=1.0).contains(&m));
        let size = match share {
            true => difference,
            false => difference / paper.abs().max(f64::MIN_POSITIVE),
        };
        // A hair more than the step, so that 0.91 against 0.90 is one point, as people count.
        Some(
            [0.01, 0.03, 0.10]
                .iter()
                .filter(|step| size > **step + 1e-9)
                .count(),
        )
    }
}

/// Whether a table is tidy results.
pub fn is_tidy(schema: &str) -> bool {
    let mut names = ["table", "row", "col", "value"].into_iter();
    names.all(|name| has(schema, name))
}

/// Whether a table says how its numbers were measured. One that somebody typed and that does not,
/// such as a paper's numbers, is nobody's result: also if the stage that reads it has not run.
pub fn is_measured(schema: &str) -> bool {
    let mut names = [results::SEED, results::N, results::PAPER_VALUE].into_iter();
    names.any(|name| has(schema, name))
}

fn has(schema: &str, name: &str) -> bool {
    let mut columns = schema
        .split(", ")
        .filter_map(|column| column.split_once(": "));
    columns.any(|(found, _)| found == name)
}

/// The paper's tables in one table of tidy results.
pub fn read(
    at: usize,
    output: usize,
    recorded: &Recorded,
    table: &RecordBatch,
) -> Option<Vec<PaperTable>> {
    let names =
        [results::TABLE, results::ROW, results::COL].map(|name| columns::texts(table, name));
    let [Some(tables), Some(rows), Some(cols)] = names else {
        return None;
    };
    let values = columns::numbers(table, results::VALUE)?;
    let papers = columns::texts(table, results::PAPER);
    let printed = columns::numbers(table, results::PAPER_VALUE);
    let seeds = columns::wholes(table, results::SEED);
    let counts = columns::wholes(table, results::N);
    let profiles = columns::texts(table, results::PROFILE);
    let sources = sources(&recorded.steps[at]);
    let mut seeds_of: BTreeMap<(String, BTreeMap<String, String>), BTreeMap<i64, i64>> =
        BTreeMap::new();
    let execution = recorded.steps[at].execution.as_ref();
    let params = execution.map(|execution| &execution.key.params);
    let mut found: Vec<PaperTable> = Vec::new();
    for line in 0..table.num_rows() {
        let paper = papers.as_ref().map_or("", |papers| &papers[line]);
        let known = |known: &PaperTable| known.name == tables[line] && known.paper == paper;
        let place = found.iter().position(known).unwrap_or_else(|| {
            found.push(PaperTable {
                step: at,
                output,
                paper: paper.to_owned(),
                name: tables[line].clone(),
                rows: Vec::new(),
                cols: Vec::new(),
                cells: BTreeMap::new(),
                metric: None,
                counted: [None, None],
                profile: profiles
                    .as_ref()
                    .map_or_else(String::new, |profiles| profiles[line].clone()),
            });
            found.len() - 1
        });
        let grid = &mut found[place];
        let spot = (
            place_of(&mut grid.rows, &rows[line]),
            place_of(&mut grid.cols, &cols[line]),
        );
        let cell = grid.cells.entry(spot).or_default();
        cell.values.push(Measured {
            seed: seeds.as_ref().and_then(|seeds| seeds[line]),
            value: values[line].filter(|value| value.is_finite()),
            n: counts.as_ref().and_then(|counts| counts[line]),
        });
        cell.paper = cell
            .paper
            .or(printed.as_ref().and_then(|printed| printed[line]));
        if cell.source.is_none() {
            let names = [&tables[line], &rows[line], &cols[line]].map(String::as_str);
            cell.source = sources.iter().find_map(|source| source.of(names));
        }
    }
    for grid in &mut found {
        for ((row, col), cell) in &mut grid.cells {
            let names = [&grid.name, &grid.rows[*row], &grid.cols[*col]].map(String::as_str);
            let known = params
                .and_then(|params| origin(params, names))
                .map(|origin| {
                    let key = (origin.from.to_owned(), origin.values.clone());
                    let known = seeds_of.entry(key);
                    let look = || representatives(recorded, at, origin.from, &origin.values);
                    &*known.or_insert_with(look)
                });
            sum_up(cell, |seed| known?.get(&seed).copied());
        }
        grid.metric = in_all(grid, |source| &source.metric);
        grid.counted = [0, 1].map(|side| in_all(grid, |source| &source.counted[side]));
    }
    Some(found)
}

/// What the sources of all cells say alike, if it is anything.
fn in_all(grid: &PaperTable, text: impl Fn(&CellSource) -> &String) -> Option<String> {
    let mut all = grid.cells.values().map(|cell| cell.source.as_ref());
    let first = text(all.next()??);
    let same = all.all(|source| source.is_some_and(|source| text(source) == first));
    (same && !first.is_empty()).then(|| first.clone())
}

fn place_of(names: &mut Vec<String>, name: &str) -> usize {
    names
        .iter()
        .position(|known| known == name)
        .unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
}

/// Sums a cell up over executions. `representative` gives the first seed with the same parts as another.
fn sum_up(cell: &mut Cell, representative: impl Fn(i64) -> Option<i64>) {
    let mut seeds: Vec<Option<i64>> = Vec::new();
    let replicates = cell.values.iter().filter_map(|one| {
        let seed = one.seed.map(|seed| representative(seed).unwrap_or(seed));
        let known = seeds.iter().position(|other| *other == seed);
        let execution = known.unwrap_or_else(|| {
            seeds.push(seed);
            seeds.len() - 1
        });
        Some(Replicate {
            value: one.value?,
            n: one.n.and_then(|n| u64::try_from(n).ok()),
            execution,
        })
    });
    let replicates: Vec<Replicate> = replicates.collect();
    let proportion = cell
        .source
        .as_ref()
        .is_some_and(|source| is_proportion(&source.metric));
    if let Some(summary) = CellSummary::of(&replicates, proportion) {
        cell.mean = Some(summary.mean);
        cell.sd = summary.sd;
        cell.executions = summary.executions;
        cell.interval = summary.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_become_mean_and_sd_and_differences_are_shaded() {
        let one = |seed, value| Measured {
            seed: Some(seed),
            value,
            n: Some(10),
        };
        let mut cell = Cell {
            values: vec![one(1, Some(0.8)), one(2, Some(0.9)), one(3, None)],
            paper: Some(0.82),
            ..Cell::default()
        };
        sum_up(&mut cell, |_| None);
        assert!((cell.mean.unwrap() - 0.85).abs() < 1e-12);
        assert!((cell.sd.unwrap() - 0.005_f64.sqrt()).abs() < 1e-12);
        assert_eq!(cell.shade(), Some(1));
        assert_eq!(cell.executions, 2);
        // Seeds that give the same are one execution, which has no spread.
        let mut copies = Cell {
            values: vec![one(1, Some(0.8)), one(2, Some(0.8))],
            ..Cell::default()
        };
        sum_up(&mut copies, |_| Some(1));
        assert_eq!(
            (copies.executions, copies.sd, copies.interval),
            (1, None, None)
        );
        let shade = |mean: f64, paper: f64| {
            let cell = Cell {
                mean: Some(mean),
                paper: Some(paper),
                ..Cell::default()
            };
            cell.shade().unwrap()
        };
        assert_eq!(
            [shade(0.91, 0.90), shade(0.92, 0.90), shade(0.5, 0.9)],
            [0, 1, 3]
        );
        // Not shares: 104 is 4 percent off 100.
        assert_eq!(shade(104.0, 100.0), 2);
    }

    #[test]
    fn what_a_cell_was_measured_on_is_counted() {
        let cell = |counts: &[Option<i64>]| Cell {
            values: counts
                .iter()
                .map(|n| Measured {
                    seed: None,
                    value: Some(0.5),
                    n: *n,
                })
                .collect(),
            ..Cell::default()
        };
        let behind = |counts: &[Option<i64>]| cell(counts).behind();
        assert_eq!(behind(&[Some(10)]).as_deref(), Some("10"));
        assert_eq!(behind(&[Some(10); 3]).as_deref(), Some("3 × 10"));
        assert_eq!(
            behind(&[Some(10), Some(8)]).as_deref(),
            Some("2 seeds, 8 to 10")
        );
        assert_eq!(behind(&[Some(10), None]), None);
        assert_eq!(behind(&[]), None);
    }

    #[test]
    fn tidy_is_told_by_the_columns() {
        assert!(is_tidy(
            "paper: Utf8, table: Utf8, row: Utf8, col: Utf8, value: Float64"
        ));
        assert!(!is_tidy(
            "table: Utf8, rows: Utf8, col: Utf8, value: Float64"
        ));
    }
}
