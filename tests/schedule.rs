//! Order, failure, interruption, size.

use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use crate::daemons::wait_until;
use crate::lab::{CommandOutput, Lab, Ran, text};

/// A chain of this many stages: a table, then queries that add one.
fn chain(length: usize) -> String {
    let mut pipeline = "[stage.s0]\nkind = \"table\"\nrows = [{ x = 0 }]\n".to_owned();
    for n in 1..length {
        write!(
            pipeline,
            "[stage.s{n}]\nkind = \"sql\"\ninputs = {{ t = \"s{}\" }}\n\
             query = \"SELECT x + 1 AS x FROM t\"\n",
            n - 1
        )
        .unwrap();
    }
    pipeline
}

/// A diamond in which one side fails: `bad` and what reads it, `good` and what reads it.
const HALF_BAD: &str = include_str!("pipelines/half_bad.toml");

#[test]
fn a_failure_stops_the_run_and_what_was_running_is_kept() {
    let lab = Lab::new(HALF_BAD);
    let ran = lab.run_with(&["--jobs", "2"]);
    assert_eq!(ran.printed.code, 1);
    assert_eq!(ran.with("failed"), ["bad"]);
    assert_eq!(ran.with("skipped"), ["after_bad", "after_good"]);
    assert_eq!(ran.with("ran"), ["good", "t"]);
    let again = lab.run_with(&["after_good"]);
    again.ran(["after_good"]);
}

#[test]
fn keep_going_runs_all_that_does_not_need_the_failed_stage() {
    let lab = Lab::new(HALF_BAD);
    let ran = lab.run_with(&["--keep-going"]);
    assert_eq!(ran.printed.code, 1);
    assert_eq!(ran.with("failed"), ["bad"]);
    assert_eq!(ran.with("skipped"), ["after_bad"]);
    assert_eq!(ran.with("ran"), ["after_good", "good", "t"]);
    let done = ran.done();
    assert_eq!(
        [
            &done["ran"],
            &done["hits"],
            &done["failed"],
            &done["skipped"]
        ],
        [3, 0, 1, 1]
    );
    // The failure left nothing that a later run takes as good.
    assert_eq!(lab.run_with(&["--keep-going"]).with("failed"), ["bad"]);
    // It is in the history, with its message.
    let history = lab.ablate(&["runs", "last"]).good().stdout;
    assert!(history.contains("failed"), "{history}");
}

#[test]
fn one_thread_is_enough() {
    let lab = Lab::new(&chain(50));
    assert_eq!(lab.run_with(&["--jobs", "1"]).done()["ran"], 50);
    let fan = include_str!("pipelines/fan.toml");
    let lab = Lab::new(fan);
    assert_eq!(lab.run_with(&["--jobs", "1"]).done()["ran"], 17);
    assert_eq!(lab.rows("v")[0]["x"], 36);
}

#[test]
fn a_long_chain_runs_and_a_very_long_one_plans() {
    let lab = Lab::new(&chain(1000));
    assert_eq!(lab.run().done()["ran"], 1000);
    assert_eq!(lab.rows("s999")[0]["x"], 999);
    assert_eq!(lab.run().done()["hits"], 1000);

    let lab = Lab::new(&chain(100_000));
    let plan = lab.ablate(&["plan"]).good().stdout;
    assert!(plan.ends_with("ablate: 0 cached, 1 to run, 99999 waiting\n"));
    // A tree that deep would be all indentation: it stops, and says so.
    assert!(
        lab.ablate(&["graph"])
            .good()
            .stdout
            .contains("deeper: --depth")
    );
}

/// A quick stage, one that will not stop when asked, and one after it. The slow one writes the
/// number of its process group to `mark`.
fn stubborn() -> Lab {
    let lab = Lab::loose();
    let mark = lab.path("mark").display().to_string();
    let pipeline = r#"
        [stage.quick]
        kind = "table"
        rows = [{ x = 1 }]
        [stage.slow]
        kind = "command"
        inputs = { t = "quick" }
        run = ["sh", "-c", "trap '' TERM INT HUP; echo $$ > MARK; sleep 60 & wait; sleep 60"]
        outputs = ["o"]
        [stage.after]
        kind = "sql"
        inputs = { t = "slow" }
        query = "SELECT * FROM t"
        "#;
    lab.write("pipeline.toml", &pipeline.replace("MARK", &mark));
    lab
}

/// Whether any process of the group that `stubborn` started still runs.
fn group_lives(lab: &Lab) -> bool {
    let group = std::fs::read_to_string(lab.path("mark")).unwrap();
    let group: u32 = group.trim().parse().unwrap();
    let stats = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    // After the name in parentheses: state, parent, group.
    stats.into_iter().any(|stat| {
        let rest = stat.rsplit(')').next().unwrap_or_default().to_owned();
        let mut fields = rest.split_whitespace();
        let (state, its_group) = (fields.next(), fields.nth(1));
        state != Some("Z") && its_group == Some(&group.to_string())
    })
}

#[test]
fn interrupting_keeps_what_is_finished_and_ends_the_children() {
    for name in ["INT", "TERM", "HUP"] {
        let lab = stubborn();
        let child = lab.start(&[]);
        wait_until(|| {
            std::fs::read_to_string(lab.path("mark")).is_ok_and(|text| text.ends_with('\n'))
        });
        signal(child.id(), name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), None);
        let ran = Ran::of(CommandOutput::of(output));
        assert_eq!(ran.printed.code, 130, "{}", ran.printed.stderr);
        assert_eq!(ran.with("ran"), ["quick"]);
        assert_eq!(ran.with("skipped"), ["after", "slow"]);
        assert_eq!(ran.done()["interrupted"], true);
        assert!(!group_lives(&lab), "{name}");
        lab.run_with(&["quick"]).ran([]);
        let history = lab.ablate(&["runs", "--json"]).good().stdout;
        assert_eq!(text(&last_line(&history)["outcome"]), "interrupted");
    }
}

#[test]
fn interrupting_twice_ends_everything_at_once() {
    let lab = stubborn();
    let mut child = lab.start(&[]);
    wait_until(|| std::fs::read_to_string(lab.path("mark")).is_ok_and(|text| text.ends_with('\n')));
    signal(child.id(), "INT");
    std::thread::sleep(Duration::from_millis(200));
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_until(|| !group_lives(&lab));
    lab.run_with(&["quick"]).ran([]);
}

#[test]
fn a_slow_query_can_be_interrupted() {
    let lab = Lab::new(include_str!("pipelines/slow_query.toml"));
    lab.run_with(&["d"]);
    let child = lab.start(&[]);
    std::thread::sleep(Duration::from_millis(700));
    signal(child.id(), "INT");
    let ran = Ran::of(CommandOutput::of(child.wait_with_output().unwrap()));
    assert_eq!(ran.printed.code, 130, "{}", ran.printed.stderr);
    assert_eq!(ran.with("skipped"), ["slow"]);
}

fn last_line(lines: &str) -> serde_json::Value {
    serde_json::from_str(lines.lines().last().unwrap()).unwrap()
}

/// How many children a process has.
pub fn running_children(pid: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .map(|children| children.split_whitespace().count())
        .sum()
}

/// Sends a signal to a process that the test started.
pub fn signal(pid: u32, name: &str) {
    let arguments = [format!("-{name}"), pid.to_string()];
    let status = std::process::Command::new("kill").args(arguments).status();
    assert!(status.unwrap().success());
}
