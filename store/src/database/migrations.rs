//! The database's format: a list of steps, of which each file remembers how many it has taken.
//! Knows nothing of what the tables mean.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::{At, Error};
use crate::files::disk;

/// Step `n` takes a file from format `n` to format `n + 1`. Steps are only ever added.
const STEPS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
];

/// How long to wait for another process's transaction. They take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens the database for writing, creates it or brings it to the newest format.
/// The caller keeps other processes from doing the same at the same time.
pub(crate) fn open(path: &Path) -> Result<Connection, Error> {
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    migrate(&mut connection, path, STEPS)?;
    // Readers never wait for the writer, nor it for them. The file remembers this mode.
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .at("set up", path)?;
    Ok(connection)
}

/// The same with a rollback journal, for disks on which processes share no memory. Nobody else may have it open.
pub(crate) fn open_rollback(path: &Path) -> Result<Connection, Error> {
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    // Exclusive until the mode is changed: a WAL that was left by a local disk is then read without shared memory.
    for (name, value) in [
        ("locking_mode", "EXCLUSIVE"),
        ("journal_mode", "DELETE"),
        ("locking_mode", "NORMAL"),
        // A rollback journal can be damaged by a power cut unless it is synced.
        ("synchronous", "FULL"),
    ] {
        connection
            .pragma_update(None, name, value)
            .at("set up", path)?;
    }
    // The lock is given back by the next access, and that must be before another connection wants one.
    migrate(&mut connection, path, STEPS)?;
    version(&connection).at("read", path)?;
    Ok(connection)
}

/// Opens another connection to a database that is up to date, to read it.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, Error> {
    let connection = connect(path, OpenFlags::empty())?;
    connection
        .pragma_update(None, "query_only", true)
        .at("set up", path)?;
    Ok(connection)
}

/// Opens a database that may not be written. Its format must be ours: it cannot be upgraded.
pub(crate) fn open_read_only(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let open = |options: &str| {
        // In a URI these three have a meaning.
        let name = path.display().to_string();
        let name = name
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        let connection = Connection::open_with_flags(format!("file:{name}{options}"), flags)?;
        version(&connection).map(|found| (connection, found))
    };
    // Where SQLite cannot make its shared memory, the file is read as one that nobody changes.
    let opened = open("").or_else(|_| open("?immutable=1"));
    let (connection, found) = opened.at("open", path)?;
    let known = STEPS.len() as i64;
    let path = path.to_owned();
    match found.cmp(&known) {
        Ordering::Greater => return Err(Error::NewerSchema { path, found, known }),
        Ordering::Less => return Err(Error::OlderSchema { path, found, known }),
        Ordering::Equal => {}
    }
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn connect(path: &Path, extra: OpenFlags) -> Result<Connection, Error> {
    // No mutex in SQLite: each connection has its own around it.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | extra;
    disk::pass_database("open the database").at("open", path)?;
    let connection = Connection::open_with_flags(path, flags).at("open", path)?;
    connection.busy_timeout(PATIENCE).at("set up", path)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Without this, every new value for a parameter makes SQLite plan the statement again:
    // a look-up took 35 µs instead of 10.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .at("set up", path)?;
    // NORMAL: a power cut may lose the newest rows, whose stages then run again, but it cannot
    // damage the file. FULL would sync at every commit and buy nothing that matters here,
    // since objects are synced before the row that names them is even written.
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .at("set up", path)?;
    connection
        .pragma_update(None, "foreign_keys", true)
        .at("set up", path)?;
    Ok(connection)
}

/// Tables, indexes and triggers that are not those of this format, in words.
pub(crate) fn misfits(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let all = |connection: &Connection| -> rusqlite::Result<BTreeMap<(String, String), String>> {
        connection
            .prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")?
            .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?
            .collect()
    };
    let fresh = Connection::open_in_memory()?;
    STEPS
        .iter()
        .try_for_each(|step| fresh.execute_batch(step))?;
    let (meant, found) = (all(&fresh)?, all(connection)?);
    let mut faults = Vec::new();
    for ((kind, name), sql) in &meant {
        match found.get(&(kind.clone(), name.clone())) {
            Some(known) if known == sql => {}
            Some(_) => faults.push(format!("the {kind} `{name}` was changed")),
            None => faults.push(format!("the {kind} `{name}` is missing")),
        }
    }
    let more = found.keys().filter(|key| !meant.contains_key(*key));
    faults.extend(more.map(|(kind, name)| format!("the {kind} `{name}` is unexpected")));
    Ok(faults)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), Error> {
    let known = steps.len() as i64;
    let found = version(connection).at("read", path)?;
    if found > known || found < 0 {
        return Err(Error::NewerSchema {
            path: path.to_owned(),
            found,
            known,
        });
    }
    if found == known {
        return Ok(());
    }
    disk::pass_database("begin to migrate").at("begin to migrate", path)?;
    // All steps in one transaction: a crash leaves the old format, whole.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .at("begin to migrate", path)?;
    for step in &steps[found as usize..] {
        transaction.execute_batch(step).at("migrate", path)?;
    }
    transaction
        .pragma_update(None, "user_version", known)
        .at("migrate", path)?;
    disk::pass_database("commit the migration").at("migrate", path)?;
    transaction.commit().at("migrate", path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    /// If this fails, somebody edited a step that files in the world have already taken.
    #[test]
    fn shipped_steps_are_pinned() {
        let pins = [
            "9d87252e3eed",
            "2ba2c0e054eb",
            "1035f22c7906",
            "259762849a47",
            "fb38b6c176fd",
            "71b0c804aea0",
            "b6d7628194e1",
            "460557c49ffe",
        ];
        for (step, pin) in STEPS.iter().zip(pins) {
            assert_eq!(Digest::of(step.as_bytes()).short(), pin);
        }
        assert_eq!(STEPS.len(), pins.len(), "pin the new step here");
    }

    #[test]
    fn a_file_of_format_1_is_brought_forward_with_its_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.db");
        let mut old = connect(&path, OpenFlags::SQLITE_OPEN_CREATE).unwrap();
        migrate(&mut old, &path, &STEPS[..1]).unwrap();
        old.execute("INSERT INTO codes (digest, files) VALUES ('d', '{}')", [])
            .unwrap();
        drop(old);

        let mut new = open(&path).unwrap();
        assert_eq!(version(&new).unwrap(), STEPS.len() as i64);
        // A step that does not exist yet, to see that only it is taken.
        let next = "ALTER TABLE codes ADD COLUMN note TEXT NOT NULL DEFAULT 'n'";
        let steps = [STEPS, &[next]].concat();
        migrate(&mut new, &path, &steps).unwrap();
        migrate(&mut new, &path, &steps).unwrap(); // Nothing is taken twice.
        let row: (String, String) = new
            .query_row("SELECT digest, note FROM codes", [], |r| {
                Ok((r.get(0)?, r.get(1)?))
            })
            .unwrap();
        assert_eq!(row, ("d".to_owned(), "n".to_owned()));
    }

    #[test]
    fn an_older_file_that_may_not_be_written_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.db");
        let mut old = connect(&path, OpenFlags::SQLITE_OPEN_CREATE).unwrap();
        migrate(&mut old, &path, &STEPS[..1]).unwrap();
        drop(old);
        let error = open_read_only(&path).unwrap_err().to_string();
        let known = STEPS.len();
        let expected = format!("has format 1, and this program reads format {known}: ");
        assert!(error.contains(&expected), "{error}");
    }

    #[test]
    fn a_failed_step_leaves_the_old_format() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.db");
        let mut connection = open(&path).unwrap();
        let bad = [STEPS, &["CREATE TABLE half (x INTEGER); NONSENSE"]].concat();
        assert!(migrate(&mut connection, &path, &bad).is_err());
        drop(connection);
        let connection = open(&path).unwrap();
        assert!(!connection.table_exists(None, "half").unwrap());
    }

    #[test]
    fn a_newer_file_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.db");
        let connection = open(&path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        drop(connection);
        let error = open(&path).unwrap_err();
        assert!(
            matches!(error, Error::NewerSchema { found: 99, .. }),
            "{error}"
        );
    }
}
