//! One kind of stage as a schema: the keys that all stages have, its inputs, its parameters, and for each attack or
//! model those of its own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use stages::{Inputs, Param, Presence, Range, Renamed, Stage};
use store::Params;

use super::value::{axis_value, property, string, strings};

/// The keys that a stage of any kind may have.
pub fn common() -> Map<String, Value> {
    let select = json!({
        "description": "Pick one instance of the inputs along axes, by a metric.",
        "type": "object",
        "additionalProperties": false,
        "required": ["over", "metric", "column", "best"],
        "properties": {
            "over": strings("The axes along which instances compete."),
            "metric": string("A table of one row per instance: STAGE or STAGE.OUTPUT."),
            "column": string("The column of the metric."),
            "best": { "description": "Which end is best.", "enum": ["max", "min"] },
        },
    });
    let except = json!({
        "description": "Combinations of axis values that the stage does not have: { axis = \"value\", other = [\"a\", \"b\"] }.",
        "type": "array",
        "items": { "type": "object", "minProperties": 1 },
    });
    let seed = json!({
        "description": "Its own seed; default: that of [pipeline].",
        "anyOf": [{ "type": "integer", "minimum": 0 }, axis_value()],
    });
    let keys = [
        ("resources", resources()),
        (
            "inputs",
            tables("What each input reads: STAGE or STAGE.OUTPUT."),
        ),
        (
            "over",
            strings("Axes whose instances it collects into one table."),
        ),
        ("select", select),
        ("seed", seed),
        (
            "with",
            strings("Axes of named points whose keys are set here."),
        ),
        ("except", except),
        (
            "like",
            string("A stage whose keys are copied; keys written here replace them."),
        ),
    ];
    keys.map(|(key, schema)| (key.to_owned(), schema))
        .into_iter()
        .collect()
}

fn tables(description: &str) -> Value {
    json!({
        "description": description,
        "type": "object",
        "additionalProperties": { "type": "string" },
    })
}

/// A stage of this kind.
pub fn schema(kind: &dyn Stage) -> Value {
    let description = kind.describe();
    let mut properties = common();
    let name = json!({ "description": description.summary, "const": description.kind });
    properties.insert("kind".to_owned(), name);
    properties.insert("inputs".to_owned(), inputs(kind));
    let selector = kind.choices().first().map(|choice| choice.selector);
    for param in description.params {
        let chooses = selector == Some(param.name);
        let mut names: Vec<&str> = match chooses {
            true => kind.choices().iter().map(|choice| choice.name).collect(),
            false => Vec::new(),
        };
        if let Range::OneOf(all) = param.range {
            names = with_old_values(kind, param, all);
        }
        properties.insert(param.name.to_owned(), property(param, &names));
        for old in old_names(kind, param.name) {
            properties.insert(old.to_owned(), property(param, &names));
        }
    }
    let mut rules = vec![json!({
        "if": unless_copied(),
        "then": { "required": required(description.params) },
    })];
    rules.extend(
        selector
            .map(|selector| of_choices(kind, selector, &properties))
            .into_iter()
            .flatten(),
    );
    json!({
        "description": description.summary,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "allOf": rules,
    })
}

/// A stage that writes all of its keys itself: none come from the points of an axis or from another stage.
fn unless_copied() -> Value {
    json!({ "not": { "anyOf": [{ "required": ["with"] }, { "required": ["like"] }] } })
}

fn required(params: &[Param]) -> Vec<&'static str> {
    let required = params
        .iter()
        .filter(|p| matches!(p.presence, Presence::Required));
    required.map(|param| param.name).collect()
}

/// For each attack or model: its own parameters with its own defaults, and none of the others'.
fn of_choices(kind: &dyn Stage, selector: &str, all: &Map<String, Value>) -> Vec<Value> {
    let choices = kind.choices();
    let is_own = |name: &str| {
        let params = choices.iter().flat_map(|choice| choice.params);
        params.into_iter().any(|param| param.name == name)
    };
    let shared: Vec<&str> = all
        .keys()
        .map(String::as_str)
        .filter(|name| !is_own(name))
        .collect();
    let rule = |choice: &stages::Choice| {
        let own = choice.params.iter().map(|param| {
            let names = match param.range {
                Range::OneOf(all) => all,
                _ => &[],
            };
            (param.name.to_owned(), property(param, names))
        });
        let own: BTreeMap<String, Value> = own.collect();
        let names: Vec<&str> = shared
            .iter()
            .copied()
            .chain(own.keys().map(String::as_str))
            .collect();
        json!({
            "if": {
                "allOf": [unless_copied()],
                "required": [selector],
                "properties": { selector: { "const": choice.name } },
            },
            "then": {
                "description": choice.summary,
                "properties": own,
                "propertyNames": { "enum": names },
                "required": required(choice.params),
            },
        })
    };
    choices.iter().map(rule).collect()
}

/// Its input ports: all that any choice of parameters gives it.
fn inputs(kind: &dyn Stage) -> Value {
    let mut ports: BTreeMap<String, String> = BTreeMap::new();
    for params in variations(kind) {
        let Inputs::Named(named) = kind.ports(&params).inputs else {
            return tables("What each input reads: STAGE or STAGE.OUTPUT. Their names are yours.");
        };
        ports.extend(
            named
                .into_iter()
                .map(|port| (port.name, port.holds.to_owned())),
        );
    }
    for renamed in kind.renamed() {
        if let Renamed::Input { old, new } = renamed {
            ports.insert((*old).to_owned(), format!("{new}: the name of now"));
        }
    }
    let properties: Map<String, Value> = ports
        .into_iter()
        .map(|(port, holds)| {
            (
                port,
                string(&format!("Reads {holds}: STAGE or STAGE.OUTPUT.")),
            )
        })
        .collect();
    json!({
        "description": "What each input reads: STAGE or STAGE.OUTPUT.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// Parameters that may decide the ports: none, and each listed value alone.
fn variations(kind: &dyn Stage) -> Vec<Params> {
    let mut all = vec![Params::new()];
    let mut add = |name: &str, value: &str| {
        let value = store::Value::Text(value.to_owned());
        all.push([(name.to_owned(), value)].into_iter().collect());
    };
    for param in kind.describe().params {
        if let Range::OneOf(values) = param.range {
            values.iter().for_each(|value| add(param.name, value));
        }
    }
    for choice in kind.choices() {
        add(choice.selector, choice.name);
    }
    all
}

fn old_names(kind: &dyn Stage, param: &str) -> Vec<&'static str> {
    let old = kind.renamed().iter().filter_map(|renamed| match renamed {
        Renamed::Param { old, new } if *new == param => Some(*old),
        _ => None,
    });
    old.collect()
}

fn with_old_values<'a>(kind: &dyn Stage, param: &Param, values: &'a [&'a str]) -> Vec<&'a str> {
    let old = kind.renamed().iter().filter_map(|renamed| match renamed {
        Renamed::Value {
            param: name, old, ..
        } if *name == param.name => Some(*old),
        _ => None,
    });
    values.iter().copied().chain(old).collect()
}
/// `resources`, of a stage or of a kind.
pub fn resources() -> Value {
    json!({
        "description": "What it takes of the machine while it runs. Decides when it starts, and no result.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "cpus": { "description": "Places among the stages that run at once.", "type": "integer", "minimum": 1 },
            "memory": string("Memory, such as 16GB: it does not start beside others that leave less."),
            "time": string("The time limit of its job in a queue, such as 2h."),
            "gpus": { "description": "Graphics processors of its job in a queue; more than 0 opens their devices to its program.", "type": "integer", "minimum": 0 },
        },
    })
}
