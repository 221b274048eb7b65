//! What the store remembers, as tables for queries and for other programs: their names and columns are promised, those
//! of the database are not. Times are UTC as text, durations are seconds, digests are hexadecimal.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use rusqlite::Connection;

use crate::error::Error;
use crate::store::Store;

/// A table of the record.
pub struct ProvenanceTable {
    /// What it is called.
    pub name: &'static str,
    /// A row of it.
    pub about: &'static str,
    /// Its columns, in order.
    pub columns: &'static [ProvenanceColumn],
    query: &'static str,
}

/// A column of such a table.
pub struct ProvenanceColumn {
    /// What it is called.
    pub name: &'static str,
    /// What it holds.
    pub about: &'static str,
    kind: Kind,
}

impl ProvenanceColumn {
    /// Its type, as documentation writes it.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Text => "string",
            Kind::Int => "int64",
            Kind::Float => "float64",
            Kind::Bool => "bool",
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Int,
    Float,
    Bool,
}

const fn text(name: &'static str, about: &'static str) -> ProvenanceColumn {
    let kind = Kind::Text;
    ProvenanceColumn { name, about, kind }
}

const fn int(name: &'static str, about: &'static str) -> ProvenanceColumn {
    let kind = Kind::Int;
    ProvenanceColumn { name, about, kind }
}

const fn float(name: &'static str, about: &'static str) -> ProvenanceColumn {
    let kind = Kind::Float;
    ProvenanceColumn { name, about, kind }
}

const fn boolean(name: &'static str, about: &'static str) -> ProvenanceColumn {
    let kind = Kind::Bool;
    ProvenanceColumn { name, about, kind }
}

/// The tables, in the order in which one would join them.
pub const PROVENANCE: &[ProvenanceTable] = &[
    ProvenanceTable {
        name: "runs",
        about: "A run of a pipeline.",
        columns: &[
            int("id", "Its number, as `ablate runs` shows it."),
            text("started", "When it began."),
            text(
                "ended",
                "When it ended; null while it runs, or if its process died.",
            ),
            text("outcome", "`ok`, `failed` or `interrupted`."),
            text("pipeline", "The name of the pipeline."),
            text("file", "The pipeline file."),
            text("profile", "The profile, if there was one."),
            text("settings", "What `--set` changed, as JSON."),
            text("targets", "The stages that were asked for, as JSON."),
            text("git_commit", "The commit of the pipeline's folder."),
            boolean("git_dirty", "Whether files differed from the commit."),
            text("ablate", "The version of the program."),
            text("rustc", "The compiler it was built with."),
            text("host", "The machine that it was started on."),
            text("os", "Its operating system."),
            text("cpu_model", "Its processor."),
            int("threads", "Its threads."),
        ],
        query: "SELECT r.id, strftime('%Y-%m-%dT%H:%M:%fZ', r.started / 1e6, 'unixepoch'), \
                strftime('%Y-%m-%dT%H:%M:%fZ', r.ended / 1e6, 'unixepoch'), r.outcome, r.pipeline, r.file, r.profile, \
                r.settings, r.targets, e.git_commit, e.git_dirty, e.ablate, e.rustc, e.host, e.os, e.cpu_model, e.threads \
                FROM runs r JOIN environments e ON e.id = r.environment ORDER BY r.id",
    },
    ProvenanceTable {
        name: "executions",
        about: "An execution of a stage instance. A run that finds a result in the store executes nothing: `uses`.",
        columns: &[
            int("id", "Its number."),
            int("run", "The run that executed it."),
            text("instance", "`stage[axis=value]`"),
            text("kind", "The kind of the stage."),
            text("key", "The digest of what decides the result."),
            text(
                "key_json",
                "All of that: kind, code, parameters, seed, inputs.",
            ),
            text("code", "The digest of the code."),
            text("seed", "The seed, if the stage draws random numbers."),
            text("started", "When it began."),
            float("seconds", "How long it took."),
            float("cpu_seconds", "The processor time of it."),
            int("peak_memory", "The most memory at once, in bytes."),
            boolean("ok", "Whether it succeeded."),
            text("message", "Why it failed."),
            text("determinism", "What the kind promises of its bytes."),
            text("work", "What it counted, as JSON."),
            int(
                "resumed",
                "How often it went on from a checkpoint; null: never.",
            ),
            text("signer", "Who signed the result, if it came from a remote."),
            text("host", "Where it ran; null: where its run was started."),
        ],
        query: "SELECT x.id, x.run, x.instance, x.kind, x.key, x.key_json, c.digest, x.seed, \
                strftime('%Y-%m-%dT%H:%M:%fZ', x.started / 1e6, 'unixepoch'), x.wall / 1e6, x.cpu / 1e6, x.peak_memory, x.ok, \
                x.message, x.determinism, x.work, x.resumed, x.signer, e.host \
                FROM executions x JOIN codes c ON c.id = x.code LEFT JOIN environments e ON e.digest = x.environment \
                ORDER BY x.id",
    },
    ProvenanceTable {
        name: "uses",
        about: "What became of a stage instance in a run.",
        columns: &[
            int("run", "The run."),
            text("instance", "`stage[axis=value]`"),
            text(
                "status",
                "`ran`, `hit` (it was stored already), `failed` or `skipped`.",
            ),
            text("key", "The digest of what decides the result."),
            int("execution", "The execution whose result it has."),
            float("seconds", "How long it took in this run."),
        ],
        query: "SELECT run, instance, status, key, execution, wall / 1e6 FROM uses ORDER BY run, instance",
    },
    ProvenanceTable {
        name: "inputs",
        about: "A table that an execution read.",
        columns: &[
            int("execution", "The execution."),
            text("port", "The name of the input."),
            int("ordinal", "Its place among those of this input, from 0."),
            text("axes", "The axis values of its producer, as JSON."),
            text("producer", "The stage instance that made it."),
            text("digest", "The digest of its bytes."),
        ],
        query: "SELECT execution, port, ordinal, axes, producer, digest FROM inputs ORDER BY execution, port, ordinal",
    },
    ProvenanceTable {
        name: "outputs",
        about: "A table that an execution made.",
        columns: &[
            int("execution", "The execution."),
            int("ordinal", "Its place among the outputs, from 0."),
            text("name", "The name of the output."),
            text(
                "digest",
                "The digest of its bytes, and the name of its file.",
            ),
            int("rows", "How many rows it has."),
            int("bytes", "The size of its file."),
            text("columns", "Its columns with their types."),
        ],
        query: "SELECT execution, ordinal, name, digest, row_count, bytes, columns FROM outputs ORDER BY execution, ordinal",
    },
    ProvenanceTable {
        name: "tags",
        about: "A name that somebody gave to a run.",
        columns: &[text("name", "The name."), int("run", "The run.")],
        query: "SELECT name, run FROM tags ORDER BY name",
    },
];

impl Store {
    /// All rows of one of the [`PROVENANCE`] tables.
    pub fn provenance(&self, table: &ProvenanceTable) -> Result<RecordBatch, Error> {
        self.query("read the record in", |rows| read(rows, table))
    }
}

fn read(rows: &Connection, table: &ProvenanceTable) -> rusqlite::Result<RecordBatch> {
    let fields = table.columns.iter().map(|column| {
        let ty = match column.kind {
            Kind::Text => DataType::Utf8,
            Kind::Int => DataType::Int64,
            Kind::Float => DataType::Float64,
            Kind::Bool => DataType::Boolean,
        };
        Field::new(column.name, ty, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut statement = rows.prepare_cached(table.query)?;
    let mut columns = Vec::with_capacity(table.columns.len());
    for (at, column) in table.columns.iter().enumerate() {
        columns.push(cells(&mut statement, at, column.kind)?);
    }
    Ok(RecordBatch::try_new(schema, columns).expect("columns of one length"))
}

/// One column: the query runs once for each, which keeps types simple.
fn cells(
    statement: &mut rusqlite::Statement<'_>,
    at: usize,
    kind: Kind,
) -> rusqlite::Result<ArrayRef> {
    fn column<T: rusqlite::types::FromSql>(
        statement: &mut rusqlite::Statement<'_>,
        at: usize,
    ) -> rusqlite::Result<Vec<Option<T>>> {
        statement.query_map([], |row| row.get(at))?.collect()
    }
    Ok(match kind {
        Kind::Text => Arc::new(StringArray::from(column::<String>(statement, at)?)),
        Kind::Int => Arc::new(Int64Array::from(column::<i64>(statement, at)?)),
        Kind::Float => Arc::new(Float64Array::from(column::<f64>(statement, at)?)),
        Kind::Bool => Arc::new(BooleanArray::from(column::<bool>(statement, at)?)),
    })
}
