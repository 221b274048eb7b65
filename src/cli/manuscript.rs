//! `ablate lint` and `ablate render`: the numbers of a manuscript, held to the store.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::record_batch::RecordBatch;
use clap::Args;
use serde_json::json;
use store::{Digest, Run, Store};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::{note, out};
use super::which::{self, RunOption};
use crate::diagnostic::{Diagnostic, Problems, Sources, Span};
use crate::inspect::stored::{self, Stored};
use crate::plan::{self, Plan, Source};
use crate::publish::manuscript::cells::{self, Known};
use crate::publish::manuscript::lint::{Finding, Past, judge};
use crate::publish::manuscript::numbers::{Computed, stray, written};
use crate::publish::manuscript::render;
use crate::results::{cell, find};

/// What `lint` takes.
#[derive(Args)]
pub struct LintArguments {
    /// The manuscript: Markdown or TeX
    manuscript: PathBuf,
    #[command(flatten)]
    which: RunOption,
    /// How many past runs are searched for stale numbers
    #[arg(long, value_name = "N", default_value_t = 20)]
    runs: usize,
}

/// What `render` takes.
#[derive(Args)]
pub struct RenderArguments {
    /// The manuscript, with references such as {{ablate:results[row=lstm,col=clean]}}
    manuscript: PathBuf,
    #[command(flatten)]
    which: RunOption,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The results of a pipeline: those of now, or of a past run.
struct Results<'a> {
    plan: &'a Plan<'a>,
    store: &'a Store,
    stored: Stored,
    /// Tables that were read before: a manuscript names the same ones again and again.
    read: RefCell<HashMap<Digest, RecordBatch>>,
}

impl<'a> Results<'a> {
    fn read_from(
        plan: &'a Plan<'a>,
        store: &'a Store,
        run: Option<&Run>,
    ) -> Result<Results<'a>, store::Error> {
        let wanted = vec![true; plan.instances.len()];
        Ok(Results {
            stored: match run {
                Some(run) => stored::of_run(plan, store, run)?,
                None => stored::now(plan, &wanted, Some(store)),
            },
            plan,
            store,
            read: RefCell::default(),
        })
    }

    fn table(&self, digest: &Digest) -> Result<RecordBatch, store::Error> {
        if let Some(table) = self.read.borrow().get(digest) {
            return Ok(table.clone());
        }
        let table = self.store.look(digest)?;
        self.read.borrow_mut().insert(*digest, table.clone());
        Ok(table)
    }

    fn digest(&self, source: Source) -> Option<Digest> {
        let outputs = self.stored.outputs[source.instance].as_ref()?;
        Some(outputs[source.output])
    }

    /// What stands in a cell.
    fn cell(&self, name: &str) -> Result<String, String> {
        let found = find::find(self.plan, name).map_err(|d| d.title().to_owned())?;
        let Some(wanted) = &found.cell else {
            return Err(format!("`{name}` is a table, not a cell of one"));
        };
        let [source] = found.outputs[..] else {
            return Err(format!("`{name}` has several instances"));
        };
        let label = &self.plan.instances[source.instance].label;
        let digest = self.digest(source);
        let digest = digest.ok_or_else(|| match self.stored.faults.get(&source.instance) {
            Some(unusable) => unusable.to_string(),
            None => format!("`{label}` has not been run"),
        })?;
        let table = self.table(&digest).map_err(|error| error.to_string())?;
        let cell = cell::cell(&table, wanted);
        cell.map(|cell| cell.value)
            .map_err(|d| d.title().to_owned())
    }

    /// All numbers that there are.
    fn known(&self) -> Vec<Known> {
        let outputs = cells::outputs(self.plan).into_iter();
        let made = outputs.filter_map(|source| Some((source, self.digest(source)?)));
        self.of(made)
    }

    /// Results whose numbers are not known, because what the store has of them is not what was made.
    fn unusable(&self) -> Vec<String> {
        let mut found = Vec::new();
        for source in cells::outputs(self.plan) {
            let why = match (
                self.stored.faults.get(&source.instance),
                self.digest(source),
            ) {
                (Some(unusable), _) if self.stored.is_wrong(source.instance) => {
                    unusable.to_string()
                }
                (None, Some(digest)) => match self.table(&digest) {
                    Err(error) => error.to_string(),
                    Ok(_) => continue,
                },
                _ => continue,
            };
            if !found.contains(&why) {
                found.push(why);
            }
        }
        found
    }

    fn of(&self, made: impl Iterator<Item = (Source, Digest)>) -> Vec<Known> {
        let mut known = Vec::new();
        for (source, digest) in made {
            // What gc took, or what is damaged, is not known any more.
            if let Ok(table) = self.table(&digest) {
                known.extend(cells::of_table(&name(self.plan, source), &table));
            }
        }
        known
    }

    /// The numbers of past runs that are not those of now, newest first.
    fn past(&self, runs: &[Run]) -> Result<Vec<Past>, store::Error> {
        let outputs = cells::outputs(self.plan);
        let mut seen: Vec<Digest> = outputs.iter().filter_map(|s| self.digest(*s)).collect();
        let mut past = Vec::new();
        for run in runs {
            let uses = self.store.uses(run.id)?;
            let mut made = Vec::new();
            for source in &outputs {
                let instance = &self.plan.instances[source.instance];
                let used = uses.iter().find(|used| used.instance == instance.label);
                let Some(id) = used.and_then(|used| used.execution) else {
                    continue;
                };
                if !self.store.unsealed([id])?.is_empty() {
                    continue;
                }
                let execution = self.store.execution(id)?;
                let outputs = execution.map(|it| it.outputs).unwrap_or_default();
                let wanted = &instance.outputs[source.output];
                let output = outputs.iter().find(|output| output.name == *wanted);
                if let Some(output) = output.filter(|output| !seen.contains(&output.digest)) {
                    seen.push(output.digest);
                    made.push((*source, output.digest));
                }
            }
            past.push(Past {
                run: run.id.0,
                cells: self.of(made.into_iter()),
            });
        }
        Ok(past)
    }
}

/// How references call an output: `stage`, `stage.output` if it is not the first, and with axes
/// `stage[axis=value]`.
fn name(plan: &Plan<'_>, source: Source) -> String {
    let instance = &plan.instances[source.instance];
    match source.output {
        0 => instance.label.clone(),
        n => match instance.label.split_once('[') {
            Some((stage, axes)) => format!("{stage}.{}[{axes}", instance.outputs[n]),
            None => format!("{}.{}", instance.label, instance.outputs[n]),
        },
    }
}

fn read(path: &Path) -> Result<String, Exit> {
    std::fs::read_to_string(path).map_err(|error| {
        Diagnostic::new(format!("cannot read `{}`: {error}", path.display())).into()
    })
}

/// Compares the numbers of a manuscript with the store.
pub fn lint(global: &Global, arguments: &LintArguments) -> Result<(), Exit> {
    let text = read(&arguments.manuscript)?;
    let store = global.needed_store()?;
    let run = which::past(global, &store, &arguments.which)?;
    let pipeline = match &run {
        Some(run) => which::pipeline_of(global, run)?,
        None => global.pipeline()?,
    };
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let results = Results::read_from(&plan, &store, run.as_ref())?;
    let past = which::own_runs(global, &store, arguments.runs)?;
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
        out!("{file}:{line}:{column}: {shown} {}", said(&finding));
    }
    if global.json {
        out!(
            "{}",
            json!({ "event": "done", "numbers": numbers, "faults": faults, "typed": typed })
        );
    } else {
        out!("ablate: {numbers} numbers, {faults} stale or wrong, {typed} typed by hand");
    }
    match faults + unusable.len() {
        0 => Ok(()),
        _ => Err(Exit::Code(1)),
    }
}

fn said(finding: &Finding) -> String {
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
        Finding::Stray { cell } => format!("names {cell}, and no number stands before it"),
        Finding::Unfilled { why } => format!("cannot be filled in: {why}"),
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

/// Of more references that cannot be filled in the rest is counted.
const MOST: usize = 20;

/// Fills the references of a manuscript in.
pub fn render(global: &Global, arguments: &RenderArguments) -> Result<(), Exit> {
    let text = read(&arguments.manuscript)?;
    let store = global.needed_store()?;
    let run = which::past(global, &store, &arguments.which)?;
    let pipeline = match &run {
        Some(run) => which::pipeline_of(global, run)?,
        None => global.pipeline()?,
    };
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let results = Results::read_from(&plan, &store, run.as_ref())?;
    let tex = arguments
        .manuscript
        .extension()
        .is_some_and(|ending| ending == "tex");
    let cell = |name: &str| {
        let value = results.cell(name)?;
        // Texts may have what TeX would obey; numbers have nothing of it.
        Ok(if tex { render::tex(&value) } else { value })
    };
    let filled = match render::render(&text, cell) {
        Ok(filled) => filled,
        Err(unfilled) => {
            let mut sources = Sources::default();
            let source = sources.add(arguments.manuscript.display().to_string(), text);
            let count = unfilled.len();
            let list = unfilled.into_iter().take(MOST).map(|one| {
                Diagnostic::new("this reference cannot be filled in")
                    .at(Span::new(source, one.place), one.why)
            });
            let mut list: Vec<Diagnostic> = list.collect();
            if count > MOST {
                let more = format!("{} more references cannot be filled in", count - MOST);
                list.push(Diagnostic::new(more));
            }
            return Err(Problems { sources, list }.into());
        }
    };
    match &arguments.output {
        None => super::print::print_bytes(filled.as_bytes()),
        Some(file) => std::fs::write(file, filled).map_err(|error| {
            Diagnostic::new(format!("cannot write `{}`: {error}", file.display())).into()
        }),
    }
}
