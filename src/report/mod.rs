//! One page for a run: summary, results, figures, adversarial examples, graph, provenance.
//!
//! ```text
//! store -> gather (the run as recorded) -> tables, figures, examples, graph, data -> page
//! ```
//!
//! Everything comes from the store; only claims and `figures.toml` are read beside the pipeline
//! file, by the caller. Text of data sets is hostile: templates escape it, and what the script
//! shows it shows as text.

mod cell_source;
pub mod columns;
pub mod compare;
mod data;
pub mod examples;
pub mod export;
pub mod figures;
pub mod gather;
mod graph;
pub mod lookup;
pub mod page;
mod plain;
mod reading;
pub mod serve;
mod signals;
pub mod summary;
pub mod tables;
mod view;

use serde_json::json;
use store::{Inspected, Output, Run, Store};

use crate::degenerate;
use figures::asked::Asked;
use figures::{Figure, automatic, paper};
use gather::{Recorded, Step};
use tables::PaperTable;

pub use summary::ClaimRow;

/// What a report is made of, besides the store.
pub struct Request<'a> {
    /// The run.
    pub run: Run,
    /// Its claims, judged; or why they could not be.
    pub claims: Result<Vec<ClaimRow>, String>,
    /// The figures that were asked for.
    pub figures: &'a [Asked],
    /// The most examples that are embedded.
    pub examples: usize,
    /// Which part of a large graph is drawn, from 0; `None`: all that a file can show.
    pub part: Option<usize>,
    /// Whether the page is served, beside others.
    pub served: bool,
}

/// A page, and what a person should know of it.
pub struct Report {
    /// The page.
    pub html: String,
    /// Figures that were asked for and could not be drawn.
    pub notes: Vec<String>,
    /// Results that cannot be shown, and why.
    pub lost: Vec<Lost>,
    /// Results that are shown and say little: a model that predicts one class, a variant without an effect.
    pub odd: Vec<String>,
}

/// A result that cannot be shown.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Lost {
    /// Which, and why.
    pub what: String,
    /// Whether something is wrong with it: what is missing may have been removed by gc.
    pub wrong: bool,
}

/// Makes the page of a run.
pub fn make(store: &Store, request: Request<'_>) -> Result<Report, store::Error> {
    let recorded = gather::gather(store, request.run)?;
    let lost = lost(store, &recorded);
    let odd = degenerate::behind_steps(store, &recorded, 0..recorded.steps.len());
    let tables = paper_tables(store, &recorded);
    let (figures, notes) = all_figures(store, &recorded, &tables, request.figures);
    let examples = examples::collect(store, &recorded, request.examples);
    let plain = plain::tables(store, &recorded);
    let mut lineage = data::lineage(&recorded);
    lineage["cells"] = view::cells(&tables);
    lineage["examples"] = json!(examples);
    let graph = graph::lay_out(&recorded, request.part);
    let nodes = graph.nodes.iter();
    lineage["stages"] = nodes
        .map(|node| json!({ "name": node.name, "steps": node.steps }))
        .collect();
    let html = page::render(
        "report.html",
        &data::embeddable(&lineage),
        request.served,
        minijinja::context! {
            title => format!("{}, run {}", recorded.run.pipeline, recorded.run.id),
            summary => page::value(summary::summary(store, &recorded)),
            claims => page::value(summary::claims(&request.claims)),
            shaded => tables.iter().any(|table| table.has_paper() && table.is_comparable()),
            small => tables.iter().any(|table| table.has_paper() && !table.is_comparable()),
            tables => page::value(view::tables(&recorded, &tables)),
            plain => page::value(plain),
            lost => page::value(&lost),
            odd => page::value(&odd),
            figures => page::value(figures),
            undrawn => page::value(&notes),
            attacks => page::value(view::attacks(&examples)),
            drawings => page::value(examples.drawings),
            graph => page::value(graph),
            machine => page::value(summary::machine(&recorded.run.environment)),
        },
    );
    Ok(Report {
        html,
        notes,
        lost,
        odd,
    })
}

/// Results that cannot be shown, and why.
pub fn lost(store: &Store, recorded: &Recorded) -> Vec<Lost> {
    let read = recorded.read();
    let mut lost = Vec::new();
    for (stage, why) in &recorded.altered {
        lost.push(Lost {
            what: format!("the stored result of `{stage}` is altered ({why}): it is not shown"),
            wrong: true,
        });
    }
    for (at, step) in recorded.steps.iter().enumerate() {
        for (n, output) in step.outputs().iter().enumerate() {
            if !is_result(step, output, read.contains(&(at, n))) {
                // Large tables may be among them: their bytes are checked if they are drawn.
                if let Inspected::Damaged(why) = store.glance(output) {
                    lost.push(Lost {
                        what: format!("{} is damaged on disk: {why}", step.source(output)),
                        wrong: true,
                    });
                }
                continue;
            }
            if let Err(error) = store.look(&output.digest) {
                lost.push(Lost {
                    what: format!(
                        "the results of {} are not shown: {error}",
                        step.source(output)
                    ),
                    wrong: !matches!(error, store::Error::Missing { .. }),
                });
            }
        }
    }
    lost
}

/// Every table of a paper in the results of a run.
pub fn paper_tables(store: &Store, recorded: &Recorded) -> Vec<PaperTable> {
    let read = recorded.read();
    let mut found = Vec::new();
    for (at, step) in recorded.steps.iter().enumerate() {
        for (n, output) in step.outputs().iter().enumerate() {
            if !is_result(step, output, read.contains(&(at, n))) {
                continue;
            }
            let table = gather::table(store, output);
            let tables = table.and_then(|table| tables::read(at, n, step, &table));
            for mut table in tables.unwrap_or_default() {
                if table.profile.is_empty() {
                    table.profile = recorded.run.profile.clone().unwrap_or_default();
                }
                found.push(table);
            }
        }
    }
    found
}

/// Whether an output holds tidy results of ours. A table that somebody typed for another stage to
/// read, such as the paper's own numbers, is none.
fn is_result(step: &Step, output: &Output, read: bool) -> bool {
    let typed = step.kind() == "table" && (read || !tables::is_measured(&output.schema));
    !typed && tables::is_tidy(&output.schema)
}

/// What was asked for first, then what the tables suggest.
fn all_figures(
    store: &Store,
    recorded: &Recorded,
    tables: &[PaperTable],
    asked: &[Asked],
) -> (Vec<Figure>, Vec<String>) {
    let (mut figures, mut notes) = (Vec::new(), Vec::new());
    let profile = recorded.run.profile.as_deref();
    for one in asked.iter().filter(|one| one.is_for(profile)) {
        match asked_for(store, recorded, one) {
            Ok(figure) => figures.push(figure),
            Err(why) => notes.push(format!("figure `{}` is not drawn: {why}", one.id)),
        }
    }
    let suggested = tables
        .iter()
        .filter_map(|table| paper::of_table(table, recorded));
    figures.extend(suggested);
    figures.extend(automatic::of_run(store, recorded, !tables.is_empty()));
    (figures, notes)
}

fn asked_for(store: &Store, recorded: &Recorded, asked: &Asked) -> Result<Figure, String> {
    let (table, step) = lookup::table(store, recorded, &asked.table)?;
    let table = match &asked.query {
        Some(query) => {
            let tables = [("t".to_owned(), table)].into();
            stages::kinds::sql::query(tables, query, || false)
                .map_err(|failure| format!("its query failed: {}", failure.message))?
        }
        None => table,
    };
    figures::make(asked, &table, Some(step))
}
