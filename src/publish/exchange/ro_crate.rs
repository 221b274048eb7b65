//! A run as a Workflow Run RO-Crate: a folder, or a zip, whose `ro-crate-metadata.json` names
//! every table, parameter and execution. Profiles: Process Run Crate and Workflow Run Crate 0.5,
//! <https://www.researchobject.org/workflow-run-crate/>.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use store::{Acceptance, Digest, Execution, Inspected, Store};

use super::{Record, time};

const CONTEXT: &[&str] = &[
    "https://w3id.org/ro/crate/1.1/context",
    "https://w3id.org/ro/terms/workflow-run/context",
];
const PROFILES: &[(&str, &str)] = &[
    ("https://w3id.org/ro/wfrun/process/0.5", "Process Run Crate"),
    (
        "https://w3id.org/ro/wfrun/workflow/0.5",
        "Workflow Run Crate",
    ),
];
const WORKFLOW_PROFILE: &str = "https://w3id.org/workflowhub/workflow-ro-crate/1.0";
const LANGUAGE: &str = "#ablate";

/// A pipeline file.
pub struct Pipeline {
    /// Its text.
    pub text: Vec<u8>,
    /// Whether that is what the run read, not what the file says now.
    pub recorded: bool,
}

/// The files of a crate: names inside it, and where their bytes are.
pub struct Crate {
    /// `ro-crate-metadata.json`.
    pub metadata: String,
    /// The pipeline file: its name in the crate, and its text.
    pub pipeline: (String, Vec<u8>),
    /// Tables by digest.
    pub objects: BTreeSet<Digest>,
    /// Tables that are no longer in the store, and so not in the crate.
    pub gone: BTreeSet<Digest>,
    /// Those of them that were damaged: whose they are, and what is wrong.
    pub damaged: Vec<(String, String)>,
}

/// Describes a run and its pipeline file.
pub fn describe(record: &Record, store: &Store, pipeline: Pipeline) -> Crate {
    let name = record.run.file.clone();
    let (mut objects, mut gone) = (BTreeSet::new(), BTreeSet::new());
    let mut damaged = Vec::new();
    for execution in record.executions.values() {
        let made = execution.outputs.iter().map(|output| output.digest);
        let read = execution.inputs.iter().map(|input| input.digest);
        for digest in made.chain(read) {
            // Every byte that leaves is checked.
            match store.inspect(&digest) {
                Inspected::Whole(_) => objects.insert(digest),
                Inspected::Damaged(why) => {
                    damaged.push((execution.instance.clone(), why));
                    gone.insert(digest)
                }
                Inspected::Missing => gone.insert(digest),
            };
        }
    }
    let graph = graph(record, &name, &pipeline, &objects, &gone);
    let metadata = json!({ "@context": CONTEXT, "@graph": graph });
    Crate {
        metadata: serde_json::to_string_pretty(&metadata).expect("plain values"),
        pipeline: (name, pipeline.text),
        objects,
        gone,
        damaged,
    }
}

fn graph(
    record: &Record,
    name: &str,
    pipeline: &Pipeline,
    objects: &BTreeSet<Digest>,
    gone: &BTreeSet<Digest>,
) -> Vec<Value> {
    let run = &record.run;
    let when = time(run.ended.unwrap_or(run.started));
    let mut parts: Vec<Value> = vec![id(name)];
    parts.extend(objects.iter().map(|digest| id(&path(digest))));
    let mut conforms: Vec<Value> = PROFILES.iter().map(|(profile, _)| id(profile)).collect();
    conforms.push(id(WORKFLOW_PROFILE));
    let mut entities = vec![
        json!({
            "@id": "ro-crate-metadata.json", "@type": "CreativeWork",
            "about": id("./"),
            "conformsTo": [id("https://w3id.org/ro/crate/1.1"), id(WORKFLOW_PROFILE)],
        }),
        json!({
            "@id": "./", "@type": "Dataset", "name": format!("{}, run {}", run.pipeline, run.id),
            "description": format!("Run {} of the ablate pipeline {}: every table, parameter and execution.", run.id, run.pipeline),
            "datePublished": when, "license": "the licences of the data and of the pipeline apply",
            "conformsTo": conforms, "hasPart": parts, "mainEntity": id(name),
            "mentions": actions(record),
        }),
        json!({
            "@id": name, "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
            "name": run.pipeline, "programmingLanguage": id(LANGUAGE),
            "encodingFormat": "application/toml",
            "contentSize": pipeline.text.len().to_string(),
            "identifier": format!("blake3:{}", Digest::of(&pipeline.text)),
            "description": match pipeline.recorded {
                true => "the pipeline file as the run read it",
                false => "the pipeline file as it was when the crate was written: the run's own was not recorded",
            },
        }),
        json!({
            "@id": LANGUAGE, "@type": ["ComputerLanguage", "SoftwareApplication"], "name": "ablate",
            "url": "https://www.researchobject.org/workflow-run-crate/",
            "version": run.environment.ablate, "softwareVersion": run.environment.ablate,
        }),
    ];
    entities.extend(PROFILES.iter().map(|(profile, name)| {
        json!({ "@id": profile, "@type": "CreativeWork", "name": name, "version": "0.5" })
    }));
    entities.push(json!({
        "@id": WORKFLOW_PROFILE, "@type": "CreativeWork", "name": "Workflow RO-Crate",
        "version": "1.0",
    }));
    entities.push(whole_run(record, name, objects));
    let mut tables: BTreeMap<String, Value> = BTreeMap::new();
    let mut kinds = BTreeSet::new();
    for execution in record.executions.values() {
        kinds.insert(execution.key.kind.as_str());
        for output in &execution.outputs {
            let digest = output.digest;
            let there = objects.contains(&digest);
            let at = place(&digest, objects);
            let kept = if there {
                ""
            } else {
                " (no longer in the store)"
            };
            tables.insert(at.clone(), json!({
                "@id": at, "@type": if there { "File" } else { "CreativeWork" },
                "name": format!("{}.{}{kept}", execution.instance, output.name),
                "description": format!("{} rows: {}", output.rows, output.schema),
                "encodingFormat": "application/vnd.apache.parquet",
                "contentSize": output.bytes.to_string(), "identifier": format!("blake3:{digest}"),
            }));
        }
        entities.extend(parameters(execution));
        entities.push(action(execution, objects));
    }
    // Inputs that were made by executions of other runs.
    for digest in objects.iter().chain(gone) {
        let at = place(digest, objects);
        tables.entry(at.clone()).or_insert_with(|| {
            json!({
                "@id": at, "@type": if objects.contains(digest) { "File" } else { "CreativeWork" },
                "name": format!("a table of another run, {}", digest.short()),
                "encodingFormat": "application/vnd.apache.parquet",
                "identifier": format!("blake3:{digest}"),
            })
        });
    }
    entities.extend(tables.into_values());
    entities.extend(kinds.into_iter().map(|kind| {
        json!({
            "@id": format!("#kind-{kind}"), "@type": "SoftwareApplication",
            "name": format!("ablate kind {kind}"), "softwareVersion": run.environment.ablate,
        })
    }));
    entities.extend(raw_files(record));
    entities.extend(acceptances(record));
    entities
}

/// Who accepted a change of code, and why.
fn acceptances(record: &Record) -> Vec<Value> {
    let mut entities = Vec::new();
    let mut people = BTreeSet::new();
    for one in &record.accepted {
        let person = format!("#person-{}", Digest::of(one.who.as_bytes()).short());
        entities.push(json!({
            "@id": accept_id(one), "@type": "AcceptAction",
            "name": format!("a change of the code of {} was accepted", one.instance),
            "agent": id(&person), "object": id(&format!("#execution-{}", one.execution)),
            "endTime": time(one.at),
            "description": format!("{} (code {} stands for {})", one.reason, one.old_code, one.new_code),
        }));
        if people.insert(person.clone()) {
            entities.push(json!({ "@id": person, "@type": "Person", "name": one.who }));
        }
    }
    entities
}

fn accept_id(one: &Acceptance) -> String {
    format!("#acceptance-{}-{}", one.execution, one.new_key.short())
}

/// The run as one action of the whole workflow.
fn whole_run(record: &Record, name: &str, objects: &BTreeSet<Digest>) -> Value {
    let run = &record.run;
    let failed = run.outcome != Some(store::RunOutcome::Ok);
    let status = if failed {
        "FailedActionStatus"
    } else {
        "CompletedActionStatus"
    };
    let mut results: Vec<String> = Vec::new();
    for execution in record.executions.values() {
        results.extend(
            execution
                .outputs
                .iter()
                .map(|output| place(&output.digest, objects)),
        );
    }
    results.sort();
    results.dedup();
    let mut action = json!({
        "@id": format!("#run-{}", run.id), "@type": "CreateAction",
        "name": format!("run {} of {}", run.id, run.pipeline), "instrument": id(name),
        "startTime": time(run.started), "actionStatus": format!("http://schema.org/{status}"),
        "result": results.iter().map(|at| id(at)).collect::<Vec<_>>(),
        "description": format!("profile {}, settings {}, on {}", run.profile.as_deref().unwrap_or("none"), run.settings, run.environment.os),
    });
    if let Some(ended) = run.ended {
        action["endTime"] = time(ended).into();
    }
    action
}

fn actions(record: &Record) -> Vec<Value> {
    let mut actions = vec![id(&format!("#run-{}", record.run.id))];
    let each = record.executions.keys();
    actions.extend(each.map(|number| id(&format!("#execution-{number}"))));
    actions.extend(record.accepted.iter().map(|one| id(&accept_id(one))));
    actions
}

fn action(execution: &Execution, objects: &BTreeSet<Digest>) -> Value {
    let micros = i64::try_from(execution.wall.as_micros()).unwrap_or(i64::MAX);
    let mut read: Vec<String> = Vec::new();
    read.extend(
        execution
            .inputs
            .iter()
            .map(|input| place(&input.digest, objects)),
    );
    read.extend(execution.facts.raw.iter().map(|raw| raw_id(&raw.checksum)));
    read.sort();
    read.dedup();
    read.extend(
        execution
            .key
            .params
            .keys()
            .map(|name| param_id(execution, name)),
    );
    read.extend(execution.key.seed.map(|_| param_id(execution, "seed")));
    let status = match &execution.failure {
        None => "http://schema.org/CompletedActionStatus",
        Some(_) => "http://schema.org/FailedActionStatus",
    };
    let made = execution
        .outputs
        .iter()
        .map(|o| id(&place(&o.digest, objects)));
    let mut action = json!({
        "@id": format!("#execution-{}", execution.id), "@type": "CreateAction",
        "name": execution.instance,
        "description": format!(
            "key {}, code {}, promise {}", execution.key_digest, execution.key.code,
            execution.facts.determinism.as_deref().unwrap_or("not recorded")
        ),
        "instrument": id(&format!("#kind-{}", execution.key.kind)),
        "startTime": time(execution.started),
        "endTime": time(execution.started.saturating_add(micros)),
        "object": read.iter().map(|at| id(at)).collect::<Vec<_>>(),
        "result": made.collect::<Vec<_>>(), "actionStatus": status,
    });
    if let Some(failure) = &execution.failure {
        action["error"] = failure.as_str().into();
    }
    action
}

fn parameters(execution: &Execution) -> Vec<Value> {
    let params = execution.key.params.iter();
    let params = params.map(|(name, value)| (name.as_str(), value.to_string()));
    let seed = execution.key.seed.map(|seed| ("seed", seed.to_string()));
    let each = params.chain(seed).map(|(name, value)| {
        json!({
            "@id": param_id(execution, name), "@type": "PropertyValue", "name": name,
            "value": value,
        })
    });
    each.collect()
}

fn raw_files(record: &Record) -> Vec<Value> {
    let mut files = BTreeMap::new();
    for execution in record.executions.values() {
        for raw in &execution.facts.raw {
            files.insert(raw_id(&raw.checksum), raw);
        }
    }
    let each = files.into_iter().map(|(at, raw)| {
        json!({
            "@id": at, "@type": "CreativeWork", "name": raw.name, "identifier": raw.checksum,
            "size": raw.bytes.to_string(),
        })
    });
    each.collect()
}

fn id(of: &str) -> Value {
    json!({ "@id": of })
}

fn param_id(execution: &Execution, name: &str) -> String {
    format!("#execution-{}-{name}", execution.id)
}

fn raw_id(checksum: &str) -> String {
    format!("#raw-{}", checksum.replace(':', "-"))
}

/// Where a table is in the crate.
fn path(digest: &Digest) -> String {
    let name = digest.to_string();
    format!("objects/{}/{}.parquet", &name[..2], &name[2..])
}

/// The same, or a name alone for a table that is not in it.
fn place(digest: &Digest, objects: &BTreeSet<Digest>) -> String {
    match objects.contains(digest) {
        true => path(digest),
        false => format!("#table-{digest}"),
    }
}

impl Crate {
    /// Writes a new folder; what goes wrong on the way leaves none.
    pub fn write_folder(&self, folder: &Path, store: &Store) -> io::Result<()> {
        std::fs::create_dir(folder)?;
        let written = self.fill(folder, store);
        if written.is_err() {
            let _ = std::fs::remove_dir_all(folder);
        }
        written
    }

    fn fill(&self, folder: &Path, store: &Store) -> io::Result<()> {
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, bytes)
        };
        self.each(store, write)
    }

    /// Writes a new zip; what goes wrong on the way leaves none.
    pub fn write_zip(&self, path: &Path, store: &Store) -> io::Result<()> {
        let file = std::fs::File::create_new(path)?;
        let written = self.pack(file, store);
        if written.is_err() {
            let _ = std::fs::remove_file(path);
        }
        written
    }

    fn pack(&self, file: std::fs::File, store: &Store) -> io::Result<()> {
        let mut zip = zip::ZipWriter::new(io::BufWriter::new(file));
        // Tables are compressed already; and a zip of the same run has the same bytes.
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default());
        self.each(store, |name, bytes| {
            zip.start_file(name, options)?;
            zip.write_all(bytes)
        })?;
        zip.finish()?.flush()
    }

    fn each(
        &self,
        store: &Store,
        mut write: impl FnMut(&str, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        write("ro-crate-metadata.json", self.metadata.as_bytes())?;
        write(&self.pipeline.0, &self.pipeline.1)?;
        for digest in &self.objects {
            write(&path(digest), &std::fs::read(store.object_path(digest))?)?;
        }
        Ok(())
    }
}
