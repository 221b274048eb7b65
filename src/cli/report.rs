//! `ablate report`: a run as one page that needs nothing else.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use store::{Run, RunId, Store};

use super::exit::Exit;
use super::file;
use super::global::Global;
use super::print::{note, out};
use super::run_selection::{self, RunOption};
use crate::config::{self, PipelineRequest};
use crate::diagnostic::{self, Diagnostic, Problems};
use crate::inspect::ablation::{self, Ablation};
use crate::inspect::stored;
use crate::plan;
use crate::publish::certificate;
use crate::publish::claims as judging;
use crate::publish::multiverse::ClaimAcross;
use crate::publish::report::figures::spec;
use crate::publish::report::summary::invocation;
use crate::publish::report::{self, ClaimRow, LostResult};
use crate::visible::one_line;

/// How many adversarial examples a page has by default.
pub const EXAMPLES: usize = 10_000;

/// How many figures that are not drawn are named on the terminal.
const NOTES: usize = 4;
/// Notes on odd results that are printed; the page has all.
const ODD: usize = 10;

/// What `report` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    which: RunOption,
    /// The same as --run
    #[arg(hide = true, value_name = "RUN", conflicts_with = "run")]
    older_spelling: Option<String>,
    /// The file to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Maximum number of adversarial examples on the page
    #[arg(long, value_name = "N", default_value_t = EXAMPLES)]
    examples: usize,
}

/// Writes the page of a run.
pub fn report(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let option = run_selection::either(&arguments.which, &arguments.older_spelling);
    let run = run_selection::shown(global, &store, &option)?;
    let (number, invocation) = (run.id, invocation(&run));
    let figures = spec::read(&global.file)?;
    let request = report::ReportRequest {
        claims: judged(&global.file, &store, &run),
        ablations: ablations(&global.file, &store, &run),
        worlds: worlds(&global.file, &store, &run),
        certificates: certificate::beside(&global.file),
        run,
        figures: &figures,
        examples: arguments.examples,
        part: None,
        served: false,
    };
    if let Err(why) = &request.claims {
        note!("ablate: the claims cannot be judged: {}", first_line(why));
    }
    let rows = request.claims.iter().flatten();
    if rows.into_iter().any(|row| !row.graded) {
        note!("ablate: the claims are not graded yet: `ablate claims` does, and then this again");
    }
    let made = report::make(&store, request)?;
    tell_lost(&made.lost);
    for note in made.odd.iter().take(ODD) {
        note!("ablate: {}", one_line(note));
    }
    if let more @ 1.. = made.odd.len().saturating_sub(ODD) {
        note!("ablate: {more} more like these are on the page");
    }
    for note in made.notes.iter().take(NOTES) {
        note!("ablate: {note}");
    }
    if let more @ 1.. = made.notes.len().saturating_sub(NOTES) {
        note!("ablate: {more} more figures are not drawn: the page says why");
    }
    file::write(&arguments.output, made.html.as_bytes())?;
    let (name, bytes) = (&arguments.output, made.html.len());
    match (global.json, global.quiet) {
        (true, _) => out!(
            "{}",
            json!({
                "run": number, "invocation": invocation, "file": name, "bytes": bytes, "notes": made.odd,
            })
        ),
        (false, true) => {}
        (false, false) => out!(
            "{}: {} ({})",
            named(number, &invocation),
            name.display(),
            size(bytes)
        ),
    }
    unless_wrong(&made.lost)
}

/// Says which results are not shown.
pub fn tell_lost(lost: &[LostResult]) {
    for one in lost {
        note!("ablate: {}", one.what);
    }
}

/// A command that could not show everything has failed, whatever else it has shown.
pub fn unless_wrong(lost: &[LostResult]) -> Result<(), Exit> {
    match lost.iter().any(|one| one.wrong) {
        true => Err(Exit::Code(1)),
        false => Ok(()),
    }
}

/// The claims of a run, under the labels of today's files: what `ablate claims --run` says. None
/// if there is no file of claims; why not, if a file is wrong or gone.
pub fn judged(file: &Path, store: &Store, run: &Run) -> Result<Vec<ClaimRow>, String> {
    // Several pipelines may share a store: each has its own claims.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if name != run.file {
        let (run, own) = (run.id, &run.file);
        return Err(format!(
            "run {run} is of {own}, not of {name} (-f names the file)"
        ));
    }
    let invocation = |problems: Problems| diagnostic::render(&problems.sources, &problems.list);
    let request = PipelineRequest {
        file: file.to_owned(),
        profile: run.profile.clone(),
        sets: run_selection::settings(run),
    };
    let pipeline = config::read(&request).map_err(invocation)?;
    let rendered = |list: Vec<Diagnostic>| diagnostic::render(&pipeline.sources, &list);
    let plan = plan::build(&pipeline).map_err(rendered)?;
    let Some(path) = judging::path(file, &plan) else {
        return Ok(Vec::new());
    };
    let read = judging::read(&path, &plan).map_err(invocation)?;
    let stored = stored::of_run(&plan, store, run).map_err(|error| error.to_string())?;
    let results = judging::Results {
        plan: &plan,
        store: Some(store),
        stored: &stored,
        profile: run.profile.as_deref(),
        run: Some(run.id),
    };
    match judging::judge(&read, &results) {
        Ok(mut judged) => {
            let graded = judging::grade_kept(&read, &results, &mut judged, judging::DRAWS);
            graded.map_err(|error| error.to_string())?;
            Ok(judged.iter().map(ClaimRow::from).collect())
        }
        Err(judging::ClaimsError::Store(error)) => Err(error.to_string()),
        Err(judging::ClaimsError::Wrong(list)) => Err(diagnostic::render(&read.sources, &list)),
    }
}

/// The ablations of a run that `ablate ablation` has compared.
pub fn ablations(file: &Path, store: &Store, run: &Run) -> Vec<Ablation> {
    let request = PipelineRequest {
        file: file.to_owned(),
        profile: run.profile.clone(),
        sets: run_selection::settings(run),
    };
    let Ok(pipeline) = config::read(&request) else {
        return Vec::new();
    };
    let Ok(plan) = plan::build(&pipeline) else {
        return Vec::new();
    };
    let Ok(stored) = stored::of_run(&plan, store, run) else {
        return Vec::new();
    };
    let known = |variants: &ablation::Variants| {
        ablation::compared_before(&plan, store, &stored, variants, None)
    };
    ablation::evaluations(&plan)
        .iter()
        .filter_map(known)
        .collect()
}

/// What claims say in the worlds of a run's profile and settings that have been run.
pub fn worlds(file: &Path, store: &Store, run: &Run) -> Vec<ClaimAcross> {
    let settings = run_selection::settings(run).into_iter();
    let global = Global {
        file: file.to_owned(),
        directory: None,
        store: Some(store.root().to_owned()),
        profile: run.profile.clone(),
        set: settings
            .filter(|set| !set.starts_with("choices."))
            .collect(),
        memory: None,
        json: false,
        quiet: true,
    };
    let known = super::claims::so_far(&global, judging::DRAWS)
        .ok()
        .flatten();
    known.unwrap_or_default()
}

/// The headline of a rendered error.
pub fn first_line(why: &str) -> &str {
    let first = why.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ")
}

/// `run 3`, with its targets and options, so that a partial run is not mistaken for a full one.
pub fn named(run: RunId, invocation: &str) -> String {
    match invocation {
        "" => format!("run {run}"),
        invocation => format!("run {run} ({invocation})"),
    }
}

/// A size that a person can read.
pub fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
