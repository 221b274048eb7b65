//! A new attack is a file and its lines in the list of attacks: help, checks, keys, `run`, `replay` and
//! `attack-stream` find it there, and no stored result is computed again.
//!
//! The sources are copied, `fixture.rs` is added to the copy, and the copy is built with the dependencies of this one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::lab::{CommandOutput, Lab};

const FIXTURE: &str = include_str!("fixture.rs");
const LIST: &str = "stages/kinds/attack/attacks/mod.rs";

/// The program with the new attack.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new_attack");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["src", "stages", "nn", "store"] {
        mirror(&sources.join(folder), &copy.join(folder));
    }
    for file in ["build.rs", "Cargo.lock"] {
        update(
            &copy.join(file),
            &std::fs::read(sources.join(file)).unwrap(),
        );
    }
    // Another name and version, so that what the other tests are built of stays where it is: cargo tells packages apart
    // by these and by their place in the workspace. No tests or benches, which take long to build. All else is the
    // same, so that the dependencies are built already.
    let manifest = std::fs::read_to_string(sources.join("Cargo.toml")).unwrap();
    let paths = manifest.split("path = \"").skip(1);
    let paths = paths.filter_map(|rest| rest.split('"').next());
    for file in paths.filter(|file| file.ends_with(".rs")) {
        update(&copy.join(file), b"fn main() {}\n");
    }
    let manifest = manifest
        .replace("\nversion = \"0.", "\nversion = \"9.")
        .replace("name = \"ablate\"", "name = \"ablate-fixture\"")
        .replace(
            "default-run = \"ablate\"",
            "default-run = \"ablate-fixture\"",
        );
    update(&copy.join("Cargo.toml"), manifest.as_bytes());

    update(
        &copy.join("stages/kinds/attack/attacks/fixture.rs"),
        FIXTURE.as_bytes(),
    );
    let list = std::fs::read_to_string(sources.join(LIST)).unwrap();
    let list = with_line(&list, "mod ", "mod fixture;");
    let list = with_line(&list, "    &", "    &fixture::Fixture,");
    update(&copy.join(LIST), list.as_bytes());

    let target = Path::new(env!("CARGO_BIN_EXE_ablate"));
    let profile = target.parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo tells a test of its package would make build scripts of dependencies run again.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name == "OUT_DIR" || name.starts_with("CARGO_") && name != "CARGO_HOME" {
            cargo.env_remove(&*name);
        }
    }
    let built = cargo
        .args([
            "test",
            "--workspace",
            "--test",
            "pipelines",
            "--no-run",
            "--offline",
            "-q",
        ])
        .current_dir(&copy)
        .env("CARGO_TARGET_DIR", profile.parent().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    profile.join("ablate-fixture")
});

/// The text with a line before the first that begins so.
fn with_line(text: &str, before: &str, line: &str) -> String {
    let at = text.find(&format!("\n{before}")).unwrap() + 1;
    format!("{}{line}\n{}", &text[..at], &text[at..])
}

/// A copy of a folder. Files that are the same keep their time, so that nothing is built twice.
fn mirror(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let names = |folder: &Path| -> Vec<std::ffi::OsString> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let ours = names(from);
    for gone in names(to).iter().filter(|name| !ours.contains(name)) {
        let gone = to.join(gone);
        if gone.is_dir() {
            std::fs::remove_dir_all(gone).unwrap();
        } else {
            std::fs::remove_file(gone).unwrap();
        }
    }
    for name in ours
        .iter()
        .filter(|name| *name != "target" && *name != ".ablate")
    {
        let (from, to) = (from.join(name), to.join(name));
        if from.is_dir() {
            mirror(&from, &to);
        } else if !from.ends_with("kinds/attack/attacks/mod.rs") {
            update(&to, &std::fs::read(from).unwrap());
        }
    }
}

fn update(file: &Path, bytes: &[u8]) {
    if std::fs::read(file).is_ok_and(|old| old == bytes) {
        return;
    }
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}

fn with_fixture(lab: &Lab, arguments: &[&str]) -> CommandOutput {
    let mut command = Command::new(&*PROGRAM);
    command.args(arguments).current_dir(lab.path(""));
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    CommandOutput::of(command.output().unwrap())
}

const PIPELINE: &str = include_str!("pipeline.toml");

const NEW: &str = include_str!("new.toml");

#[test]
fn a_new_attack_is_a_file_and_its_lines_in_the_list() {
    let lab = Lab::new(PIPELINE);
    let ran = lab.ablate(&["run", "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);

    // Nothing that exists is computed again, of any kind or attack.
    let planned = with_fixture(&lab, &["plan"]);
    assert!(
        planned
            .stdout
            .ends_with("ablate: 7 cached, 0 to run, 0 waiting\n"),
        "{}{}",
        planned.stdout,
        planned.stderr
    );

    // Help has it, with its parameters.
    let help = with_fixture(&lab, &["kinds", "attack"]).stdout;
    assert!(
        help.contains("Puts copies of a word before the text."),
        "{help}"
    );
    assert!(
        help.contains("How many copies of a word are put in."),
        "{help}"
    );

    // Checks know its parameters and what it needs.
    for (wrong, message) in [
        ("copies = 0", "`copies` is 0"),
        ("n = 2", "`n` does not apply to attack = \"fixture\""),
    ] {
        lab.write("pipeline.toml", &format!("{PIPELINE}{NEW}\n[stage.x]\nkind = \"attack\"\ninputs = {{ victim = \"lstm\", rows = \"tokens\", vocab = \"tokens.vocab\" }}\nattack = \"fixture\"\n{wrong}\n"));
        let said = with_fixture(&lab, &["plan"]);
        assert_eq!(said.code, 2);
        assert!(said.stderr.contains(message), "{}", said.stderr);
    }
    // The words of rows that a query made are not known, so they cannot be filled in.
    let without = NEW.replace(
        "rows = \"tokens\", vocab = \"tokens.vocab\"",
        "rows = \"some\"",
    );
    let some =
        "[stage.some]\nkind = \"sql\"\ninputs = { t = \"tokens\" }\nquery = \"SELECT * FROM t\"\n";
    lab.write("pipeline.toml", &format!("{PIPELINE}{without}{some}"));
    let said = with_fixture(&lab, &["plan"]).stderr;
    assert!(
        said.contains("the attack `fixture` needs the input `vocab`"),
        "{said}"
    );

    // It runs, its defaults are in its key, and what it says of itself is true.
    lab.write("pipeline.toml", &format!("{PIPELINE}{NEW}"));
    let ran = with_fixture(&lab, &["run", "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let audit = with_fixture(&lab, &["audit", "new.summary"]).stdout;
    assert!(audit.contains("copies = 2"), "{audit}");
    let shown = with_fixture(&lab, &["show", "new.examples", "--json", "-n", "3"]).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    for (n, row) in shown["head"].as_array().unwrap().iter().enumerate() {
        assert_eq!(row["turn"], n + 1, "items come in their order");
        assert_eq!(row["operations"], serde_json::json!(["insert", "insert"]));
        assert_eq!(row["words_changed"], 2);
    }
    let replayed = with_fixture(&lab, &["replay"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    assert!(
        replayed.stdout.contains("at most 2 words"),
        "{}",
        replayed.stdout
    );

    // The program without it says so.
    let said = lab.ablate(&["plan"]);
    assert_eq!(said.code, 2);
    assert!(
        said.stderr.contains("`attack` cannot be `fixture`"),
        "{}",
        said.stderr
    );
}
