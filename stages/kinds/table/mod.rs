//! `table`: rows written in the pipeline file.
//!
//! The types of columns are found in the values; [`columns`] does that, and this file
//! describes the kind. Knows nothing of TOML.

mod columns;

use std::collections::BTreeSet;

use arrow::record_batch::RecordBatch;
use store::{Params, Value};

use crate::contract::description::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::contract::expected::{Expected, ExpectedInputs, ExpectedOutputs, Mismatch};
use crate::contract::role::Role;
use crate::{Failure, Outputs, ParamError, Stage, Task};

/// The kind `table`.
pub struct Table;

static DESCRIPTION: Description = Description {
    kind: "table",
    summary: "A table whose rows are written in the pipeline file.",
    params: &[
        Param {
            name: "rows",
            ty: Type::Rows,
            presence: Presence::Required,
            help: "The rows; a column that a row lacks is null there.",
            ..Param::PLAIN
        },
        Param {
            name: "columns",
            ty: Type::Texts,
            presence: Presence::Optional,
            help: "The columns, in order; default: all, in alphabetical order.",
            ..Param::PLAIN
        },
    ],
    seeded: false,
    role: Role::Typed,
};

impl Stage for Table {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, _: &Params) -> Ports {
        Ports {
            inputs: Inputs::Named(Vec::new()),
            outputs: vec![Port::table("rows")],
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        build(params).map(drop)
    }

    fn expect(&self, params: &Params, _: &ExpectedInputs<'_>) -> Result<ExpectedOutputs, Mismatch> {
        let list = |name: &str| {
            params
                .get(name)
                .and_then(Value::as_list)
                .unwrap_or_default()
        };
        let rows = || list("rows").iter().filter_map(Value::as_table);
        let mut columns: BTreeSet<&str> =
            list("columns").iter().filter_map(Value::as_text).collect();
        if columns.is_empty() {
            columns = rows()
                .flat_map(|row| row.keys())
                .map(String::as_str)
                .collect();
        }
        let splits = rows().filter_map(|row| row.get("split")?.as_text());
        let splits: BTreeSet<&str> = splits.collect();
        let names = |set: &BTreeSet<&str>| set.iter().map(|name| (*name).to_owned()).collect();
        Ok(vec![Expected {
            splits: columns.contains("split").then(|| names(&splits)),
            columns: Some(names(&columns)),
            ..Expected::default()
        }])
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let table = build(task.params).map_err(|e| Failure {
            help: e.help,
            ..Failure::new(e.message).at(e.param)
        })?;
        Ok([("rows".to_owned(), table)].into())
    }
}

fn build(params: &Params) -> Result<RecordBatch, ParamError> {
    let list = |name: &str| params.get(name).and_then(Value::as_list);
    let rows: Vec<_> = list("rows")
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_table)
        .collect();
    let chosen = list("columns").map(|names| names.iter().filter_map(Value::as_text).collect());
    columns::build(&rows, chosen)
}
