//! examples/own-model with the packages that it is for: scikit-learn, PyTorch under attacks that follow its gradients, a
//! transformer in Hugging Face's style. ABLATE_SKLEARN_PYTHON and ABLATE_TORCH_PYTHON name Pythons of virtual
//! environments that have them; without, the tests say that they are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::lab::Lab;

/// A Python with packages.
struct Python {
    program: PathBuf,
}

impl Python {
    /// The one that a variable names; none if it names none.
    fn named(variable: &str, packages: &str) -> Option<Python> {
        let program = std::env::var_os(variable).map(PathBuf::from);
        if program.is_none() {
            eprintln!("skipped: {variable} does not name a Python with {packages}");
        }
        program.map(|program| Python { program })
    }

    fn says(&self, lab: &Lab, code: &str) -> String {
        let mut command = Command::new(&self.program);
        let answer = command.args(["-c", code]).current_dir(lab.dir()).output();
        let answer = answer.unwrap();
        assert!(
            answer.status.success(),
            "{}: {code}",
            self.program.display()
        );
        String::from_utf8(answer.stdout).unwrap().trim().to_owned()
    }

    /// Runs a program of the user in the folder.
    fn run(&self, lab: &Lab, program: &str) {
        let ran = Command::new(&self.program)
            .arg(program)
            .current_dir(lab.dir())
            .output();
        let ran = ran.unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{program}: {said}");
    }

    /// A copy of the example, with this Python's environment where it wants one.
    fn example(&self, pipeline: &str) -> Lab {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/own-model");
        let lab = Lab::new("");
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap();
            if file.path().is_file() {
                std::fs::copy(file.path(), lab.dir().join(file.file_name())).unwrap();
            }
        }
        let prefix = self.says(&lab, "import sys; print(sys.prefix)");
        std::os::unix::fs::symlink(prefix, lab.path(".venv")).unwrap();
        // As the page says: a Python outside system folders is named too.
        let base = self.says(&lab, "import sys; print(sys.base_prefix)");
        let text = std::fs::read_to_string(folder.join(pipeline)).unwrap();
        let written = "environment = [\".venv\"]";
        assert!(text.contains(written));
        let named = format!("environment = [\".venv\", {:?}]", base);
        lab.write(
            "pipeline.toml",
            &match base.starts_with("/usr") {
                true => text,
                false => text.replace(written, &named),
            },
        );
        lab
    }
}

fn won(rows: &[Value]) -> usize {
    rows.iter().filter(|row| row["success"] == true).count()
}

fn right(rows: &[Value]) -> usize {
    let right = |row: &&Value| row["label"] == row["predicted_before"];
    rows.iter().filter(right).count()
}

fn replayed(lab: &Lab) {
    let said = lab.ablate(&["replay"]).good().stdout;
    assert!(said.ends_with(" rows, 0 mismatches\n"), "{said}");
}

/// The commands of docs/attack-your-own-model.md.
#[test]
fn a_model_of_scikit_learn_is_attacked_beside_one_of_ours() {
    let Some(python) = Python::named("ABLATE_SKLEARN_PYTHON", "scikit-learn and pyarrow") else {
        return;
    };
    let lab = python.example("pipeline.toml");
    lab.ablate(&["-f", "data.toml", "run"]).good();
    lab.ablate(&[
        "-f",
        "data.toml",
        "export",
        "reviews",
        "--csv",
        "-o",
        "reviews.csv",
    ])
    .good();
    python.run(&lab, "train_sklearn.py");
    lab.run();
    let rows = |victim: &str, adversary: &str| {
        lab.rows(&format!(
            "attacked[victim={victim},adversary={adversary}].examples"
        ))
    };
    let clean = rows("mine", "clean");
    assert!(
        right(&clean) * 10 > clean.len() * 8,
        "{} of {}",
        right(&clean),
        clean.len()
    );
    let fallen = ["swap-1", "swap-3"].map(|adversary| won(&rows("mine", adversary)));
    assert!(0 < fallen[0] && fallen[0] < fallen[1], "{fallen:?}");
    // The model by itself says the same.
    let asked = lab
        .ablate(&["predict", "mine", "a wonderful film", "--json"])
        .good();
    let asked: Value = serde_json::from_str(&asked.stdout).unwrap();
    let code = "import pickle; print(*pickle.load(open('model.pkl', 'rb')).predict_proba(['a wonderful film'])[0])";
    let alone = python.says(&lab, code);
    for (ours, alone) in asked["probabilities"]
        .as_array()
        .unwrap()
        .iter()
        .zip(alone.split(' '))
    {
        let alone: f64 = alone.parse().unwrap();
        assert!(
            (ours.as_f64().unwrap() - alone).abs() < 1e-6,
            "{asked} {alone}"
        );
    }
    replayed(&lab);
    lab.run().ran([]);
    // Other weights are another model: it runs again, and nothing else does.
    let train = std::fs::read_to_string(lab.path("train_sklearn.py")).unwrap();
    lab.write(
        "train_sklearn.py",
        &train.replace("max_iter=1000", "max_iter=1000, C=0.01"),
    );
    python.run(&lab, "train_sklearn.py");
    let mut ran = lab.run().with("ran");
    ran.retain(|stage| !stage.contains("mine") && stage != "results");
    assert_eq!(ran, Vec::<String>::new());
}

#[test]
fn a_model_of_pytorch_is_attacked_along_its_gradients() {
    let Some(python) = Python::named("ABLATE_TORCH_PYTHON", "torch and pyarrow") else {
        return;
    };
    let lab = python.example("torch.toml");
    lab.ablate(&["-f", "data.toml", "run"]).good();
    lab.ablate(&[
        "-f",
        "data.toml",
        "export",
        "tokens",
        "--parquet",
        "-o",
        "tokens.parquet",
    ])
    .good();
    python.run(&lab, "train_torch.py");
    lab.run();
    let rows = |adversary: &str| lab.rows(&format!("attacked[adversary={adversary}].examples"));
    let clean = rows("clean");
    let right = right(&clean);
    assert!(right * 10 > clean.len() * 8, "{right} of {}", clean.len());
    let by_chance = won(&rows("random-word"));
    let mut won_by = Vec::new();
    for adversary in ["jsma", "hotflip"] {
        let rows = rows(adversary);
        println!(
            "{adversary}: {} of {right}, by chance {by_chance}",
            won(&rows)
        );
        for row in rows.iter().filter(|row| row["attacked"] == true) {
            assert!(row["words_changed"].as_i64() <= Some(1), "{row}");
            assert!(row["backward"].as_i64() > Some(0), "{row}");
        }
        won_by.push(won(&rows));
    }
    assert!(
        won_by[0] > 3 * by_chance.max(1),
        "{won_by:?}, by chance {by_chance}"
    );
    assert!(won_by[1] > by_chance, "{won_by:?}, by chance {by_chance}");
    replayed(&lab);
    lab.run().ran([]);
    // A gradient of the loss, which points the other way, would make the model look robust.
    let model = std::fs::read_to_string(lab.path("model_torch.py")).unwrap();
    let turned = model.replace("[vectors.grad[n,", "[-vectors.grad[n,");
    assert_ne!(turned, model);
    lab.write("model_torch.py", &turned);
    let refused = lab.ablate(&["run"]);
    assert_eq!(refused.code, 1);
    let words = "the gradient points the wrong way";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
}

#[test]
fn a_transformer_in_hugging_faces_style_is_attacked() {
    let Some(python) = Python::named("ABLATE_SKLEARN_PYTHON", "NumPy") else {
        return;
    };
    let lab = python.example("pipeline.toml");
    lab.edit(
        "\"model.py\"]\nfiles = [\"model.py\", \"model.pkl\"]",
        "\"model_transformer.py\"]\nfiles = [\"model_transformer.py\"]",
    );
    lab.edit("victim = [\"mine\", \"lstm\"]", "victim = [\"mine\"]");
    lab.run_with(&["attacked"]);
    let rows = lab.rows("attacked[victim=mine,adversary=random-word].examples");
    // Its weights are random, and so are its predictions; an attack turns some of those that happen to be right.
    let (won, right) = (won(&rows), right(&rows));
    assert!(
        0 < won && won < right && right < rows.len(),
        "{won} of {right}"
    );
    replayed(&lab);
    let asked = lab
        .ablate(&["predict", "mine", "a wonderful film"])
        .good()
        .stdout;
    assert!(asked.ends_with("]  a wonderful film\n"), "{asked}");
}
