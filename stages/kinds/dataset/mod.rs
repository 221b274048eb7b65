//! `dataset`: a named data set, a set made from a seed, or a user's own file, as one table.
//!
//! [`catalogue`] says what there is, [`fetch`] gets the files, [`load`] reads them, [`draw`]
//! chooses rows. What is read is fixed by digests; only its location comes from outside.

mod archive;
mod catalogue;
mod check;
mod draw;
mod fetch;
mod load;
mod own;
mod synthetic;
mod table;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::Int64Type;
use rayon::prelude::*;
use store::{Digest, Params, Value};

use crate::contract::description::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::contract::expected::{ExpectedInputs, ExpectedOutputs, Mismatch};
use crate::contract::role::Role;
use crate::fingerprint;
use crate::fingerprint::Code;
use crate::{Failure, Outputs, ParamError, Stage, Task};

pub use catalogue::{File, Form, Schema, Set, Split, all, find};
pub use fetch::{check as check_file, fetch, place};
pub use synthetic::{SYNTHETIC, Synthetic};

use check::Origin;

/// Where the generators of synthetic data sets lie.
const GENERATORS: &str = "stages/kinds/dataset/synthetic/";

/// Where the entries of the catalogue lie.
const CATALOGUE: &str = "stages/kinds/dataset/catalogue/";

/// The kind `dataset`.
pub struct Dataset;

static DESCRIPTION: Description = Description {
    kind: "dataset",
    summary: "A data set: named, synthetic, or your own file.",
    params: &[
        Param {
            name: "name",
            ty: Type::Text,
            presence: Presence::Optional,
            help: "The name of a data set: see `ablate data list`.",
            ..Param::PLAIN
        },
        Param {
            name: "source",
            ty: Type::Table,
            presence: Presence::Optional,
            help: "Your own file instead: { csv = \"file.csv\", text = \"review\", label = \"stars\" }.",
            ..Param::PLAIN
        },
        Param {
            name: "encoding",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text("utf-8".into())),
            help: "The encoding of your own file: utf-8, utf-8-lossy, latin-1 or windows-1252.",
            ..Param::PLAIN
        },
        Param {
            name: "generate",
            ty: Type::Table,
            presence: Presence::Optional,
            help: "Options of a synthetic data set, such as { train = 2000 }.",
            ..Param::PLAIN
        },
        Param {
            name: "split",
            ty: Type::Rows,
            presence: Presence::Default(|| Value::List(Vec::new())),
            help: "Rows to move between splits: [{ of = \"train\", into = \"dev\", share = 0.1 }].",
            ..Param::PLAIN
        },
        Param {
            name: "splits",
            ty: Type::Texts,
            presence: Presence::Default(|| Value::List(Vec::new())),
            help: "Keep only these splits; default: all.",
            ..Param::PLAIN
        },
        Param {
            name: "balance",
            ty: Type::Bool,
            presence: Presence::Default(|| Value::Bool(false)),
            help: "Whether every class of a split is cut to the size of the smallest.",
            ..Param::PLAIN
        },
        Param {
            name: "sample",
            ty: Type::Table,
            presence: Presence::Default(|| Value::Table(BTreeMap::new())),
            help: "Maximum number of rows of a split, drawn by seed and id: { train = 1000, test = 500 }.",
            ..Param::PLAIN
        },
    ],
    seeded: true,
    role: Role::Data,
};

impl Stage for Dataset {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, params: &Params) -> Ports {
        let mut outputs = vec![Port::table("rows")];
        // Only sets with classes can name them.
        if check::origin(params).map_or(true, |origin| origin.labelled()) {
            outputs.push(Port::table("labels"));
        }
        Ports {
            inputs: Inputs::Named(Vec::new()),
            outputs,
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        check::params(params)
    }

    fn expect(&self, params: &Params, _: &ExpectedInputs<'_>) -> Result<ExpectedOutputs, Mismatch> {
        Ok(check::expected(params).into_iter().collect())
    }

    fn files<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        match check::origin(params) {
            Ok(Origin::Own(source)) => vec![("source", source.file)],
            _ => Vec::new(),
        }
    }

    /// The entry of the chosen set counts, with the digests of its files and rows; the others'
    /// do not. Nor does how files are fetched: they are checked before they are read.
    fn code(&self, params: &Params, _: &ExpectedInputs<'_>) -> Code {
        let (entry, generator) = match check::origin(params) {
            Ok(Origin::Named(set)) => (Some(format!("{CATALOGUE}{}.toml", set.name)), None),
            Ok(Origin::Made(set, _)) => (None, Some(set.file)),
            _ => (None, None),
        };
        fingerprint::narrowed(DESCRIPTION.kind, generator.as_slice(), |file| {
            let folder = |file: &str| file.rsplit_once('/').map(|(folder, _)| folder.to_owned());
            let other = file.starts_with(CATALOGUE) && entry.as_deref() != Some(file);
            // What lies beside a generator is its own, such as the words of a grammar.
            let words = file.starts_with(GENERATORS) && !file.ends_with(".rs");
            let beside = generator.is_some_and(|generator| folder(generator) == folder(file));
            !other && (!words || beside) && !file.starts_with("stages/kinds/dataset/fetch/")
        })
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let wrong = |error: ParamError| Failure {
            help: error.help,
            ..Failure::new(error.message).at(error.param)
        };
        let origin = check::origin(task.params).map_err(wrong)?;
        let plan = check::plan(task.params).map_err(wrong)?;
        let (whole, names) = match &origin {
            Origin::Made(set, options) => {
                let names = set.labels.iter().map(|name| (*name).to_owned()).collect();
                ((set.make)(options, task.seed), names)
            }
            Origin::Named(set) => (named(set, &plan, task)?, set.labels.clone()),
            Origin::Own(source) => {
                let file = task.files.get(source.file);
                let file = file
                    .ok_or_else(|| Failure::new(format!("`{}` was not declared", source.file)))?;
                own::load(source, file, check::encoding(task.params))?
            }
        };
        let rows = choose(&whole, &plan, task.seed)?;
        let mut outputs = Outputs::from([("rows".to_owned(), rows)]);
        if origin.labelled() {
            outputs.insert("labels".to_owned(), table::labels(&names));
        }
        Ok(outputs)
    }
}

/// The rows of a catalogued set, which must be the pinned ones.
fn named(set: &Set, plan: &draw::Plan, task: &Task<'_>) -> Result<RecordBatch, Failure> {
    // Splits that only a later move makes are not in any file.
    let splits: Vec<String> = match plan.moves.is_empty() {
        true => plan.splits.clone(),
        false => Vec::new(),
    };
    let (form, files) = fetch::open(task.data, set, &splits, task.watch)?;
    let load = load::find(&form.loader)
        .ok_or_else(|| Failure::new(format!("no loader `{}`", form.loader)))?;
    let rows = load(files)?;
    let wanted: Vec<&Split> = set
        .split
        .iter()
        .filter(|split| splits.is_empty() || splits.contains(&split.name))
        .collect();
    let found: Vec<(usize, Digest)> = wanted
        .par_iter()
        .map(|split| {
            let count = table::rows_of(&rows, &split.name).len();
            Ok((count, table::content(&rows, &split.name)?))
        })
        .collect::<Result<_, Failure>>()?;
    for (split, (found, content)) in wanted.into_iter().zip(found) {
        let pinned = split.content.unwrap_or(content);
        if (found, content) != (split.rows, pinned) {
            return Err(Failure::new(format!(
                "`{}` from {} does not match the rows pinned in the catalogue for {}: {found} rows with digest {content}, expected {} with {pinned}",
                set.name, form.loader, split.name, split.rows
            ))
            .help("the files have the right checksums, so this is a bug in the loader: please report it"));
        }
    }
    Ok(rows)
}

/// The rows that the plan keeps, with the splits that it gives them.
fn choose(whole: &RecordBatch, plan: &draw::Plan, seed: u64) -> Result<RecordBatch, Failure> {
    if *plan == draw::Plan::default() {
        return Ok(whole.clone());
    }
    let ids = whole.column_by_name("id").or(whole.column_by_name("word"));
    let ids = ids
        .expect("every schema has ids or words")
        .as_string::<i32>();
    let splits = whole
        .column_by_name("split")
        .map(|column| column.as_string::<i32>());
    let labels = whole
        .column_by_name("label")
        .map(|column| column.as_primitive::<Int64Type>());
    let label = |labels: &Int64Array, n: usize| labels.is_valid(n).then(|| labels.value(n));
    let rows: Vec<draw::Row> = (0..whole.num_rows())
        .map(|n| draw::Row {
            id: ids.value(n).to_owned(),
            split: splits.map_or("all", |splits| splits.value(n)).to_owned(),
            label: labels.and_then(|labels| label(labels, n)),
        })
        .collect();
    let drawn = draw::draw(&rows, plan, seed).map_err(|message| {
        let splits: BTreeSet<&str> = rows.iter().map(|row| row.split.as_str()).collect();
        let splits: Vec<&str> = splits.into_iter().take(20).collect();
        Failure::new(message).help(format!("splits before any move: {}", splits.join(", ")))
    })?;
    let indices: UInt64Array = drawn
        .iter()
        .map(|(row, _)| *row as u64)
        .collect::<Vec<_>>()
        .into();
    let taken =
        take_record_batch(whole, &indices).map_err(|error| Failure::new(error.to_string()))?;
    let Ok(place) = taken.schema().index_of("split") else {
        return Ok(taken);
    };
    let mut columns = taken.columns().to_vec();
    let split: StringArray = drawn
        .iter()
        .map(|(_, split)| Some(split.as_str()))
        .collect();
    columns[place] = Arc::new(split) as ArrayRef;
    RecordBatch::try_new(taken.schema(), columns).map_err(|error| Failure::new(error.to_string()))
}
