//! The examples of models in Python, with the packages that they are for: PyTorch under attacks that follow its
//! gradients, a transformer in Hugging Face's style. Skipped with a word where no Python has them: ABLATE_TORCH_PYTHON
//! and ABLATE_PYTHON name one.

use std::path::Path;
use std::process::Command;

use crate::lab::Lab;

const PIPELINE: &str = r#"
[pipeline]
name = "own"
seed = 1

[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 600, dev = 40, test = 60 }

[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "words"

[stage.mine]
kind = "external-model"
inputs = { rows = "tokens" }
run = ["PYTHON", "MODEL"]
files = [FILES]
environment = [ENVIRONMENTS]
classes = 2
MORE

[axes.adversary]
ADVERSARIES

[stage.attacked]
kind = "attack"
inputs = { victim = "mine" }
with = ["adversary"]
"#;

/// What a model is served by and attacked with.
struct Example {
    model: &'static str,
    files: &'static str,
    more: &'static str,
    adversaries: &'static str,
}

/// A folder with the example, to be run by the Python that a variable names, if that has a module.
fn lab(variable: &str, module: &str, example: &Example) -> Option<(Lab, String)> {
    let Ok(python) = std::env::var(variable) else {
        println!("skipped: {variable} does not name a Python with {module}");
        return None;
    };
    let ask = |code: &str| {
        let said = Command::new(&python).args(["-c", code]).output().unwrap();
        assert!(said.status.success(), "{python} has no {module}");
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    };
    ask(&format!("import {module}"));
    let mut environments = vec![ask("import sys; print(sys.prefix)")];
    let base = ask("import sys; print(sys.base_prefix)");
    if !base.starts_with("/usr") {
        environments.push(base);
    }
    let listed: Vec<String> = environments.iter().map(|it| format!("{it:?}")).collect();
    let pipeline = PIPELINE
        .replace("PYTHON", &python)
        .replace("MODEL", example.model)
        .replace("FILES", example.files)
        .replace("ENVIRONMENTS", &listed.join(", "))
        .replace("MORE", example.more)
        .replace("ADVERSARIES", example.adversaries);
    let lab = Lab::new(&pipeline);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/own-model");
    for name in [example.model, "train_torch.py"] {
        std::fs::copy(folder.join(name), lab.path(name)).unwrap();
    }
    Some((lab, python))
}

#[test]
fn a_pytorch_model_is_attacked_along_its_gradients() {
    let example = Example {
        model: "model_torch.py",
        files: "\"model_torch.py\", \"weights.pt\"",
        more: "reads = \"tokens\"\ngradients = true",
        adversaries: "clean = { attack = \"none\" }\n\
                      jsma = { attack = \"jsma\", max_words = 3 }\n\
                      hotflip = { attack = \"hotflip-words\", max_flips = 3, similarity = 0.0, \
                      same_part_of_speech = false, other_lexeme = false, keep_stop_words = false }\n",
    };
    let Some((lab, python)) = lab("ABLATE_TORCH_PYTHON", "torch", &example) else {
        return;
    };
    // Trained outside of `ablate`, on what it exports.
    lab.write("weights.pt", "");
    lab.run_with(&["tokens"]);
    let object = lab.object("tokens.tokens");
    std::fs::copy(object, lab.path("tokens.parquet")).unwrap();
    let mut train = Command::new(python);
    let trained = train.arg("train_torch.py").current_dir(lab.dir()).output();
    let trained = trained.unwrap();
    let said = String::from_utf8_lossy(&trained.stderr).into_owned();
    if !trained.status.success() && said.contains("No module named 'pyarrow'") {
        println!("skipped: the Python of ABLATE_TORCH_PYTHON has no pyarrow");
        return;
    }
    assert!(trained.status.success(), "{said}");
    let ran = lab.run();
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    let rows = |adversary: &str| lab.rows(&format!("attacked[adversary={adversary}].examples"));
    let correct = rows("clean")
        .iter()
        .filter(|row| row["correct_before"] == true)
        .count();
    let clean = rows("clean");
    let right = clean
        .iter()
        .filter(|row| row["label"] == row["predicted_before"])
        .count();
    println!("clean: {right} of {} ({correct})", clean.len());
    assert!(right * 10 > clean.len() * 8, "it has learnt: {right}");
    for adversary in ["jsma", "hotflip"] {
        let attacked = rows(adversary);
        let won = attacked.iter().filter(|row| row["success"] == true).count();
        println!("{adversary}: {won} of {}", attacked.len());
        assert!(won * 4 > right, "{adversary}: {won} of {right}");
        for row in attacked.iter().filter(|row| row["success"] == true) {
            assert!(row["words_changed"].as_i64().unwrap() <= 3, "{row}");
        }
        let asked = attacked
            .iter()
            .filter(|row| row["backward"].as_i64() > Some(0));
        assert!(asked.count() >= right, "gradients were asked for");
    }
    let replayed = lab.ablate(&["replay"]).good().stdout;
    assert!(replayed.contains(" 0 mismatches"), "{replayed}");
    lab.run().ran([]);
}

#[test]
fn a_transformer_in_hugging_faces_style_is_attacked() {
    let example = Example {
        model: "model_transformer.py",
        files: "\"model_transformer.py\"",
        more: "",
        adversaries: "clean = { attack = \"none\" }\n\
                      random = { attack = \"replace-word\", place = \"random\", max_candidates = 30 }\n",
    };
    let Some((lab, _)) = lab("ABLATE_PYTHON", "numpy", &example) else {
        return;
    };
    let ran = lab.run();
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    let rows = lab.rows("attacked[adversary=random].examples");
    let won = rows.iter().filter(|row| row["success"] == true).count();
    assert!(won > 0 && won < rows.len(), "{won} of {}", rows.len());
    let replayed = lab.ablate(&["replay"]).good().stdout;
    assert!(replayed.contains(" 0 mismatches"), "{replayed}");
    let asked = lab
        .ablate(&["predict", "mine", "a wonderful film"])
        .good()
        .stdout;
    assert!(asked.contains("a wonderful film"), "{asked}");
}
