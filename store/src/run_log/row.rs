//! Whether one execution's rows are still what the log sealed: cheap enough to ask of every result
//! that is shown or taken from the cache. The whole log is for [`super::check`].
//!
//! The record is put together from the columns as they are, without reading the JSON in them, which
//! was written by the code that seals it. Only where that does not fit is the JSON read.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;

use super::contents::execution;
use super::entry::{EntryKind, seal};
use super::fault::{Beginning, changed, unlogged_execution};
use crate::digest::Digest;
use crate::error::Error;
use crate::records::rows::{Environments, inputs, one_execution, outputs, work};
use crate::records::time::duration;
use crate::records::{Found, InputUsed, Output, Work};
use crate::store::Store;

/// What a look needs of an execution and of its entry in the log.
macro_rules! columns {
    () => {
        "SELECT x.run, x.instance, x.key, x.key_json, x.started, x.wall, x.cpu, x.peak_memory,
             x.work, x.message, x.log, x.defaults, x.determinism, x.raw, x.sandbox, x.ok,
             l.content, l.seal,
             (SELECT seal FROM log WHERE id < l.id ORDER BY id DESC LIMIT 1), x.environment, x.id, x.resumed,
             x.signer
         FROM executions x
         LEFT JOIN log l ON l.id =
             (SELECT max(id) FROM log WHERE row = x.id AND what = 'execution') "
    };
}

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
    match look(rows, id) {
        Ok(Some(looked)) => looked.fault(rows),
        Ok(None) => Ok(Some(format!(
            "execution {id} was removed after it was recorded"
        ))),
        // A row that cannot be read is not what was sealed.
        Err(error) if is_of_the_row(&error) => Ok(Some(changed("execution", id))),
        Err(error) => Err(error),
    }
}

/// The newest successful execution of a key, with what was changed of it. A row that cannot be read
/// is an error: [`altered`] says of what.
pub(crate) fn newest(rows: &Connection, key: &Digest) -> rusqlite::Result<Option<Found>> {
    let found = rows
        .prepare_cached(concat!(
            columns!(),
            "WHERE x.id = (SELECT max(id) FROM executions WHERE key = ?1 AND ok = 1)"
        ))?
        .query_row([key], |row| Looked::of(rows, row))
        .optional()?;
    found.map(|looked| looked.found(rows)).transpose()
}

/// The same of one execution.
pub(crate) fn one(rows: &Connection, id: i64) -> rusqlite::Result<Option<Found>> {
    let found = look(rows, id)?;
    found.map(|looked| looked.found(rows)).transpose()
}

fn look(rows: &Connection, id: i64) -> rusqlite::Result<Option<Looked>> {
    rows.prepare_cached(concat!(columns!(), "WHERE x.id = ?1"))?
        .query_row([id], |row| Looked::of(rows, row))
        .optional()
}

/// What a look at an execution and its entry found.
struct Looked {
    execution: i64,
    run: i64,
    instance: String,
    wall: Duration,
    work: Work,
    outputs: Vec<Output>,
    taken: bool,
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
    fn of(rows: &Connection, row: &Row<'_>) -> rusqlite::Result<Looked> {
        let id: i64 = row.get(20)?;
        let failed = row.get_ref(9)? != ValueRef::Null;
        let sealed = match row.get::<_, Option<Digest>>(16)? {
            None => None,
            Some(content) => Some(Sealed {
                content,
                fits: seal(row.get(18)?, EntryKind::Execution.name(), id, content)
                    == row.get(17)?,
            }),
        };
        let outputs = outputs(rows, id)?;
        Ok(Looked {
            execution: id,
            run: row.get(0)?,
            instance: row.get(1)?,
            wall: duration(row.get(5)?),
            work: work(row, 8)?,
            taken: row.get_ref(22)? != ValueRef::Null,
            consistent: row.get::<_, i64>(15)? == i64::from(!failed),
            now: content(row, &inputs(rows, id)?, &outputs)?,
            outputs,
            sealed,
        })
    }

    fn fault(&self, rows: &Connection) -> rusqlite::Result<Option<String>> {
        let id = self.execution;
        Ok(match &self.sealed {
            Some(sealed) if !sealed.fits => Some(format!(
                "the log's entry about execution {id} does not match the previous one"
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

    fn found(self, rows: &Connection) -> rusqlite::Result<Found> {
        Ok(Found {
            altered: self.fault(rows)?,
            execution: self.execution,
            outputs: self.outputs,
            wall: self.wall,
            work: self.work,
            taken: self.taken,
        })
    }
}

/// The digest that [`execution`] gives, by the columns alone.
fn content(row: &Row<'_>, inputs: &[InputUsed], outputs: &[Output]) -> rusqlite::Result<Digest> {
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
    if row.get_ref(21)? != ValueRef::Null {
        record.extend_from_slice(b",\"resumed\":");
        number(record, 21)?;
    }
    if row.get_ref(22)? != ValueRef::Null {
        record.extend_from_slice(b",\"signer\":");
        text(record, 22)?;
    }
    record.extend_from_slice(b"}],");
    json(record, &(inputs, outputs));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::execution::{begin, finished, key, reads};
    use crate::tests::tiny;
    use crate::{Facts, RawFile, Value};

    /// The columns alone give what was sealed, whatever stands in them: reading their JSON would
    /// cost more than the look-up.
    #[test]
    fn what_was_sealed_is_found_without_reading_json() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let run = begin(&store);
        let odd = "a \"b\" \\ \n \u{1} ü \u{2028} 🦀";
        let mut full = key("sql", 1);
        full.params = [
            ("text".to_owned(), Value::Text(odd.into())),
            ("nan".to_owned(), Value::Float(f64::NAN)),
            ("inf".to_owned(), Value::Float(f64::NEG_INFINITY)),
            ("large".to_owned(), Value::Float(1e300)),
            ("small".to_owned(), Value::Float(-0.0)),
            ("third".to_owned(), Value::Float(1.0 / 3.0)),
            ("$key".to_owned(), Value::Int(i64::MIN)),
            ("list".to_owned(), Value::List(vec![Value::Bool(true)])),
        ]
        .into();
        let mut one = finished(run, odd, full, store.put(&tiny(1)).unwrap());
        one.log = odd.into();
        one.environment = Some(std::sync::Arc::default());
        one.work = [(odd.to_owned(), u64::MAX >> 1)].into();
        let mut read = reads(odd, odd, crate::Digest::of(b"x"));
        read.axes = Some("[[\"a\"],[1]]".into());
        one.inputs = vec![read, reads("t", "a", crate::Digest::of(b"y"))];
        one.facts = Facts {
            defaults: Some(vec![odd.into()]),
            determinism: Some("bit-identical".into()),
            raw: vec![RawFile {
                name: odd.into(),
                checksum: "sha256:0".into(),
                bytes: 7,
            }],
            sandbox: Some(odd.into()),
            resumed: Some(3),
            signer: Some(odd.into()),
            ..Facts::default()
        };
        let mut failed = finished(run, "f", key("sql", 2), store.put(&tiny(2)).unwrap());
        failed.outcome = Err(odd.into());
        (failed.cpu, failed.peak_memory) = (None, None);
        let plain = finished(run, "p", key("sql", 3), store.put(&tiny(3)).unwrap());
        store.commit(vec![one, failed, plain], &[]).unwrap();
        let found = store.query("look at", |rows| {
            (1..=3)
                .map(|id| look(rows, id))
                .collect::<Result<Vec<_>, _>>()
        });
        for looked in found.unwrap().into_iter().flatten() {
            let sealed = looked.sealed.expect("it is in the log");
            assert_eq!(looked.now, sealed.content, "{}", looked.instance);
            assert!(sealed.fits && looked.consistent);
        }
        assert!(store.unsealed(1..=3).unwrap().is_empty());
        assert_eq!(
            store.unsealed([4]).unwrap().len(),
            1,
            "there is no such execution"
        );
    }
}
