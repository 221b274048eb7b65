//! `ablate multiverse`: the pipeline as written and with each of its choices, and whether verdicts turn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use super::verdicts::{self, JudgedBy};
use super::worlds::{in_world, takes_a_choice};
use super::{claims, run};
use crate::amounts::seconds;
use crate::config::Pipeline;
use crate::diagnostic::Diagnostic;
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan;
use crate::publish::claims::{DRAWS, path as claims_path};
use crate::publish::multiverse::{ClaimAcross, ClaimInWorld, World, across, worlds};

/// What `multiverse` takes.
#[derive(Args)]
pub struct Arguments {
    /// Also take the choices two at a time
    #[arg(long)]
    pairs: bool,
    /// Judge what has been run, and run nothing
    #[arg(long)]
    no_run: bool,
    /// How many draws of items and seeds to judge each world by
    #[arg(long, value_name = "N", default_value_t = DRAWS, value_parser = clap::value_parser!(u64).range(40..))]
    draws: u64,
    /// Also write what every claim says in every world to this file, with the digests of the pipeline and of the claims
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    #[command(flatten)]
    run: run::Arguments,
}

/// Runs every world, judges every claim in it, and prints claims by worlds.
pub fn multiverse(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let all = worlds(&pipeline, arguments.pairs);
    if pipeline.choices.is_empty() {
        let example = "[choices]\nlast-epoch = { \"lstm.keep\" = \"last\" }";
        return Err(Diagnostic::new("the pipeline file has no [choices]")
            .help(format!(
                "name what the paper leaves open, and the alternative:\n{example}"
            ))
            .into());
    }
    if takes_a_choice(global) {
        return Err(Diagnostic::new("`--set choices.…` beside `multiverse`")
            .help("leave it out: every choice is taken in turn, two at a time with --pairs")
            .into());
    }
    // A choice that cannot be taken must not be found out after hours.
    for world in &all {
        let pipeline = in_world(global, world).pipeline()?;
        in_pipeline(&pipeline, plan::build(&pipeline))?;
    }
    if !arguments.no_run {
        for (n, world) in all.iter().enumerate() {
            if !global.quiet && !global.json {
                eprintln!("world {} of {}: {}", n + 1, all.len(), world.name());
            }
            run::run(&in_world(global, world), &arguments.run)?;
        }
    }
    let said = all.iter();
    let said = said.map(|world| claims::graded(&in_world(global, world), arguments.draws));
    let said: Vec<Vec<ClaimInWorld>> = said.collect::<Result<_, _>>()?;
    let across = across(&all, &said);
    if let Some(file) = &arguments.write {
        write(global, arguments.draws, &pipeline, file, &across)?;
    }
    print(global, &all, &across)
}

fn write(
    global: &Global,
    draws: u64,
    pipeline: &Pipeline,
    file: &Path,
    across: &[ClaimAcross],
) -> Result<(), Exit> {
    let plan = in_pipeline(pipeline, plan::build(pipeline))?;
    let claims = claims_path(&global.file, &plan).ok_or_else(|| claims::no_claims(global))?;
    let by = JudgedBy {
        pipeline: pipeline.sources.text(0),
        claims: &claims,
        profile: global.profile.as_deref(),
        draws,
        set: &global.set,
    };
    verdicts::write_worlds(file, &by, across)
}

/// A verdict in one letter.
fn letter(claim: &ClaimInWorld) -> char {
    match claim.verdict.as_str() {
        "reproduced" => 'R',
        "uncertain" => 'U',
        "not reproduced" => 'N',
        "reported" => 'i',
        _ => '-',
    }
}

fn print(global: &Global, worlds: &[World], claims: &[ClaimAcross]) -> Result<(), Exit> {
    if global.json {
        let names: Vec<String> = worlds.iter().map(World::name).collect();
        out!("{}", json!({ "worlds": names, "claims": claims }));
        return Ok(());
    }
    out!("worlds");
    for (n, world) in worlds.iter().enumerate() {
        out!("  {n:>2}  {}", world.name());
    }
    let width = claims.iter().map(|claim| claim.claim.len()).max();
    let width = width.unwrap_or_default().max("claims".len());
    let heads: String = (0..worlds.len()).map(|n| format!("{n:>3}")).collect();
    out!("{:width$} {heads}", "claims");
    for claim in claims {
        let letters: String = claim
            .worlds
            .iter()
            .map(|one| format!("{:>3}", letter(one)))
            .collect();
        let turns = match (claim.run, claim.turns_with.is_empty()) {
            (0, _) => "not run".to_owned(),
            (run, true) => format!("stable in {} of {run} worlds", claim.same),
            (_, false) => format!("turns with {}", claim.turns_with.join(", ")),
        };
        out!("{:width$} {letters}  {turns}", claim.claim);
    }
    out!("R reproduced, U uncertain, N not reproduced, i reported, - not run");
    let judged = claims.iter().filter(|claim| claim.run > 0);
    let ran = judged
        .clone()
        .map(|claim| claim.run)
        .max()
        .unwrap_or_default();
    let stable = judged.clone().filter(|claim| claim.turns_with.is_empty());
    let (stable, judged) = (stable.count(), judged.count());
    out!(
        "multiverse: {stable} of {judged} claims are stable; {ran} of {} worlds have been run",
        worlds.len()
    );
    Ok(())
}

/// What the worlds would cost, from the times of what was run before: for `ablate plan --multiverse`.
pub fn estimate(global: &Global) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let store = global.existing_store()?;
    let all = worlds(&pipeline, false);
    let mut known: Vec<(String, Duration)> = Vec::new();
    for world in &all {
        let (to_run, time, unknown) = cost(&in_world(global, world), store.as_ref(), &mut known)?;
        let takes = match unknown {
            0 => seconds(time),
            all if all == to_run => {
                "how long is not known: nothing like it has been run".to_owned()
            }
            _ => format!("at least {}", seconds(time)),
        };
        if global.json {
            out!(
                "{}",
                json!({ "world": world.name(), "to_run": to_run, "seconds": time.as_secs_f64(), "unknown": unknown })
            );
        } else {
            out!("{}: {to_run} to run, {takes}", world.name());
        }
    }
    Ok(())
}

/// How many instances a world would execute, how long the like took before, and of how many that is not known.
fn cost(
    global: &Global,
    store: Option<&Store>,
    known: &mut Vec<(String, Duration)>,
) -> Result<(usize, Duration, usize), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let wanted = vec![true; plan.instances.len()];
    let statuses = instance_statuses(&plan, &wanted, store);
    let (mut to_run, mut time, mut unknown) = (0, Duration::ZERO, 0);
    for (instance, status) in plan.instances.iter().zip(&statuses) {
        if let InstanceStatus::Cached { execution, .. } = status {
            let execution = store.map(|store| store.execution(*execution)).transpose()?;
            let wall = execution.flatten().map(|execution| execution.wall);
            known.extend(wall.map(|wall| (instance.label.clone(), wall)));
            continue;
        }
        to_run += 1;
        match known.iter().find(|(label, _)| *label == instance.label) {
            Some((_, wall)) => time += *wall,
            None => unknown += 1,
        }
    }
    Ok((to_run, time, unknown))
}
