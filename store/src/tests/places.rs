//! Stores on network file systems, and databases that lie elsewhere.

use std::path::Path;

use rusqlite::Connection;

use super::execution::begin;
use super::tiny;
use crate::files::file_system::PRETENDED;
use crate::{Error, Store};

/// Takes what is below a folder for NFS, in this thread.
fn pretend(folder: &Path) {
    let below = folder.canonicalize().unwrap();
    PRETENDED.set(Some(format!("NFS@{}", below.display())));
}

fn journal(database: &Path) -> String {
    let connection = Connection::open(database).unwrap();
    let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get(0));
    mode.unwrap()
}

#[test]
fn a_store_on_nfs_has_a_rollback_journal_and_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let database = root.join("provenance.db");
    // Made on a local disk, with a WAL that has rows.
    let local = Store::open(&root).unwrap();
    let run = begin(&local);
    assert_eq!(
        (journal(&database).as_str(), local.network()),
        ("wal", None)
    );
    drop(local);
    pretend(dir.path());
    let store = Store::open(&root).unwrap();
    assert_eq!(
        (journal(&database).as_str(), store.network()),
        ("delete", Some("NFS"))
    );
    assert!(store.run(run).unwrap().is_some(), "nothing was lost");
    let second = begin(&store);
    assert!(
        store.run(second).unwrap().is_some(),
        "both connections see it"
    );
    for refused in [
        Store::open(&root).map(drop),
        Store::open_existing(&root).map(drop),
    ] {
        let error = refused.unwrap_err();
        let who = format!("another process uses it (process {})", std::process::id());
        assert!(matches!(error, Error::Exclusive { .. }), "{error}");
        assert!(error.to_string().contains(&who), "{error}");
    }
    assert!(matches!(crate::gc(&root, 1, true), Err(Error::Busy { .. })));
    drop(store);
    assert!(!root.join("driver.json").exists());
    crate::gc(&root, 10, true).unwrap();
    // Another machine has left its mark.
    std::fs::write(root.join("driver.json"), r#"{"host":"n7","process":12}"#).unwrap();
    let error = Store::open(&root).unwrap_err().to_string();
    assert!(
        error.contains("(process 12 on n7; if that has ended, remove `"),
        "{error}"
    );
    std::fs::remove_file(root.join("driver.json")).unwrap();
    assert!(Store::open_existing(&root).unwrap().is_some());
}

#[test]
fn a_database_elsewhere_is_moved_once_remembered_and_never_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (shared, local) = (dir.path().join("shared"), dir.path().join("local"));
    let root = shared.join("store");
    let store = Store::open(&root).unwrap();
    let run = begin(&store);
    let staged = store.put(&tiny(1)).unwrap();
    assert!(matches!(
        Store::open_with(&root, Some(&local)),
        Err(Error::Busy { .. })
    ));
    drop(store);
    pretend(&shared);
    let store = Store::open_with(&root, Some(&local)).unwrap();
    assert_eq!(store.network(), None);
    assert_eq!(journal(&local.join("provenance.db")), "wal");
    assert!(!root.join("provenance.db").exists());
    assert!(
        store.run(run).unwrap().is_some(),
        "it was moved with its rows"
    );
    assert!(!store.has(&staged.digest), "nobody committed it");
    // Several may use it, and it is remembered.
    let beside = Store::open(&root).unwrap();
    let existing = Store::open_existing(&root).unwrap().unwrap();
    begin(&beside);
    assert_eq!(existing.runs(10).unwrap().len(), 2);
    drop((store, beside, existing));
    Store::open_with(&root, Some(&local)).unwrap();
    for (root, folder) in [
        (&root, dir.path().join("other")),
        (&shared.join("second"), local.clone()),
    ] {
        let error = Store::open_with(root, Some(&folder)).unwrap_err();
        assert!(matches!(error, Error::OtherDatabase { .. }), "{error}");
    }
    let error = Store::open_with(&root, Some(&shared.join("db"))).unwrap_err();
    assert!(matches!(error, Error::DatabaseOnNetwork { .. }), "{error}");
    std::fs::rename(&local, dir.path().join("gone")).unwrap();
    for refused in [
        Store::open(&root).map(drop),
        Store::open_existing(&root).map(drop),
        crate::gc(&root, 1, false).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::DatabaseElsewhere { .. }), "{error}");
    }
    assert!(!root.join("provenance.db").exists());
}

#[test]
fn a_worker_sees_objects_and_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    drop(Store::open(&root).unwrap());
    let before = std::fs::read(root.join("provenance.db")).unwrap();
    let worker = Store::objects_only(&root, &dir.path().join("tmp")).unwrap();
    let staged = worker.put(&tiny(2)).unwrap();
    worker.publish([staged.digest]).unwrap();
    drop(worker);
    assert_eq!(std::fs::read(root.join("provenance.db")).unwrap(), before);
    let store = Store::open(&root).unwrap();
    assert_eq!(store.read(&staged.digest).unwrap().num_rows(), 3);
}
