//! Whether one execution's rows are still what the log sealed: cheap enough to ask of every result
//! that is shown or taken from the cache. The whole log is for [`super::check`].
//!
//! The record is put together from the columns as they are, without reading the JSON in them, which
//! was written by the code that seals it. Only where that does not fit is the JSON read.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;

use super::check::{Beginning, changed, unlogged_execution};
use super::{What, execution, seal};
use crate::history::{Environments, inputs, one_execution, outputs};
use crate::{Digest, Error, Store};

impl Store {
    /// Those of these executions that are not as the log sealed them, with what was changed.
    pub fn unsealed(
        &self,
        executions: impl IntoIterator<Item = i64>,
    ) -> Result<BTreeMap<i64, String>, Error> {
        self.query("check the log in", |rows| {
            let mut found = BTreeMap::new();
            for id in executions {
                found.extend(altered(rows, id)?.map(|why| (id, why)));
            }
            Ok(found)
        })
    }
}

/// What was changed of an execution after it was recorded, if anything.
pub(crate) fn altered(rows: &Connection, id: i64) -> rusqlite::Result<Option<String>> {
    let known = rows
        .prepare_cached(
            "SELECT x.run, x.instance, x.key, x.key_json, x.started, x.wall, x.cpu, x.peak_memory,
                 x.work, x.message, x.log, x.defaults, x.determinism, x.raw, x.sandbox, x.ok,
                 l.content, l.seal,
                 (SELECT seal FROM log WHERE id < l.id ORDER BY id DESC LIMIT 1), x.environment
             FROM executions x
             LEFT JOIN log l ON l.id =
                 (SELECT max(id) FROM log WHERE row = x.id AND what = 'execution')
             WHERE x.id = ?1",
        )?
        .query_row([id], |row| Looked::of(rows, id, row))
        .optional();
    Ok(match known {
        Ok(Some(looked)) => looked.fault(rows, id)?,
        Ok(None) => Some(format!("execution {id} was removed after it was recorded")),
        // A row that cannot be read is not what was sealed.
        Err(error) if is_of_the_row(&error) => Some(changed("execution", id)),
        Err(error) => return Err(error),
    })
}

/// What a look at an execution and its entry found.
struct Looked {
    run: i64,
    instance: String,
    /// Whether the flag that look-ups go by is what the message says.
    consistent: bool,
    now: Digest,
    sealed: Option<Sealed>,
}

/// The entry about an execution.
struct Sealed {
    content: Digest,
    /// Whether its own seal is that of its content and the entry before.
    fits: bool,
}

impl Looked {
    fn of(rows: &Connection, id: i64, row: &Row<'_>) -> rusqlite::Result<Looked> {
        let failed = row.get_ref(9)? != ValueRef::Null;
        let sealed = match row.get::<_, Option<Digest>>(16)? {
            None => None,
            Some(content) => Some(Sealed {
                content,
                fits: seal(row.get(18)?, What::Execution.name(), id, content) == row.get(17)?,
            }),
        };
        Ok(Looked {
            run: row.get(0)?,
            instance: row.get(1)?,
            consistent: row.get::<_, i64>(15)? == i64::from(!failed),
            now: content(rows, id, row)?,
            sealed,
        })
    }

    fn fault(&self, rows: &Connection, id: i64) -> rusqlite::Result<Option<String>> {
        Ok(match &self.sealed {
            Some(sealed) if !sealed.fits => Some(format!(
                "the log's entry about execution {id} does not fit the one before"
            )),
            Some(_) if !self.consistent => Some(changed("execution", id)),
            Some(sealed) if sealed.content == self.now => None,
            // The columns were read as text; only the record itself can say that they mean the same.
            Some(sealed) => match one_execution(rows, id, &mut Environments::new()) {
                Ok(Some(it)) if execution(&it) == sealed.content => None,
                _ => Some(changed("execution", id)),
            },
            None if Beginning::of(rows)?.is_older(self.run) => None,
            None => Some(unlogged_execution(id, &self.instance)),
        })
    }
}

/// The digest that [`super::execution`] gives, by the columns alone.
fn content(rows: &Connection, id: i64, row: &Row<'_>) -> rusqlite::Result<Digest> {
    let mut record = Vec::with_capacity(2048);
    let text = |record: &mut Vec<u8>, column: usize| -> rusqlite::Result<()> {
        match row.get_ref(column)? {
            ValueRef::Null => record.extend_from_slice(b"null"),
            value => json(record, value.as_str()?),
        }
        Ok(())
    };
    let number = |record: &mut Vec<u8>, column: usize| -> rusqlite::Result<()> {
        json(record, &row.get::<_, Option<i64>>(column)?);
        Ok(())
    };
    // A column that holds JSON already.
    let as_is = |record: &mut Vec<u8>, column: usize, none: &str| -> rusqlite::Result<()> {
        match row.get_ref(column)? {
            ValueRef::Null => record.extend_from_slice(none.as_bytes()),
            value => record.extend_from_slice(value.as_str()?.as_bytes()),
        }
        Ok(())
    };
    let record = &mut record;
    record.extend_from_slice(b"[[");
    number(record, 0)?;
    for column in 1..=3 {
        record.push(b',');
        text(record, column)?;
    }
    record.extend_from_slice(b"],[");
    for column in 4..=7 {
        if column > 4 {
            record.push(b',');
        }
        number(record, column)?;
    }
    record.extend_from_slice(b"],[");
    as_is(record, 8, "{}")?;
    record.push(b',');
    text(record, 9)?;
    record.push(b',');
    text(record, 10)?;
    record.extend_from_slice(b",{\"defaults\":");
    as_is(record, 11, "null")?;
    record.extend_from_slice(b",\"determinism\":");
    text(record, 12)?;
    record.extend_from_slice(b",\"raw\":");
    as_is(record, 13, "[]")?;
    record.extend_from_slice(b",\"sandbox\":");
    text(record, 14)?;
    // Older executions have none, and are sealed without.
    if row.get_ref(19)? != ValueRef::Null {
        record.extend_from_slice(b",\"environment\":");
        text(record, 19)?;
    }
    record.extend_from_slice(b"}],");
    json(record, &(inputs(rows, id)?, outputs(rows, id)?));
    record.push(b']');
    Ok(Digest::of(record))
}

fn json(record: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(record, value).expect("plain values");
}

/// Whether an error says that a value is not what it should be, and not that the database fails.
fn is_of_the_row(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..)
    )
}
