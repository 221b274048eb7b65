//! The kind `command`, through the whole program: what a user sees when a script misbehaves.

use crate::lab::Lab;

/// A pipeline with one command that reads a table and should write `points`.
fn script(body: &str) -> Lab {
    let lab = Lab::new(
        r#"
[stage.t]
kind = "table"
rows = [{ x = 1 }]

[stage.plot]
kind = "command"
inputs = { t = "t" }
run = ["sh", "plot.sh"]
files = ["plot.sh"]
outputs = ["points"]
timeout = 20
"#,
    );
    lab.write("plot.sh", body);
    lab
}

const GOOD: &str = "echo working\ncp $ABLATE_IN/t.parquet $ABLATE_OUT/points.parquet\n";

#[test]
fn its_script_is_in_the_key_and_its_output_in_the_log() {
    let lab = script(GOOD);
    lab.run().ran(["t", "plot"]);
    assert_eq!(
        lab.ablate(&["show", "plot", "--log"]).good().stdout,
        "plot: executed in run 1\nworking\n"
    );
    lab.write("plot.sh", &format!("{GOOD}echo done\n"))
        .run()
        .ran(["plot"]);
    // Of the settings of now, whatever ran last; of others, if there is nothing else.
    let log = || lab.ablate(&["show", "plot", "--log"]).good().stdout;
    assert_eq!(log(), "plot: executed in run 2\nworking\ndone\n");
    lab.write("plot.sh", &format!("{GOOD}echo never\n"));
    assert_eq!(
        log(),
        "plot: executed in run 2, with other settings\nworking\ndone\n"
    );
    lab.write("plot.sh", GOOD);
    assert_eq!(log(), "plot: executed in run 1\nworking\n");
    lab.run().ran([]);
    // Touched but not changed.
    lab.write("plot.sh", GOOD).run().ran([]);
}

#[test]
fn failures_are_messages_with_the_last_lines_of_output() {
    let lab = script("echo first\necho it broke >&2\nexit 3\n");
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 1);
    insta::assert_snapshot!(printed.stderr);

    let lab = script("echo forgot to write\n");
    insta::assert_snapshot!(lab.ablate(&["run"]).stderr);

    let lab = script("echo not parquet > $ABLATE_OUT/points.parquet\n");
    insta::assert_snapshot!(lab.ablate(&["run"]).stderr);

    let lab = script("ln -s $ABLATE_IN/t.parquet $ABLATE_OUT/points.parquet\n");
    insta::assert_snapshot!(lab.ablate(&["run"]).stderr);

    let lab = script("sleep 30\n");
    lab.edit("timeout = 20", "timeout = 0.3");
    insta::assert_snapshot!(lab.ablate(&["run"]).stderr);

    let lab = script(GOOD);
    lab.edit("run = [\"sh\"", "run = [\"no-such-program\"");
    let printed = lab.ablate(&["run"]);
    assert!(
        printed.stderr.contains("no-such-program"),
        "{}",
        printed.stderr
    );
}

#[test]
fn a_failed_command_leaves_nothing_that_counts_as_a_result() {
    let lab = script("cp $ABLATE_IN/t.parquet $ABLATE_OUT/points.parquet\nexit 1\n");
    assert_eq!(lab.run().printed.code, 1);
    let plan = lab.ablate(&["plan"]).good().stdout;
    assert!(plan.contains("will run  plot: never run before"), "{plan}");
    assert_eq!(lab.files("tmp").len(), 0);
}

#[test]
fn it_sees_a_clean_environment_and_an_empty_folder() {
    let lab = script(
        "env | cut -d= -f1 | sort\nls -A\ncp $ABLATE_IN/t.parquet $ABLATE_OUT/points.parquet\n",
    );
    let output = lab.command(&["run"]).env("SECRET", "x").output().unwrap();
    assert!(output.status.success());
    let log = lab.ablate(&["show", "plot", "--log"]).good().stdout;
    insta::assert_snapshot!(log);
}
