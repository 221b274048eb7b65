//! `import ablate` in Python: results, the record and weights, by pyarrow, pandas, polars and NumPy. Skipped with a word
//! where no Python has them: ABLATE_PYTHON names one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::Lab;

/// Two seeds of a small model, and its predictions.
const PIPELINE: &str = r#"
[axes]
seed = [1, 2]

[stage.data]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 60, dev = 20, test = 20 }

[stage.tokens]
kind = "tokenize"
inputs = { rows = "data" }
scheme = "words"

[stage.model]
kind = "train"
inputs = { rows = "tokens" }
seed = "${seed}"
model = "svm"

[stage.predicted]
kind = "attack"
inputs = { victim = "model" }
attack = "none"
seed = "${seed}"

[stage.results]
kind = "evaluate"
cells = [{ from = "predicted", metric = "accuracy", table = "accuracy", row = "svm", col = "test" }]
"#;

const CLAIMS: &str = r#"
[claims]
tables = { results = "results" }

[claim.chance]
level = "must"
text = "It is better than chance."
query = "SELECT AVG(value) > 0.5 AS holds, AVG(value) AS accuracy FROM results"
"#;

/// A Python with pyarrow, pandas, polars and NumPy.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("ABLATE_PYTHON").map(PathBuf::from);
    if named.is_none() {
        eprintln!(
            "skipped: ABLATE_PYTHON does not name a Python with pyarrow, pandas, polars and numpy"
        );
    }
    named
}

/// Runs Python code in the folder of a lab, with our module.
fn run(python: &Path, lab: &Lab, code: &str) -> String {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let answer = Command::new(python)
        .args(["-W", "error", "-c", code])
        .current_dir(lab.dir())
        .env("PYTHONPATH", module)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("ABLATE_PROGRAM", env!("CARGO_BIN_EXE_ablate"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{code}\n{said}");
    String::from_utf8(answer.stdout).unwrap()
}

fn lab() -> Lab {
    let lab = Lab::new(PIPELINE);
    lab.write("claims.toml", CLAIMS);
    lab.run();
    lab
}

#[test]
fn results_the_record_and_weights_are_read_from_python() {
    let Some(python) = python() else { return };
    let lab = lab();
    let printed = run(
        &python,
        &lab,
        r#"
import ablate, numpy, pandas, polars, pyarrow
lab = ablate.open(".")
both = lab["predicted"].arrow()
one = lab["predicted", {"seed": 2}].pandas()
assert isinstance(both, pyarrow.Table) and isinstance(one, pandas.DataFrame)
assert isinstance(lab["results"].polars(), polars.DataFrame)
print(both.num_rows, both.column_names[0], len(one), "seed" in one)
assert lab["predicted[seed=2].examples"].arrow().equals(lab["predicted.examples", {"seed": 2}].arrow())
weights = lab.weights("model[seed=1]")
assert all(isinstance(array, numpy.ndarray) and array.ndim == 2 for array in weights.values())
print(sorted(weights), [claim["claim"] for claim in lab.claims()], len(lab.runs()))
print(lab.sql("SELECT COUNT(*) AS n FROM predicted").rows(), lab.provenance("runs").rows()[0]["outcome"])
accuracy = lab["results"].pandas().value.mean()
assert abs(accuracy - (both.to_pandas().eval("label == predicted_after")).mean()) < 1e-12
"#,
    );
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "40 seed 20 False");
    assert!(lines[1].ends_with("['chance'] 1"), "{printed}");
    assert_eq!(lines[2], "[{'n': 40}] ok");
}

#[test]
fn what_ablate_says_is_the_error_in_python() {
    let Some(python) = python() else { return };
    let lab = lab();
    let printed = run(
        &python,
        &lab,
        r#"
import ablate
lab = ablate.open(".")
for wrong in (lambda: lab["nothing"], lambda: lab.sql("SELECT nothing FROM results"), lambda: lab.weights("results"),
              lambda: lab.weights("model"), lambda: ablate.open("elsewhere")["results"]):
    try:
        wrong()
        raise SystemExit("no error")
    except ablate.AblateError as error:
        print(str(error).splitlines()[0])
"#,
    );
    let said: Vec<&str> = printed.lines().collect();
    assert_eq!(said.len(), 5, "{printed}");
    assert!(said[0].contains("nothing"), "{printed}");
    assert!(said[1].starts_with("error: the query failed"), "{printed}");
    assert!(said[2].starts_with("results has no weights"), "{printed}");
    assert_eq!(
        said[3],
        "model has several instances: name one, as in 'lstm[seed=1]'"
    );
    assert!(said[4].contains("elsewhere"), "{printed}");
}

/// The code of a notebook's cells, in order, as a kernel would run them.
#[test]
fn the_notebook_runs() {
    let Some(python) = python() else { return };
    let lab = lab();
    let notebook = include_str!("../docs/read-results.ipynb");
    let notebook: serde_json::Value = serde_json::from_str(notebook).unwrap();
    let cells = notebook["cells"].as_array().unwrap().iter();
    let code = cells
        .filter(|cell| cell["cell_type"] == "code")
        .map(|cell| {
            let lines = cell["source"].as_array().unwrap().iter();
            lines.filter_map(|line| line.as_str()).collect::<String>()
        });
    let code: Vec<String> = code.collect();
    assert!(code.len() >= 5, "{code:?}");
    run(&python, &lab, &code.join("\n"));
}
