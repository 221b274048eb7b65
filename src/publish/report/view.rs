//! Tables and attacks as a page shows them: numbers in words, cells numbered for the script.

use serde::Serialize;
use serde_json::{Value, json};
use stages::Role;

use super::examples::Examples;
use super::tables::{Cell, PaperTable};
use crate::results::columns::short;
use crate::results::recorded::Recorded;

/// A paper's table in words.
#[derive(Serialize)]
pub struct Table {
    /// The table's name.
    pub name: String,
    /// The paper's.
    pub paper: String,
    /// What `ablate show` calls the results that it is from.
    pub source: String,
    /// The step that made them.
    pub step: usize,
    /// What was measured, where it is one thing.
    pub metric: Option<String>,
    /// How its intervals were made.
    pub methods: Option<String>,
    /// Whether the paper's numbers are there.
    pub has_paper: bool,
    /// Whether ours can be compared with them.
    pub comparable: bool,
    /// Whether our numbers are entered in the pipeline file, not measured.
    pub typed: bool,
    /// The profile that ours were made with.
    pub profile: String,
    /// Names of the columns.
    pub cols: Vec<String>,
    /// Names of the rows with their cells.
    pub rows: Vec<(String, Vec<Option<Shown>>)>,
}

/// A cell in words.
#[derive(Serialize)]
pub struct Shown {
    /// Its number among all cells of the page.
    pub cell: usize,
    /// Our number, or a dash.
    pub ours: String,
    /// `[0.781, 0.862]`, the 95% interval.
    pub interval: Option<String>,
    /// How many seeds, if several.
    pub seeds: usize,
    /// The paper's number.
    pub paper: Option<String>,
    /// `+0.012`
    pub difference: Option<String>,
    /// From 0 to 3.
    pub shade: Option<usize>,
}

/// Numbers the cells of all tables in the order in which [`cells`] lists them.
pub fn tables(recorded: &Recorded, tables: &[PaperTable]) -> Vec<Table> {
    let mut next = 0;
    let mut all = Vec::with_capacity(tables.len());
    for table in tables {
        let step = &recorded.steps[table.step];
        let digits = |number: f64| number_as(number, table.is_whole());
        let mut rows = Vec::with_capacity(table.rows.len());
        for (r, name) in table.rows.iter().enumerate() {
            let cells = (0..table.cols.len()).map(|c| {
                let cell = table.cells.get(&(r, c))?;
                next += 1;
                let mut shown = shown(cell, next - 1, digits);
                // A colour would suggest that the difference is meaningful.
                shown.shade = shown.shade.filter(|_| table.is_comparable());
                Some(shown)
            });
            rows.push((name.clone(), cells.collect()));
        }
        all.push(Table {
            name: table.name.clone(),
            paper: table.paper.clone(),
            source: step.source(&step.outputs()[table.output]),
            step: table.step,
            metric: table.metric.as_ref().map(|metric| metric.replace('_', " ")),
            methods: table.methods(),
            has_paper: table.has_paper(),
            comparable: table.is_comparable(),
            typed: step.role() == Role::Typed,
            profile: table.profile.clone(),
            cols: table.cols.clone(),
            rows,
        });
    }
    all
}

fn shown(cell: &Cell, number: usize, digits: impl Fn(f64) -> String) -> Shown {
    let difference = cell.difference();
    Shown {
        cell: number,
        ours: cell.mean.map_or("–".to_owned(), &digits),
        interval: cell.between(&digits),
        seeds: cell.values.len(),
        paper: cell.paper.map(&digits),
        difference: difference.map(|difference| {
            let sign = if difference < 0.0 { '−' } else { '+' };
            format!("{sign}{}", digits(difference.abs()))
        }),
        shade: cell.shade(),
    }
}

/// Three decimals as papers print them, none in a table of counts; tiny and huge numbers keep
/// their size.
pub fn number_as(number: f64, whole: bool) -> String {
    match number.abs() {
        _ if whole => format!("{number}"),
        size if size != 0.0 && !(0.001..1e6).contains(&size) => short(number),
        size if size >= 100.0 => format!("{number:.1}"),
        _ => format!("{number:.3}"),
    }
}

/// The cells of all tables, row by row, for the script.
pub fn cells(tables: &[PaperTable]) -> Value {
    let cells = tables.iter().flat_map(|table| {
        table.cells.iter().map(|((r, c), cell)| {
            json!({
                "step": table.step, "output": table.output, "table": table.name,
                "row": table.rows[*r], "col": table.cols[*c], "values": cell.values,
                "mean": cell.mean, "sd": cell.sd, "paper": cell.paper, "n": cell.behind(),
                "executions": cell.executions, "interval": cell.interval,
                "method": cell.interval.map(|interval| interval.method.name()),
                "source": cell.source,
            })
        })
    });
    cells.collect()
}

/// The attacks whose examples are on the page: name, how many, of how many.
pub fn attacks(examples: &Examples) -> Vec<(String, usize, usize)> {
    let tables = examples.tables.iter();
    tables
        .map(|table| (table.name.clone(), table.rows.len(), table.total))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::number_as;

    #[test]
    fn numbers_are_as_papers_print_them() {
        let cases = [
            (0.9163, "0.916"),
            (0.0, "0.000"),
            (1234.56, "1234.6"),
            (0.00012, "1.200e-4"),
        ];
        for (number, expected) in cases {
            assert_eq!(number_as(number, false), expected);
        }
        assert_eq!(number_as(300.0, true), "300");
    }
}
