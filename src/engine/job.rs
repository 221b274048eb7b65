//! A stage that is ready to run, as a value: all that it needs, and nothing of the graph. It can be written to a
//! file and executed elsewhere; tables are named by their digests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use store::{Digest, Installed, Params, Value};

use crate::plan::{Files, Plan, Source};
use crate::resolve::{Chosen, Resolved};

/// One execution to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The type and version of this record.
    pub record: String,
    /// The instance as its run calls it: for people alone.
    pub label: String,
    /// The key of its result.
    pub key: Digest,
    /// The kind, by name.
    pub kind: String,
    /// Checked parameters.
    pub params: Params,
    /// The seed, if the kind is seeded.
    pub seed: Option<u64>,
    /// Declared files.
    pub files: Files,
    /// What its program runs on: where it is executed, it must be the same.
    pub installed: Installed,
    /// Graphics processors that its program may use.
    pub gpus: usize,
    /// The pipeline's folder.
    pub folder: PathBuf,
    /// What each port receives.
    pub inputs: BTreeMap<String, JobInput>,
    /// The outputs that it must make.
    pub outputs: Vec<String>,
}

/// What a port receives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum JobInput {
    /// One table.
    Table(Digest),
    /// Several tables as one.
    Collected {
        /// The columns that the axes become.
        axes: Vec<String>,
        /// The tables.
        parts: Vec<JobPart>,
    },
}

/// One table of a collected input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobPart {
    /// `stage[axis=value].output`, for messages.
    pub label: String,
    /// The values of its axes.
    pub values: Vec<Value>,
    /// Its contents.
    pub digest: Digest,
}

impl Job {
    /// The tag of this version of the record.
    pub const RECORD: &str = "job/4";

    /// The contents of all tables that it reads.
    pub fn digests(&self) -> Vec<Digest> {
        let each = self.inputs.values().flat_map(|input| match input {
            JobInput::Table(digest) => vec![*digest],
            JobInput::Collected { parts, .. } => parts.iter().map(|part| part.digest).collect(),
        });
        each.collect()
    }

    /// The same for a process that was started in another folder.
    pub fn anywhere(mut self) -> std::io::Result<Job> {
        self.folder = std::path::absolute(&self.folder)?;
        for file in self.files.values_mut() {
            file.path = std::path::absolute(&file.path)?;
        }
        Ok(self)
    }

    /// The job of an instance. `digest` gives the contents of each output that it reads.
    pub fn of(
        plan: &Plan<'_>,
        n: usize,
        resolved: &Resolved,
        digest: impl Fn(Source) -> Digest,
    ) -> Job {
        let instance = &plan.instances[n];
        let part = |(values, source): &(Vec<Value>, Source)| JobPart {
            label: plan.source_label(*source),
            values: values.clone(),
            digest: digest(*source),
        };
        let feeds = instance.wires.iter().zip(&resolved.feeds);
        let inputs = feeds.map(|(wire, chosen)| {
            let input = match chosen {
                Chosen::One(source) => JobInput::Table(digest(*source)),
                Chosen::Collect { axes, parts } => JobInput::Collected {
                    axes: axes.clone(),
                    parts: parts.iter().map(part).collect(),
                },
            };
            (wire.port.clone(), input)
        });
        Job {
            record: Job::RECORD.to_owned(),
            label: instance.label.clone(),
            key: resolved.digest,
            kind: plan.decl(n).kind.describe().kind.to_owned(),
            params: instance.params.as_ref().clone(),
            seed: instance.seed,
            files: instance.files.as_ref().clone(),
            installed: instance.installed.as_ref().clone(),
            gpus: plan.decl(n).resources.gpus,
            folder: plan.pipeline.dir.clone(),
            inputs: inputs.collect(),
            outputs: instance.outputs.as_ref().clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DeclaredFile;

    #[test]
    fn a_job_reads_back_as_it_was_written() {
        let part = |value: f64| JobPart {
            label: "train[lr=0.1].scores".to_owned(),
            values: vec![Value::Float(value), Value::Text("a, \"b\"".to_owned())],
            digest: Digest::of(b"part"),
        };
        let file = DeclaredFile {
            path: PathBuf::from("plot.py"),
            digest: Digest::of(b"file"),
            executable: true,
        };
        let params = [
            ("float", Value::Float(0.1 + 0.2)),
            ("large", Value::Float(f64::INFINITY)),
            ("int", Value::Int(i64::MIN)),
            (
                "list",
                Value::List(vec![Value::Bool(true), Value::Float(1.0)]),
            ),
        ];
        let job = Job {
            record: Job::RECORD.to_owned(),
            label: "stage".to_owned(),
            key: Digest::of(b"key"),
            kind: "sql".to_owned(),
            params: params.map(|(name, value)| (name.to_owned(), value)).into(),
            seed: Some(u64::MAX),
            files: [("plot.py".to_owned(), file)].into(),
            installed: Installed {
                programs: [("python3".to_owned(), Digest::of(b"python"))].into(),
                packages: Default::default(),
            },
            gpus: 1,
            folder: PathBuf::from("/a folder"),
            inputs: [
                ("t".to_owned(), JobInput::Table(Digest::of(b"table"))),
                (
                    "all".to_owned(),
                    JobInput::Collected {
                        axes: vec!["lr".to_owned(), "name".to_owned()],
                        parts: vec![part(0.1), part(-0.0)],
                    },
                ),
            ]
            .into(),
            outputs: vec!["rows".to_owned()],
        };
        let text = serde_json::to_string(&job).unwrap();
        let read: Job = serde_json::from_str(&text).unwrap();
        assert_eq!(read, job);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        let unknown = text.replacen("\"seed\"", "\"plan\":1,\"seed\"", 1);
        assert!(serde_json::from_str::<Job>(&unknown).is_err());
    }
}
