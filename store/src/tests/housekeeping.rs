//! gc keeps what it must and says what goes; fsck sees what is wrong.

use std::fs;
use std::time::Duration;

use super::execution::{begin, finished, key, reads, used};
use super::objects::flip_one_bit;
use super::tiny;
use crate::{Digest, Error, RunId, Status, Store, empty_damaged, gc};

/// A run in which `a` made the table `n` and `b` read it to make `n + 100`.
fn chain(store: &Store, n: i64) -> (RunId, Digest, Digest) {
    let run = begin(store);
    let (first, second) = (
        store.put(&tiny(n)).unwrap(),
        store.put(&tiny(n + 100)).unwrap(),
    );
    let digests = (run, first.digest, second.digest);
    let (a, b) = (key("table", n), key("sql", n));
    let mut reader = finished(run, "b", b.clone(), second);
    reader.inputs = vec![reads("t", "a", first.digest)];
    let maker = finished(run, "a", a.clone(), first);
    let uses = [
        used(run, "a", Status::Ran, &a),
        used(run, "b", Status::Ran, &b),
    ];
    store.commit(vec![maker, reader], &uses).unwrap();
    digests
}

#[test]
fn gc_keeps_recent_and_tagged_runs_and_what_hits_used() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (_, gone_a, gone_b) = chain(&store, 1);
    let (tagged, tagged_a, tagged_b) = chain(&store, 2);
    let (_, read_only, hit) = chain(&store, 3);
    store.tag(tagged, "paper").unwrap();
    // The last run asked for `b` alone and found it: what `b` read is part of how it was made.
    let last = begin(&store);
    let uses = [used(last, "b", Status::Hit, &key("sql", 3))];
    store.commit(vec![], &uses).unwrap();
    drop(store);

    let dry = gc(dir.path(), 1, true).unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(
        store.has(&gone_a) && store.has(&gone_b),
        "a dry run removes nothing"
    );
    drop(store);
    let real = gc(dir.path(), 1, false).unwrap();
    assert_eq!(dry, real, "a dry run says exactly what goes");

    let mut gone = vec![gone_a, gone_b];
    gone.sort();
    assert_eq!(
        real.removed
            .iter()
            .map(|(digest, _)| *digest)
            .collect::<Vec<_>>(),
        gone
    );
    assert_eq!(
        real.removed_bytes,
        real.removed.iter().map(|(_, bytes)| bytes).sum::<u64>()
    );
    assert_eq!(real.kept, 4);
    let store = Store::open(dir.path()).unwrap();
    for kept in [tagged_a, tagged_b, read_only, hit] {
        assert!(store.has(&kept));
    }
    assert_eq!(store.runs(10).unwrap().len(), 4, "history stays");
    let report = store.fsck(&|_, _| {}).unwrap();
    assert!(report.is_sound());
    assert_eq!(report.missing.len(), 2);
}

#[test]
fn gc_waits_for_nobody_while_the_store_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        gc(dir.path(), 1, true),
        Err(Error::NoStore { .. })
    ));
    let store = Store::open(dir.path()).unwrap();
    chain(&store, 1);
    assert!(matches!(gc(dir.path(), 0, false), Err(Error::Busy { .. })));
    assert_eq!(gc(dir.path(), 0, true).unwrap().removed.len(), 2);
    drop(store);
    assert_eq!(gc(dir.path(), 0, false).unwrap().removed.len(), 2);
    assert_eq!(gc(dir.path(), 0, false).unwrap().removed.len(), 0);
}

#[test]
fn fsck_names_damage_and_strangers_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (_, a, b) = chain(&store, 1);
    let whole = store.fsck(&|_, _| {}).unwrap();
    assert!(whole.is_sound() && whole.missing.is_empty());
    assert_eq!(whole.objects, 2);

    flip_one_bit(&store.object_path(&a));
    let stranger = dir.path().join("objects").join("notes.txt");
    fs::write(&stranger, "mine").unwrap();
    let misplaced = dir.path().join("objects").join("zz");
    fs::create_dir(&misplaced).unwrap();
    let misplaced = misplaced.join(store.object_path(&b).file_name().unwrap());
    fs::rename(store.object_path(&b), &misplaced).unwrap();

    let calls = std::sync::atomic::AtomicU64::new(0);
    let count = |_, total| {
        assert_eq!(total, 1);
        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let report = store.fsck(&count).unwrap();
    assert_eq!(calls.into_inner(), 1);
    assert!(!report.is_sound());
    assert_eq!(
        report
            .damaged
            .iter()
            .map(|found| found.digest)
            .collect::<Vec<_>>(),
        [a]
    );
    assert_eq!(report.foreign, [stranger, misplaced]);
    assert_eq!(
        report
            .missing
            .iter()
            .map(|lost| lost.digest)
            .collect::<Vec<_>>(),
        [b]
    );
    assert!(
        store.object_path(&a).exists(),
        "fsck leaves it to the reader to set it aside"
    );
}

#[test]
fn damaged_objects_go_only_when_they_are_old_and_somebody_asks() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    chain(&store, 1);
    let aside = dir.path().join("damaged/ab-1.parquet");
    fs::write(&aside, b"seven b").unwrap();
    let (week, now) = (Duration::from_secs(7 * 24 * 3600), Duration::ZERO);
    // It was written long ago, and set aside just now.
    let long_ago = std::time::SystemTime::now() - 9 * week;
    let file = fs::File::options().write(true).open(&aside).unwrap();
    file.set_modified(long_ago).unwrap();
    drop(store);
    gc(dir.path(), 0, false).unwrap();
    assert_eq!(empty_damaged(dir.path(), week, false).unwrap(), (0, 0));
    assert_eq!(empty_damaged(dir.path(), now, true).unwrap(), (1, 7));
    assert!(aside.exists());
    assert_eq!(empty_damaged(dir.path(), now, false).unwrap(), (1, 7));
    assert!(!aside.exists());
}
