//! The page of one run.

use serde_json::json;
use store::{Run, Store};

use super::figures::spec::FigureSpec;
use super::figures::{self, Figure, automatic, paper};
use super::lost::{LostResult, lost};
use super::run_tables::paper_tables;
use super::summary::{self, ClaimRow};
use super::tables::PaperTable;
use super::{ablations, certificates, data, examples, graph, page, plain, view, worlds};
use crate::inspect::ablation::Ablation;
use crate::publish::certificate::CertificateFile;
use crate::publish::multiverse::ClaimAcross;
use crate::results::degenerate;
use crate::results::recorded::{self, Recorded};
use crate::results::table;

/// What a report is made of, besides the store.
pub struct ReportRequest<'a> {
    /// The run.
    pub run: Run,
    /// Its claims, judged; or why they could not be.
    pub claims: Result<Vec<ClaimRow>, String>,
    /// Its ablations, as far as they have been compared.
    pub ablations: Vec<Ablation>,
    /// What claims say in other worlds, as far as those have been run.
    pub worlds: Vec<ClaimAcross>,
    /// Certificates beside the pipeline file.
    pub certificates: Vec<CertificateFile>,
    /// The requested figures.
    pub figures: &'a [FigureSpec],
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
    /// Requested figures that could not be drawn.
    pub notes: Vec<String>,
    /// Results that cannot be shown, and why.
    pub lost: Vec<LostResult>,
    /// Results that are shown and say little: a model that predicts one class, a variant without an effect.
    pub odd: Vec<String>,
}

/// Makes the page of a run.
pub fn make(store: &Store, request: ReportRequest<'_>) -> Result<Report, store::Error> {
    let recorded = recorded::gather(store, request.run)?;
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
            ablations => page::value(request.ablations.iter().map(ablations::view).collect::<Vec<_>>()),
            worlds => page::value(worlds::view(&request.worlds)),
            certificates => page::value(certificates::view(&request.certificates, &recorded)),
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

/// Requested figures first, then those that the tables suggest.
fn all_figures(
    store: &Store,
    recorded: &Recorded,
    tables: &[PaperTable],
    asked: &[FigureSpec],
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

fn asked_for(store: &Store, recorded: &Recorded, asked: &FigureSpec) -> Result<Figure, String> {
    let (table, step) = table::of_run(store, recorded, &asked.table)?;
    let table = match &asked.query {
        Some(query) => {
            let tables = [("t".to_owned(), table)].into();
            stages::sql::query(tables, query, || false)
                .map_err(|failure| format!("its query failed: {}", failure.message))?
        }
        None => table,
    };
    figures::make(asked, &table, Some(step))
}
