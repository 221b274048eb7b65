//! The run log, accepted code, numbers in manuscripts, and three lies that go unnoticed elsewhere.

use rusqlite::Connection;
use serde_json::Value;

use crate::lab::{Lab, text};

fn database(lab: &Lab) -> Connection {
    Connection::open(lab.path(".ablate/provenance.db")).unwrap()
}

/// What fsck says of the log.
fn broken(lab: &Lab) -> Vec<String> {
    let printed = lab.ablate(&["fsck", "--json"]);
    let found: Value = serde_json::from_str(&printed.stdout).unwrap();
    let list = found["log"]["broken"].as_array().unwrap();
    assert_eq!(printed.code == 0, list.is_empty(), "{}", printed.stdout);
    list.iter().map(|one| text(one).to_owned()).collect()
}

#[test]
fn the_log_shows_what_was_changed_after_it_was_recorded() {
    let lab = Lab::demo();
    lab.run_with(&["--tag", "paper"]);
    lab.run();
    lab.edit("{ x = 2 }", "{ x = 20 }").run();
    assert_eq!(broken(&lab), [""; 0]);
    let printed = lab.ablate(&["fsck"]).good().stdout;
    // Three runs and their ends, a tag, and ten executions.
    assert!(printed.contains("log: 17 entries, head "), "{printed}");

    let with = |change: &str, back: &str| {
        let rows = database(&lab);
        rows.pragma_update(None, "foreign_keys", false).unwrap();
        rows.execute_batch(change).unwrap();
        drop(rows);
        let found = broken(&lab);
        database(&lab).execute_batch(back).unwrap();
        assert_eq!(broken(&lab), [""; 0], "put back");
        found
    };
    let found = with(
        "UPDATE executions SET log = 'nothing to see' WHERE id = 3",
        "UPDATE executions SET log = '' WHERE id = 3",
    );
    assert_eq!(found, ["execution 3 was changed after it was recorded"]);
    let found = with(
        "UPDATE outputs SET row_count = row_count + 1 WHERE execution = 5",
        "UPDATE outputs SET row_count = row_count - 1 WHERE execution = 5",
    );
    assert_eq!(found, ["execution 5 was changed after it was recorded"]);
    let found = with(
        "UPDATE runs SET settings = '[\"x\"]' WHERE id = 2",
        "UPDATE runs SET settings = '[]' WHERE id = 2",
    );
    assert_eq!(found, ["run 2 was changed after it was recorded"]);
    let found = with(
        "UPDATE uses SET status = 'ran' WHERE run = 2 AND instance = 'numbers'",
        "UPDATE uses SET status = 'hit' WHERE run = 2 AND instance = 'numbers'",
    );
    assert_eq!(
        found,
        ["the end of run 2 was changed after it was recorded"]
    );
    let found = with("UPDATE tags SET run = 2", "UPDATE tags SET run = 1");
    assert_eq!(found, ["the tag `paper` was changed after it was recorded"]);
    let found = with("DELETE FROM tags", "INSERT INTO tags VALUES ('paper', 1)");
    assert_eq!(found, ["a tag of run 1 was removed after it was recorded"]);
    // What stands before the first entry, in a store that has had a log from the beginning.
    let found = with(
        "INSERT INTO executions SELECT -5, run, instance, kind, key, key_json, code, seed, started, \
         wall, cpu, peak_memory, 1, message, log, work, defaults, determinism, raw, sandbox, environment, resumed, signer \
         FROM executions WHERE id = 1",
        "DELETE FROM executions WHERE id = -5",
    );
    assert_eq!(found, ["execution -5 (`numbers`) is not in the log"]);
    let found = with(
        "UPDATE executions SET ok = 2 WHERE id = 1",
        "UPDATE executions SET ok = 1 WHERE id = 1",
    );
    let repeats = "execution 1: its kind, seed, code or success is not what its key and log say";
    assert_eq!(found, [repeats]);

    // Machine, commit and sources, which many rows share.
    let found = with(
        "UPDATE environments SET host = host || 'x'",
        "UPDATE environments SET host = substr(host, 1, length(host) - 1)",
    );
    let machine =
        "environment 1, machine and commit of some runs, was changed after it was recorded";
    assert_eq!(found, [machine]);
    let found = with(
        "UPDATE codes SET files = replace(files, 'stages/', 'Stages/') WHERE id = 1",
        "UPDATE codes SET files = replace(files, 'Stages/', 'stages/') WHERE id = 1",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    let sources = "the list of sources behind code ";
    assert!(found[0].starts_with(sources) && found[0].ends_with(" was changed"));
    let found = with(
        "UPDATE texts SET text = text || '#'",
        "UPDATE texts SET text = rtrim(text, '#')",
    );
    assert_eq!(found.len(), 2, "two texts: {found:?}");
    assert!(found[0].starts_with("the pipeline file "), "{found:?}");
    // Columns that repeat what is sealed.
    let found = with(
        "UPDATE executions SET kind = 'sql' WHERE id = 1",
        "UPDATE executions SET kind = 'table' WHERE id = 1",
    );
    let repeats = "execution 1: its kind, seed, code or success is not what its key and log say";
    assert_eq!(found, [repeats]);
    // Rows that somebody put in.
    let found = with(
        "INSERT INTO runs SELECT 99, started, ended, outcome, pipeline, file, profile, settings, \
         targets, environment, source FROM runs WHERE id = 1",
        "DELETE FROM runs WHERE id = 99",
    );
    assert_eq!(found, ["run 99 is not in the log"]);
    let found = with(
        "INSERT INTO acceptances VALUES (1, 'numbers', 1, 'a', 'b', 'c', 'me', 0, 'why')",
        "DELETE FROM acceptances",
    );
    assert_eq!(found, ["acceptance 1 is not in the log"]);
    // A row that cannot be read ends nothing: other faults are reported too.
    let key: String = database(&lab)
        .query_row("SELECT key_json FROM executions WHERE id = 3", [], |row| {
            row.get(0)
        })
        .unwrap();
    let found = with(
        "UPDATE executions SET key_json = 'x' WHERE id = 3;
         UPDATE executions SET log = 'x' WHERE id = 5",
        &format!(
            "UPDATE executions SET key_json = '{}' WHERE id = 3;
             UPDATE executions SET log = '' WHERE id = 5",
            key.replace('\'', "''")
        ),
    );
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("execution 3 cannot be read: "),
        "{found:?}"
    );
    assert_eq!(found[1], "execution 5 was changed after it was recorded");

    // Entries of the log itself.
    let side = lab.path("side.db").display().to_string();
    let rows = database(&lab);
    rows.execute_batch(&format!(
        "ATTACH '{side}' AS side; CREATE TABLE side.kept AS SELECT * FROM log"
    ))
    .unwrap();
    drop(rows);
    let back = format!(
        "ATTACH '{side}' AS side; DELETE FROM log; INSERT INTO log SELECT * FROM side.kept"
    );
    let back = back.as_str();
    let found = with("DELETE FROM log WHERE id = 4", back);
    let gone = "log: entries 4 to 4 are missing";
    assert_eq!(found[0], gone);
    assert!(
        found[1].contains("does not match the previous one"),
        "{found:?}"
    );
    let found = with("DELETE FROM log WHERE id = 17", back);
    let end = "the end of run 3 is not in the log";
    assert_eq!(found, ["log: the last entry is missing", end]);
}

#[test]
fn fsck_forgets_rows_that_point_nowhere_and_touches_no_good_object() {
    let lab = Lab::demo();
    lab.run();
    let objects = lab.files("objects");
    let rows = database(&lab);
    rows.pragma_update(None, "foreign_keys", false).unwrap();
    rows.execute_batch("INSERT INTO outputs VALUES (999, 0, 'x', 'abc', 1, 1, 'x: Int64')")
        .unwrap();
    drop(rows);
    let printed = lab.ablate(&["fsck"]);
    assert_eq!(printed.code, 1);
    let fault = "database a row of `outputs` refers to a missing row of `executions`\n";
    assert!(printed.stdout.contains(fault), "{}", printed.stdout);
    let printed = lab.ablate(&["fsck", "--repair"]);
    assert!(
        printed.stdout.contains("removed 1 dangling rows"),
        "{}",
        printed.stdout
    );
    lab.ablate(&["fsck"]).good();
    assert_eq!(lab.files("objects"), objects);
    lab.run().ran([]);
}

#[test]
fn a_fault_of_the_log_is_noted_and_the_next_one_is_news() {
    let lab = Lab::demo();
    lab.run();
    let alter = |id: i64| {
        let change = "UPDATE executions SET log = 'nothing to see' WHERE id = ?1";
        database(&lab).execute(change, [id]).unwrap();
    };
    alter(3);
    let printed = lab.ablate(&["fsck", "--repair"]);
    assert_eq!(printed.code, 1);
    let noted = "noted 1 faults of the log: they stay in it, and no longer count\n";
    assert!(printed.stdout.ends_with(noted), "{}", printed.stdout);
    let printed = lab.ablate(&["fsck"]).good().stdout;
    let fault = "noted    execution 3 was changed after it was recorded\n";
    assert!(printed.starts_with(fault), "{printed}");
    // Another change of the same row is another fault.
    let change = "UPDATE executions SET log = 'more' WHERE id = 3";
    database(&lab).execute(change, []).unwrap();
    assert_eq!(
        broken(&lab),
        ["execution 3 was changed after it was recorded"]
    );
    alter(3);
    alter(4);
    assert_eq!(
        broken(&lab),
        ["execution 4 was changed after it was recorded"]
    );
    // A note is sealed as well.
    database(&lab)
        .execute(
            "UPDATE noted SET fault = 'execution 4 was changed after it was recorded'",
            [],
        )
        .unwrap();
    let found = broken(&lab);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.contains(&"note 1 was changed after it was recorded".to_owned()));
    // Whatever was noted, an audit tells.
    let audit = lab.ablate(&["audit", "summary"]);
    let doubt = "doubt: the store's record: execution 3 was changed after it was recorded\n";
    assert!(audit.stdout.contains(doubt), "{}", audit.stdout);
    assert_eq!(audit.code, 1);
}

/// What words alone do not tell apart.
#[test]
fn a_note_names_what_was_seen_and_hides_no_later_fault() {
    let lab = Lab::demo();
    lab.run_with(&["--tag", "paper"]);
    lab.run();
    let change = |sql: &str| {
        let rows = database(&lab);
        rows.pragma_update(None, "foreign_keys", false).unwrap();
        rows.execute_batch(sql).unwrap();
    };
    let put_in = "INSERT INTO executions SELECT 99, run, instance, kind, key, key_json, code, seed, \
         started, wall, cpu, peak_memory, ok, message, log, work, defaults, determinism, raw, sandbox, environment, resumed, signer \
         FROM executions WHERE id = 1";
    // Each a fault, and another one that is told in the same words.
    for (first, second) in [
        (put_in, "UPDATE executions SET log = 'x' WHERE id = 99"),
        (
            "UPDATE executions SET seed = '1' WHERE id = 2",
            "UPDATE executions SET seed = '2' WHERE id = 2",
        ),
        (
            "UPDATE environments SET host = 'a'",
            "UPDATE environments SET host = 'b'",
        ),
        (
            "UPDATE codes SET files = '{}' WHERE id = 1",
            "UPDATE codes SET files = '{\"a\":\"b\"}' WHERE id = 1",
        ),
        (
            "UPDATE tags SET run = 2",
            "INSERT INTO runs SELECT 9, started, ended, outcome, pipeline, file, profile, settings, \
             targets, environment, source FROM runs WHERE id = 1; UPDATE tags SET run = 9",
        ),
        (
            "UPDATE log SET seal = (SELECT seal FROM log WHERE id = 1) WHERE id = 3",
            "UPDATE log SET seal = (SELECT seal FROM log WHERE id = 2) WHERE id = 3",
        ),
        (
            "UPDATE uses SET status = 'ran' WHERE run = 2 AND instance = 'numbers'",
            "UPDATE uses SET status = 'ran' WHERE run = 2 AND instance = 'summary'",
        ),
    ] {
        change(first);
        assert_ne!(broken(&lab), [""; 0], "{first}");
        assert_eq!(lab.ablate(&["fsck", "--repair"]).code, 1);
        assert_eq!(broken(&lab), [""; 0], "noted: {first}");
        change(second);
        assert_ne!(broken(&lab), [""; 0], "another fault: {second}");
        lab.ablate(&["fsck", "--repair"]);
        assert_eq!(broken(&lab), [""; 0], "noted: {second}");
    }
}

/// While runs go on, nothing is taken for tampering, and nothing false is noted.
#[test]
fn fsck_beside_runs_finds_nothing() {
    let axis: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    let pipeline = crate::lab::DEMO.replace("[1, 2, 3]", &format!("[{}]", axis.join(", ")));
    let lab = Lab::new(&pipeline);
    lab.run_with(&["numbers"]);
    let soak = std::env::var_os("ABLATE_SOAK").is_some();
    let (rounds, tries) = if soak { (40, 400) } else { (4, 24) };
    let done = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    let (mut checks, mut beside) = (0, 0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 0..rounds {
                // Other rows each time, so that there is something to record.
                let set = format!("numbers.rows=[{{x = {round}}}]");
                let tag = format!("t{round}");
                let ran = lab.run_with(&["--set", &set, "--tag", &tag]);
                assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
            }
            done.store(true, order);
        });
        while checks < tries && !(done.load(order) && checks > 0) {
            let repair = checks % 2 == 0;
            let arguments: &[&str] = match repair {
                true => &["fsck", "--json", "--repair"],
                false => &["fsck", "--json"],
            };
            let printed = lab.ablate(arguments);
            assert_eq!(printed.code, 0, "{}", printed.stdout);
            let found: Value = serde_json::from_str(&printed.stdout).unwrap();
            assert_eq!(found["log"]["noted"], serde_json::json!([]));
            assert_eq!(
                found["missing"],
                serde_json::json!([]),
                "objects come before rows"
            );
            checks += 1;
            beside += usize::from(!done.load(order));
        }
    });
    println!("{checks} checks, {beside} of them beside runs, none of them false");
    assert!(beside > 0, "no check ran beside a run");
    assert_eq!(broken(&lab), [""; 0]);
}

#[test]
fn a_database_that_lost_its_rows_is_no_sound_store() {
    let lab = Lab::demo();
    lab.run_with(&["--tag", "paper"]);
    let objects = lab.files("objects");
    // The record of a run is gone.
    let rows = database(&lab);
    rows.pragma_update(None, "foreign_keys", false).unwrap();
    rows.execute_batch("DELETE FROM runs; DELETE FROM log WHERE what = 'run'")
        .unwrap();
    drop(rows);
    let printed = lab.ablate(&["audit", "summary"]);
    assert_eq!(
        (printed.code, printed.stderr.as_str()),
        (
            2,
            "error: the record of how `summary` was made is no longer in the store\n |\n \
             = help: `ablate fsck` reports what is wrong with it\n"
        )
    );
    // A table that nobody made.
    database(&lab)
        .execute_batch("CREATE TABLE more (x)")
        .unwrap();
    let printed = lab.ablate(&["fsck"]).stdout;
    assert!(
        printed.contains("database the table `more` is unexpected\n"),
        "{printed}"
    );
    // All of it is gone: gc must not take it for a store without runs.
    std::fs::write(lab.path(".ablate/provenance.db"), "").unwrap();
    for name in ["provenance.db-wal", "provenance.db-shm"] {
        let _ = std::fs::remove_file(lab.path(".ablate").join(name));
    }
    for command in [&["fsck"][..], &["gc"], &["run"], &["show", "summary"]] {
        let printed = lab.ablate(command);
        assert_eq!(printed.code, 1, "{command:?}: {}", printed.stdout);
        let expected = "error: `.ablate/provenance.db` is empty though the store has objects: the \
             history is lost; put back a copy of it, or move it away and run again, which keeps the \
             objects\n";
        assert_eq!(printed.stderr, expected, "{command:?}");
    }
    assert_eq!(lab.files("objects"), objects);
}

#[test]
fn damage_is_told_again_until_it_is_mended() {
    let lab = Lab::new(SCORES);
    lab.run();
    let object = lab.object("scores");
    let mut bytes = std::fs::read(&object).unwrap();
    bytes[40] ^= 1;
    crate::crash::overwrite(&object, &bytes);
    let crate_ = lab.ablate(&["export", "--ro-crate", "crate"]);
    assert_eq!(crate_.code, 1);
    let why = "error: the stored result of `scores` is damaged: ";
    assert!(crate_.stderr.starts_with(why), "{}", crate_.stderr);
    assert!(!lab.path("crate").exists());
    // Whoever only looks is told, each time, and moves nothing.
    for _ in 0..2 {
        let printed = lab.ablate(&["export", "--csv", "scores"]);
        let told = "is damaged on disk: `ablate fsck --repair` sets it aside, and the next run recomputes it\n";
        assert!(printed.stderr.contains(told), "{}", printed.stderr);
        assert_eq!(printed.code, 1);
        assert!(object.exists());
        assert_eq!(lab.ablate(&["fsck"]).code, 1);
    }
    assert_eq!(lab.ablate(&["fsck", "--repair"]).code, 1);
    let printed = lab.ablate(&["fsck"]).good().stdout;
    let aside = "missing  scores.rows of run 1: damaged, and set aside\n";
    assert!(printed.starts_with(aside), "{printed}");
    lab.run().ran(["scores"]);
    assert!(!lab.ablate(&["fsck"]).good().stdout.contains("set aside"));
}

#[test]
fn an_acceptance_that_accepts_more_than_code_is_not_believed() {
    let lab = Lab::demo();
    lab.run();
    lab.edit("{ x = 2 }", "{ x = 20 }");
    // The key that it will have.
    lab.run_with(&["numbers", "--store", "other"]);
    let key: String = Connection::open(lab.path("other/provenance.db"))
        .and_then(|rows| rows.query_row("SELECT key FROM executions", [], |row| row.get(0)))
        .unwrap();
    let forged = "INSERT INTO acceptances (instance, execution, old_code, new_code, new_key, who, at, reason)
         SELECT x.instance, x.id, c.digest, c.digest, ?1, 'me', 0, 'trust me'
         FROM executions x JOIN codes c ON c.id = x.code WHERE x.instance = 'numbers'";
    assert_eq!(database(&lab).execute(forged, [key]).unwrap(), 1);
    lab.run_with(&["numbers"]).ran(["numbers"]);
    let shown = lab.ablate(&["show", "numbers"]).good().stdout;
    assert!(shown.contains("20"), "{shown}");
}

/// The code behind stored results is made another, as an edit of a kind would.
pub fn as_if_made_by_older_code(lab: &Lab, kind: &str) {
    let rows = database(lab);
    let file = blake3::hash(b"older code").to_string();
    let files = serde_json::json!({ "older.rs": file });
    let record = serde_json::json!(["code/1", files]).to_string();
    let old = blake3::hash(record.as_bytes()).to_string();
    rows.execute(
        "INSERT OR IGNORE INTO codes (digest, files) VALUES (?1, ?2)",
        [&old, &files.to_string()],
    )
    .unwrap();
    let mut query = rows
        .prepare("SELECT id, key_json FROM executions WHERE kind = ?1")
        .unwrap();
    let found: Vec<(i64, String)> = query
        .query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    drop(query);
    for (id, key) in found {
        let start = key.find("\"code\":\"").unwrap() + 8;
        let key = format!("{}{old}{}", &key[..start], &key[start + 64..]);
        let digest = blake3::hash(key.as_bytes()).to_string();
        rows.execute(
            "UPDATE executions SET key_json = ?2, key = ?3,
                 code = (SELECT id FROM codes WHERE digest = ?4) WHERE id = ?1",
            rusqlite::params![id, key, digest, old],
        )
        .unwrap();
    }
    drop(rows);
    as_if_older_than_the_log(lab);
}

/// What was recorded until now is from before there was a log, which would know of changes.
pub fn as_if_older_than_the_log(lab: &Lab) {
    let forget = "DELETE FROM log; DELETE FROM sqlite_sequence WHERE name = 'log'";
    database(lab).execute_batch(forget).unwrap();
}

#[test]
fn a_change_of_code_can_be_accepted_and_every_audit_shows_it() {
    let lab = Lab::demo();
    lab.run();
    let digests = lab.digests();
    as_if_made_by_older_code(&lab, "table");
    let plan = lab.ablate(&["plan"]).good().stdout;
    assert!(plan.contains("will run  numbers: code"), "{plan}");
    let printed = lab
        .ablate(&["accept", "numbers", "--reason", "a comment", "--by", "Ada"])
        .good()
        .stdout;
    assert!(
        printed.starts_with("numbers: code ") && printed.ends_with(" by Ada\n"),
        "{printed}"
    );
    lab.run().ran([]);
    assert_eq!(lab.digests(), digests, "the old results are in use");
    let audit = lab.ablate(&["audit", "summary"]).good().stdout;
    let doubt = audit
        .lines()
        .find(|line| line.starts_with("doubt: numbers: made by code "));
    let doubt = doubt.unwrap_or_else(|| panic!("{audit}"));
    assert!(
        doubt.contains(", and Ada accepted ") && doubt.ends_with(": a comment"),
        "{doubt}"
    );
    let printed = lab.ablate(&["accept", "numbers", "--reason", "a\ndoubt: none"]);
    assert_eq!(
        printed.stderr,
        "error: a reason or a name contains '\\n'\n |\n = help: write it in one line: every audit \
         shows it\n"
    );
    // The promise is put to the test.
    let printed = lab
        .ablate(&["verify", "numbers", "--threads", "1"])
        .good()
        .stdout;
    assert!(printed.contains("1 bit-identical"), "{printed}");
    // What else changed is not code.
    lab.edit("{ x = 2 }", "{ x = 20 }");
    let printed = lab.ablate(&["accept", "numbers", "--reason", "r"]);
    assert_eq!(
        printed.stderr,
        "error: `numbers` has no stored result that differs in its code alone\n |\n = help: \
         params.rows was [{ x = 1 }, { x = 2 }], now [{ x = 1 }, { x = 20 }]\n = help: ablate run 'numbers'\n"
    );
}

const SCORES: &str = r#"
[stage.scores]
kind = "table"
rows = [{ model = "lstm", value = 0.9163 }, { model = "svm", value = 0.8664 }]
"#;

#[test]
fn numbers_in_a_manuscript_are_held_to_the_store() {
    let lab = Lab::new(&SCORES.replace("0.9163", "0.8817"));
    lab.run();
    lab.write("pipeline.toml", SCORES).run();
    lab.write(
        "paper.md",
        "In 2024 the LSTM has 91.6% and the SVM 0.866.\n\
         Before, it had 88.2%. A round 0.5 says nothing, nor does 0.1234.\n\
         By note: 0.92<!-- ablate:scores[model=lstm] -->, 0.88<!-- ablate:scores[model=lstm] -->, \
         0.99<!-- ablate:scores[model=svm] -->, 0.1<!-- ablate:scores[model=cnn] -->.\n",
    );
    let printed = lab.ablate(&["lint", "paper.md"]);
    assert_eq!(printed.code, 1);
    assert_eq!(
        printed.stdout,
        "paper.md:1:22: 91.6 is typed by hand: write {{ablate:scores[model=lstm]|%1}}\n\
         paper.md:1:40: 0.866 is typed by hand: write {{ablate:scores[model=svm]|.3}}\n\
         paper.md:2:16: 88.2 is stale: scores[model=lstm] was that in run 1, and is 0.9163 now\n\
         paper.md:3:10: 0.92 is right: scores[model=lstm]\n\
         paper.md:3:50: 0.88 is stale: scores[model=lstm] was that in run 1, and is 0.9163 now\n\
         paper.md:3:90: 0.99 is wrong: scores[model=svm] is 0.8664\n\
         paper.md:3:129: 0.1 has a note that names no cell: scores[model=cnn]: no row has model=cnn\n\
         ablate: 9 numbers, 4 stale or wrong, 2 typed by hand\n"
    );
}

#[test]
fn what_lint_cannot_read_is_a_fault() {
    let lab = Lab::new(SCORES);
    lab.run();
    lab.write(
        "paper.md",
        "| **0.93**<!-- ablate:scores[model=lstm] --> | 9.2e-1 <!-- ablate:scores[model=lstm] --> |\n\
         Ninety<!-- ablate:scores[model=svm] --> and {{ablate:scores[model=cnn]}}, {{ablate:scores\n",
    );
    let printed = lab.ablate(&["lint", "paper.md"]);
    assert_eq!(printed.code, 1);
    assert_eq!(
        printed.stdout,
        "paper.md:1:5: 0.93 is wrong: scores[model=lstm] is 0.9163\n\
         paper.md:1:48: 9.2e-1 is right: scores[model=lstm]\n\
         paper.md:2:7: <!-- ablate:scores[model=svm] --> names scores[model=svm], but there is no number before it\n\
         paper.md:2:45: {{ablate:scores[model=cnn]}} cannot be resolved: no row has model=cnn\n\
         paper.md:2:75: {{ablate: cannot be resolved: it is not closed by }} on its line\n\
         ablate: 2 numbers, 4 stale or wrong, 0 typed by hand\n"
    );
}

#[test]
fn references_are_filled_in() {
    let lab = Lab::new(SCORES);
    lab.run();
    lab.write(
        "p.tex",
        "LSTM: {{ablate:scores[model=lstm]|%1}}\\%, SVM: {{ablate:scores[model=svm]}}.\n",
    );
    let printed = lab.ablate(&["render", "p.tex"]).good().stdout;
    assert_eq!(printed, "LSTM: 91.6\\%, SVM: 0.8664.\n");
    lab.ablate(&["render", "p.tex", "-o", "out.tex"]).good();
    assert_eq!(
        std::fs::read_to_string(lab.path("out.tex")).unwrap(),
        printed
    );
    lab.write("q.md", "a\nIt is {{ablate:scores[model=cnn]}}.\n");
    let printed = lab.ablate(&["render", "q.md"]);
    assert_eq!(printed.code, 2);
    assert!(
        printed
            .stderr
            .contains("error: this reference cannot be resolved"),
        "{}",
        printed.stderr
    );
    assert!(printed.stderr.contains("q.md:2:7"), "{}", printed.stderr);
    assert!(
        printed.stderr.contains("no row has model=cnn"),
        "{}",
        printed.stderr
    );
}

/// Three lies that other tools report as green. docs/trust.md shows this.
#[test]
fn three_lies_are_named() {
    let lab = Lab::new(SCORES);
    lab.write(
        "claims.toml",
        "[claims]\ntables = { scores = \"scores\" }\n[claim.lstm-wins]\nlevel = \"must\"\n\
         text = \"The LSTM is ten points better.\"\nquery = \"\"\"\nSELECT MAX(value) - MIN(value) >= 0.1 \
         AS holds, MAX(value) - MIN(value) AS gap FROM scores\"\"\"\n",
    );
    lab.run();
    // 1. The code changed, the config did not.
    as_if_made_by_older_code(&lab, "table");
    let plan = lab.ablate(&["plan"]).good().stdout;
    assert!(plan.starts_with("will run  scores: code"), "{plan}");
    lab.run().ran(["scores"]);
    // 2. An output was edited by hand: same size, same time of writing.
    let object = lab.object("scores");
    let time = std::fs::metadata(&object).unwrap().modified().unwrap();
    let mut bytes = std::fs::read(&object).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    crate::crash::overwrite(&object, &bytes);
    let file = std::fs::File::options().write(true).open(&object).unwrap();
    file.set_modified(time).unwrap();
    let audit = lab.ablate(&["audit", "scores"]);
    let doubt = "doubt: scores.rows: the stored result is damaged: ";
    assert!(audit.stdout.contains(doubt), "{}", audit.stdout);
    assert_eq!(audit.code, 1);
    assert_eq!(lab.ablate(&["fsck", "--repair"]).code, 1);
    lab.run().ran(["scores"]);
    // 3. A claim in the paper is false.
    let claims = lab.ablate(&["claims"]).good().stdout;
    assert!(
        claims.starts_with("not reproduced  lstm-wins  must"),
        "{claims}"
    );
    lab.write(
        "paper.md",
        "The LSTM has 0.93<!-- ablate:scores[model=lstm] -->.\n",
    );
    let lint = lab.ablate(&["lint", "paper.md"]);
    assert_eq!(lint.code, 1);
    assert!(
        lint.stdout
            .contains("0.93 is wrong: scores[model=lstm] is 0.9163"),
        "{}",
        lint.stdout
    );
}
