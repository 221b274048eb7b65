//! The pipeline file as it was written: a tree of values, each with its place.
//! Knows TOML, and nothing of what the keys mean.

use store::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Sources, Span};

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub raw: Raw,
    /// Its place.
    pub span: Span,
}

/// A value as written. Tables keep the order of the file.
#[derive(Clone, Debug)]
pub enum Raw {
    /// Anything but a list or a table.
    Scalar(Value),
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

/// A table as written.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its entries in the order of the file.
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key was written.
    pub key_span: Span,
    /// The value.
    pub node: Node,
}

impl Table {
    /// The entry of that key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Takes the entry of that key out.
    pub fn take(&mut self, key: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    /// Puts an entry in the place of the one with its key, or at the end.
    pub fn put(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|old| old.key == entry.key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }
}

impl Node {
    /// What kind of value this is, for messages.
    pub fn type_name(&self) -> &'static str {
        match &self.raw {
            Raw::Scalar(value) => value.type_name(),
            Raw::List(_) => "a list",
            Raw::Table(_) => "a table",
        }
    }

    /// The text, if this is a string.
    pub fn as_text(&self) -> Option<&str> {
        match &self.raw {
            Raw::Scalar(value) => value.as_text(),
            _ => None,
        }
    }
}

/// Parses a source as a TOML document.
pub fn parse(sources: &Sources, source: u16) -> Result<Table, Vec<Diagnostic>> {
    let (document, errors) = DeTable::parse_recoverable(sources.text(source));
    let mut problems: Vec<_> = errors
        .iter()
        .map(|error| toml_error(error, source))
        .collect();
    // One slip often makes the parser stumble again right after it.
    problems.truncate(1);
    let table = table(document.into_inner(), source, &mut problems);
    if problems.is_empty() {
        Ok(table)
    } else {
        Err(problems)
    }
}

/// Why a source is not a value.
pub enum NoValue {
    /// It is not TOML, or a date: its text may mean something all the same.
    Text(Diagnostic),
    /// It is TOML, and no parameter can hold it.
    Refused(Diagnostic),
}

/// Parses a source as one TOML value.
pub fn parse_value(sources: &Sources, source: u16) -> Result<Node, NoValue> {
    let value = DeValue::parse(sources.text(source))
        .map_err(|error| NoValue::Text(toml_error(&error, source)))?;
    let refused = match value.get_ref() {
        DeValue::Datetime(_) => NoValue::Text,
        _ => NoValue::Refused,
    };
    let mut problems = Vec::new();
    let node = node(value, source, &mut problems);
    problems
        .pop()
        .map_or(Ok(node), |problem| Err(refused(problem)))
}

fn toml_error(error: &toml::de::Error, source: u16) -> Diagnostic {
    let message = error.message().trim_end().replace('\n', ", ");
    let diagnostic = Diagnostic::new(format!("not valid TOML: {message}"));
    match error.span() {
        Some(range) => diagnostic.at(Span::new(source, range), ""),
        None => diagnostic,
    }
}

fn table(table: DeTable<'_>, source: u16, problems: &mut Vec<Diagnostic>) -> Table {
    let mut entries: Vec<_> = table
        .into_iter()
        .map(|(key, value)| Entry {
            key_span: Span::new(source, key.span()),
            key: key.into_inner().into_owned(),
            node: node(value, source, problems),
        })
        .collect();
    // toml sorts by key; people think in the order in which they wrote.
    entries.sort_by_key(|entry| entry.key_span.start);
    Table { entries }
}

/// Whether a number is still of the size that was written: neither infinite nor 0 unless it says so.
fn keeps_size(written: &str, found: f64) -> bool {
    let digits = written.split(['e', 'E']).next().unwrap_or_default();
    let zero = !digits.contains(|c: char| ('1'..='9').contains(&c));
    (found.is_finite() || written.contains(['i', 'n'])) && (found != 0.0 || zero)
}

fn node(value: Spanned<DeValue<'_>>, source: u16, problems: &mut Vec<Diagnostic>) -> Node {
    let span = Span::new(source, value.span());
    let mut reject = |title: String, help: &str| {
        problems.push(Diagnostic::new(title).at(span, "").help(help));
        Raw::Scalar(Value::Bool(false))
    };
    let raw = match value.into_inner() {
        DeValue::Boolean(b) => Raw::Scalar(Value::Bool(b)),
        DeValue::String(text) => Raw::Scalar(Value::Text(text.into_owned())),
        DeValue::Integer(int) => match i64::from_str_radix(int.as_str(), int.radix()) {
            Ok(int) => Raw::Scalar(Value::Int(int)),
            Err(_) => reject(
                format!("{} does not fit in 64 bits", int.as_str()),
                "write it as a float or a string",
            ),
        },
        DeValue::Float(float) => match float.as_str().parse::<f64>() {
            Ok(found) if !keeps_size(float.as_str(), found) => reject(
                format!(
                    "{} does not fit in a 64-bit float: it would become {}",
                    float.as_str(),
                    Value::Float(found)
                ),
                "magnitudes are between 5e-324 and 1.7976931348623157e308; infinity is `inf`",
            ),
            Ok(float) => Raw::Scalar(Value::Float(float)),
            Err(_) => reject(
                format!("{} is not a number", float.as_str()),
                "write it as a string",
            ),
        },
        DeValue::Datetime(date) => reject(
            format!("dates are not parameter values: {date}"),
            "write it as a string, in quotes",
        ),
        DeValue::Array(items) => Raw::List(
            items
                .into_iter()
                .map(|item| node(item, source, problems))
                .collect(),
        ),
        DeValue::Table(entries) => Raw::Table(table(entries, source, problems)),
    };
    Node { raw, span }
}
