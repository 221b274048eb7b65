//! `ablate compare`: compares two runs, on the terminal or as one page; or two results, item by item.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::Global;
use super::print::{note, out};
use super::run_selection;
use super::{compare_items, file, report};
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::publish::report::compare::{self, Compared, Side};

/// What `compare` takes.
#[derive(Args)]
pub struct Arguments {
    /// The older run: number, tag, `last` or `prev` (of this pipeline); or a result with a row for each item
    #[arg(default_value = "prev")]
    old: String,
    /// The newer run; or a result to compare with the first item by item, by McNemar's test and the bootstrap
    #[arg(default_value = "last")]
    new: String,
    /// Write a page instead
    #[arg(long)]
    html: bool,
    /// For --html: the file to write; an existing file is replaced
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "compare.html",
        requires = "html"
    )]
    output: PathBuf,
}

/// Compares claims, tables and stages of two runs.
pub fn compare(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    if are_results(global, &store, arguments) {
        if arguments.html {
            let what = "--html compares runs, and these are results";
            return Err(Diagnostic::new(what).help("leave it out").into());
        }
        return compare_items::compare(global, &store, [&arguments.old, &arguments.new]);
    }
    let side = |name: &str| side(global, &store, name);
    let compared = compare::compare(&store, side(&arguments.old)?, side(&arguments.new)?)?;
    report::tell_lost(&compared.lost);
    if arguments.html {
        let html = compare::html(&compared, false);
        file::write(&arguments.output, html.as_bytes())?;
        let (name, bytes) = (&arguments.output, html.len());
        match (global.json, global.quiet) {
            (true, _) => out!("{}", json!({ "file": name, "bytes": bytes })),
            (false, true) => {}
            (false, false) => out!("{} ({})", name.display(), report::size(bytes)),
        }
        return report::unless_wrong(&compared.lost);
    }
    match global.json {
        true => out!("{}", json!(compared)),
        false => print(&compared)?,
    }
    report::unless_wrong(&compared.lost)
}

/// Whether either names a result: then the other is meant to be one too, and is misspelt if it is none. Runs come
/// first: a tag may have a stage's name.
fn are_results(global: &Global, store: &Store, arguments: &Arguments) -> bool {
    let is_run = |name: &str| run_selection::named(global, store, name).is_ok();
    let is_result = |name: &str| !is_run(name) && compare_items::is_result(global, name);
    is_result(&arguments.old) || is_result(&arguments.new)
}

fn side(global: &Global, store: &Store, name: &str) -> Result<Side, Exit> {
    let run = run_selection::named(global, store, name)?;
    let claims = report::judged(&global.file, store, &run);
    if let Err(why) = &claims {
        let why = report::first_line(why);
        note!(
            "ablate: the claims of run {} cannot be judged: {why}",
            run.id
        );
    }
    Ok(Side { run, claims })
}

fn print(compared: &Compared) -> Result<(), Exit> {
    for claim in &compared.claims {
        let [was, now] = claim.verdicts.map(|verdict| verdict.unwrap_or("not there"));
        match claim.changed {
            true => out!("claim {}: was {was}, now {now}", claim.id),
            false => out!("claim {}: {now} in both", claim.id),
        }
    }
    for table in &compared.tables {
        let name = &table.name;
        if table.differ == 0 {
            out!("table {name}: the same in both");
        }
        for (row, cells) in &table.rows {
            for (col, cell) in table.cols.iter().zip(cells) {
                let shown = |side: &Option<String>| side.clone().unwrap_or("nothing".to_owned());
                if cell.differs() {
                    let by = cell.difference.iter().map(|by| format!(" ({by})"));
                    let n = cell.n.iter();
                    let n = n.map(|[was, now]| format!("; n was {was}, now {now}"));
                    let more: String = by.chain(n).collect();
                    let (was, now) = (shown(&cell.was), shown(&cell.now));
                    out!("table {name}, {row}, {col}: was {was}, now {now}{more}");
                }
            }
        }
    }
    let (same, differ) = (compared.stages.same, compared.stages.differ.len());
    out!(
        "ablate: {} the same, {differ} not in runs {} and {} (ablate diff {} {})",
        plural(same, "stage"),
        compared.old.run,
        compared.new.run,
        compared.old.run,
        compared.new.run
    );
    Ok(())
}
