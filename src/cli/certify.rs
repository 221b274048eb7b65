//! `ablate certify`: what a reviewer signs after a rerun, and what others check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use store::{Digest, Inspected, Store};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use super::{claims, lock, locked};
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::environment;
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan::{self, Plan};
use crate::publish;
use crate::publish::certificate::{Certificate, Predicate, Subject};
use crate::publish::claims::DRAWS;
use crate::remote::keys::{Keys, PublicKey};
use crate::results::recall::Fault;

/// What `certify` takes.
#[derive(Args)]
pub struct Arguments {
    /// The file to write [default: certificate.json beside the pipeline file]
    #[arg(short, long, value_name = "FILE", conflicts_with = "check")]
    output: Option<PathBuf>,
    /// Check the signature of a certificate, and compare it with the results here
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

/// Writes or checks a certificate.
pub fn certify(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    match &arguments.check {
        Some(path) => check(global, path),
        None => write(global, arguments),
    }
}

/// What the store has of every instance: outputs by name, keys, and who signed what was taken.
struct Held {
    subject: BTreeMap<String, Digest>,
    keys: BTreeMap<String, String>,
    taken: BTreeMap<String, String>,
    missing: Vec<String>,
    /// How many of those were taken from a remote that still has their objects.
    left: usize,
    /// Outputs whose stored bytes are not those that were recorded.
    damaged: Vec<String>,
}

fn held(plan: &Plan<'_>, store: &Store) -> Result<Held, Exit> {
    let all = vec![true; plan.instances.len()];
    let mut held = Held {
        subject: BTreeMap::new(),
        keys: BTreeMap::new(),
        taken: BTreeMap::new(),
        missing: Vec::new(),
        left: 0,
        damaged: Vec::new(),
    };
    for (n, status) in instance_statuses(plan, &all, Some(store))
        .iter()
        .enumerate()
    {
        let label = &plan.instances[n].label;
        let InstanceStatus::Cached { key, execution, .. } = status else {
            let in_a_remote = matches!(
                status,
                InstanceStatus::Unsound {
                    fault: Fault::Left { .. },
                    ..
                }
            );
            held.left += usize::from(in_a_remote);
            held.missing.push(label.clone());
            continue;
        };
        let Some(execution) = store.execution(*execution)? else {
            held.missing.push(label.clone());
            continue;
        };
        held.keys.insert(label.clone(), key.to_string());
        for output in &execution.outputs {
            let name = format!("{label}.{}", output.name);
            // What a record says of bytes is not what they are.
            if matches!(store.inspect(&output.digest), Inspected::Damaged(_)) {
                held.damaged.push(name);
                continue;
            }
            held.subject.insert(name, output.digest);
        }
        held.taken
            .extend(execution.facts.signer.map(|signer| (label.clone(), signer)));
    }
    Ok(held)
}

fn write(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let keys = Keys::open().map_err(failed)?;
    let key = keys.signing().map_err(failed)?.ok_or_else(|| {
        let what = "a certificate is signed, and you have no key";
        Exit::Failed(Diagnostic::new(what).help("ablate key new"))
    })?;
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let store = global.needed_store()?;
    let held = held(&plan, &store)?;
    if let Some(first) = held.missing.first() {
        let count = held.missing.len();
        let what = match count {
            1 => format!("the stage `{first}` has no result to certify"),
            _ => format!("{count} stages have no result to certify, `{first}` among them"),
        };
        let help = match held.left {
            0 => global.command("run"),
            left => format!(
                "{left} of them are in a remote: {}",
                global.command("pull --all")
            ),
        };
        return Err(Exit::Failed(Diagnostic::new(what).help(help)));
    }
    if let Some(first) = held.damaged.first() {
        let what = format!("the stored result `{first}` is damaged, and cannot be certified");
        let help = "ablate fsck --repair, then ablate run";
        return Err(Exit::Failed(Diagnostic::new(what).help(help)));
    }
    if let Some((stage, signer)) = held.taken.iter().find(|(_, key)| keys.is_revoked(key)) {
        let what = format!(
            "the result of `{stage}` was signed by {signer}, whose key you have revoked: it cannot be certified"
        );
        let help = format!("ablate verify '{stage}' executes it here and compares");
        return Err(Exit::Failed(Diagnostic::new(what).help(help)));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = environment::capture(&global.file, cores);
    let certificate = Certificate::new(
        held.subject
            .into_iter()
            .map(|(name, digest)| Subject {
                name,
                digest: [("blake3".to_owned(), digest.to_string())].into(),
            })
            .collect(),
        Predicate {
            pipeline: pipeline.name.clone(),
            file: Digest::of(pipeline.sources.text(0).as_bytes()).to_string(),
            profile: global.profile.clone(),
            commit: machine.git_commit.clone(),
            changed: machine.git_dirty,
            keys: held.keys,
            taken: held.taken,
            claims: verdicts(global, &plan)?,
            lock: beside_lock(global, &plan, &store)?,
            machine,
            at: jiff::Timestamp::now().as_second(),
        },
    );
    let path = arguments.output.clone();
    let path = path.unwrap_or_else(|| global.file.with_file_name("certificate.json"));
    let written = std::fs::write(&path, certificate.signed(&key));
    written.map_err(|error| failed(format!("cannot write `{}`: {error}", path.display())))?;
    if global.json {
        out!(
            "{}",
            json!({ "file": path.display().to_string(), "signer": key.public().to_string() })
        );
    } else if !global.quiet {
        out!(
            "ablate: {} says: {}",
            path.display(),
            in_words(&certificate)
        );
    }
    Ok(())
}

/// The verdicts of `ablate claims`, graded; none without claims.
fn verdicts(global: &Global, plan: &Plan<'_>) -> Result<BTreeMap<String, String>, Exit> {
    if publish::claims::path(&global.file, plan).is_none() {
        return Ok(BTreeMap::new());
    }
    let judged = claims::graded(global, DRAWS)?.into_iter();
    Ok(judged.map(|one| (one.claim, one.verdict)).collect())
}

/// The results beside `results.lock`, if there is one of this profile.
fn beside_lock(
    global: &Global,
    plan: &Plan<'_>,
    store: &Store,
) -> Result<Option<BTreeMap<String, usize>>, Exit> {
    let path = lock::default_path(global);
    let of_this = path.exists() && lock::read(&path)?.profile == global.profile;
    if !of_this {
        return Ok(None);
    }
    let asked = locked::asked_for(global, &Some(Some(path)), &plan.pipeline.name)?;
    let all = vec![true; plan.instances.len()];
    let mut counts = BTreeMap::new();
    if let Some(lock) = asked {
        for one in locked::compared(&lock, plan, &all, store)? {
            *counts.entry(one.verdict.name().to_owned()).or_insert(0) += 1;
        }
    }
    Ok(Some(counts))
}

fn check(global: &Global, path: &Path) -> Result<(), Exit> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| failed(format!("cannot read `{name}`: {error}")))?;
    let (certificate, signers) =
        Certificate::read(&text).map_err(|why| failed(format!("`{name}` {why}")))?;
    let keys = Keys::open().map_err(failed)?;
    let revoked = |signer: &PublicKey| keys.is_revoked(&signer.to_string());
    let is_revoked = signers.iter().any(revoked);
    let is_known = |signer: &PublicKey| keys.name_of(&signer.to_string()).is_some();
    let is_trusted = signers.iter().any(|it| is_known(it) && !revoked(it));
    let signers: Vec<String> = signers
        .iter()
        .map(|signer| {
            let known = keys.name_of(&signer.to_string());
            let known = known.as_deref().unwrap_or("somebody whom you do not trust");
            match revoked(signer) {
                true => format!("{known} ({signer}), whose key you have revoked"),
                false => format!("{known} ({signer})"),
            }
        })
        .collect();
    let here = beside(global, &certificate)?;
    if global.json {
        out!(
            "{}",
            json!({ "file": name.to_string(), "signers": signers, "same": here.same, "different": here.different, "damaged": here.damaged, "revoked": is_revoked, "trusted": is_trusted, "absent": here.absent, "certificate": certificate })
        );
    } else {
        out!("{name}: signed by {}", signers.join(" and "));
        out!("{}", in_words(&certificate));
        for different in &here.different {
            out!("different here: {different}");
        }
        for damaged in &here.damaged {
            out!("damaged here: {damaged}");
        }
        out!(
            "ablate: {} identical here, {} different, {} damaged, {} not here{}",
            plural(here.same, "output"),
            here.different.len(),
            here.damaged.len(),
            here.absent,
            if here.same + here.different.len() + here.damaged.len() == 0 {
                ": only the signature was checked"
            } else {
                ""
            }
        );
    }
    match here.different.is_empty() && here.damaged.is_empty() && is_trusted && !is_revoked {
        true => Ok(()),
        false => Err(Exit::Code(1)),
    }
}

/// A certificate beside the results of this store.
struct Beside {
    same: usize,
    different: Vec<String>,
    damaged: Vec<String>,
    absent: usize,
}

fn beside(global: &Global, certificate: &Certificate) -> Result<Beside, Exit> {
    let global = Global {
        profile: certificate.predicate.profile.clone(),
        ..global.clone()
    };
    let mut beside = Beside {
        same: 0,
        different: Vec::new(),
        damaged: Vec::new(),
        absent: 0,
    };
    let (store, there) = (global.existing_store()?, global.file.exists());
    let known = match (&store, there) {
        (Some(store), true) => {
            let pipeline = global.pipeline()?;
            let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
            let held = held(&plan, store)?;
            beside.damaged = held.damaged;
            held.subject
        }
        _ => BTreeMap::new(),
    };
    for one in &certificate.subject {
        let says = one.digest.get("blake3");
        match known.get(&one.name).map(Digest::to_string) {
            None if beside.damaged.contains(&one.name) => {}
            None => beside.absent += 1,
            Some(here) if Some(&here) == says => beside.same += 1,
            Some(_) => beside.different.push(one.name.clone()),
        }
    }
    Ok(beside)
}

/// What a certificate says, in a few lines.
fn in_words(certificate: &Certificate) -> String {
    let about = &certificate.predicate;
    let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
    for verdict in about.claims.values() {
        *verdicts.entry(verdict).or_insert(0) += 1;
    }
    let list = |counts: Vec<(String, usize)>| match counts.is_empty() {
        true => "none".to_owned(),
        false => {
            let each = counts.iter().map(|(name, n)| format!("{n} {name}"));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    let verdicts = list(
        verdicts
            .into_iter()
            .map(|(name, n)| (name.to_owned(), n))
            .collect(),
    );
    let lock = about.lock.clone().unwrap_or_default();
    let lock = list(lock.into_iter().collect());
    let commit = match (&about.commit, about.changed) {
        (Some(commit), Some(true)) => format!("{commit}, with changes"),
        (Some(commit), _) => commit.clone(),
        (None, _) => "no commit".to_owned(),
    };
    format!(
        "`{}` ({}), {commit}: {} of {}, {} of them executed there and {} taken from others\n\
         claims: {verdicts}\nbeside results.lock: {lock}\nmachine: {}, {}",
        about.pipeline,
        about.profile.as_deref().unwrap_or("no profile"),
        plural(certificate.subject.len(), "output"),
        plural(about.keys.len(), "stage"),
        about.keys.len() - about.taken.len(),
        about.taken.len(),
        about.machine.cpu_model,
        about.machine.os,
    )
}

fn failed(why: String) -> Exit {
    Exit::Failed(Diagnostic::new(why))
}
