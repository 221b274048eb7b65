//! `ablate fsck`: checks the whole store.

use std::io::IsTerminal;

use clap::Args;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde_json::json;
use store::{FsckReport, Repaired};

use super::exit::Exit;
use super::global::Global;
use super::print::out;
use crate::amounts::plural;

/// What `fsck` takes.
#[derive(Args)]
pub struct Arguments {
    /// Set damaged objects aside so that the next run recomputes them, remove dangling rows, and note
    /// the faults of the log so that new ones stand out
    #[arg(long)]
    repair: bool,
}

/// Of more faults the rest is counted.
const LISTED: usize = 20;

/// Hashes every object again.
pub fn fsck(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let bar = match std::io::stderr().is_terminal() && !global.quiet && !global.json {
        true => ProgressBar::new(0),
        false => ProgressBar::hidden(),
    };
    let template = "{bar:30} {pos}/{len} objects  {eta} left";
    bar.set_style(ProgressStyle::with_template(template).expect("written here"));
    let report = store.fsck(&|done, total| {
        bar.set_length(total);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    let repaired = match arguments.repair {
        true => store.repair(&report)?,
        false => Repaired::default(),
    };
    match global.json {
        true => print_json(&report, &repaired)?,
        false => {
            print_faults(&report)?;
            print_verdict(&report)?;
            print_repairs(&report, &repaired)?;
            if arguments.repair && !store.fsck(&|_, _| {})?.is_sound() {
                out!(
                    "what is left cannot be repaired: restore a copy of the store, or move `{}` away and run \
                     again, which keeps the objects and loses the history",
                    store.root().join("provenance.db").display()
                );
            }
        }
    }
    match report.is_sound() {
        true => Ok(()),
        false => Err(Exit::Code(1)),
    }
}

/// The report for programs.
fn print_json(report: &FsckReport, repaired: &Repaired) -> Result<(), Exit> {
    out!(
        "{}",
        json!({
            "sound": report.is_sound(), "objects": report.objects, "bytes": report.bytes,
            "damaged": report.damaged.iter()
                .map(|found| json!({ "path": found.path, "digest": found.digest, "why": found.why }))
                .collect::<Vec<_>>(),
            "foreign": report.foreign,
            "missing": report.missing.iter()
                .map(|lost| json!({
                    "digest": lost.digest, "run": lost.run, "stage": lost.instance,
                    "output": lost.output, "aside": lost.aside, "taken": lost.taken,
                }))
                .collect::<Vec<_>>(),
            "database": report.database, "set_aside": repaired.aside,
            "forgotten": repaired.forgotten, "newly_noted": repaired.noted, "log": report.log, "in_use": report.in_use,
        })
    );
    Ok(())
}

/// What is wrong, one line each.
fn print_faults(report: &FsckReport) -> Result<(), Exit> {
    for found in &report.damaged {
        out!("damaged  {}: {}", found.path.display(), found.why);
    }
    for path in &report.foreign {
        let name = path.display();
        out!("foreign  {name}: not an object of this store: move it elsewhere");
    }
    for fault in &report.database {
        out!("database {fault}");
    }
    for (word, list) in [("log", &report.log.broken), ("noted", &report.log.noted)] {
        for fault in list.iter().take(LISTED) {
            out!("{word:<8} {fault}");
        }
        if list.len() > LISTED {
            out!("{word:<8} and {} more", list.len() - LISTED);
        }
    }
    for lost in &report.missing {
        let (stage, output, run) = (&lost.instance, &lost.output, lost.run);
        let why = match (lost.aside, lost.taken) {
            (true, _) => "damaged, and set aside",
            (false, true) => "left in the remote that the result was taken from, or removed by gc",
            (false, false) => "removed by gc, or lost",
        };
        out!("missing  {stage}.{output} of run {run}: {why}");
    }
    Ok(())
}

/// Whether the store is sound, and how much was checked.
fn print_verdict(report: &FsckReport) -> Result<(), Exit> {
    let verdict = if report.is_sound() {
        "sound"
    } else {
        "NOT sound"
    };
    out!(
        "ablate: {verdict}: {}, {} hashed, {} damaged, {} missing",
        plural(report.objects as usize, "object"),
        HumanBytes(report.bytes),
        report.damaged.len(),
        report.missing.len()
    );
    let log = &report.log;
    if let Some(head) = log.head {
        let before = match log.before {
            0 => String::new(),
            1 => ", 1 execution is older than it".to_owned(),
            n => format!(", {n} executions are older than it"),
        };
        out!(
            "log: {}, head {head}{before}",
            plural(log.entries as usize, "entry")
        );
    }
    Ok(())
}

/// What was repaired, or can be.
fn print_repairs(report: &FsckReport, repaired: &Repaired) -> Result<(), Exit> {
    if report.in_use {
        out!("another process is using the store right now");
    }
    if repaired.forgotten > 0 {
        out!("removed {} dangling rows", repaired.forgotten);
    }
    if repaired.noted > 0 {
        out!(
            "noted {} faults of the log: they stay in it, and no longer count",
            repaired.noted
        );
    }
    for path in &repaired.aside {
        out!("set aside {}", path.display());
    }
    if !repaired.aside.is_empty() {
        out!("the next run recomputes what it needs of them");
    } else if !report.damaged.is_empty() {
        out!("`ablate fsck --repair` sets them aside, and the next run recomputes them");
    }
    Ok(())
}
