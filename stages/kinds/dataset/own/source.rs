//! The parameter `source`: which file, in which format, and which columns mean what.

use std::collections::BTreeMap;

use store::{Digest, Value};

use crate::{Failure, SourceFile};

/// What `source` says.
#[derive(Debug, PartialEq)]
pub struct Source<'a> {
    /// The file, as declared.
    pub file: &'a str,
    pub format: Format,
    pub text: Option<&'a str>,
    pub x: Option<&'a str>,
    pub channels: Option<usize>,
    pub text_b: Option<&'a str>,
    pub label: Option<&'a str>,
    pub id: Option<&'a str>,
    pub split: Option<&'a str>,
}

impl Source<'_> {
    /// Whether rows are signals.
    pub fn signals(&self) -> bool {
        self.x.is_some()
    }

    /// Whether rows are pairs of texts.
    pub fn pairs(&self) -> bool {
        self.text_b.is_some()
    }

    /// Whether a column says which split a row is in.
    pub fn has_splits(&self) -> bool {
        self.split.is_some()
    }

    /// Whether the file is not a text file.
    pub fn binary(&self) -> bool {
        self.format == Format::Parquet
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
/// How the file is written.
pub enum Format {
    Csv,
    Tsv,
    Jsonl,
    Parquet,
}

const FORMATS: [(&str, Format); 4] = [
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("jsonl", Format::Jsonl),
    ("parquet", Format::Parquet),
];
const COLUMNS: [&str; 6] = ["text", "text_b", "x", "label", "id", "split"];

/// The form, for messages.
pub const FORM: &str = "source = { csv = \"file.csv\", text = \"review\", label = \"stars\" }, or tsv, jsonl, parquet; also text_b, id, split; for signals x and channels instead of text";

/// Checks a `source` table.
pub fn parse(table: &BTreeMap<String, Value>) -> Result<Source<'_>, String> {
    let mut files = Vec::new();
    for (key, value) in table {
        if key == "channels" {
            continue;
        }
        let Some(name) = value.as_text() else {
            return Err(format!("`{key}` of `source` must be a string, not {value}"));
        };
        if let Some((_, format)) = FORMATS.iter().find(|(known, _)| known == key) {
            files.push((name, *format));
        } else if !COLUMNS.contains(&key.as_str()) {
            return Err(format!("`source` has no `{key}`"));
        }
    }
    let [(file, format)] = files[..] else {
        return Err(format!("`source` must name one file, not {}", files.len()));
    };
    let column = |name: &str| table.get(name).and_then(Value::as_text);
    let (text, x) = (column("text"), column("x"));
    match (text, x, column("text_b")) {
        (None, None, _) => return Err("`source` does not name the text column".to_owned()),
        (Some(_), Some(_), _) | (_, Some(_), Some(_)) => {
            return Err("`source` names both a text and `x`: rows are texts or signals".to_owned());
        }
        _ => {}
    }
    if x.is_some() && matches!(format, Format::Csv | Format::Tsv) {
        return Err("signals must be in a jsonl or parquet file".to_owned());
    }
    let channels = match table.get("channels") {
        None => None,
        Some(_) if x.is_none() => return Err("`channels` of `source` is for signals".to_owned()),
        Some(value) => match value.as_int().map(usize::try_from) {
            Some(Ok(n @ 1..=1_000_000)) => Some(n),
            _ => {
                return Err(format!(
                    "`channels` of `source` is {value}, not an integer from 1"
                ));
            }
        },
    };
    Ok(Source {
        file,
        format,
        text,
        x,
        channels,
        text_b: column("text_b"),
        label: column("label"),
        id: column("id"),
        split: column("split"),
    })
}

/// Whether the file is still the one that the key was made from.
pub fn same(found: Digest, file: &SourceFile<'_>, source: &Source<'_>) -> Result<(), Failure> {
    match found == file.digest {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{} changed while the pipeline was running",
            source.file
        ))
        .help("run again: the new contents get a new key")
        .at("source")),
    }
}
