//! A run as OpenLineage events, one per line: <https://openlineage.io/spec/2-0-2/OpenLineage.json>.

use serde_json::{Value, json};
use store::{Digest, Execution};

use super::{Record, time};

const SCHEMA: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
const PARENT: &str =
    "https://openlineage.io/spec/facets/1-1-0/ParentRunFacet.json#/$defs/ParentRunFacet";
const TABLE: &str =
    "https://openlineage.io/spec/facets/1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet";
const VERSION: &str = "https://openlineage.io/spec/facets/1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet";
const ERROR: &str = "https://openlineage.io/spec/facets/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet";

/// The start and the end of every execution.
pub fn events(record: &Record) -> Vec<Value> {
    let namespace = format!("ablate:{}", record.run.pipeline);
    let producer = format!("urn:ablate:{}", record.run.environment.ablate);
    let mut events = Vec::new();
    for execution in record.executions.values() {
        let event = |kind: &str, at: i64, ended: bool| {
            json!({
                "eventType": kind, "eventTime": time(at), "producer": producer,
                "schemaURL": SCHEMA,
                "run": { "runId": uuid(&format!("execution/{}", execution.id), execution.key_digest),
                         "facets": facets(record, execution, &namespace, &producer, ended) },
                "job": { "namespace": namespace, "name": execution.instance },
                "inputs": inputs(execution, &namespace, &producer),
                "outputs": outputs(execution, &namespace, &producer),
            })
        };
        events.push(event("START", execution.started, false));
        let micros = i64::try_from(execution.wall.as_micros()).unwrap_or(i64::MAX);
        let kind = if execution.failure.is_some() {
            "FAIL"
        } else {
            "COMPLETE"
        };
        events.push(event(kind, execution.started.saturating_add(micros), true));
    }
    // Readers take events in the order of time.
    events.sort_by_key(|event| event["eventTime"].as_str().map(str::to_owned));
    events
}

fn facets(
    record: &Record,
    execution: &Execution,
    namespace: &str,
    producer: &str,
    ended: bool,
) -> Value {
    let run = format!("run/{}", execution.run);
    let digest = Digest::of(record.run.pipeline.as_bytes());
    let mut facets = json!({
        "parent": {
            "_producer": producer, "_schemaURL": PARENT,
            "run": { "runId": uuid(&run, digest) },
            "job": { "namespace": namespace, "name": record.run.pipeline },
        },
        "ablate": {
            "_producer": producer,
            "_schemaURL": "urn:ablate:facet:1",
            "key": execution.key_digest, "kind": execution.key.kind, "code": execution.key.code,
            "params": execution.key.params, "seed": execution.key.seed,
            "determinism": execution.facts.determinism,
            "accepted": record.accepted.iter().filter(|one| one.execution == execution.id)
                .collect::<Vec<_>>(),
        },
    });
    if let (Some(failure), true) = (&execution.failure, ended) {
        facets["errorMessage"] = json!({
            "_producer": producer, "_schemaURL": ERROR, "message": failure,
            "programmingLanguage": "Rust",
        });
    }
    facets
}

fn inputs(execution: &Execution, namespace: &str, producer: &str) -> Vec<Value> {
    let tables = execution.inputs.iter().map(|input| {
        json!({
            "namespace": namespace, "name": input.producer,
            "facets": { "version": version(&input.digest.to_string(), producer) },
        })
    });
    let raw = execution.facts.raw.iter().map(|raw| {
        json!({
            "namespace": "file", "name": raw.name,
            "facets": { "version": version(&raw.checksum, producer) },
        })
    });
    tables.chain(raw).collect()
}

fn outputs(execution: &Execution, namespace: &str, producer: &str) -> Vec<Value> {
    let many = execution.outputs.len() > 1;
    let each = execution.outputs.iter().map(|output| {
        let name = match many {
            true => format!("{}.{}", execution.instance, output.name),
            false => execution.instance.clone(),
        };
        // `x: Int64, t: Utf8`
        let fields = output.schema.split(", ").filter_map(|field| {
            let (name, kind) = field.split_once(": ")?;
            Some(json!({ "name": name, "type": kind }))
        });
        json!({
            "namespace": namespace, "name": name,
            "facets": {
                "version": version(&output.digest.to_string(), producer),
                "schema": { "_producer": producer, "_schemaURL": TABLE,
                            "fields": fields.collect::<Vec<_>>() },
            },
        })
    });
    each.collect()
}

fn version(version: &str, producer: &str) -> Value {
    json!({ "_producer": producer, "_schemaURL": VERSION, "datasetVersion": version })
}

/// A name of the shape that the format wants, from what names the thing here: a UUID of version 8.
fn uuid(name: &str, digest: Digest) -> String {
    let hex = Digest::of(format!("{name}/{digest}").as_bytes()).to_string();
    format!(
        "{}-{}-8{}-a{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..32]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_shape_of_a_uuid() {
        let name = uuid("x", Digest::of(b""));
        let parts: Vec<usize> = name.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&name[14..15], "8");
        assert_eq!(&name[19..20], "a");
    }
}
