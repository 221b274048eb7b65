//! What a parameter may hold, as a schema. Wherever a number or a word is expected, `${axis}` may stand.

use serde_json::{Map, Value, json};
use stages::{MOST, Param, Range, Type};

/// The draft that all schemas follow.
pub const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// A parameter as a property. `names`: the values that a parameter that chooses may have.
pub fn property(param: &Param, names: &[&str]) -> Value {
    let mut property = Map::new();
    property.insert("description".to_owned(), json!(param.help));
    if let Some(default) = param.presence.default() {
        property.insert("default".to_owned(), json!(default));
    }
    match typed(param, names) {
        Typed::Plain(schema) => property.extend(schema),
        Typed::OrAxis(schema) => {
            property.insert("anyOf".to_owned(), json!([schema, axis_value()]));
        }
    }
    Value::Object(property)
}

/// The values of a type, perhaps beside a mention of an axis.
enum Typed {
    Plain(Map<String, Value>),
    OrAxis(Map<String, Value>),
}

fn typed(param: &Param, names: &[&str]) -> Typed {
    let any_string = || object(json!({ "type": "string" }));
    match (param.ty, param.range) {
        (Type::Text, _) if !names.is_empty() => Typed::OrAxis(object(json!({ "enum": names }))),
        (Type::Text, Range::OneOf(all)) => Typed::OrAxis(object(json!({ "enum": all }))),
        (Type::Text | Type::Query, _) => Typed::Plain(any_string()),
        (Type::Bool, _) => Typed::OrAxis(object(json!({ "type": "boolean" }))),
        (Type::Int, range) => Typed::OrAxis(number("integer", range)),
        (Type::Float, range) => Typed::OrAxis(number("number", range)),
        (Type::Ints, _) => {
            let item = json!({ "anyOf": [{ "type": "integer" }, axis_value()] });
            Typed::OrAxis(object(json!({ "type": "array", "items": item })))
        }
        (Type::Texts | Type::Files, _) => {
            let list = json!({ "type": "array", "items": { "type": "string" } });
            Typed::OrAxis(object(list))
        }
        (Type::TextTable, _) => {
            let strings = json!({ "type": "object", "additionalProperties": { "type": "string" } });
            Typed::Plain(object(strings))
        }
        (Type::Rows, _) => {
            let rows = json!({ "type": "array", "items": { "type": "object" } });
            Typed::Plain(object(rows))
        }
        (Type::Table, _) => Typed::Plain(object(json!({ "type": "object" }))),
    }
}

fn number(ty: &str, range: Range) -> Map<String, Value> {
    let mut schema = object(json!({ "type": ty }));
    let mut bound = |name: &str, value: Value| drop(schema.insert(name.to_owned(), value));
    match range {
        Range::Ints(least, most) => {
            bound("minimum", json!(least));
            if most < MOST {
                bound("maximum", json!(most));
            }
        }
        Range::Floats(least, most) => {
            bound("minimum", json!(least));
            bound("maximum", json!(most));
        }
        Range::Any | Range::OneOf(_) => {}
    }
    schema
}

/// A string that mentions an axis.
pub fn axis_value() -> Value {
    json!({ "$ref": "#/definitions/axis-value" })
}

/// The definition that [`axis_value`] refers to.
pub fn axis_value_definition() -> Value {
    json!({
        "description": "The value of an axis: ${NAME}, as [axes] lists it.",
        "type": "string",
        "pattern": "\\$\\{[^}]+\\}",
    })
}

/// A list of strings.
pub fn strings(description: &str) -> Value {
    json!({ "description": description, "type": "array", "items": { "type": "string" } })
}

/// A string.
pub fn string(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
