//! A record that was changed after it was sealed is believed by nobody.

use rusqlite::Connection;

use crate::lab::Lab;

const PIPELINE: &str = include_str!("pipelines/forged.toml");

const CLAIMS: &str = r#"[claims]
tables = { s = "scores" }

[claim.good]
level = "must"
text = "It is good."
query = "SELECT value > 0.5 AS holds, value FROM s"
"#;

fn database(lab: &Lab) -> Connection {
    let rows = Connection::open(lab.path(".ablate/provenance.db")).unwrap();
    rows.pragma_update(None, "foreign_keys", false).unwrap();
    rows
}

/// Results of two settings: 0.3125 is the pipeline's, 0.9375 is somebody's wish.
fn lab() -> Lab {
    let lab = Lab::new(PIPELINE);
    lab.write("claims.toml", CLAIMS).write(
        "paper.md",
        "The LSTM has 0.9375<!-- ablate:scores[model=lstm] -->.\n",
    );
    lab.run_with(&["--set", "base.rows=[{x = 3}]"]);
    lab.run();
    lab
}

/// A valid object, and a row that names it.
const COPIED: &str = "UPDATE outputs SET (digest, bytes, row_count) =
    (SELECT o.digest, o.bytes, o.row_count FROM outputs o JOIN executions x ON x.id = o.execution
     WHERE x.instance = 'scores' AND x.run = 1)
    WHERE execution = (SELECT id FROM executions WHERE instance = 'scores' AND run = 2)";

#[track_caller]
fn nobody_believes(lab: &Lab, word: &str) {
    for command in [
        &["show", "scores"][..],
        &["export", "scores", "--csv"],
        &["export", "--mlflow"],
        &["export", "--openlineage"],
        &["export", "--ro-crate", "crate"],
        &["report"],
        &["claims"],
        &["lint", "paper.md"],
        &["audit", "scores"],
        &["verify", "scores"],
    ] {
        let printed = lab.ablate(command);
        assert_eq!(
            printed.code, 1,
            "{command:?}: {} {}",
            printed.stdout, printed.stderr
        );
        let told = format!("{}{}", printed.stdout, printed.stderr);
        assert!(told.contains(word), "{command:?}: {told}");
        let shown = printed
            .stdout
            .replace("has 0.9375", "")
            .replace(": 0.9375 ", "");
        assert!(!shown.contains("0.9375"), "{command:?}: {shown}");
        assert!(!shown.contains("\nreproduced"), "{command:?}: {shown}");
    }
    let page = std::fs::read_to_string(lab.path("report.html")).unwrap();
    assert!(page.contains(word) && !page.contains("0.9375"));
}

#[test]
fn a_row_that_names_another_object_is_told_and_made_again() {
    let lab = lab();
    assert_eq!(database(&lab).execute(COPIED, []).unwrap(), 1);
    let fault = "execution 4 was changed after it was recorded";
    nobody_believes(&lab, fault);
    let plan = lab.ablate(&["plan"]).good().stdout;
    let why = format!("will run  scores: its stored result is altered ({fault})\n");
    assert!(plan.contains(&why), "{plan}");
    // A note does not make it true.
    assert_eq!(lab.ablate(&["fsck", "--repair"]).code, 1);
    nobody_believes(&lab, fault);
    let ran = lab.run();
    ran.ran(["scores"]);
    let note = format!("`scores` is recomputed: its stored result is altered ({fault})");
    assert_eq!(ran.notes(), [note]);
    // From now on there is a record that fits.
    lab.run().ran([]);
    let shown = lab.ablate(&["show", "scores"]).good().stdout;
    assert!(
        shown.contains("| 0.3125 ") || shown.contains("| 0.3125"),
        "{shown}"
    );
    let printed = lab.ablate(&["lint", "paper.md"]);
    assert!(
        printed
            .stdout
            .contains("0.9375 is stale: scores[model=lstm] was that in run 1, and is 0.3125 now"),
        "{}",
        printed.stdout
    );
    // The old run's own record is still the altered one.
    let printed = lab.ablate(&["show", "scores", "--run", "2"]);
    assert_eq!(printed.code, 1);
    assert!(printed.stderr.contains(fault), "{}", printed.stderr);
}

#[test]
fn there_is_no_proof_of_an_altered_record_and_none_is_confirmed_by_one() {
    let lab = lab();
    let proof = |name: &str| lab.ablate(&["audit", "scores", "--proof", name]);
    proof("good.json").good();
    lab.ablate(&["audit", "--check", "good.json"]).good();
    assert_eq!(database(&lab).execute(COPIED, []).unwrap(), 1);
    let printed = proof("bad.json");
    assert_ne!(printed.code, 0);
    let why = "cannot prove it: the store's record is altered (execution 4 was changed after it was recorded)";
    assert!(printed.stderr.contains(why), "{}", printed.stderr);
    assert!(!lab.path("bad.json").exists());
    let printed = lab.ablate(&["audit", "--check", "good.json"]);
    assert_eq!(printed.code, 1);
    let why = "`scores`: this store's record is altered (";
    assert!(printed.stdout.contains(why), "{}", printed.stdout);
}

#[test]
fn what_reads_an_altered_result_is_not_shown_either() {
    let lab = lab();
    // The forged input has a result of its own, which is genuine: for other settings.
    let change = COPIED.replace("'scores'", "'base'");
    assert_eq!(database(&lab).execute(&change, []).unwrap(), 1);
    let printed = lab.ablate(&["show", "scores"]);
    assert_eq!(printed.code, 1);
    let why = "error: the stored result of `base` is altered (execution 3 was changed after it was recorded)\n";
    assert!(printed.stderr.starts_with(why), "{}", printed.stderr);
    lab.run().ran(["base"]);
    let shown = lab.ablate(&["show", "scores"]).good().stdout;
    assert!(shown.contains("0.3125"), "{shown}");
}

#[test]
fn other_forgeries_are_noticed_too() {
    let put_in = "INSERT INTO executions SELECT 99, run, instance, kind, key, key_json, code, seed, \
         started, wall, cpu, peak_memory, ok, message, log, work, defaults, determinism, raw, sandbox, environment, resumed, signer \
         FROM executions WHERE instance = 'scores' AND run = 2;
         INSERT INTO outputs SELECT 99, ordinal, name, digest, row_count, bytes, columns FROM outputs \
         WHERE execution = 2";
    for (forgery, why) in [
        (put_in, "execution 99 (`scores`) is not in the log"),
        // The key of another execution.
        (
            "UPDATE executions SET key = (SELECT key FROM executions WHERE id = 4) WHERE id = 2;
             DELETE FROM executions WHERE id = 4",
            "execution 2 was changed after it was recorded",
        ),
        // The log's entry is changed along with the row.
        (
            "UPDATE log SET content = (SELECT content FROM log WHERE what = 'execution' AND row = 2) \
             WHERE what = 'execution' AND row = 4",
            "the log's entry about execution 4 does not match the previous one",
        ),
        (
            "UPDATE outputs SET digest = 'none' WHERE execution = 4",
            "execution 4 was changed after it was recorded",
        ),
        (
            "UPDATE executions SET key_json = 'x' WHERE id = 4",
            "execution 4 was changed after it was recorded",
        ),
    ] {
        let lab = lab();
        database(&lab).execute_batch(forgery).unwrap();
        let printed = lab.ablate(&["show", "scores"]);
        assert_eq!(printed.code, 1, "{forgery}: {}", printed.stdout);
        assert!(
            printed.stderr.contains(why),
            "{forgery}: {}",
            printed.stderr
        );
        let ran = lab.run();
        assert_eq!(ran.with("ran"), ["scores"], "{forgery}");
        let shown = lab.ablate(&["show", "scores"]).good().stdout;
        assert!(shown.contains("0.3125"), "{forgery}: {shown}");
    }
}

#[test]
fn a_run_that_says_it_used_something_else_is_not_shown() {
    let lab = lab();
    let change = "UPDATE uses SET execution = 2 WHERE run = 2 AND instance = 'scores'";
    assert_eq!(database(&lab).execute(change, []).unwrap(), 1);
    for command in [
        &["show", "scores", "--run", "2"][..],
        &["report", "--run", "2"],
        &["claims", "--run", "2"],
        &["runs", "2"],
        &["diff", "1", "2"],
    ] {
        let printed = lab.ablate(command);
        assert_eq!(printed.code, 1, "{command:?}: {}", printed.stdout);
        let why = "error: the record of run 2 is altered (the end of run 2 was changed after it was recorded)\n";
        assert!(
            printed.stderr.contains(why),
            "{command:?}: {}",
            printed.stderr
        );
    }
    // The results themselves are as they were.
    lab.ablate(&["show", "scores"]).good();
    lab.run().ran([]);
}

#[test]
fn an_acceptance_that_nobody_sealed_is_not_believed() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    crate::trust::as_if_made_by_older_code(&lab, "table");
    lab.ablate(&["accept", "base", "--reason", "a comment"])
        .good();
    assert!(lab.run().with("ran").is_empty());
    let change = "UPDATE acceptances SET who = 'somebody else'";
    assert_eq!(database(&lab).execute(change, []).unwrap(), 1);
    lab.run().ran(["base"]);
}

#[test]
fn a_tag_that_was_moved_beside_the_log_names_no_run() {
    let lab = lab();
    lab.ablate(&["tag", "paper", "2"]).good();
    assert_eq!(lab.ablate(&["show", "scores", "--run", "paper"]).code, 0);
    let moved = "UPDATE tags SET run = 1 WHERE name = 'paper'";
    database(&lab).execute_batch(moved).unwrap();
    for command in [
        &["show", "scores", "--run", "paper"][..],
        &["claims", "--run", "paper"],
        &["export", "scores", "--csv", "--run", "paper"],
    ] {
        let printed = lab.ablate(command);
        assert_eq!(printed.code, 1, "{command:?}: {}", printed.stdout);
        let expected = "the tag `paper` was altered: it was not given to run 1";
        assert!(printed.stderr.contains(expected), "{}", printed.stderr);
    }
    // Moved by the program, it names the other run.
    lab.ablate(&["tag", "paper", "1"]).good();
    assert_eq!(lab.ablate(&["show", "scores", "--run", "paper"]).code, 0);
}

/// `tag` refused these, and `run --tag` took them.
#[test]
fn a_tag_is_never_mistaken_for_a_run() {
    let lab = lab();
    for (name, why) in [
        ("last", "`last` would be mistaken for a run"),
        ("3", "`3` would be mistaken for a run"),
        ("", "a tag needs a name"),
    ] {
        for command in [&["run", "--tag", name][..], &["tag", name, "1"]] {
            let printed = lab.ablate(command);
            assert_eq!(printed.code, 2, "{command:?}");
            assert!(
                printed.stderr.contains(why),
                "{command:?}: {}",
                printed.stderr
            );
        }
    }
}

/// A pipe in the place of an object was waited for.
#[test]
fn a_pipe_in_the_place_of_an_object_stops_nobody() {
    let lab = lab();
    let object = lab.object("scores");
    std::fs::remove_file(&object).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&object).status();
    assert!(made.unwrap().success());
    for command in [
        &["show", "scores", "--run", "2"][..],
        &["audit", "scores"],
        &["report"],
    ] {
        let mut child = lab.command(command).spawn().unwrap();
        let mut ended = false;
        for _ in 0..3_000 {
            ended = child.try_wait().unwrap().is_some();
            if ended {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
        assert!(ended, "{command:?} waits for ever");
    }
}
