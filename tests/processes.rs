//! Several processes on one store.

use crate::daemons::wait_until;
use crate::lab::{CommandOutput, Lab, Ran};
use crate::schedule::{running_children, signal};

/// One slow stage that leaves a mark each time it is executed.
fn slow(lab_marks: &str) -> String {
    format!(
        r#"
        [stage.t]
        kind = "table"
        rows = [{{ x = 1 }}]
        [stage.slow]
        kind = "command"
        inputs = {{ t = "t" }}
        run = ["sh", "-c", "echo x >> {lab_marks}; sleep 1; cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet"]
        outputs = ["o"]
        [stage.after]
        kind = "sql"
        inputs = {{ t = "slow" }}
        query = "SELECT x + 1 AS x FROM t"
        "#
    )
}

fn executions(marks: &std::path::Path) -> usize {
    std::fs::read_to_string(marks).map_or(0, |text| text.lines().count())
}

#[test]
fn two_runs_at_once_share_the_work() {
    let lab = Lab::loose();
    let marks = lab.path("marks");
    lab.write("pipeline.toml", &slow(&marks.display().to_string()));
    let children: Vec<_> = (0..4).map(|_| lab.start(&[])).collect();
    let mut ran = 0;
    for child in children {
        let printed = Ran::of(CommandOutput::of(child.wait_with_output().unwrap()));
        assert_eq!(printed.printed.code, 0, "{}", printed.printed.stderr);
        ran += printed.done()["ran"].as_u64().unwrap();
    }
    assert_eq!(executions(&marks), 1, "the slow stage was executed once");
    assert_eq!(ran, 3, "each stage was executed by one of them");
    lab.run().ran([]);
    assert!(lab.ablate(&["fsck"]).good().stdout.contains("sound"));
}

#[test]
fn the_lease_of_a_killed_process_is_taken_over() {
    let lab = Lab::loose();
    let marks = lab.path("marks");
    lab.write("pipeline.toml", &slow(&marks.display().to_string()));
    let mut first = lab.start(&[]);
    wait_until(|| running_children(first.id()) > 0 && executions(&marks) == 1);
    let second = lab.start(&[]);
    // Long enough for the second to find the lease taken; it must not execute the stage.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(executions(&marks), 1);
    signal(first.id(), "KILL");
    first.wait().unwrap();
    let second = Ran::of(CommandOutput::of(second.wait_with_output().unwrap()));
    assert_eq!(second.printed.code, 0, "{}", second.printed.stderr);
    assert_eq!(executions(&marks), 2);
    assert!(second.with("ran").contains(&"slow".to_owned()));
    lab.run().ran([]);
}
