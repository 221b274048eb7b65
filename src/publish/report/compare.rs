//! Two runs as one page: claims, tables and stages, what was beside what is.

use std::collections::BTreeMap;

use serde::Serialize;
use store::{Run, Store};

use super::lost::{LostResult, lost as lost_results};
use super::page;
use super::run_tables::paper_tables;
use super::summary::{self, ClaimRow, Summary};
use super::tables::{Cell, PaperTable};
use super::view::number_as;
use crate::inspect::compare;
use crate::results::recorded::{self, Recorded};
use crate::results::statistics::{Interval, paired_difference};

/// One of the two runs.
pub struct Side {
    /// The run.
    pub run: Run,
    /// Its claims, judged; or why they could not be.
    pub claims: Result<Vec<ClaimRow>, String>,
}

/// What was compared.
#[derive(Serialize)]
pub struct Compared {
    /// The older run.
    pub old: Summary,
    /// The newer run.
    pub new: Summary,
    /// Claims of either.
    pub claims: Vec<ClaimPair>,
    /// Tables of either.
    pub tables: Vec<TablePair>,
    /// Stages.
    pub stages: compare::Runs,
    /// Results of either that cannot be shown.
    pub lost: Vec<LostResult>,
}

/// A claim in both runs.
#[derive(Serialize)]
pub struct ClaimPair {
    /// Its name.
    pub id: String,
    /// What is claimed.
    pub text: String,
    /// The verdicts.
    pub verdicts: [Option<&'static str>; 2],
    /// The numbers behind them.
    pub numbers: [String; 2],
    /// Whether the verdict changed.
    pub changed: bool,
}

/// A table of a paper in both runs.
#[derive(Serialize)]
pub struct TablePair {
    /// Its name.
    pub name: String,
    /// The paper's.
    pub paper: String,
    /// Names of the columns.
    pub cols: Vec<String>,
    /// Rows with their cells.
    pub rows: Vec<(String, Vec<CellPair>)>,
    /// How many cells differ.
    pub differ: usize,
}

/// A number in both runs.
#[derive(Default, Serialize)]
pub struct CellPair {
    /// Before.
    pub was: Option<String>,
    /// Now.
    pub now: Option<String>,
    /// `+0.012`, where both are there and differ.
    pub difference: Option<String>,
    /// How many rows it was measured on, before and now, where that differs: a number on other
    /// rows is another number, even if it looks the same.
    pub n: Option<[String; 2]>,
    /// Whether the numbers of single seeds differ, though their means may not.
    pub other: bool,
}

impl CellPair {
    /// Whether anything is not the same in both.
    pub fn differs(&self) -> bool {
        self.was != self.now || self.difference.is_some() || self.n.is_some() || self.other
    }
}

/// Compares two runs.
pub fn compare(store: &Store, old: Side, new: Side) -> Result<Compared, store::Error> {
    let stages = compare::runs(store, old.run.id, new.run.id)?;
    let claims = claims(&old.claims, &new.claims);
    let (old, new) = (
        recorded::gather(store, old.run)?,
        recorded::gather(store, new.run)?,
    );
    let mut lost = lost_results(store, &old);
    for one in lost_results(store, &new) {
        if !lost.iter().any(|known| known.what == one.what) {
            lost.push(one);
        }
    }
    Ok(Compared {
        lost,
        claims,
        tables: tables(store, &old, &new),
        stages,
        old: summary::summary(store, &old),
        new: summary::summary(store, &new),
    })
}

/// The page of a comparison.
pub fn html(compared: &Compared, served: bool) -> String {
    let title = format!("runs {} and {}", compared.old.run, compared.new.run);
    let parts = minijinja::context! { title => title, compared => page::value(compared) };
    page::render("compare.html", "{}", served, parts)
}

fn claims(
    old: &Result<Vec<ClaimRow>, String>,
    new: &Result<Vec<ClaimRow>, String>,
) -> Vec<ClaimPair> {
    let none = Vec::new();
    let sides = [old, new].map(|side| side.as_ref().unwrap_or(&none));
    let mut ids: Vec<&ClaimRow> = sides[1].iter().collect();
    ids.extend(
        sides[0]
            .iter()
            .filter(|row| !sides[1].iter().any(|new| new.id == row.id)),
    );
    let pair = |row: &ClaimRow| {
        let both = sides.map(|side| side.iter().find(|other| other.id == row.id));
        let verdicts = both.map(|one| one.map(|one| one.verdict));
        let numbers = both.map(|one| {
            let numbers = one.into_iter().flat_map(|one| &one.ours);
            let numbers = numbers.map(|(name, value)| format!("{name} {value}"));
            numbers.collect::<Vec<_>>().join(", ")
        });
        ClaimPair {
            id: row.id.clone(),
            text: row.text.clone(),
            changed: verdicts[0] != verdicts[1],
            verdicts,
            numbers,
        }
    };
    ids.into_iter().map(pair).collect()
}

fn tables(store: &Store, old: &Recorded, new: &Recorded) -> Vec<TablePair> {
    let (old, new) = (paper_tables(store, old), paper_tables(store, new));
    let same = |a: &PaperTable, b: &PaperTable| a.name == b.name && a.paper == b.paper;
    let gone = old
        .iter()
        .filter(|table| !new.iter().any(|other| same(table, other)));
    let left = gone.map(|table| (Some(table), None));
    let now = new
        .iter()
        .map(|table| (old.iter().find(|other| same(table, other)), Some(table)));
    now.chain(left).map(|(was, now)| pair(was, now)).collect()
}

fn pair(was: Option<&PaperTable>, now: Option<&PaperTable>) -> TablePair {
    let both = || now.into_iter().chain(was);
    let named = |names: fn(&PaperTable) -> &Vec<String>| {
        let mut list: Vec<String> = Vec::new();
        for name in both().flat_map(names) {
            if !list.contains(name) {
                list.push(name.clone());
            }
        }
        list
    };
    let (rows, cols) = (named(|table| &table.rows), named(|table| &table.cols));
    let sides = [was, now].map(|table| table.map(cells).unwrap_or_default());
    let whole = both().all(PaperTable::is_whole);
    let mut differ = 0;
    let mut cell = |row: &str, col: &str| {
        let both = [0, 1].map(|side| sides[side].get(&(row, col)).copied());
        // Equal means of different numbers are not equal results. NaN is the same as NaN here.
        let seeds = both.map(|cell| {
            let values = cell.into_iter().flat_map(|cell| &cell.values);
            let values = values.map(|one| (one.seed, one.value.map(f64::to_bits)));
            values.collect::<Vec<_>>()
        });
        let sd = both.map(|cell| cell.and_then(|cell| cell.sd));
        let [was, now] = both.map(|cell| cell.and_then(|cell| cell.mean));
        let difference = match (was, now) {
            // Less than this is the rounding of a mean.
            (Some(was), Some(now)) if (now - was).abs() > 1e-12 * was.abs().max(1.0) => {
                Some(now - was)
            }
            _ => None,
        };
        let n = match both.map(|cell| cell.and_then(Cell::behind)) {
            [Some(was), Some(now)] if was != now => Some([was, now]),
            _ => None,
        };
        let other = seeds[0] != seeds[1];
        differ += usize::from(was != now || n.is_some() || other);
        let shown = |number: f64| number_as(number, whole);
        let with_sd = |mean: Option<f64>, side: usize| {
            let mean = match mean {
                Some(mean) => shown(mean),
                None => seeds[side].first()?.1.map(f64::from_bits)?.to_string(),
            };
            Some(match sd[side].filter(|_| sd[0] != sd[1]) {
                Some(sd) => format!("{mean} ± {}", shown(sd)),
                None => mean,
            })
        };
        CellPair {
            n,
            other,
            was: with_sd(was, 0),
            now: with_sd(now, 1),
            difference: difference.map(|by| {
                let signed = |by: f64| {
                    let sign = if by < 0.0 { '−' } else { '+' };
                    format!("{sign}{}", shown(by.abs()))
                };
                match paired(both) {
                    Some(at) => format!("{} [{}, {}]", signed(by), signed(at.low), signed(at.high)),
                    None => signed(by),
                }
            }),
        }
    };
    let grid = rows.iter().map(|row| {
        let cells = cols.iter().map(|col| cell(row, col)).collect();
        (row.clone(), cells)
    });
    let rows = grid.collect();
    let first = both().next();
    TablePair {
        name: first.map_or_else(String::new, |table| table.name.clone()),
        paper: first.map_or_else(String::new, |table| table.paper.clone()),
        cols,
        rows,
        differ,
    }
}

/// The 95% interval of a difference over the seeds that both have, by Student's t: none unless each has several
/// executions.
fn paired(both: [Option<&Cell>; 2]) -> Option<Interval> {
    let [Some(was), Some(now)] = both else {
        return None;
    };
    if was.executions < 2 || now.executions < 2 {
        return None;
    }
    let pairs = now.values.iter().filter_map(|new| {
        let old = was.values.iter().find(|old| old.seed == new.seed)?;
        Some((new.value?, old.value?))
    });
    let (new, old): (Vec<f64>, Vec<f64>) = pairs.unzip();
    paired_difference(&new, &old)?.interval
}

fn cells(table: &PaperTable) -> BTreeMap<(&str, &str), &Cell> {
    let cells = table.cells.iter();
    let named = cells.map(|((r, c), cell)| ((&*table.rows[*r], &*table.cols[*c]), cell));
    named.collect()
}
