//! A user's whole file as the stage that was written for it will read it: what is wrong with it is said before anything
//! is written, and what is odd about it beside the guess.

use std::path::Path;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use stages::{DataHome, Failure, Place, SourceFile, Stage, Task, Watch};
use store::{Digest, Params};
use toml::Value;

use super::template::Data;

/// Values that people write for a label that they do not have.
const MISSING: [&str; 7] = ["?", "n/a", "na", "nan", "none", "null", "unknown"];

/// A class with fewer rows can be neither learnt nor measured.
const FEW: usize = 10;

/// What the template trains, watches and measures on.
const SPLITS: [&str; 3] = ["train", "dev", "test"];

/// What a file holds.
#[derive(Debug, PartialEq)]
pub struct Whole {
    /// How many rows.
    pub rows: usize,
    /// The classes in the order of their numbers, each with its rows.
    pub classes: Vec<(String, usize)>,
    /// How many rows have no text.
    pub empty: usize,
}

impl Whole {
    /// The share of the commonest class: what a model reaches that always answers it.
    pub fn commonest(&self) -> f64 {
        let most = self.classes.iter().map(|(_, rows)| *rows).max();
        most.unwrap_or_default() as f64 / self.rows.max(1) as f64
    }

    /// The classes with their rows, for people.
    pub fn listed(&self) -> String {
        const SHOWN: usize = 8;
        let each = self.classes.iter().take(SHOWN);
        let mut shown: Vec<String> = each.map(|(name, rows)| format!("{name} {rows}")).collect();
        if self.classes.len() > SHOWN {
            shown.push("…".to_owned());
        }
        shown.join(", ")
    }

    /// The stage with what its file holds.
    pub fn counted(&self, data: Data) -> Data {
        // A control character in a label would end the comment, or the file.
        let listed = self.listed().replace(char::is_control, " ");
        Data {
            columns: format!("{} classes: {listed}", self.classes.len()),
            commonest: self.commonest(),
            ..data
        }
    }

    /// What is odd about it.
    pub fn notes(&self) -> Vec<String> {
        let rows = |rows: usize| crate::amounts::plural(rows, "row");
        let mut notes = Vec::new();
        for (name, count) in &self.classes {
            if MISSING.contains(&name.to_lowercase().as_str()) {
                notes.push(format!(
                    "`{name}` is a class of {}: if it stands for a label that is missing, take these rows out of the file",
                    rows(*count)
                ));
            }
        }
        let few = self.classes.iter().filter(|(_, count)| *count < FEW);
        notes.extend(few.map(|(name, count)| {
            format!(
                "the class `{name}` has {}: too few to learn it, or to measure how well it is known",
                rows(*count)
            )
        }));
        if self.empty > 0 {
            notes.push(format!(
                "{} no text",
                match self.empty {
                    1 => "1 row has".to_owned(),
                    many => format!("{many} rows have"),
                }
            ));
        }
        notes
    }
}

/// Reads a file as its stage will.
pub fn whole(data: &Data, file: &Path) -> Result<Whole, Failure> {
    let kind = stages::find("dataset").expect("a kind of ours");
    let params = params(kind, data)?;
    let digest = Digest::of_file(file).map_err(|error| Failure::new(error.to_string()))?;
    let source = SourceFile {
        path: file,
        digest,
        executable: false,
    };
    let files = kind.files(&params).into_iter();
    let files = files.map(|(_, name)| (name.to_owned(), source)).collect();
    let made = kind.run(&Task {
        inputs: Default::default(),
        params: &params,
        seed: 0,
        files,
        data: &DataHome::nowhere(),
        place: &Place::default(),
        watch: &Nobody,
    })?;
    let rows = &made["rows"];
    let splits = rows["split"].as_string::<i32>();
    for split in SPLITS {
        if !splits.iter().flatten().any(|name| name == split) {
            return Err(
                Failure::new(format!("none of its rows comes to be in `{split}`"))
                    .help("name a file with more rows, or a column of splits: --split COLUMN"),
            );
        }
    }
    Ok(counted(rows, &made["labels"]))
}

/// The parameters that the template writes.
fn params(kind: &dyn Stage, data: &Data) -> Result<Params, Failure> {
    let mut written = format!("source = {}\n", data.source);
    for (name, value) in [("split", &data.split), ("encoding", &data.encoding)] {
        if let Some(value) = value {
            written += &format!("{name} = {value}\n");
        }
    }
    let written: toml::Table = written.parse().expect("what the template writes is TOML");
    let written = written.into_iter();
    let written = written.map(|(name, value)| (name, plain(value))).collect();
    stages::complete(kind, &written).map_err(|error| Failure {
        help: error.help,
        ..Failure::new(error.message)
    })
}

fn plain(value: Value) -> store::Value {
    match value {
        Value::String(text) => store::Value::Text(text),
        Value::Integer(number) => store::Value::Int(number),
        Value::Float(number) => store::Value::Float(number),
        Value::Boolean(flag) => store::Value::Bool(flag),
        Value::Datetime(time) => store::Value::Text(time.to_string()),
        Value::Array(list) => store::Value::List(list.into_iter().map(plain).collect()),
        Value::Table(table) => {
            let each = table.into_iter().map(|(name, value)| (name, plain(value)));
            store::Value::Table(each.collect())
        }
    }
}

fn counted(rows: &RecordBatch, labels: &RecordBatch) -> Whole {
    let names = labels["name"].as_string::<i32>();
    let mut classes: Vec<(String, usize)> = names
        .iter()
        .map(|name| (name.unwrap_or_default().to_owned(), 0))
        .collect();
    for label in rows["label"].as_primitive::<Int64Type>().iter().flatten() {
        classes[label as usize].1 += 1;
    }
    let texts = rows["text"].as_string::<i32>().iter().flatten();
    Whole {
        rows: rows.num_rows(),
        classes,
        empty: texts.filter(|text| text.trim().is_empty()).count(),
    }
}

/// Nothing is run for anybody here.
struct Nobody;

impl Watch for Nobody {
    fn progress(&self, _: u64, _: u64) {}
    fn work(&self, _: &'static str, _: u64) {}
    fn log(&self, _: &str) {}
    fn child(&self, _: stages::Usage) {}
    fn stopped(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_odd_is_said() {
        let whole = Whole {
            rows: 100,
            classes: vec![("NA".into(), 20), ("bad".into(), 79), ("good".into(), 1)],
            empty: 2,
        };
        assert_eq!(whole.commonest(), 0.79);
        assert_eq!(whole.listed(), "NA 20, bad 79, good 1");
        assert_eq!(
            whole.notes(),
            [
                "`NA` is a class of 20 rows: if it stands for a label that is missing, take these rows out of the file",
                "the class `good` has 1 row: too few to learn it, or to measure how well it is known",
                "2 rows have no text",
            ]
        );
    }
}
