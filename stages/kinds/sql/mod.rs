//! `sql`: one query over the input tables, which gives the same bytes every time.
//!
//! polars computes it, held to one thread ([`worker`]) with a plan whose order is pinned
//! ([`order`]), because left alone it adds floats and lists groups in another order on every
//! run. Its integers are made signed and checked for overflow ([`integers`]). [`query`] reads the query before anything runs, [`bridge`] carries tables over and
//! back, [`words`] turns polars' errors into ours.

mod bridge;
mod integers;
mod limits;
mod order;
mod query;
mod refused;
#[cfg(test)]
mod tests;
mod unions;
mod words;
mod worker;

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use polars::prelude::{IntoLazy, LazyFrame, PolarsResult};
use polars::sql::SQLContext;
use store::{Params, Value};
use worker::Gone;

use crate::contract::description::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::contract::determinism::{Determinism, Within, within};
use crate::contract::role::Role;
use crate::isolated;
use crate::isolated::Request;
use crate::tables::inherit::inherit;
use crate::{Failure, Outputs, ParamError, Stage, Task};

/// The kind `sql`.
pub struct Sql;

static DESCRIPTION: Description = Description {
    kind: "sql",
    summary: "A SQL query over its inputs.",
    params: &[Param {
        name: "query",
        ty: Type::Query,
        presence: Presence::Required,
        help: "One SELECT in polars' SQL; the names of the inputs are the names of its tables.",
        ..Param::PLAIN
    }],
    seeded: false,
    role: Role::Query,
};

impl Stage for Sql {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, params: &Params) -> Ports {
        let read = query::parse(text(params)).map(|parsed| parsed.tables);
        let tables = read.unwrap_or_default().into_iter().map(Port::table);
        Ports {
            inputs: Inputs::Any(tables.collect()),
            outputs: vec![Port::table("rows")],
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        query::parse(text(params)).map(drop)
    }

    fn determinism(&self, _: &Params) -> Determinism {
        const ROUNDED: &[Within] = &[within("*", "*", 1e-9)];
        Determinism::Rounding(ROUNDED)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let stopped = || task.watch.stopped();
        let table = query(task.inputs.clone(), text(task.params), stopped)?;
        let (table, line) = inherit("rows", table, &task.inputs);
        line.iter().for_each(|line| task.watch.log(line));
        Ok([("rows".to_owned(), table)].into())
    }
}

/// The tables that a query reads, or what is wrong with its text.
pub fn tables_of(query: &str) -> Result<Vec<String>, ParamError> {
    query::parse(query).map(|parsed| parsed.tables)
}

/// Runs a query over tables by name, with the checks and the order of the kind: in a process of
/// its own, unless it cannot need much memory.
pub fn query(
    tables: BTreeMap<String, RecordBatch>,
    query: &str,
    stopped: impl Fn() -> bool,
) -> Result<RecordBatch, Failure> {
    let parsed = parse(query)?;
    let sizes = tables.values().map(RecordBatch::get_array_memory_size);
    if !(parsed.bounded && sizes.sum::<usize>() <= SMALL) {
        let request = Request::Query(query.to_owned());
        if let Some(answer) = isolated::ask(&request, &tables, &stopped) {
            return answer;
        }
    }
    query_here(tables, query, stopped)
}

/// Tables up to this many bytes are not worth a process, if a query gives no more than it reads.
const SMALL: usize = 16 << 20;

/// The same in this process, whatever memory it takes.
pub fn query_here(
    tables: BTreeMap<String, RecordBatch>,
    query: &str,
    stopped: impl Fn() -> bool,
) -> Result<RecordBatch, Failure> {
    let parsed = parse(query)?;
    let text = query.to_owned();
    let computed = worker::run(move || compute(&tables, &text), stopped);
    let table = computed.map_err(|gone| match gone {
        Gone::Stopped => Failure::stopped(),
        Gone::Panicked(panic) => Failure::new(format!("polars panicked: {panic}"))
            .help("this is a bug in polars: try to write the query another way")
            .at("query"),
    })??;
    match parsed.ordered {
        true => Ok(table),
        false => order::sort_rows(&table),
    }
}

fn parse(query: &str) -> Result<query::Parsed, Failure> {
    query::parse(query).map_err(|e| Failure {
        help: e.help,
        ..Failure::new(e.message).at(e.param)
    })
}

fn text(params: &Params) -> &str {
    params
        .get("query")
        .and_then(Value::as_text)
        .unwrap_or_default()
}

/// Runs the query with polars, on the current thread.
fn compute(inputs: &BTreeMap<String, RecordBatch>, query: &str) -> Result<RecordBatch, Failure> {
    let mut context = SQLContext::new();
    for (name, table) in inputs {
        context.register(name, bridge::to_polars(name, table)?.lazy());
    }
    let result = context.execute(&unions::balanced(query)).and_then(|frame| {
        let frame = LazyFrame::from(integers::widen(&frame.logical_plan));
        frame._collect_post_opt(|root, plan, expressions, _| -> PolarsResult<()> {
            order::pin(plan, expressions);
            integers::check(root, plan, expressions)
        })
    });
    let result = result.map_err(|error| words::explain(&error, inputs))?;
    bridge::to_arrow(result)
}
