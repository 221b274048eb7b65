//! `ablate schema` accepts every file of this repository, and refuses what is wrong. A validator of JSON Schemas
//! judges it, a package of its own in `schema_check/`, built for this.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use crate::lab::Lab;

/// The validator; none where its dependencies cannot be fetched.
static CHECKER: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema_check");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schema_check");
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo tells a test of its package is not for another package.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_") && name != "CARGO_HOME" {
            cargo.env_remove(&*name);
        }
    }
    let built = cargo
        .args(["build", "--locked", "-q"])
        .current_dir(sources)
        .env("CARGO_TARGET_DIR", &target)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    let unreachable = ["failed to download", "failed to get", "failed to fetch"];
    if unreachable.iter().any(|why| said.contains(why)) {
        println!("skipped: the validator of schemas cannot be fetched here");
        return None;
    }
    assert!(built.status.success(), "{said}");
    Some(target.join("debug/schema-check"))
});

/// Holds files to the schema of a kind of file; what does not fit, a line each.
fn check(of: &str, files: &[PathBuf]) -> Option<Result<(), String>> {
    let checker = CHECKER.as_ref()?;
    let lab = Lab::new("");
    let schema = lab.ablate(&["schema", of]).good().stdout;
    lab.write("schema.json", &schema);
    let Output { status, stdout, .. } = Command::new(checker)
        .arg(lab.path("schema.json"))
        .args(files)
        .output()
        .unwrap();
    let said = String::from_utf8(stdout).unwrap();
    Some(match status.code() {
        Some(0) => Ok(()),
        Some(1) if !said.is_empty() => Err(said),
        other => panic!("the validator ended with {other:?}: {said}"),
    })
}

/// Files that are not whole: a test writes keys into one, the other is for a program with another attack.
const INCOMPLETE: [&str; 2] = ["alike_names.toml", "new.toml"];

/// The TOML files of a folder and those below, with what they are.
fn files(folder: &Path, found: &mut Vec<(&'static str, PathBuf)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let skipped = name.starts_with('.') || ["target", "catalogue", "fuzz"].contains(&&*name);
        if path.is_dir() && !skipped {
            files(&path, found);
        } else if name.ends_with(".toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let Ok(table) = toml::from_str::<toml::Table>(&text) else {
                continue;
            };
            let sections = [
                ("stage", "pipeline"),
                ("claim", "claims"),
                ("figure", "figures"),
            ];
            let is = sections.iter().find(|(key, _)| table.contains_key(*key));
            let is = is.filter(|_| !INCOMPLETE.contains(&&*name));
            found.extend(is.map(|(_, of)| (*of, path)));
        }
    }
}

#[test]
fn every_file_of_the_repository_fits_its_schema() {
    let mut all = Vec::new();
    files(Path::new(env!("CARGO_MANIFEST_DIR")), &mut all);
    for (of, least) in [("pipeline", 40), ("claims", 4), ("figures", 1)] {
        let ours = all.iter().filter(|(known, _)| *known == of);
        let ours: Vec<PathBuf> = ours.map(|(_, path)| path.clone()).collect();
        assert!(ours.len() >= least, "{of}: {ours:?}");
        let Some(judged) = check(of, &ours) else {
            return;
        };
        assert_eq!(judged, Ok(()), "{of}");
    }
}

/// What is wrong with a pipeline, claims or figures, if anything.
fn judged(of: &str, text: &str) -> Option<Result<(), String>> {
    let lab = Lab::new("");
    lab.write("file.toml", text);
    check(of, &[lab.path("file.toml")])
}

const STAGES: &str =
    "[stage.t]\nkind = \"tokenize\"\ninputs = { rows = \"d\" }\nscheme = \"words\"\n";

#[test]
fn a_wrong_key_type_or_value_is_refused() {
    let cases = [
        ("kind = \"tokenize\"", "kind = \"tokenise\""),
        ("scheme", "schema"),
        ("scheme = \"words\"", ""),
        ("scheme = \"words\"", "scheme = 3"),
        (
            "scheme = \"words\"",
            "scheme = \"words\"\nmin_count = \"two\"",
        ),
        ("rows = ", "row = "),
        ("\"d\"", "7"),
        ("[stage.t]", "[stages.t]"),
        ("[stage.t]", "[pipeline]\nnames = \"x\"\n[stage.t]"),
        ("kind = \"tokenize\"\n", ""),
    ];
    match judged("pipeline", STAGES) {
        None => return,
        good => assert_eq!(good, Some(Ok(()))),
    }
    for (from, to) in cases {
        let text = STAGES.replace(from, to);
        assert!(judged("pipeline", &text).unwrap().is_err(), "{text}");
    }
}

#[test]
fn attacks_and_models_have_their_own_keys() {
    let attack = |more: &str| {
        let text = format!("[stage.a]\nkind = \"attack\"\ninputs = {{ victim = \"m\" }}\n{more}\n");
        judged("pipeline", &text)
    };
    let Some(swap) = attack("attack = \"swap\"\nn = 3") else {
        return;
    };
    assert_eq!(swap, Ok(()));
    assert!(
        attack("attack = \"jsma\"\nn = 3").unwrap().is_err(),
        "n is of swap"
    );
    assert!(
        attack("attack = \"swap\"\nn = 0").unwrap().is_err(),
        "n is at least 1"
    );
    assert!(attack("attack = \"swpa\"").unwrap().is_err());
    assert!(attack("").unwrap().is_err(), "no attack");
    let train = |more: &str| {
        let text = format!("[stage.m]\nkind = \"train\"\ninputs = {{ rows = \"t\" }}\n{more}\n");
        judged("pipeline", &text).unwrap()
    };
    assert_eq!(train("model = \"lstm\"\nunits = 8\nepochs = 3"), Ok(()));
    assert!(
        train("model = \"svm\"\nunits = 8").is_err(),
        "units are of networks"
    );
    assert!(
        train("model = \"lstm\"\nepochs = 2.5").is_err(),
        "an integer"
    );
    assert!(train("model = \"lstm\"\nlearning_rate = -1").is_err());
    assert!(train("model = \"lstm\"\noptimiser = \"adamw\"").is_err());
}

/// Axes of points, inputs by axis, copies, picks, exclusions, ablations and choices.
#[test]
fn the_language_of_experiments_is_allowed() {
    let text = r#"
[pipeline]
name = "grid"

[axes]
seed = [1, 2, 3]
victim = ["best", "svm"]

[axes.adversary]
clean = { attack = "none" }
swap-3 = { attack = "swap", n = 3, "inputs.bayes" = "nb" }

[axes.variant]
base = {}
no-dropout = { "lstm.dropout" = 0.0 }

[choices]
last-epoch = { "lstm.keep" = "last" }

[stage.lstm]
kind = "train"
inputs = { rows = "tokens" }
model = "lstm"
units = "${units}"
seed = "${seed}"

[stage.best]
pick = "lstm"
select = { over = ["units"], metric = "lstm.model", column = "dev_accuracy", best = "max" }

[stage.svm]
like = "lstm"
model = "svm"

[stage.attacked]
kind = "attack"
inputs = { victim = "${victim}" }
with = ["adversary"]
except = [{ victim = ["svm"], adversary = "swap-3" }]

[profile.smoke.axes]
adversary = ["clean"]

[profile.smoke.axes.adversary.swap-3]
n = 1

[profile.smoke.stage.lstm]
epochs = 1
"#;
    // TOML has one table for a name: the last two are of different profiles.
    let text = text.replace(
        "[profile.smoke.axes.adversary",
        "[profile.other.axes.adversary",
    );
    let Some(good) = judged("pipeline", &text) else {
        return;
    };
    assert_eq!(good, Ok(()));
    for (from, to) in [
        ("pick = \"lstm\"", "pick = \"lstm\"\nunits = 3"),
        ("base = {}", "base = { kind = \"train\" }"),
        ("best = \"max\"", "best = \"most\""),
        ("over = [\"units\"], ", ""),
        ("seed = [1, 2, 3]", "seed = 1"),
        ("[profile.smoke.stage.lstm]", "[profile.smoke.stages.lstm]"),
    ] {
        let wrong = text.replace(from, to);
        assert!(judged("pipeline", &wrong).unwrap().is_err(), "{to}");
    }
}

#[test]
fn claims_and_figures_are_held_to_theirs() {
    let claims = "[claims]\ntables = { r = \"results\" }\n[claim.C1]\nlevel = \"must\"\ntext = \"t\"\nquery = \"SELECT true AS holds FROM r\"\nseeds = 3\n";
    let figures = "[figure.f]\ntable = \"results\"\nkind = \"bars\"\nx = \"row\"\ny = \"value\"\n";
    let Some(good) = judged("claims", claims) else {
        return;
    };
    assert_eq!(good, Ok(()));
    assert_eq!(judged("figures", figures), Some(Ok(())));
    for (from, to) in [
        ("\"must\"", "\"most\""),
        ("level", "levels"),
        ("text = \"t\"\n", ""),
    ] {
        assert!(
            judged("claims", &claims.replacen(from, to, 1))
                .unwrap()
                .is_err(),
            "{to}"
        );
    }
    for (from, to) in [
        ("\"bars\"", "\"bar\""),
        ("y = \"value\"\n", ""),
        ("x =", "z ="),
    ] {
        assert!(
            judged("figures", &figures.replacen(from, to, 1))
                .unwrap()
                .is_err(),
            "{to}"
        );
    }
}
