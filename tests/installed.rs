//! What a program runs on is part of its result: interpreters, packages and lock files are in the key, secrets are not.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::{CommandOutput, Lab};

const PYTHON: &str = "/usr/bin/python3";

/// A module that is installed, and a program that prints what it says.
const PROGRAM: &str = r#"
import os, shutil, tiny
print("tiny says", tiny.said)
shutil.copy(os.environ["ABLATE_IN"] + "/t.parquet", os.environ["ABLATE_OUT"] + "/o.parquet")
"#;

fn pipeline(run: &str, more: &str) -> String {
    format!(
        "[stage.t]\nkind = \"table\"\nrows = [{{ x = 1 }}]\n[stage.c]\nkind = \"command\"\n\
         inputs = {{ t = \"t\" }}\noutputs = [\"o\"]\nfiles = [\"program.py\"]\nrun = {run}\n{more}\n"
    )
}

/// A folder with a virtual environment `.venv`; none where there is no Python to make one with.
fn with_venv(pipeline: &str) -> Option<Lab> {
    let lab = Lab::new(pipeline);
    lab.write("program.py", PROGRAM);
    let mut made = Command::new(PYTHON);
    made.args(["-m", "venv", "--without-pip", ".venv"]);
    let made = made.current_dir(lab.dir()).output();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("skipped: {PYTHON} cannot make virtual environments here");
        return None;
    }
    Some(lab)
}

fn site(lab: &Lab) -> PathBuf {
    let mut libs = std::fs::read_dir(lab.path(".venv/lib")).unwrap().flatten();
    libs.next().unwrap().path().join("site-packages")
}

/// Installs a version of the distribution `tiny` as pip would: files, METADATA, then the RECORD; an older one goes.
fn install(lab: &Lab, version: &str, said: &str) {
    let site = site(lab);
    for entry in std::fs::read_dir(&site).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("tiny-") {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    let text = format!("said = {said:?}\n");
    std::fs::write(site.join("tiny.py"), &text).unwrap();
    let sum = sha256(&site.join("tiny.py"));
    let info = format!("tiny-{version}.dist-info");
    std::fs::create_dir(site.join(&info)).unwrap();
    let metadata = format!("Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n");
    std::fs::write(site.join(&info).join("METADATA"), metadata).unwrap();
    let record = format!(
        "tiny.py,sha256={sum},{}\n__pycache__/tiny.cpython-312.pyc,,\n{info}/METADATA,,\n{info}/RECORD,,\n",
        text.len()
    );
    std::fs::write(site.join(&info).join("RECORD"), record).unwrap();
}

/// As a RECORD writes it.
fn sha256(file: &Path) -> String {
    let program = "import base64, hashlib, sys\n\
                   digest = hashlib.sha256(open(sys.argv[1], 'rb').read()).digest()\n\
                   print(base64.urlsafe_b64encode(digest).rstrip(b'=').decode())";
    let mut python = Command::new(PYTHON);
    let printed = python.args(["-c", program]).arg(file).output().unwrap();
    String::from_utf8(printed.stdout).unwrap().trim().to_owned()
}

const IN_VENV: &str = r#"["python", "program.py"]"#;

#[test]
fn an_upgraded_package_runs_its_stage_again_and_explain_names_it() {
    let Some(lab) = with_venv(&pipeline(IN_VENV, "environment = [\".venv\"]")) else {
        return;
    };
    install(&lab, "1.2.0", "first");
    lab.run().ran(["c", "t"]);
    lab.run().ran([]);
    // Compiled elsewhere, nothing has changed.
    let mut used = Command::new(lab.path(".venv/bin/python"));
    used.args(["-c", "import tiny"])
        .env_remove("PYTHONDONTWRITEBYTECODE");
    assert!(used.output().unwrap().status.success());
    assert!(site(&lab).join("__pycache__").is_dir());
    lab.run().ran([]);
    // The same version with other contents.
    install(&lab, "1.2.0", "forged");
    let told = lab.ablate(&["explain", "c"]).good().stdout;
    assert!(told.contains("\n  tiny was 1.2.0 ("), "{told}");
    install(&lab, "1.3.0", "second");
    let told = lab.ablate(&["explain", "c"]).good().stdout;
    assert!(told.contains("\n  tiny was 1.2.0, now 1.3.0\n"), "{told}");
    let planned = lab.ablate(&["plan"]).good().stdout;
    assert!(planned.contains("tiny was 1.2.0, now 1.3.0"), "{planned}");
    lab.run().ran(["c"]);
    let log = lab.ablate(&["show", "c", "--log"]).good().stdout;
    assert!(log.contains("tiny says second"), "{log}");
    // Installed again as it was, the old result is found.
    install(&lab, "1.2.0", "first");
    lab.run().ran([]);
    let audit = lab.ablate(&["audit", "c"]).good().stdout;
    assert!(audit.contains("packages tiny 1.2.0\n"), "{audit}");
}

/// Without a declared environment: the interpreter that is found counts, through links and the first lines of scripts.
#[test]
fn the_interpreter_that_is_found_is_in_the_key() {
    let lab = Lab::new(&pipeline(
        "[\"shell\", \"-c\", \"cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]",
        "",
    ));
    lab.write("program.py", "");
    // A program in a folder of PATH that is neither the system's nor the pipeline's.
    let outside = tempfile::tempdir().unwrap();
    let shell = outside.path().join("shell");
    let link = |to: &str| {
        let _ = std::fs::remove_file(&shell);
        std::os::unix::fs::symlink(to, &shell).unwrap();
    };
    let run = |arguments: &[&str]| {
        let path = format!(
            "{}:{}",
            outside.path().display(),
            std::env::var("PATH").unwrap()
        );
        CommandOutput::of(lab.command(arguments).env("PATH", path).output().unwrap())
    };
    link("/bin/sh");
    run(&["run"]).good();
    assert!(run(&["plan"]).good().stdout.contains("0 to run"));
    // The same bytes under another path are the same program.
    let copy = outside.path().join("copy");
    std::fs::copy("/bin/sh", &copy).unwrap();
    link(copy.to_str().unwrap());
    assert!(run(&["plan"]).good().stdout.contains("0 to run"));
    // Other bytes are another.
    let mut bytes = std::fs::read(&copy).unwrap();
    bytes.extend(b"another build");
    std::fs::write(&copy, bytes).unwrap();
    let told = run(&["explain", "c"]).good().stdout;
    assert!(told.contains("c will run: shell was "), "{told}");
    run(&["run"]).good();
}

#[test]
fn a_lock_file_stands_for_an_environment() {
    let more = "environment = [\".venv\"]\nlock = \"requirements.txt\"";
    let Some(lab) = with_venv(&pipeline(IN_VENV, more)) else {
        return;
    };
    install(&lab, "1.2.0", "first");
    lab.write("requirements.txt", "tiny==1.2.0\n");
    lab.run().ran(["c", "t"]);
    // Built elsewhere: other files of the same version, which the lock does not tell apart.
    install(&lab, "1.2.0", "built elsewhere");
    lab.run().ran([]);
    // It must be true.
    install(&lab, "1.3.0", "second");
    let refused = lab.ablate(&["plan"]);
    assert_eq!(refused.code, 2);
    let why = "requirements.txt says tiny 1.2.0, and 1.3.0 is installed";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    assert!(refused.stderr.contains("lock = "), "{}", refused.stderr);
    lab.write("requirements.txt", "tiny==1.3.0\n");
    let told = lab.ablate(&["explain", "c"]).good().stdout;
    assert!(told.contains("tiny was 1.2.0, now 1.3.0"), "{told}");
    lab.run().ran(["c"]);
    lab.edit("requirements.txt", "poetry.lock");
    let refused = lab.ablate(&["plan"]);
    assert_eq!(refused.code, 2);
    let why = "`poetry.lock` is not a lock file that can be read";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
}

/// The first environment comes first in PATH, whatever it is called; also when a stored model is started again.
#[test]
fn environments_are_searched_in_the_order_in_which_they_are_named() {
    if !Path::new(PYTHON).is_file() {
        return;
    }
    let lab = Lab::new(
        r#"
[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 40, dev = 10, test = 10 }
[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "words"
[stage.mine]
kind = "external-model"
inputs = { rows = "tokens" }
run = ["tool", "model.py"]
files = ["model.py"]
environment = ["z", "a/"]
classes = 2
[stage.attacked]
kind = "attack"
inputs = { victim = "mine" }
attack = "none"
"#,
    );
    for folder in ["a", "z"] {
        let tool = format!("{folder}/bin/tool");
        lab.write(
            &tool,
            &format!("#!/bin/sh\necho tool of {folder} >&2\nexec {PYTHON} \"$@\"\n"),
        );
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(lab.path(&tool), mode).unwrap();
    }
    let model = "import ablate\n\
                 ablate.serve(predict=lambda texts: [[0.25, 0.75] if 'good' in text else [0.75, 0.25] for text in texts])\n";
    lab.write("model.py", model);
    lab.run();
    for stage in ["mine", "attacked"] {
        let log = lab.ablate(&["show", stage, "--log"]).good().stdout;
        assert!(
            log.contains("tool of z\n") && !log.contains("tool of a"),
            "{stage}: {log}"
        );
    }
    lab.ablate(&["replay"]).good();
    lab.edit("[\"z\", \"a/\"]", "[\"a/\", \"z\"]");
    lab.run();
    let log = lab.ablate(&["show", "attacked", "--log"]).good().stdout;
    assert!(
        log.contains("tool of a\n") && !log.contains("tool of z"),
        "{log}"
    );
}

/// A stored model is started again by its attacks: on the same packages, or not at all.
#[test]
fn a_model_whose_packages_were_upgraded_is_another_victim() {
    let attacked = r#"
[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 40, dev = 10, test = 10 }
[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "words"
[stage.mine]
kind = "external-model"
inputs = { rows = "tokens" }
run = ["python", "model.py"]
files = ["model.py"]
environment = [".venv"]
classes = 2
[stage.bayes]
kind = "train"
inputs = { rows = "tokens" }
model = "naive-bayes"
[stage.attacked]
kind = "attack"
inputs = { victim = "mine", bayes = "bayes" }
attack = "swap"
"#;
    let model = "import ablate, tiny\n\
                 ablate.serve(predict=lambda texts: [[0.25, 0.75] if tiny.said in text else [0.75, 0.25] for text in texts])\n";
    let Some(lab) = with_venv(attacked) else {
        return;
    };
    lab.write("model.py", model);
    install(&lab, "1.2.0", "good");
    lab.run()
        .ran(["reviews", "tokens", "mine", "bayes", "attacked"]);
    install(&lab, "1.3.0", "bad");
    let told = lab.ablate(&["explain", "mine"]).good().stdout;
    assert!(told.contains("tiny was 1.2.0, now 1.3.0"), "{told}");
    // Whoever asks for what was made before is told what has changed, not that nothing was made.
    let changed = "which has changed since it was run: tiny was 1.2.0, now 1.3.0";
    let said = lab.ablate(&["replay"]).stderr;
    assert!(
        said.contains(&format!("`attacked` reads `mine`, {changed}")),
        "{said}"
    );
    let said = lab.ablate(&["predict", "mine", "good"]).stderr;
    let changed = "`mine` has changed since it was run: tiny was 1.2.0, now 1.3.0";
    assert!(said.contains(changed), "{said}");
    lab.run().ran(["mine", "attacked"]);
    // The older run cannot be replayed on what is installed now, and says why.
    lab.ablate(&["replay"]).good();
    install(&lab, "1.2.0", "good");
    lab.run().ran([]);
    lab.ablate(&["replay"]).good();
}

const SECRET: &str = "hf_swordfish_0123456789";

#[test]
fn a_secret_reaches_the_program_and_nothing_else() {
    let print = "[\"sh\", \"-c\", '''echo \"token $ABLATE_TEST_TOKEN.\"; echo \"again:$ABLATE_TEST_TOKEN:\" >&2; \
                 test -n \"$ABLATE_TEST_TOKEN\" && cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet''']"
        .replace("ABLATE_TEST_TOKEN", "TEST_TOKEN");
    let lab = Lab::new(&pipeline(&print, "secret_env = [\"TEST_TOKEN\"]"));
    lab.write("program.py", "");
    // Not set: said before anything runs.
    let refused = lab.ablate(&["run"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let why = "`c`: the variable TEST_TOKEN is not set, and `secret_env` names it";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    assert!(
        lab.ablate(&["runs"]).stdout.trim().is_empty(),
        "nothing ran"
    );
    let run = |secret: &str, arguments: &[&str]| {
        let mut run = lab.command(arguments);
        CommandOutput::of(run.env("TEST_TOKEN", secret).output().unwrap())
    };
    run(SECRET, &["run"]).good();
    let log = lab.ablate(&["show", "c", "--log"]).good().stdout;
    assert!(
        log.contains("token ***.") && log.contains("again:***:"),
        "{log}"
    );
    // Another value is the same key; and once there is a result, none is needed.
    let planned = run("another", &["plan"]).good().stdout;
    assert!(planned.contains("0 to run"), "{planned}");
    lab.ablate(&["run"]).good();
    // Nor is the name in the key.
    lab.edit("secret_env = [\"TEST_TOKEN\"]", "");
    assert!(lab.ablate(&["plan"]).good().stdout.contains("0 to run"));
    // A failed program's last words.
    lab.edit("cp $ABLATE_IN", "exit 3; cp $ABLATE_IN");
    lab.edit("run = ", "secret_env = [\"TEST_TOKEN\"]\nrun = ");
    let failed = run(SECRET, &["run"]);
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("token ***."), "{}", failed.stderr);
    assert!(!failed.stderr.contains(SECRET) && !failed.stdout.contains(SECRET));
    // Not in any file of the store.
    for file in lab.files("") {
        let bytes = std::fs::read(&file).unwrap();
        let mut there = bytes
            .windows(SECRET.len())
            .map(|part| part == SECRET.as_bytes());
        assert!(
            !there.any(|there| there),
            "{} has the secret",
            file.display()
        );
    }
}

#[test]
fn a_model_that_raises_its_secret_does_not_tell() {
    let pipeline = r#"
[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 40, dev = 10, test = 10 }
[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "words"
[stage.mine]
kind = "external-model"
inputs = { rows = "tokens" }
run = ["/usr/bin/python3", "model.py"]
files = ["model.py"]
secret_env = ["TEST_TOKEN"]
classes = 2
"#;
    if !Path::new(PYTHON).is_file() {
        println!("skipped: there is no {PYTHON}");
        return;
    }
    let lab = Lab::new(pipeline);
    let model = "import ablate, os\n\
                 def predict(texts):\n    raise ValueError('refused with ' + os.environ['TEST_TOKEN'])\n\
                 ablate.serve(predict=predict)\n";
    lab.write("model.py", model);
    let failed = lab
        .command(&["run"])
        .env("TEST_TOKEN", SECRET)
        .output()
        .unwrap();
    let failed = CommandOutput::of(failed);
    assert_eq!(failed.code, 1);
    assert!(
        failed.stderr.contains("refused with ***"),
        "{}",
        failed.stderr
    );
    assert!(!failed.stderr.contains(SECRET), "{}", failed.stderr);
    for (written, why) in [
        ("secret_env = [\"PATH\"]", "`PATH` is set for every program"),
        (
            "secret_env = [\"A B\"]",
            "`A B` cannot be an environment variable",
        ),
        (
            "env = { A = \"x\" }\nsecret_env = [\"A\"]",
            "`A` is in `env` and in `secret_env`",
        ),
    ] {
        lab.write(
            "pipeline.toml",
            &pipeline.replace("secret_env = [\"TEST_TOKEN\"]", written),
        );
        let refused = lab.ablate(&["plan"]);
        assert_eq!(refused.code, 2, "{written}");
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}
