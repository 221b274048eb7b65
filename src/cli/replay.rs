//! `ablate replay`: re-checks stored attack results. This process has computed none of them: the
//! inputs come from the store, and the kind recomputes what its outputs claim.

use clap::Args;
use serde_json::json;
use stages::{DataHome, Outputs, Replayed, Role, Task};
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use super::run_selection;
use crate::diagnostic::Diagnostic;
use crate::engine::inputs;
use crate::environment;
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::inspect::stored;
use crate::inspect::verify::job;
use crate::plan::{self, Plan};
use crate::results::find;

/// What `replay` takes.
#[derive(Args)]
pub struct Arguments {
    /// Attack stages: `stage` or `stage[axis=value]` [default: all that are stored]
    stages: Vec<String>,
}

/// How many disagreements of a stage are printed.
const SHOWN: usize = 10;

/// Re-checks stored results.
pub fn replay(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &arguments.stages))?;
    let store = global.needed_store()?;
    let statuses = instance_statuses(&plan, &wanted, Some(&store));
    let mut chosen = Vec::new();
    for stage in &arguments.stages {
        chosen.extend(find::find_instances(&plan, stage)?);
    }
    let named = !chosen.is_empty();
    if !named {
        chosen.extend(0..plan.instances.len());
    }
    let (mut replayed, mut rows, mut wrong) = (0, 0, 0);
    for n in chosen {
        let label = &plan.instances[n].label;
        if !matches!(statuses[n], InstanceStatus::Cached { .. }) {
            let not_run = stored::unusable(&plan, &statuses, n).is_none();
            let other = plan.decl(n).kind.role() != Role::Attack;
            if !named && (not_run || other) {
                continue;
            }
            return Err(run_selection::unshown(global, &plan, &statuses, n));
        }
        let Some(outcome) = one(&plan, &statuses, &store, n)? else {
            if !named {
                continue;
            }
            let kind = plan.decl(n).kind.describe().kind;
            return Err(Diagnostic::new(format!(
                "`{label}` is of kind `{kind}`, which has nothing to re-check"
            ))
            .help("`ablate replay` is for attacks; `ablate verify` executes any stage again")
            .into());
        };
        replayed += 1;
        rows += outcome.rows;
        wrong += outcome.disagreements.len();
        tell(global, label, &outcome)?;
    }
    if replayed == 0 {
        let attacks = 0..plan.instances.len();
        let mut attacks = attacks.filter(|n| plan.decl(*n).kind.role() == Role::Attack);
        let changed = |n: usize| run_selection::changed(global, &plan, &statuses, n);
        if let Some(changed) = attacks.find_map(changed) {
            return Err(changed);
        }
        let problem = Diagnostic::new("no attack of this pipeline has a stored result");
        return Err(problem.help(global.command("run")).into());
    }
    if !global.json {
        let verdict = if wrong == 0 {
            "all confirmed"
        } else {
            "NOT confirmed"
        };
        out!(
            "ablate: {verdict}: {}, {}, {}",
            counted(replayed, "stage", "stages"),
            counted(rows, "row", "rows"),
            counted(wrong, "mismatch", "mismatches")
        );
    }
    match wrong {
        0 => Ok(()),
        _ => Err(Exit::Code(1)),
    }
}

/// Replays an instance; `None` if its kind has nothing to replay.
fn one(
    plan: &Plan<'_>,
    statuses: &[InstanceStatus],
    store: &Store,
    n: usize,
) -> Result<Option<Replayed>, Exit> {
    let label = &plan.instances[n].label;
    let failed = |why: String| Diagnostic::new(format!("`{label}` cannot be replayed: {why}"));
    let InstanceStatus::Cached { execution, .. } = &statuses[n] else {
        unreachable!("looked at before");
    };
    let job = job(plan, statuses, store, n).map_err(&failed)?;
    let execution = store.execution(*execution)?;
    let execution = execution.expect("what is cached was executed");
    let mut outputs = Outputs::new();
    for output in &execution.outputs {
        outputs.insert(output.name.clone(), store.read(&output.digest)?);
    }
    let home = DataHome::nowhere();
    let place = stages::Place {
        pipeline: Some(job.folder.clone()),
        ..stages::Place::default()
    };
    let task = Task {
        inputs: inputs::load_all(&job, store).map_err(&failed)?,
        params: &job.params,
        seed: job.seed.unwrap_or(0),
        files: Default::default(),
        data: &home,
        place: &place,
        watch: &Silent,
    };
    let exact = environment::computes_like(&execution.environment);
    match plan.decl(n).kind.replay(&task, &outputs, exact) {
        None => Ok(None),
        Some(Ok(replayed)) => Ok(Some(replayed)),
        Some(Err(failure)) => Err(failed(failure.message).maybe_help(failure.help).into()),
    }
}

/// "1 row", "2 rows".
fn counted(n: usize, one: &str, several: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {several}"),
    }
}

fn tell(global: &Global, label: &str, outcome: &Replayed) -> Result<(), Exit> {
    if global.json {
        let list = outcome.disagreements.iter().map(|one| {
            json!({
                "row": one.row, "id": one.id, "column": one.column, "stored": one.stored,
                "found": one.found,
            })
        });
        out!(
            "{}",
            json!({
                "stage": label, "rows": outcome.rows, "successes": outcome.successes,
                "asked": outcome.asked, "budget": outcome.budget,
                "disagreements": list.collect::<Vec<_>>(),
            })
        );
        return Ok(());
    }
    let count = outcome.disagreements.len();
    if count == 0 {
        if !global.quiet {
            out!(
                "ok       {label}: {}, {}, budget {}",
                counted(outcome.rows, "row", "rows"),
                counted(outcome.successes, "success", "successes"),
                outcome.budget
            );
        }
        return Ok(());
    }
    for one in outcome.disagreements.iter().take(SHOWN) {
        let row = one.row.map_or(String::new(), |row| format!("row {row} "));
        out!(
            "mismatch {label}: {row}({}), {}: stored {}, found {}",
            one.id,
            one.column,
            one.stored,
            one.found
        );
    }
    if count > SHOWN {
        out!("mismatch {label}: … {} more", count - SHOWN);
    }
    Ok(())
}

/// Shows no progress.
pub struct Silent;

impl stages::Watch for Silent {
    fn progress(&self, _: u64, _: u64) {}
    fn work(&self, _: &'static str, _: u64) {}
    fn log(&self, _: &str) {}
    fn child(&self, _: stages::Usage) {}
    fn stopped(&self) -> bool {
        false
    }
}
