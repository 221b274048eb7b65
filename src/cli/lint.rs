//! `ablate lint`: numbers in a manuscript that are stale, wrong or typed by hand.

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::manuscript::{ManuscriptResults, read};
use super::print::{note, out};
use super::run_selection::{self, RunOption};
use crate::amounts::plural;
use crate::plan::{self};
use crate::publish::manuscript::lint::{Finding, judge};
use crate::publish::manuscript::numbers::{Computed, stray, written};
use crate::publish::manuscript::render;

/// What `lint` takes.
#[derive(Args)]
pub struct Arguments {
    /// The manuscript: Markdown or TeX
    manuscript: PathBuf,
    #[command(flatten)]
    which: RunOption,
    /// How many past runs are searched for stale numbers
    #[arg(long, value_name = "N", default_value_t = 20)]
    runs: usize,
}

/// Compares the numbers of a manuscript with the store.
pub fn lint(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let text = read(&arguments.manuscript)?;
    let store = global.needed_store()?;
    let (run, pipeline) = run_selection::past_pipeline(global, &store, &arguments.which)?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let results = ManuscriptResults::read_from(&plan, &store, run.as_ref())?;
    let past = run_selection::own_runs(global, &store, arguments.runs)?;
    let (now, past) = (results.known(), results.past(&past)?);
    let unusable = results.unusable();
    for why in &unusable {
        note!("ablate: {why}: its numbers are not known");
    }
    let numbers = written(&text);
    let cell = |name: &str| {
        let value = results.cell(name)?;
        let number = Computed::parse(&value);
        number.ok_or_else(|| format!("`{name}` is `{value}`, which is not a number"))
    };
    let mut findings: Vec<(Range<usize>, Finding)> = Vec::new();
    for number in &numbers {
        let finding = judge(number, &now, &past, cell);
        findings.extend(finding.map(|finding| (number.place.clone(), finding)));
    }
    for note in stray(&text, &numbers) {
        findings.push((note.place, Finding::Stray { cell: note.cell }));
    }
    if let Err(unfilled) = render::render(&text, |name| results.cell(name)) {
        let unfilled = unfilled.into_iter();
        findings.extend(unfilled.map(|one| (one.place, Finding::Unfilled { why: one.why })));
    }
    findings.sort_by_key(|(place, _)| place.start);
    let lines = Lines::of(&text);
    let (numbers, mut faults, mut typed) = (numbers.len(), 0, 0);
    for (at, finding) in findings {
        faults += usize::from(finding.is_fault());
        typed += usize::from(matches!(finding, Finding::Typed { .. }));
        let (line, column) = lines.place(at.start);
        let shown = &text[at];
        if global.json {
            let mut object = serde_json::to_value(&finding).expect("plain values");
            object["line"] = line.into();
            object["column"] = column.into();
            object["number"] = shown.into();
            out!("{object}");
            continue;
        }
        if global.quiet && !finding.is_fault() {
            continue;
        }
        let file = arguments.manuscript.display();
        out!("{file}:{line}:{column}: {shown} {}", printed(&finding));
    }
    if global.json {
        out!(
            "{}",
            json!({ "event": "done", "numbers": numbers, "faults": faults, "typed": typed })
        );
    } else {
        let numbers = plural(numbers, "number");
        out!("ablate: {numbers}, {faults} stale or wrong, {typed} typed by hand");
    }
    match faults + unusable.len() {
        0 => Ok(()),
        _ => Err(Exit::Code(1)),
    }
}

fn printed(finding: &Finding) -> String {
    match finding {
        Finding::Right { cell } => format!("is right: {cell}"),
        Finding::Stale {
            cell,
            run,
            now: Some(now),
        } => format!("is stale: {cell} was that in run {run}, and is {now} now"),
        Finding::Stale { cell, run, .. } => {
            format!("is stale: {cell} was that in run {run}, and is not there now")
        }
        Finding::Wrong { cell, now } => format!("is wrong: {cell} is {now}"),
        Finding::NoCell { cell, why } => format!("has a note that names no cell: {cell}: {why}"),
        Finding::Stray { cell } => format!("names {cell}, but there is no number before it"),
        Finding::Unfilled { why } => format!("cannot be resolved: {why}"),
        Finding::Typed { cells } => {
            let each = cells.iter().map(|cell| format!("{{{{ablate:{cell}}}}}"));
            format!(
                "is typed by hand: write {}",
                each.collect::<Vec<_>>().join(" or ")
            )
        }
    }
}

/// Where the lines of a text begin.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl Lines<'_> {
    fn of(text: &str) -> Lines<'_> {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        Lines { text, starts }
    }

    /// Line and column, counted from 1.
    fn place(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        (line, self.text[start..at].chars().count() + 1)
    }
}
