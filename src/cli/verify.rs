//! `ablate verify`: executes stored results again and compares.

use clap::Args;
use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::places::Places;
use super::print::out;
use super::run_selection;
use super::stop::stop_flag;
use crate::amounts::{plural, seconds};
use crate::diagnostic::Diagnostic;
use crate::environment;
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::inspect::verify::sample::{Size, draw};
use crate::inspect::verify::{VerifyContext, VerifyResult, re_execute};
use crate::plan;
use crate::results::find;
use crate::results::recall::Fault;

/// What `verify` takes.
#[derive(Args)]
pub struct Arguments {
    /// Stages to execute again: `stage` or `stage[axis=value]` [default: all that are stored]
    stages: Vec<String>,
    /// Only a sample of them: `20%` or `5`, drawn by key
    #[arg(long, value_name = "SIZE")]
    sample: Option<Size>,
    /// The seed of the sample
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    seed: u64,
    /// Thread counts to execute with, one after the other: 1,2,8 [default: one per core]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,
    /// Run programs of `command` stages without a sandbox
    #[arg(long)]
    no_sandbox: bool,
    #[command(flatten)]
    places: Places,
}

/// Executes stored results again, in a store that goes away.
pub fn verify(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    if arguments.no_sandbox {
        stages::programs::disable_sandbox();
    }
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &arguments.stages))?;
    let store = global.needed_store()?;
    let statuses = instance_statuses(&plan, &wanted, Some(&store));
    let chosen = find::chosen(&plan, &arguments.stages)?;
    let (mut stored, mut unusable) = (Vec::new(), 0);
    for n in chosen {
        match &statuses[n] {
            InstanceStatus::Cached { key, .. } => stored.push((n, *key)),
            InstanceStatus::Unsound { fault, .. } => {
                unusable +=
                    usize::from(!matches!(fault, Fault::Missing { .. } | Fault::Left { .. }));
                tell_unusable(global, &plan.instances[n].label, fault)?;
            }
            _ if arguments.stages.is_empty() => {}
            _ => return Err(run_selection::unshown(global, &plan, &statuses, n)),
        }
    }
    if stored.is_empty() && unusable > 0 {
        return Err(Exit::Code(1));
    }
    if stored.is_empty() {
        let problem = Diagnostic::new("no stage of this pipeline has a stored result");
        return Err(problem.help(global.command("run")).into());
    }
    let all = stored.len();
    let drawn = match arguments.sample {
        Some(size) => draw(&stored, size, arguments.seed),
        None => stored.into_iter().map(|(n, _)| n).collect(),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<usize> = match arguments.threads.is_empty() {
        true => vec![cores],
        false => arguments.threads.iter().map(|n| usize::from(*n)).collect(),
    };
    // In the store, so that whoever uses it next removes what we leave should we be killed; outside
    // where the store is read-only.
    let outside;
    let scratch = match store.scratch_path() {
        Ok(folder) => Store::open(&folder)?,
        Err(_) => {
            outside = tempfile::tempdir().map_err(|error| {
                Diagnostic::new(format!("cannot create a scratch store: {error}"))
            })?;
            Store::open(outside.path())?
        }
    };
    let stop = stop_flag();
    let here = environment::capture(&global.file, cores);
    let context = VerifyContext {
        plan: &plan,
        statuses: &statuses,
        store: &store,
        scratch: &scratch,
        data: &arguments.places.home(&pipeline.data),
        here: &here,
        stop: &stop,
    };
    let mut results = Vec::new();
    for n in &drawn {
        for threads in &threads {
            let Some(result) = re_execute(&context, *n, *threads)? else {
                return Err(Exit::Code(130));
            };
            tell(global, &result)?;
            results.push(result);
        }
    }
    summary(global, &results, drawn.len(), all)?;
    match unusable {
        0 => Ok(()),
        _ => Err(Exit::Code(1)),
    }
}

/// A result that is there and cannot even be compared.
fn tell_unusable(global: &Global, stage: &str, fault: &Fault) -> Result<(), Exit> {
    match global.json {
        true => out!(
            "{}",
            json!({ "stage": stage, "fault": fault.word(), "why": fault.to_string() })
        ),
        false => out!(
            "{:<16}  {stage}: the stored result is {fault}",
            fault.word()
        ),
    }
    Ok(())
}

fn tell(global: &Global, result: &VerifyResult) -> Result<(), Exit> {
    if global.json {
        out!("{}", serde_json::to_value(result).expect("plain values"));
        return Ok(());
    }
    let (stage, wall) = (&result.stage, seconds(result.wall));
    let threads = match result.threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    };
    match (&result.outputs, result.worst()) {
        (Err(why), _) => {
            let first = why.lines().next().unwrap_or_default();
            out!("{:<16}  {stage}  {threads}: {first}", "failed");
        }
        (_, Some((output, grade))) if grade.rank() > 0 => out!(
            "{:<16}  {stage}  {threads}: {output}: {} ({})",
            grade.name(),
            grade.described(),
            promised(result)
        ),
        _ if global.quiet => {}
        _ => out!("{:<16}  {stage}  {threads}, {wall}", "bit-identical"),
    }
    Ok(())
}

fn promised(result: &VerifyResult) -> String {
    match (result.promise, result.tolerant) {
        ("outside-program", _) => "external programs make no promise".to_owned(),
        ("within-tolerance", false) => {
            "promised: bit-identical on the same instruction sets".to_owned()
        }
        (promise, _) => format!("promised: {promise}"),
    }
}

fn summary(
    global: &Global,
    results: &[VerifyResult],
    drawn: usize,
    all: usize,
) -> Result<(), Exit> {
    let rank = |result: &VerifyResult| result.worst().map_or(3, |(_, grade)| grade.rank());
    let count = |wanted: u8| results.iter().filter(|v| rank(v) == wanted).count();
    let [same, within, different, failed] = [0, 1, 2, 3].map(count);
    let first = results.iter().find(|result| !result.is_good());
    if global.json {
        out!(
            "{}",
            json!({
                "event": "done", "stages": drawn, "stored": all, "executions": results.len(),
                "bit_identical": same, "within_tolerance": within, "different": different,
                "failed": failed, "first_divergent": first.map(|result| &result.stage),
            })
        );
    } else {
        if let Some(result) = first {
            let place = match result.worst() {
                Some((output, grade)) => format!(", output {output}, {}", grade.described()),
                None => String::new(),
            };
            out!("first divergent: {}{place}", result.stage);
        }
        out!(
            "ablate: {drawn} of {} executed {}: {same} bit-identical, \
             {within} within tolerance, {different} different, {failed} failed",
            plural(all, "stage"),
            plural(results.len(), "time")
        );
    }
    match first {
        None => Ok(()),
        Some(_) => Err(Exit::Code(1)),
    }
}
