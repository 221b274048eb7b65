//! Slurm: job arrays by `sbatch`, states by `squeue`. Accounting (`sacct`) is not needed: a job that Slurm has
//! forgotten has left its result, or is lost.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::flight::Ending;
use super::program::run;
use super::{Queue, QueueState, Submission};
use crate::config::SlurmSettings;
use crate::engine::handover::Submitted;

/// What Slurm runs: a file with the tasks of the array is handed to this program.
const SCRIPT: &str = "#!/bin/sh\nexec \"$1\" worker --array \"$2\"\n";

/// Begins the comments of our jobs.
const COMMENT: &str = "ablate:";

/// Begins the names of arrays' folders, beside those of attempts.
const ARRAY: &str = "array-";

/// In an array's folder, the folders of its tasks.
const TASKS: &str = "tasks.json";

/// Seconds before the time limit at which a job is told to save a checkpoint.
const WARNING: u32 = 60;

/// What `sbatch` says of a job that it will never take, in lower case.
const FINAL: [&str; 8] = [
    "invalid account",
    "invalid partition",
    "invalid qos",
    "invalid feature",
    "invalid generic resource",
    "invalid option",
    "unrecognized option",
    "requested node configuration is not available",
];

/// A Slurm cluster.
pub struct Slurm {
    settings: SlurmSettings,
    /// This program.
    ablate: String,
    batch: usize,
}

impl Slurm {
    /// The cluster that this machine belongs to.
    pub fn new(settings: SlurmSettings, ablate: String) -> Result<Slurm, String> {
        let config = run(&["scontrol", "show", "config"])?.good("scontrol")?;
        let value = |name: &str| {
            let line = config
                .lines()
                .find(|line| line.trim_start().starts_with(name))?;
            line.split_once('=')?.1.trim().parse::<usize>().ok()
        };
        // Indices are below this number.
        let batch = value("MaxArraySize").unwrap_or(1_000);
        Ok(Slurm {
            settings,
            ablate,
            batch: batch.clamp(1, 1_000),
        })
    }

    fn arguments(&self, tasks: &[Submission<'_>], tag: &str, folder: &str) -> Vec<String> {
        let (resources, avoid) = (tasks[0].resources, tasks[0].avoid);
        let mut arguments = vec![
            "sbatch".to_owned(),
            "--parsable".to_owned(),
            // A job that Slurm starts again by itself would run twice under one number.
            "--no-requeue".to_owned(),
            "--job-name=ablate".to_owned(),
            format!("--comment={COMMENT}{tag}"),
            format!("--array=0-{}", tasks.len() - 1),
            format!("--cpus-per-task={}", resources.cpus),
            format!("--output={folder}/%a.log"),
            format!("--signal=B:USR1@{WARNING}"),
        ];
        if resources.memory > 0 {
            arguments.push(format!("--mem={}K", resources.memory.div_ceil(1024)));
        }
        if resources.time > 0 {
            arguments.push(format!(
                "--time={}:{:02}",
                resources.time / 60,
                resources.time % 60
            ));
        }
        if resources.gpus > 0 {
            arguments.push(format!("--gres=gpu:{}", resources.gpus));
        }
        if !avoid.is_empty() {
            arguments.push(format!("--exclude={}", avoid.join(",")));
        }
        let named = [
            ("partition", &self.settings.partition),
            ("account", &self.settings.account),
        ];
        for (name, value) in named {
            arguments.extend(value.as_ref().map(|value| format!("--{name}={value}")));
        }
        arguments.extend(self.settings.flags.iter().cloned());
        arguments
    }

    /// All our tasks that Slurm still knows, and their states.
    fn known(&self) -> Result<HashMap<String, QueueState>, String> {
        let format = "--format=%i|%T|%k";
        let printed = run(&[
            "squeue",
            "--noheader",
            "--array",
            "--me",
            "--states=all",
            format,
        ])?;
        let lines = printed.good("squeue")?;
        let known = lines.lines().filter_map(|line| {
            let mut parts = line.trim().splitn(3, '|');
            let (number, state, comment) = (parts.next()?, parts.next()?, parts.next()?);
            let tag = comment.strip_prefix(COMMENT)?;
            Some((name(number, tag), read(state)))
        });
        Ok(known.collect())
    }
}

/// What we call a task: Slurm's number, and what tells it from another job with this number. A controller that was
/// killed may give numbers again.
fn name(number: &str, tag: &str) -> String {
    format!("{number}@{tag}")
}

impl Queue for Slurm {
    fn batch(&self) -> usize {
        self.batch
    }

    fn submit(&mut self, tasks: &[Submission<'_>], tag: &str) -> Result<Vec<String>, String> {
        let jobs = tasks[0].handover.folder().parent().unwrap_or("".as_ref());
        let folder = jobs.join(format!("{ARRAY}{tag}"));
        let (script, list) = (folder.join("run.sh"), folder.join(TASKS));
        let folders: Vec<PathBuf> = tasks
            .iter()
            .map(|it| it.handover.folder().to_owned())
            .collect();
        let written = fs::create_dir(&folder)
            .and_then(|()| fs::write(&script, SCRIPT))
            .and_then(|()| fs::write(&list, serde_json::to_vec(&folders)?));
        written.map_err(|error| format!("cannot write `{}`: {error}", folder.display()))?;
        let mut arguments = self.arguments(tasks, tag, &folder.display().to_string());
        arguments.push(script.display().to_string());
        arguments.push(self.ablate.clone());
        arguments.push(list.display().to_string());
        let printed = run(&arguments)?.good("sbatch")?;
        // `123`, or `123;cluster`.
        let number = printed.trim().split(';').next().unwrap_or_default();
        match number.parse::<u64>() {
            Ok(number) => Ok((0..tasks.len())
                .map(|n| name(&format!("{number}_{n}"), tag))
                .collect()),
            Err(_) => Err(format!(
                "`sbatch` printed `{}`, not a job id",
                printed.trim()
            )),
        }
    }

    fn find(&mut self, submitted: &Submitted) -> Result<Option<String>, String> {
        let end = name(&format!("_{}", submitted.index), &submitted.tag);
        let mut known = self.known()?.into_keys();
        Ok(known.find(|id| id.ends_with(&end)))
    }

    fn poll(&mut self, _: &[&str]) -> Result<HashMap<String, QueueState>, String> {
        self.known()
    }

    /// Only what is still ours.
    fn cancel(&mut self, ids: &[&str]) {
        let Ok(known) = self.known() else { return };
        let numbers = ids.iter().filter(|id| known.contains_key(**id));
        let numbers: Vec<&str> = numbers.filter_map(|id| id.split('@').next()).collect();
        for some in numbers.chunks(200) {
            let _ = run(&[&["scancel", "--full"][..], some].concat());
        }
    }

    /// Others may pass: a full queue, a controller that restarts, a limit of jobs.
    fn is_final(&self, why: &str) -> bool {
        let why = why.to_ascii_lowercase();
        FINAL.iter().any(|known| why.contains(known))
    }

    /// Also the arrays of drivers that were killed. A list that cannot be read may just be being written.
    fn sweep(&mut self, jobs: &Path) {
        for entry in fs::read_dir(jobs).into_iter().flatten().flatten() {
            let is_array = entry.file_name().to_string_lossy().starts_with(ARRAY);
            let listed = fs::read(entry.path().join(TASKS)).ok();
            let tasks: Option<Vec<PathBuf>> =
                listed.and_then(|it| serde_json::from_slice(&it).ok());
            if is_array && tasks.is_some_and(|tasks| !tasks.iter().any(|task| task.exists())) {
                // Litter is not a reason to fail.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// A state as `squeue` writes it. One that is not known is not an end.
fn read(state: &str) -> QueueState {
    match state {
        "COMPLETED" | "FAILED" => QueueState::Ended(Ending::Ended),
        "OUT_OF_MEMORY" => QueueState::Ended(Ending::OutOfMemory),
        "TIMEOUT" | "DEADLINE" => QueueState::Ended(Ending::TimeLimit),
        "NODE_FAIL" | "BOOT_FAIL" | "PREEMPTED" | "REVOKED" | "LAUNCH_FAILED" => {
            QueueState::Ended(Ending::NodeFailed)
        }
        "CANCELLED" => QueueState::Ended(Ending::Cancelled),
        _ => QueueState::Alive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_refused_again_is_told_at_once() {
        let slurm = Slurm {
            settings: SlurmSettings::default(),
            ablate: String::new(),
            batch: 1,
        };
        let refused = "`sbatch` ended with code 1: sbatch: error: Batch job submission failed: ";
        for (why, last) in [
            (
                "Invalid account or account/partition combination specified",
                true,
            ),
            ("Requested node configuration is not available", true),
            (
                "Job violates accounting/QOS policy (job submit limit)",
                false,
            ),
            (
                "Unable to contact slurm controller (connect failure)",
                false,
            ),
        ] {
            assert_eq!(slurm.is_final(&format!("{refused}{why}")), last, "{why}");
        }
    }

    #[test]
    fn an_unknown_state_is_not_an_end_and_no_state_is_a_success() {
        assert_eq!(read("PENDING"), QueueState::Alive);
        assert_eq!(read("COMPLETING"), QueueState::Alive);
        assert_eq!(read("SOMETHING_NEW"), QueueState::Alive);
        assert_eq!(read("COMPLETED"), QueueState::Ended(Ending::Ended));
        assert_eq!(read("TIMEOUT"), QueueState::Ended(Ending::TimeLimit));
        assert_eq!(
            read("OUT_OF_MEMORY"),
            QueueState::Ended(Ending::OutOfMemory)
        );
    }
}
