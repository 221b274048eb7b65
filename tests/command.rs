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
fn what_it_prints_is_no_notice_of_ours() {
    let lab = script(&format!("echo notice: all is well\n{GOOD}"));
    let ran = lab.run();
    ran.ran(["t", "plot"]);
    let printed = &ran.printed;
    let said = format!("{}{}", printed.stdout, printed.stderr);
    assert!(!said.contains("all is well"), "{said}");
    assert_eq!(
        lab.ablate(&["show", "plot", "--log"]).good().stdout,
        "plot: executed in run 1\n notice: all is well\nworking\n"
    );
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

/// pandas and pyarrow drop what a table says of itself beside its columns; what comes out of them can be trained on all the same.
#[test]
fn tables_that_went_through_pandas_keep_their_meaning() {
    let Ok(python) = std::env::var("ABLATE_PYTHON") else {
        println!("skipped: ABLATE_PYTHON does not name a Python with pandas and pyarrow");
        return;
    };
    let prefix = |name: &str| {
        let code = format!("import sys; print(sys.{name})");
        let said = std::process::Command::new(&python)
            .args(["-c", &code])
            .output();
        String::from_utf8(said.unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    };
    let mut environments = vec![prefix("prefix")];
    let base = prefix("base_prefix");
    if !base.starts_with("/usr") {
        environments.push(base);
    }
    let pipeline = r#"
[pipeline]
name = "frames"
seed = 3

[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 120, dev = 20, test = 40 }

[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "words"

[axes]
way = ["pandas", "pyarrow"]

[stage.frame]
kind = "command"
inputs = { rows = "tokens" }
run = ["PYTHON", "frame.py", "${way}"]
files = ["frame.py"]
environment = [ENVIRONMENTS]
outputs = ["rows", "counts"]

[stage.bayes]
kind = "train"
inputs = { rows = "frame.rows" }
model = "naive-bayes"

[stage.clean]
kind = "attack"
inputs = { victim = "bayes" }
attack = "none"
"#;
    let listed: Vec<String> = environments
        .iter()
        .map(|folder| format!("{folder:?}"))
        .collect();
    let pipeline = pipeline
        .replace("PYTHON", &python)
        .replace("ENVIRONMENTS", &listed.join(", "));
    let lab = Lab::new(&pipeline);
    let frame = r#"
import os, sys
import pandas
import pyarrow.parquet

read, out = os.environ["ABLATE_IN"] + "/rows.parquet", os.environ["ABLATE_OUT"]
if sys.argv[1] == "pandas":
    rows = pandas.read_parquet(read)
    rows["length"] = rows["ids"].map(len)
    rows = rows[rows["length"] > 3]
    rows.to_parquet(out + "/rows.parquet")
else:
    table = pyarrow.parquet.read_table(read)
    pyarrow.parquet.write_table(table, out + "/rows.parquet")
pandas.DataFrame({"n": [1]}).to_parquet(out + "/counts.parquet")
"#;
    lab.write("frame.py", frame);
    lab.run();
    for way in ["pandas", "pyarrow"] {
        let clean = lab.rows(&format!("clean[way={way}].examples"));
        assert!(clean.len() > 30, "{way}: {}", clean.len());
    }
    let log = |way: &str| {
        let stage = format!("frame[way={way}]");
        lab.ablate(&["show", &stage, "--log"]).good().stdout
    };
    let line = "ablate: `rows` has the columns of `rows` and inherits its metadata";
    for way in ["pandas", "pyarrow"] {
        assert!(log(way).contains(line), "{}", log(way));
    }
}
