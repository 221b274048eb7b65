//! Damage, loss and sudden death.

use std::collections::BTreeMap;

use crate::lab::{DEMO, Lab};
use crate::schedule::signal;

#[test]
fn a_damaged_object_is_set_aside_and_made_again() {
    let lab = Lab::demo();
    lab.run();
    let digests = lab.digests();
    let object = lab.object("scaled[scale=2]");
    let sound = std::fs::read(&object).unwrap();
    let mut bytes = sound.clone();
    let at = bytes.len() / 2;
    bytes[at] ^= 1; // same size
    let time = std::fs::metadata(&object).unwrap().modified().unwrap();
    overwrite(&object, &bytes);
    let file = std::fs::File::options().write(true).open(&object).unwrap();
    file.set_modified(time).unwrap(); // same time
    let fsck = lab.ablate(&["fsck"]);
    assert_eq!(fsck.code, 1);
    assert!(fsck.stdout.contains("damaged"), "{}", fsck.stdout);

    // A reader that must run finds it out, and the whole ends as if nothing had happened.
    lab.edit("SUM(x) AS total", "MAX(x) AS total");
    let ran = lab.run();
    ran.ran(["scaled[scale=2]", "summary"]);
    let note = ran
        .events
        .iter()
        .find(|event| event["event"] == "note")
        .unwrap();
    let note = note["note"].as_str().unwrap();
    assert!(
        note.starts_with("`scaled[scale=2]` is made again: its object was damaged"),
        "{note}"
    );
    assert_eq!(std::fs::read(&object).unwrap(), sound);
    assert_eq!(lab.files("damaged").len(), 1);
    lab.edit("MAX(x) AS total", "SUM(x) AS total").run().ran([]);
    assert_eq!(lab.digests(), digests);
    lab.ablate(&["fsck"]).good();
}

#[test]
fn a_lost_object_is_made_again() {
    let lab = Lab::demo();
    lab.run();
    std::fs::remove_file(lab.object("numbers")).unwrap();
    let plan = lab.ablate(&["plan"]).good().stdout;
    assert!(
        plan.contains("will run  numbers: its output is no longer in the store"),
        "{plan}"
    );
    lab.run().ran(["numbers"]);
}

/// Kills the program at many moments of a run; the next run always ends with the same digests.
#[test]
fn killed_at_any_moment_the_next_run_ends_the_same() {
    let expected = {
        let lab = Lab::new(&many());
        lab.run();
        lab.digests()
    };
    assert_eq!(expected.len(), 32);
    let lab = Lab::new(&many());
    for moment in 0..12 {
        let mut child = lab.start(&["--jobs", "2"]);
        std::thread::sleep(std::time::Duration::from_millis(8 * moment));
        signal(child.id(), "KILL");
        child.wait().unwrap();
        if moment % 3 == 2 {
            // Now and then start over, so that early moments are hit too.
            let ran = lab.run();
            assert_eq!(ran.said.code, 0, "{}", ran.said.stderr);
            assert_eq!(lab.digests(), expected);
            std::fs::remove_dir_all(lab.path(".ablate")).unwrap();
        }
    }
    lab.run();
    assert_eq!(lab.digests(), expected);
    lab.ablate(&["fsck"]).good();
}

fn many() -> String {
    let axis: Vec<String> = (1..=30).map(|n| n.to_string()).collect();
    DEMO.replace("[1, 2, 3]", &format!("[{}]", axis.join(", ")))
}

#[test]
fn a_store_that_cannot_be_written_is_an_error_and_loses_nothing() {
    let lab = Lab::demo();
    lab.write("blocked", "a file where a folder should be");
    let said = lab.ablate(&["run", "--store", "blocked"]);
    assert_eq!(said.code, 1);
    assert!(said.stderr.starts_with("error: cannot "), "{}", said.stderr);
    assert_eq!(
        std::fs::read(lab.path("blocked")).unwrap(),
        b"a file where a folder should be"
    );
}

#[test]
fn commands_that_only_look_make_no_store() {
    let lab = Lab::demo();
    lab.ablate(&["plan"]).good();
    lab.ablate(&["graph"]).good();
    for looking in [&["show", "numbers"][..], &["runs"], &["fsck"], &["gc"]] {
        let said = lab.ablate(looking);
        assert_eq!(said.code, 1, "{looking:?}");
        assert_eq!(
            said.stderr,
            "error: there is no store at `.ablate`: `ablate run` makes one\n"
        );
    }
    assert!(!lab.path(".ablate").exists());
}

/// The store's files are made read-only; a test that damages one must lift that first.
pub fn overwrite(path: &std::path::Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn object_names_are_what_b3sum_says() {
    let lab = Lab::demo();
    lab.run();
    let mut seen = BTreeMap::new();
    for path in lab.files("objects") {
        let digest = blake3::hash(&std::fs::read(&path).unwrap()).to_hex();
        let folder = path
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(format!("{folder}{name}"), format!("{digest}.parquet"));
        seen.insert(digest.to_string(), ());
    }
    assert!(
        lab.digests()
            .values()
            .all(|digest| seen.contains_key(digest))
    );
}

/// A program that does not give the same bytes twice, two readers, and one that compares them.
/// It copies one of two collected inputs, because those are no objects of the store themselves.
const FICKLE: &str = r#"
[axes]
k = [0]
[stage.t]
kind = "table"
rows = [{ x = 1, z = "${k}" }]
[stage.p]
kind = "command"
inputs = { t = "t", u = "u" }
over = ["k"]
run = ["sh", "-c", "if [ -e MARK ]; then cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet; else cp $ABLATE_IN/u.parquet $ABLATE_OUT/o.parquet; fi"]
outputs = ["o"]
[stage.u]
kind = "table"
rows = [{ x = 2, z = "${k}" }]
[stage.r1]
kind = "sql"
inputs = { p = "p" }
query = "SELECT x AS a FROM p"
[stage.r2]
kind = "sql"
inputs = { p = "p" }
query = "SELECT x AS b FROM p"
[stage.c]
kind = "sql"
inputs = { r1 = "r1", r2 = "r2" }
query = "SELECT a, b FROM r1 CROSS JOIN r2"
"#;

#[test]
fn a_rebuilt_object_with_other_bytes_is_never_mixed_with_the_old_ones() {
    let lab = Lab::loose();
    let mark = lab.path("mark").display().to_string();
    lab.write("pipeline.toml", &FICKLE.replace("MARK", &mark));
    lab.run();
    assert_eq!(lab.rows("c")[0], serde_json::json!({ "a": 2, "b": 2 }));
    let object = lab.object("p");
    let mut bytes = std::fs::read(&object).unwrap();
    bytes[40] ^= 1;
    overwrite(&object, &bytes);
    lab.write("mark", "");
    // Only r2 must run, and it finds the damage; r1 is a hit on the old bytes.
    let ran = lab.run_with(&[
        "--jobs",
        "1",
        "--set",
        "r2.query=SELECT x AS b, 0 AS z FROM p",
    ]);
    assert_eq!(ran.said.code, 0, "{}", ran.said.stderr);
    let notes: Vec<_> = ran
        .events
        .iter()
        .filter_map(|event| event["note"].as_str())
        .collect();
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("`p` gave other bytes")),
        "{notes:?}"
    );
    lab.edit("SELECT x AS b FROM p", "SELECT x AS b, 0 AS z FROM p");
    assert_eq!(lab.rows("c")[0], serde_json::json!({ "a": 1, "b": 1 }));
    lab.run().ran([]);
}

#[test]
fn a_lost_result_of_two_instances_is_made_once() {
    let lab = Lab::new(
        r#"
        [stage.t]
        kind = "table"
        rows = [{ x = 1 }]
        [stage.p1]
        kind = "sql"
        inputs = { t = "t" }
        query = "SELECT x + 1 AS x FROM t"
        [stage.p2]
        kind = "sql"
        inputs = { t = "t" }
        query = "SELECT x + 1 AS x FROM t"
        [stage.c]
        kind = "sql"
        inputs = { a = "p1", b = "p2" }
        query = "SELECT a.x + b.x AS x FROM a CROSS JOIN b"
        "#,
    );
    lab.run();
    let object = lab.object("p1");
    let mut bytes = std::fs::read(&object).unwrap();
    bytes[40] ^= 1;
    overwrite(&object, &bytes);
    let ran = lab.run_with(&["--set", "c.query=SELECT a.x * b.x AS x FROM a CROSS JOIN b"]);
    assert_eq!(ran.said.code, 0, "{}", ran.said.stderr);
    let made = ran.with("ran");
    assert_eq!(
        made.iter().filter(|stage| stage.starts_with('p')).count(),
        1,
        "{made:?}"
    );
    lab.ablate(&["fsck"]).good();
}

#[test]
fn a_damaged_result_that_nobody_reads_is_found_and_made_again() {
    let lab = Lab::demo();
    lab.run();
    let object = lab.object("summary");
    let sound = std::fs::read(&object).unwrap();
    // Another size is seen at once.
    overwrite(&object, &sound[..sound.len() / 2]);
    lab.run().ran(["summary"]);
    assert_eq!(std::fs::read(&object).unwrap(), sound);
    // The same size is seen by fsck, which can set it aside.
    let mut bytes = sound.clone();
    bytes[40] ^= 1;
    overwrite(&object, &bytes);
    assert_eq!(lab.ablate(&["fsck"]).code, 1);
    let repaired = lab.ablate(&["fsck", "--repair"]);
    assert!(
        repaired.stdout.contains("set aside .ablate/damaged/"),
        "{}",
        repaired.stdout
    );
    lab.run().ran(["summary"]);
    assert_eq!(std::fs::read(&object).unwrap(), sound);
    lab.ablate(&["fsck"]).good();
}

#[test]
fn a_damaged_database_says_what_to_do_and_doing_it_helps() {
    let lab = Lab::demo();
    lab.run();
    std::fs::write(
        lab.path(".ablate/provenance.db"),
        "not a database, but long enough to be one",
    )
    .unwrap();
    for command in [&["run"][..], &["plan"], &["fsck"]] {
        let said = lab.ablate(command);
        assert_eq!(said.code, 1);
        assert!(
            said.stderr.contains("the file is damaged: move it"),
            "{}",
            said.stderr
        );
    }
    let objects = lab.files("objects");
    for file in ["provenance.db", "provenance.db-wal", "provenance.db-shm"] {
        let _ = std::fs::remove_file(lab.path(".ablate").join(file));
    }
    assert_eq!(lab.run().done()["ran"], 5);
    assert_eq!(lab.files("objects"), objects);
}

/// Looking without the right to write. Root may write anywhere, so run by root this shows only
/// that nothing else is in the way.
#[test]
fn a_store_that_may_not_be_written_can_be_looked_at() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::demo();
    lab.run();
    let before = lab.ablate(&["show", "summary"]).good().stdout;
    let mut paths = vec![lab.path(".ablate")];
    let mut all = Vec::new();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        all.push(path);
    }
    let mode = |bits: u32, path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    all.iter()
        .for_each(|path| mode(if path.is_dir() { 0o555 } else { 0o444 }, path));
    let shown = lab.ablate(&["show", "summary"]);
    let listed = lab.ablate(&["runs"]);
    all.iter()
        .rev()
        .for_each(|path| mode(if path.is_dir() { 0o755 } else { 0o644 }, path));
    assert_eq!(shown.good().stdout, before);
    listed.good();
}
