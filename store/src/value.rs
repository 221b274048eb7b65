//! Parameter values, in the one form that is hashed.
//!
//! Not `serde_json::Value`: its maps change their order when any crate in the build
//! switches on a feature, and it has no infinities.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The checked parameters of a stage, defaults written out.
pub type Params = BTreeMap<String, Value>;

/// A parameter value. `Int(1)` and `Float(1.0)` are different values with different hashes;
/// a parameter declared as a float turns the first into the second when it is checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number, infinities and NaN included.
    Float(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A table with its keys in order.
    Table(BTreeMap<String, Value>),
}

/// How a float that JSON cannot write is tagged: `{"$float": "nan"}`. So that no table of a
/// user's is mistaken for one, a key that begins with `$` is written with one more.
const FLOAT_TAG: &str = "$float";

impl Value {
    /// What kind of value this is, for messages: "an integer", "a list", …
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The text, if this is a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, if this is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(int) => Some(*int),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries, if this is a table.
    pub fn as_table(&self) -> Option<&BTreeMap<String, Value>> {
        match self {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }
}

/// As a person would write it in TOML.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(i) => write!(f, "{i}"),
            Value::Float(x) if x.is_finite() => write!(f, "{x:?}"),
            Value::Float(x) if x.is_nan() => f.write_str("nan"),
            Value::Float(x) => f.write_str(if *x > 0.0 { "inf" } else { "-inf" }),
            // JSON's escapes are a subset of TOML's.
            Value::Text(text) => f.write_str(&serde_json::Value::from(text.as_str()).to_string()),
            Value::List(items) => {
                f.write_str("[")?;
                for (n, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if n == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Table(entries) => {
                f.write_str("{")?;
                for (n, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key} = {value}", if n == 0 { " " } else { ", " })?;
                }
                f.write_str(" }")
            }
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Bool(b) => serializer.serialize_bool(*b),
            Value::Int(i) => serializer.serialize_i64(*i),
            Value::Float(x) if x.is_finite() => serializer.serialize_f64(*x),
            Value::Float(_) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(FLOAT_TAG, &self.to_string())?;
                map.end()
            }
            Value::Text(text) => serializer.serialize_str(text),
            Value::List(items) => serializer.collect_seq(items),
            Value::Table(entries) => serializer.collect_map(entries.iter().map(|(key, value)| {
                let escape = if key.starts_with('$') { "$" } else { "" };
                (format!("{escape}{key}"), value)
            })),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_json(serde_json::Value::deserialize(deserializer)?)
            .ok_or_else(|| serde::de::Error::custom("not a parameter value"))
    }
}

fn from_json(json: serde_json::Value) -> Option<Value> {
    Some(match json {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(b) => Value::Bool(b),
        serde_json::Value::Number(n) => match n.as_i64() {
            Some(i) => Value::Int(i),
            None => Value::Float(n.as_f64()?),
        },
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(items) => {
            Value::List(items.into_iter().map(from_json).collect::<Option<_>>()?)
        }
        serde_json::Value::Object(entries) => {
            if let (1, Some(tagged)) = (entries.len(), entries.get(FLOAT_TAG)) {
                return Some(Value::Float(tagged.as_str()?.parse().ok()?));
            }
            let entries = entries.into_iter();
            Value::Table(
                entries
                    .map(|(key, value)| {
                        let plain = key.strip_prefix('$').unwrap_or(&key).to_owned();
                        Some((plain, from_json(value)?))
                    })
                    .collect::<Option<_>>()?,
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_reads_back_equal() {
        let value = Value::List(vec![
            Value::Int(1),
            Value::Float(1.0),
            Value::Float(f64::NEG_INFINITY),
            Value::Text("a \"b\"\n".into()),
            Value::Table([("k".to_owned(), Value::Bool(true))].into()),
            Value::Table([("$float".to_owned(), Value::Text("-inf".into()))].into()),
        ]);
        let json = serde_json::to_string(&value).unwrap();
        assert_eq!(
            json,
            r#"[1,1.0,{"$float":"-inf"},"a \"b\"\n",{"k":true},{"$$float":"-inf"}]"#
        );
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
    }
}
