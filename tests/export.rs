//! `ablate export`: results for other tools, read back by them where they are installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::Lab;
use crate::report::{CLAIM, RESULTS};

/// By a slip of the hand a pipeline, or a store, would be gone.
#[test]
fn what_people_wrote_and_stores_are_not_replaced() {
    let lab = Lab::demo();
    lab.run();
    let before = std::fs::read(lab.path("pipeline.toml")).unwrap();
    for (file, why) in [
        ("pipeline.toml", "already exists"),
        (".ablate/provenance.db", "is inside a store"),
        (".ablate/objects/x.csv", "is inside a store"),
    ] {
        let printed = lab.ablate(&["export", "summary", "--csv", "-o", file]);
        let expected = format!(
            "error: `{file}` {why} and would be overwritten\n |\n = help: -o names another file\n"
        );
        assert_eq!((printed.code, printed.stderr), (2, expected));
        assert_eq!(lab.ablate(&["report", "-o", file]).code, 2);
    }
    assert_eq!(std::fs::read(lab.path("pipeline.toml")).unwrap(), before);
    lab.ablate(&["fsck"]).good();
}

#[test]
fn tables_are_written_as_papers_print_them() {
    let lab = Lab::new(RESULTS);
    lab.run();
    let printed = |arguments: &[&str]| {
        lab.ablate(&[&["export", "results"], arguments].concat())
            .good()
            .stdout
    };
    assert_eq!(
        printed(&["--markdown"]),
        "**accuracy (P, 95% intervals by Student's t over seeds)**\n\n|  | clean | jsma |\n|---|---:|---:|\n| lstm | 0.850 \\[0.215, 1.485\\] (0.820) | 0.100 |\n| svm | 0.750 (0.750) |  |\n"
    );
    assert_eq!(
        printed(&["--latex", "--table", "accuracy"]),
        "% accuracy (P, 95% intervals by Student's t over seeds)\n\\begin{tabular}{lrr}\n\\toprule\n & clean & jsma \\\\\n\\midrule\n\
         lstm & 0.850 [0.215, 1.485] (0.820) & 0.100 \\\\\nsvm & 0.750 (0.750) &  \\\\\n\\bottomrule\n\\end{tabular}\n"
    );
    let csv = printed(&["--csv"]);
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("paper,table,row,col,seed,value,n,paper_value,mean,sd,executions,low,high,interval")
    );
    let first = lines.next().unwrap();
    let start = "P,accuracy,lstm,clean,1,0.8,10,0.82,0.85";
    assert!(first.starts_with(start), "{first}");
    assert!(first.ends_with(",Student's t over seeds"), "{first}");
    let wrong = lab.ablate(&["export", "results", "--latex", "--table", "acuracy"]);
    assert_eq!(wrong.code, 2);
    assert_eq!(
        wrong.stderr,
        "error: `results` has no table `acuracy`\n |\n = help: did you mean `accuracy`?\n = help: tables: accuracy\n"
    );
    // One table of several, in every form that has rows.
    lab.edit(
        "table = \"accuracy\", row = \"svm\"",
        "table = \"other\", row = \"svm\"",
    );
    lab.run();
    assert_eq!(
        printed(&["--csv", "--table", "other"]),
        "paper,table,row,col,seed,value,n,paper_value,mean,sd,executions,low,high,interval\n\
         P,other,svm,clean,1,0.75,10,0.75,0.75,,1,,,\n"
    );
    lab.ablate(&[
        "export",
        "results",
        "--parquet",
        "--table",
        "other",
        "-o",
        "one.parquet",
    ])
    .good();
    assert!(
        std::fs::read(lab.path("one.parquet"))
            .unwrap()
            .starts_with(b"PAR1")
    );
    let both = printed(&["--markdown"]);
    assert!(
        both.starts_with("**accuracy (P, 95% intervals by Student's t over seeds)**\n\n|")
            && both.contains("\n\n**other (P)**\n\n|"),
        "{both}"
    );
    let wrong = lab.ablate(&["export", "results", "--csv", "--table", "others"]);
    assert_eq!(
        wrong.stderr,
        "error: `results` has no table `others`\n |\n = help: did you mean `other`?\n = help: tables: accuracy, other\n"
    );
    let wrong = lab.ablate(&["export", "result", "--csv"]);
    assert_eq!(
        wrong.stderr,
        "error: cannot export `result`: run 2 has no stage `result`\n |\n = help: `ablate runs 2` lists what that run made\n"
    );
    let wrong = lab.ablate(&["export", "results"]);
    assert_eq!(wrong.code, 2, "a form must be named");
}

#[test]
fn parquet_is_the_object_itself_and_instances_become_one_table() {
    let lab = Lab::demo();
    lab.run();
    lab.ablate(&["export", "summary", "--parquet", "-o", "summary.parquet"])
        .good();
    let bytes = std::fs::read(lab.path("summary.parquet")).unwrap();
    assert_eq!(bytes, std::fs::read(lab.object("summary")).unwrap());
    let csv = lab.ablate(&["export", "scaled", "--csv"]).good().stdout;
    assert_eq!(csv, "scale,x\n1,1\n1,2\n2,2\n2,4\n3,3\n3,6\n");
    lab.ablate(&["export", "scaled", "--parquet", "-o", "scaled.parquet"])
        .good();
    assert!(
        std::fs::read(lab.path("scaled.parquet"))
            .unwrap()
            .starts_with(b"PAR1")
    );
}

/// Naive Bayes on a few reviews, and an attack on it.
const ATTACK: &str = include_str!("pipelines/attack.toml");

#[test]
fn examples_are_in_the_layout_of_textattacks_log() {
    let lab = Lab::new(ATTACK);
    lab.run();
    lab.ablate(&["export", "swap", "--textattack", "-o", "log.csv"])
        .good();
    let mut reader = csv::Reader::from_path(lab.path("log.csv")).unwrap();
    let names: Vec<String> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    assert_eq!(names[..2], ["original_text", "perturbed_text"]);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let examples = lab.rows("swap.examples");
    assert_eq!(rows.len(), examples.len());
    for (row, example) in rows.iter().zip(&examples) {
        let success = example["success"].as_bool().unwrap();
        assert_eq!(&row[8] == "Successful", success, "{row:?}");
        assert_eq!(
            row[0].matches("[[").count() as u64,
            example["words_changed"].as_u64().unwrap()
        );
        assert_eq!(
            row[5].parse::<u64>().ok(),
            example["predicted_after"].as_u64()
        );
    }
    let wrong = lab.ablate(&["export", "reviews", "--textattack"]);
    assert_eq!(
        wrong.stderr,
        "error: `reviews` has no examples of an attack on texts\n |\n = help: --textattack needs the stage of an attack on texts\n"
    );
}

#[test]
fn a_run_has_the_layout_of_mlflows_files() {
    let lab = Lab::new(RESULTS);
    lab.run();
    let printed = lab.ablate(&["export", "--mlflow"]).good();
    assert!(
        printed.stdout.starts_with("run 1: ") && printed.stdout.ends_with(" files in mlruns\n"),
        "{}",
        printed.stdout
    );
    let run = only_run(&lab.path("mlruns"));
    let read = |name: &str| std::fs::read_to_string(run.join(name)).unwrap();
    let metric = read("metrics/accuracy/lstm/clean");
    let lines: Vec<Vec<&str>> = metric
        .lines()
        .map(|line| line.split(' ').collect())
        .collect();
    assert_eq!(
        [lines[0][1], lines[0][2], lines[1][1], lines[1][2]],
        ["0.8", "1", "0.9", "2"]
    );
    assert!(read("params/results/columns").starts_with("[\"paper\", \"table\""));
    assert!(read("meta.yaml").contains("status: 3\n"), "finished");
    // Again: the same folder, nothing left over.
    std::fs::write(run.join("tags/stale"), "x").unwrap();
    lab.ablate(&["export", "--mlflow"]).good();
    assert_eq!(only_run(&lab.path("mlruns")), run);
    assert!(!run.join("tags/stale").exists());
}

/// The folder of the only run below `mlruns`.
fn only_run(root: &Path) -> PathBuf {
    let folders = |dir: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let experiments = folders(root);
    assert_eq!(experiments.len(), 1);
    let runs = folders(&experiments[0]);
    assert_eq!(runs.len(), 1);
    runs[0].clone()
}

/// Names that are the same once signs that MLflow does not take are replaced, and two stages with
/// a table of one name.
const ALIKE: &str = include_str!("pipelines/alike_names.toml");

/// The real client reads it, where a Python has it: `ABLATE_MLFLOW_PYTHON` names that Python.
#[test]
fn mlflow_itself_reads_the_run_back() {
    let python = std::env::var_os("ABLATE_MLFLOW_PYTHON").unwrap_or("python3".into());
    let has = Command::new(&python).args(["-c", "import mlflow"]).output();
    if !has.is_ok_and(|has| has.status.success()) {
        eprintln!("skipped: this Python has no mlflow");
        return;
    }
    let lab = Lab::new(RESULTS);
    lab.edit("[stage.results]", ALIKE);
    lab.write("claims.toml", CLAIM);
    lab.run();
    lab.ablate(&["export", "--mlflow"]).good();
    let script = r#"
import mlflow, sys
client = mlflow.MlflowClient(tracking_uri="file://" + sys.argv[1])
[experiment] = [e for e in client.search_experiments() if e.name == "paper"]
[run] = client.search_runs([experiment.experiment_id])
assert run.info.status == "FINISHED", run.info.status
assert run.info.run_name == "run 1", run.info.run_name
history = client.get_metric_history(run.info.run_id, "accuracy/lstm/clean")
assert sorted((m.step, m.value) for m in history) == [(1, 0.8), (2, 0.9)], history
assert run.data.metrics["accuracy/svm/clean"] == 0.75
assert run.data.metrics["accuracy/lstm/clean.paper"] == 0.82
# What looks alike in MLflow's letters is all there, each under a name of its own.
alike = sorted(v for k, v in run.data.metrics.items() if k.startswith("alike/"))
assert alike == [1.0, 2.0], run.data.metrics
shared = {k: v for k, v in run.data.metrics.items() if "shared" in k}
assert shared == {"first.shared/r/c": 3.0, "second.shared/r/c": 4.0}, shared
rows = [v for k, v in run.data.params.items() if k.startswith("axis") and k.split("/")[1].startswith("rows")]
assert sorted(rows) == ['[{ x = "a b/c" }]', '[{ x = "a b_c" }]'], run.data.params
assert run.data.params["results/columns"].startswith('["paper"')
assert run.data.tags["claim.good"] == "reproduced", run.data.tags
print("read")
"#;
    let output = Command::new(&python)
        .args(["-c", script])
        .arg(lab.path("mlruns"))
        .env("MLFLOW_ALLOW_FILE_STORE", "true")
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(out.trim(), "read", "{err}");
}
