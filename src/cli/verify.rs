//! `ablate verify`: does the same come out again?

use clap::Args;
use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::places::Places;
use super::print::out;
use super::run_selection;
use super::stop::stop_flag;
use crate::amounts::seconds;
use crate::diagnostic::Diagnostic;
use crate::environment;
use crate::inspect::status::{Standing, survey};
use crate::inspect::verify::sample::{Size, draw};
use crate::inspect::verify::{Request, Verdict, again};
use crate::plan;
use crate::results::find;
use crate::results::recall::Fault;

/// What `verify` takes.
#[derive(Args)]
pub struct Arguments {
    /// Stages to execute again: `stage` or `stage[axis=value]` [default: all that are stored]
    stages: Vec<String>,
    /// Only some of them: `20%` or `5`, drawn by key
    #[arg(long, value_name = "SIZE")]
    sample: Option<Size>,
    /// Which sample
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    seed: u64,
    /// On how many threads, one after the other: 1,2,8 [default: one per core]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,
    /// Let programs of `command` stages read and write what they did not declare
    #[arg(long)]
    no_sandbox: bool,
    #[command(flatten)]
    places: Places,
}

/// Executes stored results again, in a store that goes away.
pub fn verify(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    if arguments.no_sandbox {
        stages::kinds::command::let_loose();
    }
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &arguments.stages))?;
    let store = global.needed_store()?;
    let standings = survey(&plan, &wanted, Some(&store));
    let chosen = find::chosen(&plan, &arguments.stages)?;
    let (mut stored, mut unusable) = (Vec::new(), 0);
    for n in chosen {
        match &standings[n] {
            Standing::Cached { key, .. } => stored.push((n, *key)),
            Standing::Unsound { fault, .. } => {
                unusable += usize::from(!matches!(fault, Fault::Missing { .. }));
                tell_unusable(global, &plan.instances[n].label, fault)?;
            }
            _ if arguments.stages.is_empty() => {}
            _ => return Err(run_selection::unshown(&plan, &standings, n)),
        }
    }
    if stored.is_empty() && unusable > 0 {
        return Err(Exit::Code(1));
    }
    if stored.is_empty() {
        let problem = Diagnostic::new("no stage of this pipeline has a stored result");
        return Err(problem.help("ablate run").into());
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
                Diagnostic::new(format!("cannot make a scratch store: {error}"))
            })?;
            Store::open(outside.path())?
        }
    };
    let stop = stop_flag();
    let here = environment::look(&global.file, cores);
    let request = Request {
        plan: &plan,
        standings: &standings,
        store: &store,
        scratch: &scratch,
        data: &arguments.places.home(&pipeline.data),
        here: &here,
        stop: &stop,
    };
    let mut verdicts = Vec::new();
    for n in &drawn {
        for threads in &threads {
            let Some(verdict) = again(&request, *n, *threads)? else {
                return Err(Exit::Code(130));
            };
            tell(global, &verdict)?;
            verdicts.push(verdict);
        }
    }
    summary(global, &verdicts, drawn.len(), all)?;
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

fn tell(global: &Global, verdict: &Verdict) -> Result<(), Exit> {
    if global.json {
        out!("{}", serde_json::to_value(verdict).expect("plain values"));
        return Ok(());
    }
    let (stage, wall) = (&verdict.stage, seconds(verdict.wall));
    let threads = match verdict.threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    };
    match (&verdict.outputs, verdict.worst()) {
        (Err(why), _) => {
            let first = why.lines().next().unwrap_or_default();
            out!("{:<16}  {stage}  {threads}: {first}", "failed");
        }
        (_, Some((output, grade))) if grade.rank() > 0 => out!(
            "{:<16}  {stage}  {threads}: {output}: {} ({})",
            grade.name(),
            grade.described(),
            promised(verdict)
        ),
        _ if global.quiet => {}
        _ => out!("{:<16}  {stage}  {threads}, {wall}", "bit-identical"),
    }
    Ok(())
}

fn promised(verdict: &Verdict) -> String {
    match (verdict.promise, verdict.tolerant) {
        ("outside-program", _) => "an external program promises nothing".to_owned(),
        ("within-tolerance", false) => {
            "promised: bit-identical on the same instruction sets".to_owned()
        }
        (promise, _) => format!("promised: {promise}"),
    }
}

fn summary(global: &Global, verdicts: &[Verdict], drawn: usize, all: usize) -> Result<(), Exit> {
    let rank = |verdict: &Verdict| verdict.worst().map_or(3, |(_, grade)| grade.rank());
    let count = |wanted: u8| verdicts.iter().filter(|v| rank(v) == wanted).count();
    let first = verdicts.iter().find(|verdict| !verdict.is_good());
    if global.json {
        out!(
            "{}",
            json!({
                "event": "done", "stages": drawn, "stored": all, "executions": verdicts.len(),
                "bit_identical": count(0), "within_tolerance": count(1), "different": count(2),
                "failed": count(3), "first_divergent": first.map(|verdict| &verdict.stage),
            })
        );
    } else {
        if let Some(verdict) = first {
            let place = match verdict.worst() {
                Some((output, grade)) => format!(", output {output}, {}", grade.described()),
                None => String::new(),
            };
            out!("first divergent: {}{place}", verdict.stage);
        }
        out!(
            "ablate: {drawn} of {all} stages executed {} times: {} bit-identical, \
             {} within tolerance, {} different, {} failed",
            verdicts.len(),
            count(0),
            count(1),
            count(2),
            count(3)
        );
    }
    match first {
        None => Ok(()),
        Some(_) => Err(Exit::Code(1)),
    }
}
