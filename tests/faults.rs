//! Every file operation of a run goes wrong in turn; the next run always ends as if nothing had
//! happened. The store counts its operations and obeys `ABLATE_FAULT` in builds with debug
//! assertions, see `store/src/files/disk.rs`.
//!
//! `ABLATE_SOAK=1 cargo test --test pipelines faults -- --nocapture` tries a larger pipeline on
//! two threads as well, which takes long.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Connection, OpenFlags};

use crate::daemons::wait_until;
use crate::lab::{CommandOutput, DEMO, Lab, Ran};
use crate::schedule::signal;

/// One stage that two others read.
const SMALL: &str = include_str!("pipelines/small.toml");

const MODES: [&str; 6] = ["kill", "torn", "fail", "full", "short", "full+"];

/// What a store has recorded: the digests of each output of each instance.
type Recorded = BTreeMap<(String, String), BTreeSet<String>>;

fn recorded(lab: &Lab) -> Recorded {
    let path = lab.path(".ablate/provenance.db");
    let mut found = Recorded::new();
    let Ok(rows) = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE) else {
        return found;
    };
    let sound: String = rows
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
    // A process that died before it made the tables has recorded nothing.
    let query = rows.prepare(
        "SELECT x.instance, o.name, o.digest FROM outputs o
         JOIN executions x ON x.id = o.execution WHERE x.ok = 1",
    );
    let Ok(mut query) = query else { return found };
    let each = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    for row in each.unwrap() {
        let (instance, output, digest) = row.unwrap();
        found.entry((instance, output)).or_default().insert(digest);
    }
    found
}

/// Every object, each with the bytes that its name promises.
fn objects(lab: &Lab) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in lab.files("objects") {
        let folder = path
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let digest = blake3::hash(&std::fs::read(&path).unwrap()).to_string();
        assert_eq!(digest, format!("{folder}{name}"), "a half-written object");
        found.insert(digest);
    }
    found
}

/// A run of one stage at a time with a fault in it.
fn faulty(lab: &Lab, fault: &str, jobs: &str) -> CommandOutput {
    let mut command = lab.command(&["run", "--json", "--jobs", jobs]);
    CommandOutput::of(command.env("ABLATE_FAULT", fault).output().unwrap())
}

/// How many operations an undisturbed run has, and what it records.
fn undisturbed(pipeline: &str, jobs: &str) -> (usize, Recorded) {
    let lab = Lab::new(pipeline);
    let file = lab.path("operations");
    faulty(&lab, &format!("count@{}", file.display()), jobs).good();
    let names = std::fs::read_to_string(file).unwrap();
    (names.lines().count(), recorded(&lab))
}

/// Lets one operation go wrong, then runs again. Whether the first run noticed.
fn point(pipeline: &str, mode: &str, number: usize, jobs: &str, expected: &Recorded) -> bool {
    let lab = Lab::new(pipeline);
    let (mode, on) = match mode.strip_suffix('+') {
        Some(mode) => (mode, "+"),
        None => (mode, ""),
    };
    let fault = format!("{mode}@{number}{on}");
    let first = faulty(&lab, &fault, jobs);
    let killed = first.code == -1;
    if !killed {
        // An error of the disk is an error of the program, never a panic.
        assert!([0, 1].contains(&first.code), "{fault}: {}", first.stderr);
        assert!(
            !first.stderr.contains("panicked"),
            "{fault}: {}",
            first.stderr
        );
        let told = first.stderr.starts_with("error: ") || first.stdout.contains("\"failed\"");
        assert!(first.code == 0 || told, "{fault}: {}", first.stderr);
    }
    let (before, kept) = (recorded(&lab), objects(&lab));
    for (output, digests) in &before {
        assert!(expected[output].is_superset(digests), "{fault}: {output:?}");
        assert!(
            kept.is_superset(digests),
            "{fault}: a row names an object that is not there"
        );
    }
    let second = Ran::of(lab.ablate(&["run", "--json", "--jobs", jobs]));
    assert_eq!(second.printed.code, 0, "{fault}: {}", second.printed.stderr);
    assert_eq!(recorded(&lab), *expected, "{fault}");
    assert!(
        objects(&lab).is_superset(&kept),
        "{fault}: a good object is lost"
    );
    let done: BTreeSet<&String> = before.keys().map(|(instance, _)| instance).collect();
    for stage in second.with("ran") {
        assert!(
            !done.contains(&stage),
            "{fault}: `{stage}` was recorded, and ran again"
        );
    }
    killed || first.code != 0
}

/// Every operation in every mode. How many points were tried, and how many were noticed.
fn every_point(pipeline: &str, jobs: &str) -> (usize, usize) {
    let (operations, expected) = undisturbed(pipeline, jobs);
    let points: Vec<(&str, usize)> = MODES
        .iter()
        .flat_map(|mode| (1..=operations).map(|number| (*mode, number)))
        .collect();
    let (next, noticed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while let Some((mode, number)) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let struck = point(pipeline, mode, *number, jobs, &expected);
                    noticed.fetch_add(usize::from(struck), Ordering::Relaxed);
                }
            });
        }
    });
    (points.len(), noticed.into_inner())
}

#[test]
fn any_operation_may_go_wrong_and_the_next_run_ends_the_same() {
    if !cfg!(debug_assertions) {
        println!("skipped: a build without debug assertions has no faults");
        return;
    }
    let (points, noticed) = every_point(SMALL, "1");
    println!("{points} points tried, {noticed} of them ended the first run");
    assert!(points >= 200, "{points} points are too few to say anything");
    // Some errors are lived with: litter that cannot be removed, a folder that is there already.
    assert!(
        noticed * 10 >= points * 7,
        "only {noticed} of {points} faults were noticed"
    );
}

#[test]
fn a_longer_run_on_two_threads() {
    if std::env::var_os("ABLATE_SOAK").is_none() || !cfg!(debug_assertions) {
        println!("skipped: set ABLATE_SOAK=1 to try it");
        return;
    }
    let axis: Vec<String> = (1..=12).map(|n| n.to_string()).collect();
    let pipeline = DEMO.replace("[1, 2, 3]", &format!("[{}]", axis.join(", ")));
    let (points, noticed) = every_point(&pipeline, "2");
    println!("{points} points tried, {noticed} of them ended the first run");
}

#[test]
fn a_full_disk_is_said_and_loses_nothing() {
    if !cfg!(debug_assertions) {
        return;
    }
    let lab = Lab::demo();
    lab.run();
    let kept = objects(&lab);
    // Which operation writes the first object is seen in a copy of the store.
    let copied = std::process::Command::new("cp")
        .args(["-r", ".ablate", "copy"])
        .current_dir(lab.dir())
        .status();
    assert!(copied.unwrap().success());
    lab.edit("{ x = 2 }", "{ x = 20 }");
    let with = |fault: &str, store: &str| {
        let mut command = lab.command(&["run", "--jobs", "1", "--store", store]);
        CommandOutput::of(command.env("ABLATE_FAULT", fault).output().unwrap())
    };
    let file = lab.path("operations");
    with(&format!("count@{}", file.display()), "copy").good();
    let names = std::fs::read_to_string(&file).unwrap();
    let write = names
        .lines()
        .position(|line| line.ends_with(" write a file"));
    let printed = with(&format!("full@{}+", write.unwrap() + 1), ".ablate");
    assert_eq!(printed.code, 1);
    let advice = "; free some space (`ablate gc --dry-run` shows what can be removed)";
    assert!(printed.stderr.contains(advice), "{}", printed.stderr);
    assert!(objects(&lab).is_superset(&kept));
    lab.edit("{ x = 20 }", "{ x = 2 }").run().ran([]);
}

#[test]
fn an_object_that_cannot_be_read_is_made_again() {
    let lab = Lab::demo();
    lab.run();
    let object = lab.object("scaled[scale=2]");
    std::fs::remove_file(&object).unwrap();
    std::fs::create_dir(&object).unwrap(); // nobody can read a folder as a file, not even root
    lab.edit("SUM(x)", "MAX(x)");
    let ran = lab.run();
    ran.ran(["scaled[scale=2]", "summary"]);
    assert!(object.is_file());
    lab.ablate(&["fsck"]).good();
}

#[test]
fn a_cut_off_database_is_said_and_the_objects_are_kept() {
    let lab = Lab::demo();
    lab.run();
    let (digests, kept) = (recorded(&lab), objects(&lab));
    let database = lab.path(".ablate/provenance.db");
    let size = std::fs::metadata(&database).unwrap().len();
    let file = std::fs::File::options()
        .write(true)
        .open(&database)
        .unwrap();
    file.set_len(size / 2 / 4096 * 4096).unwrap();
    drop(file);
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 1, "{}", printed.stdout);
    assert!(
        printed.stderr.contains("the file is damaged: move it"),
        "{}",
        printed.stderr
    );
    for name in ["provenance.db", "provenance.db-wal", "provenance.db-shm"] {
        let _ = std::fs::remove_file(lab.path(".ablate").join(name));
    }
    assert_eq!(lab.run().printed.code, 0);
    assert_eq!((recorded(&lab), objects(&lab)), (digests, kept));
}

#[test]
fn a_database_that_another_program_has_locked_is_waited_for() {
    let lab = Lab::demo();
    lab.run();
    lab.edit("{ x = 2 }", "{ x = 20 }");
    let other = Connection::open(lab.path(".ablate/provenance.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut child = lab.start(&[]);
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    other.execute_batch("COMMIT").unwrap();
    drop(other);
    let printed = CommandOutput::of(child.wait_with_output().unwrap());
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    lab.run().ran([]);
}

/// What was recorded lies in the future, as after a clock that was set back.
#[test]
fn a_clock_that_jumps_back_changes_no_result() {
    let lab = Lab::demo();
    lab.run();
    let before = recorded(&lab);
    let rows = Connection::open(lab.path(".ablate/provenance.db")).unwrap();
    let year = 365 * 24 * 3_600_000_000_i64;
    for change in [
        "UPDATE runs SET started = started + ?1, ended = ended + ?1",
        "UPDATE executions SET started = started + ?1",
    ] {
        rows.execute(change, [year]).unwrap();
    }
    drop(rows);
    crate::trust::as_if_older_than_the_log(&lab);
    lab.run().ran([]);
    lab.edit("{ x = 2 }", "{ x = 20 }").run();
    lab.edit("{ x = 20 }", "{ x = 2 }").run().ran([]);
    for command in [
        &["runs"][..],
        &["show", "summary"],
        &["diff", "1", "3"],
        &["gc", "--keep", "1"],
    ] {
        lab.ablate(command).good();
    }
    let after = recorded(&lab);
    assert!(
        before
            .iter()
            .all(|(name, digests)| after[name].is_superset(digests))
    );
}

/// Six stages that leave marks, for several processes at once.
fn marked(marks: &Path) -> String {
    format!(
        r#"
        [axes]
        k = [1, 2, 3, 4, 5, 6]
        [stage.t]
        kind = "table"
        rows = [{{ x = "${{k}}" }}]
        [stage.slow]
        kind = "command"
        inputs = {{ t = "t" }}
        run = ["sh", "-c", "echo ${{k}} >> {}; sleep 0.15; cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet"]
        outputs = ["o"]
        "#,
        marks.display()
    )
}

#[test]
fn of_two_or_eight_processes_one_is_killed_and_nothing_is_done_twice_but_its_stage() {
    for count in [2, 8] {
        let lab = Lab::loose();
        let marks = lab.path("marks");
        lab.write("pipeline.toml", &marked(&marks));
        let read = || std::fs::read_to_string(&marks).unwrap_or_default();
        let mut victim = lab.start(&["--jobs", "1"]);
        wait_until(|| read().lines().count() == 1);
        let others: Vec<_> = (1..count).map(|_| lab.start(&["--jobs", "1"])).collect();
        signal(victim.id(), "KILL");
        victim.wait().unwrap();
        for other in others {
            let printed = CommandOutput::of(other.wait_with_output().unwrap());
            assert_eq!(printed.code, 0, "{} {}", printed.stdout, printed.stderr);
        }
        let text = read();
        let mut done: Vec<&str> = text.lines().collect();
        assert!(done.len() <= 7, "{count} processes: {done:?}");
        done.sort_unstable();
        done.dedup();
        assert_eq!(done, ["1", "2", "3", "4", "5", "6"]);
        let alone = Lab::loose();
        alone.write("pipeline.toml", &marked(&marks));
        alone.run();
        // The program's text names the same file of marks, so the keys are the same.
        assert_eq!(recorded(&lab), recorded(&alone));
        assert_eq!(objects(&lab), objects(&alone));
    }
}
