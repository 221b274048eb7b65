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
        note.starts_with("`scaled[scale=2]` is recomputed: its object was damaged"),
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
        plan.contains(
            "will run  numbers: its stored result is missing (output `rows`: removed by gc, or lost)"
        ),
        "{plan}"
    );
    // It was made: what reads it still has its own result.
    let printed = lab.ablate(&["show", "numbers"]);
    assert_eq!(
        (printed.code, printed.stderr.lines().next()),
        (
            1,
            Some(
                "error: the stored result of `numbers` is missing (output `rows`: removed by gc, or lost)"
            )
        )
    );
    lab.ablate(&["show", "summary"]).good();
    let ran = lab.run();
    ran.ran(["numbers"]);
    assert_eq!(
        ran.notes(),
        [
            "`numbers` is recomputed: its stored result is missing (output `rows`: removed by gc, or lost)"
        ]
    );
}

/// A result whose file has lost its end, or all of it, or has grown.
#[test]
fn an_object_of_the_wrong_size_is_damaged_for_everybody() {
    for change in ["cut", "empty", "longer"] {
        let lab = Lab::demo();
        lab.write(
            "claims.toml",
            "[claims]\ntables = { t = \"summary\" }\n\n[claim.c]\nlevel = \"must\"\ntext = \"It holds.\"\n\
             query = \"SELECT MAX(total) > 1 AS holds FROM t\"\n",
        )
        .write(
            "paper.md",
            "It is 3<!-- ablate:summary[scale=1].total -->.\n",
        );
        lab.run();
        let object = lab.object("summary");
        let sound = std::fs::read(&object).unwrap();
        let bytes = match change {
            "cut" => sound[..sound.len() / 2].to_vec(),
            "empty" => Vec::new(),
            _ => [&sound[..], b"x"].concat(),
        };
        overwrite(&object, &bytes);
        let (is, was) = (bytes.len(), sound.len());
        let why = format!("damaged (output `rows`: it has {is} bytes instead of {was})");
        for command in [
            &["show", "summary"][..],
            &["claims"],
            &["verify"],
            &["verify", "summary"],
            &["lint", "paper.md"],
            &["show", "summary", "--nearest", "x"],
        ] {
            let printed = lab.ablate(command);
            assert_eq!(printed.code, 1, "{change} {command:?}: {}", printed.stdout);
            let told = format!("{}{}", printed.stdout, printed.stderr);
            assert!(told.contains(&why), "{change} {command:?}: {told}");
        }
        for command in [
            &["audit", "summary"][..],
            &["export", "summary", "--csv"],
            &["report"],
            &["fsck"],
        ] {
            let printed = lab.ablate(command);
            assert_eq!(printed.code, 1, "{change} {command:?}: {}", printed.stdout);
            let told = format!("{}{}", printed.stdout, printed.stderr);
            assert!(told.contains("damaged"), "{change} {command:?}: {told}");
            assert!(!told.contains("has not been run"), "{told}");
        }
        let plan = lab.ablate(&["plan"]).good().stdout;
        let line = format!("will run  summary: its stored result is {why}\n");
        assert!(plan.contains(&line), "{plan}");
        let ran = lab.run();
        ran.ran(["summary"]);
        let note = format!("`summary` is recomputed: its stored result is {why}");
        assert_eq!(ran.notes(), [note]);
        assert_eq!(std::fs::read(&object).unwrap(), sound);
        assert_eq!(
            lab.files("damaged").len(),
            1,
            "the damage is kept for whoever looks into it"
        );
        lab.run().ran([]);
        lab.ablate(&["claims"]).good();
    }
}

/// Whoever reads an object moves damage out of the way: the next one is told all the same.
#[test]
fn an_object_that_was_set_aside_is_damaged_and_not_a_stage_that_has_not_been_run() {
    let lab = Lab::demo();
    lab.run();
    let object = lab.object("summary");
    let mut bytes = std::fs::read(&object).unwrap();
    bytes[40] ^= 1;
    overwrite(&object, &bytes);
    for _ in 0..2 {
        let printed = lab.ablate(&["show", "summary"]);
        assert_eq!(printed.code, 1);
        assert!(printed.stderr.contains("damaged"), "{}", printed.stderr);
    }
    let printed = lab.ablate(&["verify", "summary"]);
    assert_eq!(printed.code, 1);
    let told = "summary: the stored result is damaged (output `rows`: it was set aside in ";
    assert!(printed.stdout.contains(told), "{}", printed.stdout);
    let ran = lab.run();
    ran.ran(["summary"]);
    lab.ablate(&["show", "summary"]).good();
}

/// The database is lost while a stage runs.
#[test]
fn a_database_that_is_lost_under_a_run_is_noticed() {
    type Loss = fn(&Lab);
    let losses: [(&str, Loss); 5] = [
        ("removed", |lab| {
            std::fs::remove_file(lab.path(".ablate/provenance.db")).unwrap();
        }),
        ("removed", |lab| {
            for name in ["provenance.db", "provenance.db-wal", "provenance.db-shm"] {
                std::fs::remove_file(lab.path(".ablate").join(name)).unwrap();
            }
        }),
        ("truncated", |lab| {
            std::fs::write(lab.path(".ablate/provenance.db"), "").unwrap();
        }),
        ("truncated", |lab| {
            let file = std::fs::File::options();
            let file = file
                .clone()
                .write(true)
                .open(lab.path(".ablate/provenance.db"));
            file.unwrap().set_len(4096).unwrap();
        }),
        ("replaced by another file", |lab| {
            let copy = lab.path(".ablate/copy");
            std::fs::copy(lab.path(".ablate/provenance.db"), &copy).unwrap();
            std::fs::rename(copy, lab.path(".ablate/provenance.db")).unwrap();
        }),
    ];
    for (how, lose) in losses {
        let lab = Lab::loose();
        // The stage says when it has begun, and goes on once the database is gone.
        lab.write(
            "pipeline.toml",
            "[stage.t]\nkind = \"table\"\nrows = [{ x = 1 }]\n\n[stage.slow]\nkind = \"command\"\n\
             inputs = { t = \"t\" }\noutputs = [\"o\"]\nrun = [\"sh\", \"-c\", \"touch LAB/begun; \
             while [ ! -e LAB/go ]; do sleep 0.01; done; cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]\n",
        )
        .edit("LAB", &lab.dir().display().to_string());
        lab.run_with(&["t"]);
        let child = lab.start(&[]);
        crate::daemons::wait_until(|| lab.path("begun").exists());
        lose(&lab);
        lab.write("go", "");
        let ran = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{how}: {printed}");
        let told = format!(
            "error: `.ablate/provenance.db` was {how} while it was in use, and what was recorded is lost: "
        );
        assert!(printed.contains(&told), "{how}: {printed}");
        assert!(printed.contains("run again"), "{printed}");
        // What it says to do helps.
        for name in ["provenance.db", "provenance.db-wal", "provenance.db-shm"] {
            let _ = std::fs::remove_file(lab.path(".ablate").join(name));
        }
        lab.run();
        lab.ablate(&["fsck"]).good();
    }
}

/// Only the newest pages, which SQLite keeps in a file of their own, are lost.
#[test]
fn a_lost_write_ahead_log_is_noticed() {
    let lab = Lab::loose();
    lab.write(
        "pipeline.toml",
        "[stage.slow]\nkind = \"command\"\noutputs = [\"o\"]\nrun = [\"sh\", \"-c\", \"touch LAB/begun; \
         while [ ! -e LAB/go ]; do sleep 0.01; done; exit 1\"]\n",
    )
    .edit("LAB", &lab.dir().display().to_string());
    let child = lab.start(&[]);
    crate::daemons::wait_until(|| lab.path("begun").exists());
    for name in ["provenance.db-wal", "provenance.db-shm"] {
        std::fs::remove_file(lab.path(".ablate").join(name)).unwrap();
    }
    lab.write("go", "");
    let ran = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("error: `.ablate/provenance.db` was "),
        "{printed}"
    );
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
            assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
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
    let printed = lab.ablate(&["run", "--store", "blocked"]);
    assert_eq!(printed.code, 1);
    assert!(
        printed.stderr.starts_with("error: cannot "),
        "{}",
        printed.stderr
    );
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
        let printed = lab.ablate(looking);
        assert_eq!(printed.code, 1, "{looking:?}");
        assert_eq!(
            printed.stderr,
            "error: no store at `.ablate`: `ablate run` creates one\n"
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
const FICKLE: &str = include_str!("pipelines/fickle.toml");

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
    assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
    let notes: Vec<_> = ran
        .events
        .iter()
        .filter_map(|event| event["note"].as_str())
        .collect();
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("`p` produced different bytes")),
        "{notes:?}"
    );
    lab.edit("SELECT x AS b FROM p", "SELECT x AS b, 0 AS z FROM p");
    assert_eq!(lab.rows("c")[0], serde_json::json!({ "a": 1, "b": 1 }));
    lab.run().ran([]);
}

#[test]
fn a_lost_result_of_two_instances_is_made_once() {
    let lab = Lab::new(include_str!("pipelines/two_instances_one_result.toml"));
    lab.run();
    let object = lab.object("p1");
    let mut bytes = std::fs::read(&object).unwrap();
    bytes[40] ^= 1;
    overwrite(&object, &bytes);
    let ran = lab.run_with(&["--set", "c.query=SELECT a.x * b.x AS x FROM a CROSS JOIN b"]);
    assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
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
        let printed = lab.ablate(command);
        assert_eq!(printed.code, 1);
        assert!(
            printed.stderr.contains("the file is damaged: move it"),
            "{}",
            printed.stderr
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
