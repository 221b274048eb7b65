//! A run in the layout of MLflow's file store:
//!
//! ```text
//! mlruns/EXPERIMENT/meta.yaml                   the pipeline
//! mlruns/EXPERIMENT/RUN/meta.yaml               the run
//! mlruns/EXPERIMENT/RUN/params/STAGE/PARAMETER  a value
//! mlruns/EXPERIMENT/RUN/metrics/TABLE/ROW/COL   a line for each seed: time, value, step
//! mlruns/EXPERIMENT/RUN/metrics/TABLE/ROW/COL.paper   the paper's number
//! mlruns/EXPERIMENT/RUN/tags/NAME               commit, profile, verdicts of claims
//! ```
//!
//! The same run gives the same names, so that exporting it again replaces it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use store::{Digest, Run, RunOutcome, Store};

use super::names;
use crate::publish::report::paper_tables;
use crate::publish::report::summary::{ClaimRow, invocation};
use crate::results::recorded::Recorded;

/// The longest value of a parameter that MLflow takes.
const LONGEST: usize = 6000;

/// Files by name below `mlruns`, with their contents.
pub type Files = BTreeMap<String, String>;

/// The files of a run. `root` is where `mlruns` will be: MLflow wants to know where artifacts are.
pub fn files(store: &Store, recorded: &Recorded, claims: &[ClaimRow], root: &Path) -> Files {
    let run = &recorded.run;
    // A number of 18 digits, as MLflow's own are, and the same for every run of a pipeline.
    let digits = Digest::of(run.pipeline.as_bytes()).to_string();
    let number =
        u64::from_str_radix(&digits[..15], 16).unwrap_or_default() % 900_000_000_000_000_000;
    let experiment = (100_000_000_000_000_000 + number).to_string();
    let name = format!("{} {} {}", run.pipeline, run.id, run.started);
    let id = Digest::of(name.as_bytes()).to_string()[..32].to_owned();
    let place = root.join(&experiment);
    let started = run.started / 1000;
    let ended = run.ended.map(|ended| ended / 1000);
    let status = match run.outcome {
        None => 1,
        Some(RunOutcome::Ok) => 3,
        Some(RunOutcome::Failed) => 4,
        Some(RunOutcome::Interrupted) => 5,
    };
    let mut files = Files::new();
    files.insert(
        format!("{experiment}/meta.yaml"),
        yaml(&[
            ("artifact_location", uri(&place)),
            ("creation_time", started.to_string()),
            ("experiment_id", quoted(&experiment)),
            ("last_update_time", started.to_string()),
            ("lifecycle_stage", "active".to_owned()),
            ("name", quoted(&run.pipeline)),
        ]),
    );
    files.insert(
        format!("{experiment}/{id}/meta.yaml"),
        yaml(&[
            ("artifact_uri", uri(&place.join(&id).join("artifacts"))),
            (
                "end_time",
                ended.map_or("null".to_owned(), |ended| ended.to_string()),
            ),
            ("entry_point_name", quoted("")),
            ("experiment_id", quoted(&experiment)),
            ("lifecycle_stage", "active".to_owned()),
            ("run_id", quoted(&id)),
            ("run_name", quoted(&format!("run {}", run.id))),
            ("run_uuid", quoted(&id)),
            ("source_name", quoted(&run.file)),
            ("source_type", "4".to_owned()),
            (
                "source_version",
                quoted(run.environment.git_commit.as_deref().unwrap_or_default()),
            ),
            ("start_time", started.to_string()),
            ("status", status.to_string()),
            ("tags", "[]".to_owned()),
            ("user_id", quoted("")),
        ]),
    );
    for (kind, named) in [
        ("params", params(recorded)),
        (
            "metrics",
            metrics(store, recorded, ended.unwrap_or(started)),
        ),
        ("tags", tags(run, claims)),
    ] {
        let (names, texts): (Vec<Vec<String>>, Vec<String>) = named.into_iter().unzip();
        for (name, text) in names::paths(&names).into_iter().zip(texts) {
            files.insert(format!("{experiment}/{id}/{kind}/{name}"), text);
        }
    }
    files
}

/// Parts of a name, and what the file of that name holds.
type Named = Vec<(Vec<String>, String)>;

fn params(recorded: &Recorded) -> Named {
    let mut named = Named::new();
    for step in &recorded.steps {
        let Some(execution) = &step.execution else {
            continue;
        };
        let seed = execution.key.seed;
        let seed = seed.map(|seed| ("seed".to_owned(), seed.to_string()));
        let params = execution.key.params.iter();
        let params = params.map(|(name, value)| (name.clone(), value.to_string()));
        for (name, value) in params.chain(seed) {
            let value = value.chars().take(LONGEST).collect();
            named.push((vec![step.label.clone(), name], value));
        }
    }
    named
}

/// Every cell of a paper's table, the ends of its 95% interval, and the paper's own number beside it.
fn metrics(store: &Store, recorded: &Recorded, at: i64) -> Named {
    let tables = paper_tables(store, recorded);
    let mut named = Named::new();
    for table in &tables {
        // Two stages, or two papers, may have a table of one name.
        let alone = tables
            .iter()
            .filter(|other| other.name == table.name)
            .count()
            == 1;
        let step = &recorded.steps[table.step];
        let source = step.source(&step.outputs()[table.output]);
        let name = match (alone, table.paper.as_str()) {
            (true, _) => table.name.clone(),
            (false, "") => format!("{source}.{}", table.name),
            (false, paper) => format!("{source}.{paper}.{}", table.name),
        };
        for ((r, c), cell) in &table.cells {
            let (row, col) = (&table.rows[*r], &table.cols[*c]);
            let lines = cell.values.iter().enumerate().filter_map(|(n, one)| {
                let step = one.seed.unwrap_or(n as i64);
                Some(format!("{at} {} {step}\n", one.value?))
            });
            let lines: String = lines.collect();
            if !lines.is_empty() {
                named.push((vec![name.clone(), row.clone(), col.clone()], lines));
            }
            let ends = cell.interval.map(|at| [("low", at.low), ("high", at.high)]);
            for (end, number) in ends.into_iter().flatten() {
                let col = format!("{col}.{end}");
                named.push((
                    vec![name.clone(), row.clone(), col],
                    format!("{at} {number} 0\n"),
                ));
            }
            if let Some(paper) = cell.paper {
                let col = format!("{col}.paper");
                named.push((
                    vec![name.clone(), row.clone(), col],
                    format!("{at} {paper} 0\n"),
                ));
            }
        }
    }
    named
}

fn tags(run: &Run, claims: &[ClaimRow]) -> Named {
    let commit = run.environment.git_commit.clone().unwrap_or_default();
    let tags = [
        ("mlflow.runName", format!("run {}", run.id)),
        ("mlflow.source.git.commit", commit),
        ("mlflow.source.name", run.file.clone()),
        ("ablate.run", run.id.to_string()),
        ("ablate.asked", invocation(run)),
    ];
    let invocation = tags.into_iter().filter(|(_, value)| !value.is_empty());
    let invocation = invocation.map(|(name, value)| (vec![name.to_owned()], value));
    let claims = claims.iter();
    let claims = claims.map(|one| (vec![format!("claim.{}", one.id)], one.verdict.to_owned()));
    invocation.chain(claims).collect()
}

/// Writes them, each run's folder of parameters, metrics and tags anew.
pub fn write(root: &Path, files: &Files) -> io::Result<()> {
    let folders = files
        .keys()
        .filter_map(|name| name.strip_suffix("/meta.yaml"));
    for run in folders.filter(|name| name.contains('/')) {
        for kind in ["params", "metrics", "tags", "artifacts"] {
            let folder = root.join(run).join(kind);
            // What an older export had and this one has not must not stay. Artifacts are not ours.
            if kind != "artifacts" && folder.exists() {
                std::fs::remove_dir_all(&folder)?;
            }
            std::fs::create_dir_all(&folder)?;
        }
    }
    for (name, text) in files {
        let file = root.join(name);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(file, text)?;
    }
    Ok(())
}

fn yaml(entries: &[(&str, String)]) -> String {
    let lines = entries
        .iter()
        .map(|(key, value)| format!("{key}: {value}\n"));
    lines.collect()
}

/// A string in double quotes: JSON's are YAML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// `file:///…`, with what a URI cannot hold written as its bytes.
fn uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let bytes = path.as_os_str().as_bytes().iter();
    let text: String = bytes
        .map(|byte| match plain(*byte) {
            true => char::from(*byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect();
    quoted(&format!("file://{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_what_a_uri_can_hold() {
        assert_eq!(uri(Path::new("/a b/ü")), "\"file:///a%20b/%C3%BC\"");
    }
}
