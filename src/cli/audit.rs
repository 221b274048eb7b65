//! `ablate audit`: where a number came from, and a proof of it that others can check.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use store::{Run, Store};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use super::run_selection::{self, RunOption};
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::inspect::audit::{Audit, check, html, proof, tree};
use crate::inspect::status::statuses_as_recorded;
use crate::plan::{self, Plan, Source};
use crate::results::cell::{self, CellFilter};
use crate::results::find::{self, Located};
use crate::visible::one_line;

/// What `audit` takes.
#[derive(Args)]
pub struct Arguments {
    /// A stage, `stage.output`, a cell `stage[column=value,…].column`, or a digest (12 digits or more)
    #[arg(required_unless_present = "check")]
    result: Option<String>,
    #[command(flatten)]
    which: RunOption,
    /// Write a page to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a proof to this file
    #[arg(long, value_name = "FILE")]
    proof: Option<PathBuf>,
    /// Check a proof against this store instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["result", "run", "html", "proof"])]
    check: Option<PathBuf>,
    /// Do not hash the objects along the way
    #[arg(long)]
    no_bytes: bool,
}

/// Executions to start from, each with the output that is meant.
type Roots = Vec<(i64, String)>;

/// Shows a derivation, writes it, or checks a proof.
pub fn audit(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    if let Some(file) = &arguments.check {
        return check_proof(global, file);
    }
    let asked = arguments.result.as_deref().unwrap_or_default();
    let store = global.needed_store()?;
    let (roots, wanted) = match is_digest(asked) {
        true => (by_digest(&store, asked)?, None),
        false => by_name(global, &store, asked, &arguments.which)?,
    };
    let mut audit = Audit::of(&store, asked, &roots, !arguments.no_bytes)?;
    if audit.lineage.roots.len() < roots.len() {
        let gone = format!("the record of how `{asked}` was made is no longer in the store");
        return Err(Diagnostic::new(gone)
            .help("`ablate fsck` reports what is wrong with it")
            .into());
    }
    if let Some(wanted) = wanted {
        let [root] = audit.lineage.roots[..] else {
            unreachable!("a cell is of one instance");
        };
        let outputs = &audit.lineage.links[root].execution.outputs;
        let output = outputs.iter().find(|output| output.name == roots[0].1);
        let digest = output.expect("it was found by name").digest;
        let cell = cell::cell(&store.read(&digest)?, &wanted)?;
        audit.cell = Some((wanted, cell));
    }
    if let Some(file) = &arguments.html {
        write(file, html::page(&audit).as_bytes())?;
    }
    if let Some(file) = &arguments.proof {
        let proof = proof::make(&audit, &store)?;
        let text = serde_json::to_string(&proof).expect("plain values");
        write(file, text.as_bytes())?;
        if !global.json && !global.quiet {
            let (stages, root) = (plural(proof.nodes.len(), "stage"), proof.root);
            out!("proof of {stages} in {}: root {root}", file.display());
        }
    }
    if global.json {
        out!("{}", audit.json());
    } else if arguments.html.is_none() && arguments.proof.is_none() {
        out!("{}", tree::render(&audit).trim_end());
    }
    match audit.is_wrong() {
        true => Err(Exit::Code(1)),
        false => Ok(()),
    }
}

/// Enough digits that no stage is called so by accident.
fn is_digest(text: &str) -> bool {
    (12..=64).contains(&text.len()) && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

fn by_digest(store: &Store, digits: &str) -> Result<Roots, Exit> {
    let found = store.outputs_beginning(digits, 2)?;
    let [(digest, execution)] = found[..] else {
        let what = match found.is_empty() {
            true => format!("no output has a digest that begins with {digits}"),
            false => format!("several digests begin with {digits}: write more digits"),
        };
        let help = "`ablate runs RUN` and `ablate show STAGE` print digests";
        return Err(Diagnostic::new(what).help(help).into());
    };
    let made = store.executions_of_output(&digest)?;
    let made = made.into_iter().find(|made| made.execution == execution);
    let output = made.map(|made| made.output).unwrap_or_default();
    Ok(vec![(execution, output)])
}

fn by_name(
    global: &Global,
    store: &Store,
    asked: &str,
    option: &RunOption,
) -> Result<(Roots, Option<CellFilter>), Exit> {
    let run = run_selection::past(global, store, option)?;
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let Located { outputs, cell } = find::find(&plan, asked)?;
    let executions = match run {
        Some(run) => of_run(&plan, store, &outputs, &run)?,
        None => current(global, &plan, store, &outputs)?,
    };
    let names = outputs.iter().map(|source| {
        let instance = &plan.instances[source.instance];
        instance.outputs[source.output].clone()
    });
    Ok((executions.into_iter().zip(names).collect(), cell))
}

/// The executions behind the current results.
fn current(
    global: &Global,
    plan: &Plan<'_>,
    store: &Store,
    outputs: &[Source],
) -> Result<Vec<i64>, Exit> {
    let mut wanted = vec![false; plan.instances.len()];
    outputs
        .iter()
        .for_each(|source| wanted[source.instance] = true);
    plan::reach(plan, &mut wanted);
    // What is damaged or altered is audited too: the audit says what is wrong with it.
    let statuses = statuses_as_recorded(plan, &wanted, store);
    let mut executions = Vec::with_capacity(outputs.len());
    for source in outputs {
        let Some((execution, _)) = statuses[source.instance].recorded() else {
            return Err(run_selection::unshown(
                global,
                plan,
                &statuses,
                source.instance,
            ));
        };
        executions.push(execution);
    }
    Ok(executions)
}

/// The executions that a past run made or found.
fn of_run(plan: &Plan<'_>, store: &Store, outputs: &[Source], run: &Run) -> Result<Vec<i64>, Exit> {
    let uses = store.uses(run.id)?;
    let mut executions = Vec::with_capacity(outputs.len());
    for source in outputs {
        let label = &plan.instances[source.instance].label;
        let used = uses.iter().find(|used| used.instance == *label);
        let Some(id) = used.and_then(|used| used.execution) else {
            return Err(Diagnostic::new(format!("run {} has no `{label}`", run.id))
                .help(format!("ablate runs {}", run.id))
                .into());
        };
        executions.push(id);
    }
    Ok(executions)
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Exit> {
    std::fs::write(file, bytes).map_err(|error| {
        Diagnostic::new(format!("cannot write `{}`: {error}", file.display())).into()
    })
}

fn check_proof(global: &Global, file: &Path) -> Result<(), Exit> {
    let proof = check::read(file)?;
    let store = global.existing_store()?;
    let checked = check::check(&proof, store.as_ref())?;
    if global.json {
        out!(
            "{}",
            json!({ "asked": proof.asked, "root": proof.root, "holds": checked.holds() && store.is_some(), "checked": checked })
        );
    } else {
        print_proven(&proof, &checked)?;
        print_checked(global, &checked, store.is_some())?;
    }
    let confirmed = checked.holds() && store.is_some();
    if confirmed {
        Ok(())
    } else {
        Err(Exit::Code(1))
    }
}

/// What a proof says, and who accepted changes of code behind it.
fn print_proven(proof: &proof::Proof, checked: &check::Checked) -> Result<(), Exit> {
    // The reference is somebody's words: what is proven is printed beside it.
    out!("proof of {}, root {}", one_line(&proof.asked), proof.root);
    let stage = proof.nodes.last().map_or("", |node| node.stage.as_str());
    match &proof.cell {
        Some(cell) => {
            let filters = cell.wanted.filters.iter();
            let filters: Vec<String> = filters.map(|(k, v)| format!("{k}={v}")).collect();
            let whose = match filters.is_empty() {
                true => format!("row {}", cell.found.row),
                false => format!("row {} ({})", cell.found.row, filters.join(", ")),
            };
            out!(
                "value    {} in `{}`, {whose} of {stage}.{}",
                cell.found.value,
                cell.found.column,
                proof.output
            );
        }
        None => out!("table    {stage}.{}", proof.output),
    }
    let text = proof.accepted.iter().map(|one| {
        let unheard = checked.unheard.contains(&one.instance);
        (
            one,
            if unheard {
                " (this store has no record of that)"
            } else {
                ""
            },
        )
    });
    let unsaid = checked.unsaid.iter();
    for (one, mark) in text.chain(unsaid.map(|one| (one, " (the proof does not say so)"))) {
        let line = format!(
            "{}: made by code {}, and {} accepted {}: {}{mark}",
            one.instance,
            one.old_code.short(),
            one.who,
            one.new_code.short(),
            one.reason
        );
        out!("accepted {}", one_line(&line));
    }
    Ok(())
}

/// Which of it could be confirmed.
fn print_checked(global: &Global, checked: &check::Checked, has_store: bool) -> Result<(), Exit> {
    for fault in &checked.against {
        out!("mismatch {}", one_line(fault));
    }
    for stage in checked.unknown.iter().take(10) {
        out!("unknown  `{}`: not found in this store", one_line(stage));
    }
    if !checked.seen && checked.against.is_empty() {
        out!("unseen   the table itself is neither in the proof nor in this store");
    }
    let verdict = match (checked.holds(), checked.against.is_empty()) {
        (true, _) if !has_store => "internally consistent, not verified against a store",
        (true, _) => "holds",
        (false, true) => "NOT confirmed",
        (false, false) => "does NOT hold",
    };
    out!(
        "ablate: {verdict}: {} of {} confirmed, {} unknown, {} mismatched, {} hashed",
        checked.confirmed,
        plural(checked.stages, "stage"),
        checked.unknown.len(),
        checked.against.len(),
        plural(checked.hashed, "object")
    );
    if !has_store {
        let root = global.store_path();
        out!(
            "no store at `{}`: name one with --store DIR",
            root.display()
        );
    }
    Ok(())
}
