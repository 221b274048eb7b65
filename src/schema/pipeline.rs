//! `pipeline.toml` as a schema.

use serde_json::{Map, Value, json};

use super::kind;
use super::value::{DRAFT, axis_value_definition, string};
use crate::config::FIXED;

/// The whole file.
pub fn schema() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "pipeline.toml of ablate",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "pipeline": { "$ref": "#/definitions/pipeline" },
            "data": { "$ref": "#/definitions/data" },
            "executor": { "$ref": "#/definitions/executor" },
            "resources": { "$ref": "#/definitions/resources" },
            "axes": { "$ref": "#/definitions/axes" },
            "choices": {
                "description": "What the paper leaves open: each alternative to what is written, tried alone.",
                "type": "object",
                "additionalProperties": { "$ref": "#/definitions/point" },
            },
            "stage": {
                "description": "The stages, by name.",
                "type": "object",
                "additionalProperties": { "$ref": "#/definitions/stage" },
            },
            "profile": {
                "description": "Values that replace others with `--profile NAME`.",
                "type": "object",
                "additionalProperties": { "$ref": "#/definitions/profile" },
            },
        },
        "definitions": definitions(),
    })
}

fn definitions() -> Map<String, Value> {
    let mut all = Map::new();
    let mut add = |name: &str, schema: Value| drop(all.insert(name.to_owned(), schema));
    add("axis-value", axis_value_definition());
    add("pipeline", header());
    add("data", data());
    add("executor", executor());
    add("resources", resources());
    add("axes", axes());
    add("point", point());
    add("profile", profile());
    add("stage", stage());
    add("pick", pick());
    for kind in stages::STAGES {
        let name = kind.describe().kind;
        add(&format!("kind-{name}"), kind::schema(*kind));
    }
    all
}

fn header() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "name": string("The name of the pipeline."),
            "seed": {
                "description": "The seed of stages that set none.",
                "type": "integer", "minimum": 0, "default": 0,
            },
            "replicates": string("The axis along which executions are repeated, whose values are whole numbers; default: seed."),
            "claims": string("The file of claims, beside the pipeline file; default: claims.toml, if it exists."),
        },
    })
}

fn data() -> Value {
    json!({
        "description": "Where data sets come from.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "mirror": string("A folder with copies of the files."),
            "offline": { "description": "Whether nothing may be downloaded.", "type": "boolean", "default": false },
        },
    })
}

fn resources() -> Value {
    let kinds = stages::STAGES.iter().map(|kind| kind.describe().kind);
    let each: Map<String, Value> = kinds
        .map(|kind| (kind.to_owned(), kind::resources()))
        .collect();
    json!({
        "description": "The resources of stages that set none, by kind.",
        "type": "object",
        "additionalProperties": false,
        "properties": each,
    })
}

fn executor() -> Value {
    let list =
        |text: &str| json!({ "description": text, "type": "array", "items": { "type": "string" } });
    let with_patience = |mut own: Value| {
        own["in_flight"] = json!({ "description": "Jobs in the queue at once.", "type": "integer", "minimum": 1, "default": 100 });
        own["retries"] = json!({ "description": "Further attempts of a job that a machine or a limit has ended.", "type": "integer", "minimum": 0, "maximum": 100, "default": 2 });
        own["grace"] = string("How long a result may be late after its job has ended: 60s.");
        own["poll_every"] = string("The time between questions to the queue: 2s.");
        json!({ "type": "object", "additionalProperties": false, "properties": own })
    };
    json!({
        "description": "Queues of other machines, for `ablate run --executor`.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "slurm": with_patience(json!({
                "partition": string("The partition."),
                "account": string("The account."),
                "flags": list("Further flags of sbatch."),
            })),
            "command": with_patience(json!({
                "submit": list("Submits {task} with {ablate} worker, and prints the job's id."),
                "poll": list("Ends with 0 while the job {id} waits or runs."),
                "cancel": list("Ends the job {id}."),
            })),
        },
    })
}

fn axes() -> Value {
    json!({
        "description": "Values over which stages are multiplied: a list, or a table of named points.",
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {
                    "description": "Values of one type, mentioned in stages as ${NAME}.",
                    "type": "array",
                    "items": { "type": ["string", "number", "boolean"] },
                },
                {
                    "description": "Points with names: NAME = { param = value }, or { \"stage.param\" = value }.",
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": { "$ref": "#/definitions/point" },
                },
            ],
        },
    })
}

fn point() -> Value {
    json!({
        "description": "Parameters, `seed` and `inputs.PORT`, of the stages that take the axis by `with`; or \"STAGE.param\" of another stage.",
        "type": "object",
        "propertyNames": { "not": { "enum": FIXED } },
    })
}

fn profile() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "like": string("Another profile that is applied before this one."),
            "pipeline": { "$ref": "#/definitions/pipeline" },
            "axes": { "$ref": "#/definitions/axes" },
            "stage": {
                "description": "Keys of stages that are replaced.",
                "type": "object",
                "additionalProperties": { "type": "object", "properties": kind::common() },
            },
        },
    })
}

/// A stage: what it may have is decided by its kind.
fn stage() -> Value {
    let names: Vec<&str> = stages::STAGES
        .iter()
        .map(|kind| kind.describe().kind)
        .collect();
    let of_kind = |name: &&str| {
        json!({
            "if": { "required": ["kind"], "properties": { "kind": { "const": name } } },
            "then": { "$ref": format!("#/definitions/kind-{name}") },
        })
    };
    let mut rules: Vec<Value> = names.iter().map(of_kind).collect();
    rules.push(json!({
        "if": { "required": ["pick"] },
        "then": { "$ref": "#/definitions/pick" },
    }));
    let mut properties = kind::common();
    properties.insert(
        "kind".to_owned(),
        json!({ "description": "What the stage does: `ablate kinds` describes them.", "enum": names }),
    );
    json!({
        "type": "object",
        "properties": properties,
        "anyOf": [
            { "required": ["kind"] },
            { "required": ["pick"] },
            { "required": ["like"] },
        ],
        "allOf": rules,
    })
}

fn pick() -> Value {
    let mut properties = kind::common();
    properties.retain(|key, _| ["select", "except", "like"].contains(&key.as_str()));
    properties.insert(
        "pick".to_owned(),
        string("A stage of which `select` picks instances for all readers; nothing is executed."),
    );
    json!({ "properties": properties, "additionalProperties": false })
}
