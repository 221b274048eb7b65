//! `figures.toml` as a schema.

use serde_json::{Value, json};

use super::value::{DRAFT, string, strings};
use crate::publish::report::figures::spec;

/// The whole file.
pub fn schema() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "figures.toml of ablate",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "figure": {
                "description": "The figures, by name, in the order of the report.",
                "type": "object",
                "additionalProperties": figure(),
            },
        },
    })
}

fn figure() -> Value {
    let kinds: Vec<&str> = spec::kinds().map(|(kind, _)| kind).collect();
    let needs = |(kind, keys): (&str, &[&str])| {
        json!({
            "if": { "required": ["kind"], "properties": { "kind": { "const": kind } } },
            "then": { "required": keys },
        })
    };
    let size =
        |description: &str| json!({ "description": description, "type": "integer", "minimum": 1 });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["table", "kind"],
        "properties": {
            "table": string("The result that is drawn: STAGE, STAGE.OUTPUT or STAGE[axis=value].OUTPUT."),
            "query": string("SQL over it, as the table `t`."),
            "kind": { "description": "How it is drawn.", "enum": kinds },
            "x": string("The column along."),
            "y": string("The column that goes up."),
            "by": string("The column that distinguishes series."),
            "each": string("For lines and paths: the column that breaks them."),
            "value": string("For a matrix: the column of numbers."),
            "columns": strings("For series and images: columns of lists."),
            "width": size("For images: numbers in a row of pixels."),
            "rows": size("For series and images: how many rows of the table."),
            "profiles": strings("The profiles in which it is drawn; default: all."),
            "title": string("A line above it."),
            "note": string("A remark below it."),
            "x_label": string("What the axis along is called."),
            "y_label": string("What the axis upward is called."),
        },
        "allOf": spec::kinds().map(needs).collect::<Vec<_>>(),
    })
}
