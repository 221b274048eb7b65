//! Results beside `results.lock`, as `run --locked` and `challenge results.lock` print them.

use std::path::{Path, PathBuf};

use serde_json::json;
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::lock::{check_subject, default_path, read};
use super::print::out;
use crate::inspect::lock::Lock;
use crate::inspect::lock::compare::{Compared, Verdict, compare};
use crate::inspect::status::instance_statuses;
use crate::plan::{self, Plan};

/// The verdicts, in the order in which they are counted.
const VERDICTS: [&str; 6] = [
    "bit-identical",
    "within tolerance",
    "different",
    "damaged",
    "not in the lock",
    "missing",
];

/// A lock and the file that it was read from.
pub struct LockFile {
    path: PathBuf,
    lock: Lock,
}

/// The lock that `--locked` names, if it was given; before anything runs.
pub fn asked_for(
    global: &Global,
    locked: &Option<Option<PathBuf>>,
    pipeline: &str,
) -> Result<Option<LockFile>, Exit> {
    let Some(path) = locked else { return Ok(None) };
    let path = path.clone().unwrap_or_else(|| default_path(global));
    let lock = read(&path)?;
    check_subject(&path, &lock, pipeline, &global.profile)?;
    Ok(Some(LockFile { path, lock }))
}

/// `ablate challenge results.lock`: what the store has, beside the lock.
pub fn challenge(global: &Global, path: &Path) -> Result<(), Exit> {
    let lock = read(path)?;
    let global = Global {
        profile: lock.profile.clone(),
        ..global.clone()
    };
    let pipeline = global.pipeline()?;
    check_subject(path, &lock, &pipeline.name, &global.profile)?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let store = global.needed_store()?;
    let file = LockFile {
        path: path.to_owned(),
        lock,
    };
    let all = vec![true; plan.instances.len()];
    let compared = compared(&file, &plan, &all, &store)?;
    match tell(&global, &file, &compared)? {
        true => Ok(()),
        false => Err(Exit::Code(1)),
    }
}

/// What the store has of the wanted instances, beside the lock.
pub fn compared(
    file: &LockFile,
    plan: &Plan<'_>,
    wanted: &[bool],
    store: &Store,
) -> Result<Vec<Compared>, store::Error> {
    let statuses = instance_statuses(plan, wanted, Some(store));
    compare(&file.lock, plan, wanted, &statuses, store)
}

/// Prints each, and how many there are of each. Whether the lock is confirmed.
pub fn tell(global: &Global, file: &LockFile, compared: &[Compared]) -> Result<bool, Exit> {
    for one in compared {
        match global.json {
            true => {
                let mut line = serde_json::to_value(one).expect("plain values");
                line["event"] = json!("locked");
                line["verdict"] = json!(one.verdict.name());
                out!("{line}");
            }
            false if global.quiet && !one.verdict.is_bad() => {}
            false => out!("{:<16}  {}", one.verdict.name(), in_words(one)),
        }
    }
    let count = |name: &str| {
        compared
            .iter()
            .filter(|one| one.verdict.name() == name)
            .count()
    };
    let keys = compared.iter().filter(|one| one.other_key).count();
    if global.json {
        let mut line = json!({ "event": "lock", "file": file.path.display().to_string() });
        for name in VERDICTS {
            line[name.replace([' ', '-'], "_")] = json!(count(name));
        }
        line["other_keys"] = json!(keys);
        out!("{line}");
    } else if !global.quiet {
        let counts = VERDICTS.map(|name| format!("{} {name}", count(name)));
        let keys = match keys {
            0 => String::new(),
            1 => "; 1 has another key".to_owned(),
            n => format!("; {n} have another key"),
        };
        out!("{}: {}{keys}", file.path.display(), counts.join(", "));
    }
    let confirmed = count("bit-identical") + count("within tolerance");
    Ok(confirmed > 0 && compared.iter().all(|one| !one.verdict.is_bad()))
}

/// The stage, and what there is to say beyond the verdict.
fn in_words(one: &Compared) -> String {
    let mut text = one.stage.clone();
    match &one.verdict {
        Verdict::Compared { output, grade } if grade.rank() > 0 => {
            text.push_str(&format!(".{output}: {}", grade.described()));
            if one.promise != "bit-identical" {
                text.push_str(&format!(" (promised: {})", one.promise));
            }
        }
        Verdict::Damaged { output, why } => {
            text.push_str(&format!(".{output}: the stored result is damaged: {why}"));
        }
        Verdict::Missing { why } => text.push_str(&format!(": {why}")),
        _ => {}
    }
    if one.other_key {
        text.push_str("  (another key: parameters, inputs, files or code have changed)");
    }
    text
}
