//! Programs see what they declare, and nothing else. Needs a kernel with Landlock (Linux 5.13).

use serde_json::Value;

use crate::lab::{Lab, text};

fn confined() -> bool {
    let lab = Lab::new(&command("true", ""));
    let how = sandbox(&lab.run_and_audit());
    if how != "landlock" {
        println!("skipped: the sandbox here is {how}");
    }
    how == "landlock"
}

fn command(before: &str, more: &str) -> String {
    format!(
        "[stage.t]\nkind = \"table\"\nrows = [{{ x = 1 }}]\n\
         [stage.c]\nkind = \"command\"\ninputs = {{ t = \"t\" }}\noutputs = [\"o\"]\n{more}\n\
         run = [\"sh\", \"-c\", '''{before} && cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet''']\n"
    )
}

fn sandbox(audit: &Value) -> String {
    let steps = audit["steps"].as_array().unwrap();
    text(&steps.last().unwrap()["sandbox"]).to_owned()
}

impl Lab {
    fn run_and_audit(&self) -> Value {
        let ran = self.run();
        assert_eq!(ran.said.code, 0, "{:?}", ran.said);
        let said = self.ablate(&["audit", "c", "--json"]).good().stdout;
        serde_json::from_str(&said).unwrap()
    }
}

#[test]
fn a_file_that_is_not_declared_cannot_be_read() {
    if !confined() {
        return;
    }
    let lab = Lab::new("");
    lab.write("secret.txt", "42\n");
    let file = lab.path("secret.txt");
    lab.write(
        "pipeline.toml",
        &command(&format!("cat {}", file.display()), ""),
    );
    let said = lab.ablate(&["run"]);
    assert_eq!(said.code, 1);
    let help = format!(
        "a program sees its declared files, its inputs and system folders only, and writes to its \
         own folders: if it needs {}, name it in `files`, make it an input, or run with --no-sandbox",
        file.display()
    );
    assert!(said.stderr.contains("Permission denied"), "{}", said.stderr);
    assert!(said.stderr.contains(&help), "{}", said.stderr);
    // A PATH that names the folder, or one inside it, does not open it.
    std::fs::create_dir(lab.path("bin")).unwrap();
    for more in [
        ".",
        lab.dir().to_str().unwrap(),
        "/",
        lab.path("bin").to_str().unwrap(),
    ] {
        let path = format!("{more}:{}", std::env::var("PATH").unwrap());
        let said = lab.command(&["run"]).env("PATH", path).output().unwrap();
        let said = String::from_utf8(said.stderr).unwrap();
        assert!(said.contains("Permission denied"), "PATH={more}: {said}");
    }
    // Declared, it can be read where it is then.
    lab.write(
        "pipeline.toml",
        &command("cat secret.txt", "files = [\"secret.txt\"]"),
    );
    assert_eq!(sandbox(&lab.run_and_audit()), "landlock");
    // And without a sandbox anywhere, which the provenance says.
    lab.write(
        "pipeline.toml",
        &command(&format!("cat {} >&2", file.display()), ""),
    );
    lab.run_with(&["--no-sandbox"]).ran(["c"]);
    let audit = lab.ablate(&["audit", "c", "--json"]).good().stdout;
    let audit: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!(sandbox(&audit), "none (--no-sandbox)");
    let doubt = "c: its program could read what it did not declare: sandbox none (--no-sandbox)";
    assert_eq!(audit["doubts"][0], doubt);
}

#[test]
fn nothing_is_written_outside_of_its_own_folders() {
    if !confined() {
        return;
    }
    let lab = Lab::new("");
    let file = lab.path("left-behind");
    lab.write(
        "pipeline.toml",
        &command(&format!("echo x > {}", file.display()), ""),
    );
    assert_eq!(lab.ablate(&["run"]).code, 1);
    assert!(!file.exists());
    // Nor may it change its inputs.
    lab.write(
        "pipeline.toml",
        &command("echo x > $ABLATE_IN/t.parquet", ""),
    );
    assert_eq!(lab.ablate(&["run"]).code, 1);
    let own =
        "echo a > here && echo b > $HOME/b && mktemp >/dev/null && echo 1/2 > $ABLATE_PROGRESS";
    lab.write("pipeline.toml", &command(own, ""));
    lab.run_and_audit();
}

/// Interpreters lie in many places; the one that is found must work.
#[test]
fn python_runs_if_there_is_one() {
    if !confined() {
        return;
    }
    let here = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if !here.is_ok_and(|answer| answer.status.success()) {
        println!("skipped: there is no python3");
        return;
    }
    let lab = Lab::new(&command(
        "python3 -c 'import json, random, ssl; print(json.dumps(1))'",
        "",
    ));
    lab.run_and_audit();
}
