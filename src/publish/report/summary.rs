//! The top of a report: what was run, its outcome, and the verdicts of the claims.

use std::time::Duration;

use serde::Serialize;
use store::{Environment, RunOutcome, Status, Store};

use crate::amounts::{VERDICTS, seconds};
use crate::environment::utc as time;
use crate::publish::claims::Judged;
use crate::results::recorded::Recorded;

/// A run in a few words.
#[derive(Serialize)]
pub struct Summary {
    /// Its number.
    pub run: i64,
    /// The pipeline's name.
    pub pipeline: String,
    /// Targets and options of `ablate run`, as they are typed.
    pub invocation: String,
    /// When it began.
    pub started: String,
    /// How long it took, if it has ended.
    pub took: Option<String>,
    /// As [`outcome`] has it.
    pub outcome: &'static str,
    /// How many stage instances there were.
    pub stages: usize,
    /// Executed in this run.
    pub ran: usize,
    /// Found in the store.
    pub cached: usize,
    /// Failed.
    pub failed: usize,
    /// Not tried.
    pub skipped: usize,
    /// How long it took once to make what was found.
    pub saved: Option<String>,
    /// The commit, and whether files differed from it.
    pub commit: Option<String>,
    /// Names given to it.
    pub tags: Vec<String>,
    /// What failed: stage and first line.
    pub failures: Vec<(String, String)>,
}

/// Sums a run up.
pub fn summary(store: &Store, recorded: &Recorded) -> Summary {
    let run = &recorded.run;
    let count = |status| {
        recorded
            .steps
            .iter()
            .filter(|step| step.status == status)
            .count()
    };
    let found = recorded
        .steps
        .iter()
        .filter(|step| step.status == Status::Hit);
    let saved: Duration = found
        .filter_map(|step| Some(step.execution.as_ref()?.wall))
        .sum();
    let failures = recorded.steps.iter().filter_map(|step| {
        let failure = step.execution.as_ref()?.failure.as_ref()?;
        let first = failure.lines().next().unwrap_or_default();
        Some((step.label.clone(), first.to_owned()))
    });
    let environment = &run.environment;
    let dirty = if environment.git_dirty == Some(true) {
        ", with changes"
    } else {
        ""
    };
    Summary {
        run: run.id.0,
        pipeline: run.pipeline.clone(),
        invocation: invocation(run),
        started: time(run.started),
        took: run.ended.map(|ended| {
            let micros = u64::try_from(ended - run.started).unwrap_or(0);
            seconds(Duration::from_micros(micros))
        }),
        outcome: outcome(store, run),
        stages: recorded.steps.len(),
        ran: count(Status::Ran),
        cached: count(Status::Hit),
        failed: count(Status::Failed),
        skipped: count(Status::Skipped),
        saved: (!saved.is_zero()).then(|| seconds(saved)),
        commit: environment
            .git_commit
            .as_ref()
            .map(|commit| format!("{commit}{dirty}")),
        tags: run.tags.clone(),
        failures: failures.collect(),
    }
}

/// Targets and options of `ablate run`, as they are typed.
pub fn invocation(run: &store::Run) -> String {
    let settings: Vec<String> = serde_json::from_str(&run.settings).unwrap_or_default();
    let profile = run
        .profile
        .iter()
        .map(|profile| format!("--profile {profile}"));
    let settings = settings.into_iter().map(|set| format!("--set {set}"));
    let parts = run.targets.iter().cloned().chain(profile).chain(settings);
    parts.collect::<Vec<_>>().join(" ")
}

/// The outcome of a run in words. A process that was killed records no end: its lease
/// shows it.
pub fn outcome(store: &Store, run: &store::Run) -> &'static str {
    let ended = |outcome| match outcome {
        RunOutcome::Ok => "ok",
        RunOutcome::Failed => "failed",
        RunOutcome::Interrupted => "interrupted",
    };
    match (run.outcome, store.is_under_way(run.id)) {
        (Some(outcome), _) => ended(outcome),
        (None, Ok(Some(true))) => "under way",
        // It may have ended, and let its lease go, after it was read.
        (None, Ok(Some(false))) => match store.run(run.id) {
            Ok(Some(run)) => run.outcome.map_or("died", ended),
            _ => "unfinished",
        },
        (None, _) => "unfinished",
    }
}

/// Where a run took place, line by line.
pub fn machine(environment: &Environment) -> Vec<(&'static str, String)> {
    let crates = environment.crates.iter();
    let crates: Vec<String> = crates
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    vec![
        ("host", environment.host.clone()),
        ("system", environment.os.clone()),
        ("processor", environment.cpu_model.clone()),
        ("instruction sets", environment.cpu_features.join(", ")),
        ("threads", environment.threads.to_string()),
        ("ablate", environment.ablate.clone()),
        ("compiler", environment.rustc.clone()),
        ("libraries", crates.join(", ")),
    ]
}

/// A claim with its verdict, in words.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimRow {
    /// Its name.
    pub id: String,
    /// How much it matters.
    pub level: &'static str,
    /// What is claimed.
    pub text: String,
    /// The verdict.
    pub verdict: &'static str,
    /// Our numbers.
    pub ours: Vec<(String, String)>,
    /// What the paper has.
    pub paper: Option<String>,
    /// How sure it is.
    pub draws: Option<String>,
    /// Whether that is known, if it says anything that could hold.
    pub graded: bool,
    /// Why it was not judged, or is not sure.
    pub why: Option<String>,
    /// What is odd about the rows that it was judged by.
    pub notes: Vec<String>,
}

impl From<&Judged<'_>> for ClaimRow {
    fn from(judged: &Judged<'_>) -> ClaimRow {
        ClaimRow {
            id: judged.claim.id.clone(),
            level: judged.claim.level.name(),
            text: judged.claim.text.clone(),
            verdict: judged.word(),
            ours: judged.ours(),
            paper: judged.paper(),
            draws: judged.draws(),
            graded: judged.holds.is_none() || judged.evidence.is_some(),
            why: judged.why().map(str::to_owned),
            notes: judged.notes.clone(),
        }
    }
}

/// The claims and how many there are of each verdict.
#[derive(Serialize)]
pub struct Claims {
    rows: Vec<ClaimRow>,
    counts: Vec<(&'static str, usize)>,
    error: Option<String>,
    has_paper: bool,
}

/// Counts them.
pub fn claims(judged: &Result<Vec<ClaimRow>, String>) -> Claims {
    let rows = judged.as_ref().cloned().unwrap_or_default();
    let count = |verdict: &str| rows.iter().filter(|row| row.verdict == verdict).count();
    Claims {
        counts: VERDICTS
            .map(|verdict| (verdict, count(verdict)))
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .collect(),
        error: judged.as_ref().err().cloned(),
        has_paper: rows.iter().any(|row| row.paper.is_some()),
        rows,
    }
}
