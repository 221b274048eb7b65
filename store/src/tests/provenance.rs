//! What is recorded, when it becomes true, and how it reads back.

use std::collections::BTreeSet;

use super::execution::{begin, finished, key, reads, used};
use super::tiny;
use crate::{Error, NewRun, RunId, RunOutcome, Status, Store, Value};

#[test]
fn a_crash_between_the_files_and_the_rows_loses_no_more_than_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let staged = store.put(&tiny(1)).unwrap();
    store
        .make_durable(&BTreeSet::from([staged.digest]))
        .unwrap();
    drop(store); // The rows were never written.

    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.lookup(&key("table", 1).digest()).unwrap(), None);
    assert_eq!(store.put(&tiny(1)).unwrap(), staged);
    let one = finished(begin(&store), "a", key("table", 1), staged);
    store.commit(vec![one], &[]).unwrap();
    assert!(store.lookup(&key("table", 1).digest()).unwrap().is_some());
    assert!(store.fsck(&|_, _| {}).unwrap().is_sound());
}

#[test]
fn others_see_whether_a_run_is_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    // A second handle sees what another process would see.
    let other = Store::open_existing(dir.path()).unwrap().unwrap();
    let seen = |run: RunId| other.is_under_way(run).unwrap();
    let (first, second) = (begin(&store), begin(&store));
    assert_eq!([seen(first), seen(second)], [Some(true); 2]);
    assert_eq!(store.is_under_way(first).unwrap(), Some(true), "also here");
    store.end_run(first, RunOutcome::Ok).unwrap();
    assert_eq!([seen(first), seen(second)], [Some(false), Some(true)]);
    // It goes without a word, as a process that is killed does.
    drop(store);
    assert_eq!(seen(second), Some(false));
    assert_eq!(other.run(second).unwrap().unwrap().outcome, None);
}

#[test]
fn a_commit_whose_object_has_gone_records_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let run = begin(&store);
    let good = finished(run, "a", key("table", 1), store.put(&tiny(1)).unwrap());
    let mut staged = store.put(&tiny(2)).unwrap();
    staged.digest = crate::Digest::of(b"never put");
    let bad = finished(run, "b", key("table", 2), staged);
    let error = store.commit(vec![good, bad], &[]).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    assert_eq!(store.lookup(&key("table", 1).digest()).unwrap(), None);
}

#[test]
fn what_was_counted_reads_back_with_the_execution_and_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let run = begin(&store);
    let mut one = finished(run, "a", key("table", 1), store.put(&tiny(1)).unwrap());
    let work = crate::Work::from([
        ("forward".to_owned(), u64::from(u32::MAX) * 9),
        ("items".to_owned(), 291),
    ]);
    one.work = work.clone();
    let none = finished(run, "b", key("table", 2), store.put(&tiny(2)).unwrap());
    store.commit(vec![one, none], &[]).unwrap();
    let found = |n| store.lookup(&key("table", n).digest()).unwrap().unwrap();
    assert_eq!((found(1).work, found(2).work.len()), (work.clone(), 0));
    let execution = store.execution(found(1).execution).unwrap().unwrap();
    assert_eq!(execution.work, work);
}

#[test]
fn a_lease_is_held_until_the_result_can_be_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let other = Store::open(dir.path()).unwrap();
    let digest = key("table", 1).digest();
    let mut one = finished(
        begin(&store),
        "a",
        key("table", 1),
        store.put(&tiny(1)).unwrap(),
    );
    one.lease = store.try_lease(&digest).unwrap();
    assert!(one.lease.is_some());
    assert!(other.try_lease(&digest).unwrap().is_none());
    assert!(other.lookup(&digest).unwrap().is_none());
    store.commit(vec![one], &[]).unwrap();
    assert!(other.try_lease(&digest).unwrap().is_some());
    let found = other.lookup(&digest).unwrap().expect("committed");
    assert_eq!(other.read(&found.outputs[0].digest).unwrap(), tiny(1));
}

#[test]
fn a_failure_is_remembered_but_never_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let run = begin(&store);
    let key = key("sql", 1);
    let mut one = finished(run, "q", key.clone(), store.put(&tiny(1)).unwrap());
    one.outcome = Err("no such column".into());
    let uses = [used(run, "q", Status::Failed, &key)];
    store.commit(vec![one], &uses).unwrap();
    assert_eq!(store.lookup(&key.digest()).unwrap(), None);
    assert_eq!(store.nearest("sql", "q", &key).unwrap(), None);
    let id = store.uses(run).unwrap()[0].execution.expect("linked");
    let execution = store.execution(id).unwrap().unwrap();
    assert_eq!(execution.failure.as_deref(), Some("no such column"));
    assert_eq!(execution.log, "printed this\n");
}

#[test]
fn everything_reads_back_as_it_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let environment = crate::Environment {
        git_commit: Some("abc".into()),
        git_dirty: Some(true),
        crates: [("arrow".to_owned(), "60.1".to_owned())].into(),
        cpu_features: vec!["avx2".into()],
        threads: 2,
        ..Default::default()
    };
    let new = NewRun {
        pipeline: "demo".into(),
        targets: vec!["b".into()],
        environment: environment.clone(),
        tag: Some("paper".into()),
        settings: r#"{"a.n":2}"#.into(),
        ..NewRun::default()
    };
    let first = store.begin_run(&new).unwrap();
    let (a, b) = (key("table", 1), key("sql", 2));
    let staged = store.put(&tiny(1)).unwrap();
    let one = finished(first, "a", a.clone(), staged.clone());
    // The same bytes as `a`: only the instance tells them apart.
    let mut two = finished(first, "b[n=2]", b.clone(), staged.clone());
    two.inputs = vec![reads("t", "a", staged.digest)];
    let uses = [
        used(first, "a", Status::Ran, &a),
        used(first, "b[n=2]", Status::Ran, &b),
    ];
    store.commit(vec![one, two], &uses).unwrap();
    store.end_run(first, RunOutcome::Ok).unwrap();

    let second = store.begin_run(&new).unwrap();
    let uses = [used(second, "b[n=2]", Status::Hit, &b)];
    store.commit(vec![], &uses).unwrap();

    let runs = store.runs(10).unwrap();
    assert_eq!(
        runs.iter().map(|run| run.id).collect::<Vec<_>>(),
        [second, first]
    );
    assert_eq!(
        (runs[0].outcome, runs[1].outcome),
        (None, Some(RunOutcome::Ok))
    );
    assert_eq!(runs[1].environment, environment);
    assert_eq!(
        (&runs[1].targets, &runs[1].settings),
        (&new.targets, &new.settings)
    );
    assert_eq!(
        runs[0].tags,
        ["paper"],
        "a tag moves to the newest run that claims it"
    );
    assert_eq!(store.tags().unwrap(), [("paper".to_owned(), second)]);

    let hit = store.uses(second).unwrap().remove(0);
    let execution = store.execution(hit.execution.unwrap()).unwrap().unwrap();
    assert_eq!(
        (execution.run, execution.instance.as_str()),
        (first, "b[n=2]")
    );
    assert_eq!(execution.key, b, "also a seed beyond 63 bits");
    assert_eq!(execution.inputs, [reads("t", "a", staged.digest)]);
    assert_eq!(execution.outputs[0].digest, staged.digest);
    assert_eq!(execution.failure, None);
    let makers = store.executions_of_output(&staged.digest).unwrap();
    assert_eq!(
        makers
            .iter()
            .map(|made| made.instance.as_str())
            .collect::<Vec<_>>(),
        ["b[n=2]", "a"]
    );
    let files = store.code_files(&a.code).unwrap().unwrap();
    assert_eq!(crate::code_digest(&files), a.code);
    let environments: i64 = store
        .reader
        .lock()
        .unwrap()
        .query_row("SELECT count(*) FROM environments", [], |row| row.get(0))
        .unwrap();
    assert_eq!(environments, 1, "equal environments are one row");
}

#[test]
fn the_newest_success_of_a_key_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let run = begin(&store);
    for n in [1, 2] {
        let one = finished(run, "a", key("table", 0), store.put(&tiny(n)).unwrap());
        store.commit(vec![one], &[]).unwrap();
    }
    let found = store.lookup(&key("table", 0).digest()).unwrap().unwrap();
    assert_eq!(store.read(&found.outputs[0].digest).unwrap(), tiny(2));
}

#[test]
fn the_nearest_key_is_of_the_same_instance_or_differs_least() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let run = begin(&store);
    let near = key("sql", 1);
    let mut far = key("sql", 2);
    far.params.insert("extra".into(), Value::Bool(true));
    for (instance, key) in [("near", &near), ("far", &far)] {
        let one = finished(run, instance, key.clone(), store.put(&tiny(1)).unwrap());
        store.commit(vec![one], &[]).unwrap();
    }
    let wanted = key("sql", 3);
    let nearest = |instance| store.nearest("sql", instance, &wanted).unwrap().unwrap().0;
    assert_eq!(nearest("far"), far);
    assert_eq!(nearest("renamed"), near);
    assert_eq!(store.nearest("train", "renamed", &wanted).unwrap(), None);
}

#[test]
fn a_run_that_does_not_exist_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let absent = RunId(9);
    assert!(store.run(absent).unwrap().is_none());
    assert!(matches!(store.tag(absent, "x"), Err(Error::NoSuchRun(9))));
    assert!(matches!(
        store.end_run(absent, RunOutcome::Ok),
        Err(Error::NoSuchRun(9))
    ));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        failure_persistence: None,
        ..Default::default()
    })]

    /// A key that came back different would explain a miss with a change that nobody made.
    #[test]
    fn a_number_in_a_stored_key_reads_back_to_the_last_bit(bits: u64) {
        let number = f64::from_bits(bits);
        let mut key = key("train", 1);
        key.params.insert("rate".into(), Value::Float(number));
        let read: crate::StageKey = serde_json::from_str(&key.canonical()).unwrap();
        proptest::prop_assert_eq!(read.canonical(), key.canonical());
    }
}

/// A run may be started on one machine and have stages executed on another.
#[test]
fn an_execution_says_where_it_ran() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let run = begin(&store);
    let elsewhere = std::sync::Arc::new(crate::Environment {
        host: "node7".into(),
        ..crate::Environment::default()
    });
    let here = finished(run, "a", key("table", 1), store.put(&tiny(1)).unwrap());
    let mut there = finished(run, "b", key("table", 2), store.put(&tiny(2)).unwrap());
    there.environment = Some(elsewhere.clone());
    store.commit(vec![here, there], &[]).unwrap();
    let ran_on = |n: i64| {
        let found = store.lookup(&key("table", n).digest()).unwrap().unwrap();
        let execution = store.execution(found.execution).unwrap().unwrap();
        execution.environment.host.clone()
    };
    assert_eq!([ran_on(1), ran_on(2)], ["", "node7"]);
    let sound = || store.fsck(&|_, _| {}).unwrap().is_sound();
    assert!(sound());
    // Who moves it to another machine afterwards is found out.
    let rows = rusqlite::Connection::open(dir.path().join("provenance.db")).unwrap();
    let forged = "UPDATE executions SET environment = NULL WHERE instance = 'b'";
    assert_eq!(rows.execute(forged, []).unwrap(), 1);
    assert!(!sound());
}
