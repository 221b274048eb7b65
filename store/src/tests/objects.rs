//! Objects on the disk: their names, what damage does, and who sees them when.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::execution::{begin, finished, key};
use super::tiny;
use crate::{Digest, Error, Store};

#[test]
fn an_object_is_readable_before_its_commit_and_in_its_place_after() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let staged = store.put(&tiny(1)).unwrap();
    let path = store.object_path(&staged.digest);
    assert!(store.has(&staged.digest));
    assert!(!path.exists());
    assert_eq!(store.read(&staged.digest).unwrap(), tiny(1));
    assert_eq!(
        (staged.rows, staged.schema.as_str()),
        (3, "x: Int64, t: Utf8")
    );

    let run = begin(&store);
    let one = finished(run, "a", key("table", 1), staged.clone());
    store.commit(vec![one], &[]).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, staged.bytes);
    assert_eq!(Digest::of(&bytes), staged.digest);
    assert!(
        path.starts_with(
            dir.path()
                .join("objects")
                .join(&staged.digest.to_string()[..2])
        )
    );
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o222, 0);
    assert_eq!(store.read(&staged.digest).unwrap(), tiny(1));
    assert!(store.pending.lock().unwrap().is_empty());
}

#[test]
fn a_damaged_object_is_set_aside_and_can_be_put_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let staged = committed(&store, 1);
    let path = store.object_path(&staged);
    flip_one_bit(&path);

    let Err(Error::Damaged { digest, moved_to }) = store.read(&staged) else {
        panic!("damage was not noticed")
    };
    assert_eq!(digest, staged);
    assert!(moved_to.exists() && moved_to.starts_with(dir.path().join("damaged")));
    assert!(!store.has(&staged));
    // And it is reported again.
    assert!(matches!(store.read(&staged), Err(Error::Damaged { .. })));
    assert_eq!(committed(&store, 1), staged);
    assert_eq!(store.read(&staged).unwrap(), tiny(1));
}

#[test]
fn put_does_not_trust_an_object_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let staged = committed(&store, 1);
    flip_one_bit(&store.object_path(&staged));
    committed(&store, 1);
    assert_eq!(store.read(&staged).unwrap(), tiny(1));
    assert_eq!(fs::read_dir(dir.path().join("damaged")).unwrap().count(), 1);
}

#[test]
fn a_second_put_of_the_same_table_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let staged = committed(&store, 1);
    let before = fs::metadata(store.object_path(&staged))
        .unwrap()
        .modified()
        .unwrap();
    committed(&store, 1);
    let after = fs::metadata(store.object_path(&staged))
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(before, after);
    assert!(store.pending.lock().unwrap().is_empty());
}

#[test]
fn a_store_that_closes_leaves_no_temporary_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.put(&tiny(1)).unwrap();
    assert_eq!(fs::read_dir(dir.path().join("tmp")).unwrap().count(), 1);
    drop(store);
    assert_eq!(fs::read_dir(dir.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn threads_that_put_and_commit_the_same_tables_do_not_get_in_each_others_way() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..20 {
                    let digest = committed(&store, n % 5);
                    assert_eq!(store.read(&digest).unwrap(), tiny(n % 5));
                }
            });
        }
    });
}

#[test]
fn several_stores_in_one_folder_see_each_others_results() {
    let dir = tempfile::tempdir().unwrap();
    // Each has its own connections and locks, as a process of its own would have.
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let root = dir.path();
            scope.spawn(move || {
                let store = Store::open(root).unwrap();
                for n in 0..10 {
                    committed(&store, worker * 100 + n);
                    committed(&store, n);
                }
            });
        }
    });
    let store = Store::open(dir.path()).unwrap();
    for n in (0..4).flat_map(|worker| (0..10).map(move |n| worker * 100 + n)) {
        let found = store.lookup(&key("table", n).digest()).unwrap().unwrap();
        assert_eq!(store.read(&found.outputs[0].digest).unwrap(), tiny(n));
    }
    assert_eq!(store.runs(1000).unwrap().len(), 80);
    assert!(store.fsck(&|_, _| {}).unwrap().is_sound());
}

fn committed(store: &Store, n: i64) -> Digest {
    let staged = store.put(&tiny(n)).unwrap();
    let digest = staged.digest;
    let one = finished(begin(store), "a", key("table", n), staged);
    store.commit(vec![one], &[]).unwrap();
    digest
}

pub fn flip_one_bit(path: &std::path::Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(path).unwrap(); // It is read-only.
    fs::write(path, bytes).unwrap();
}
