//! `claims.toml` as a schema.

use serde_json::{Value, json};

use super::value::{DRAFT, string, strings};
use crate::publish::claims::Level;

/// The whole file.
pub fn schema() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "claims.toml of ablate",
        "type": "object",
        "additionalProperties": false,
        "required": ["claim"],
        "properties": {
            "claims": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "tables": {
                        "description": "The results that queries read, by the name that they have there: NAME = \"STAGE.OUTPUT\".",
                        "type": "object",
                        "additionalProperties": { "type": "string" },
                    },
                },
            },
            "claim": {
                "description": "The claims, by id.",
                "type": "object",
                "minProperties": 1,
                "additionalProperties": claim(),
            },
        },
    })
}

fn claim() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["level", "text", "query"],
        "properties": {
            "level": {
                "description": "How much depends on it; `info` is reported, not judged.",
                "enum": Level::ALL.map(Level::name),
            },
            "text": string("What is claimed, in words."),
            "paper": {
                "description": "What the paper has: in words, or as numbers by columns of the query.",
                "anyOf": [
                    { "type": "string" },
                    { "type": "object", "additionalProperties": { "type": "number" } },
                ],
            },
            "query": string("SQL over the tables of [claims] with one row: `holds`, a boolean, and the numbers behind it."),
            "profiles": strings("The profiles in which it is judged; default: all."),
            "seeds": {
                "description": "The minimum number of executions that it is judged on.",
                "type": "integer",
                "minimum": 1,
            },
        },
    })
}
