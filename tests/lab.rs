//! A temporary folder with a pipeline in it, and the program to run there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A folder with a `pipeline.toml`.
pub struct Lab {
    dir: tempfile::TempDir,
    loose: bool,
}

/// Two stages, three instances of the second, and one that collects them.
pub const DEMO: &str = include_str!("pipelines/demo.toml");

impl Lab {
    /// A folder with this pipeline.
    pub fn new(pipeline: &str) -> Lab {
        let lab = Lab {
            dir: tempfile::tempdir().unwrap(),
            loose: false,
        };
        lab.write("pipeline.toml", pipeline);
        lab
    }

    /// A folder in which programs may touch what they did not declare.
    pub fn loose() -> Lab {
        Lab {
            loose: true,
            ..Lab::new("")
        }
    }

    /// A folder with [`DEMO`].
    pub fn demo() -> Lab {
        Lab::new(DEMO)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> &Lab {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Replaces text in the pipeline, which must be there.
    pub fn edit(&self, from: &str, to: &str) -> &Lab {
        let text = std::fs::read_to_string(self.path("pipeline.toml")).unwrap();
        assert!(text.contains(from), "the pipeline has no {from:?}");
        self.write("pipeline.toml", &text.replace(from, to))
    }

    /// The program with arguments, in this folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ablate"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        if self.loose && matches!(arguments.first(), Some(&"run" | &"verify")) {
            command.arg("--no-sandbox");
        }
        command
    }

    /// Runs the program with arguments.
    pub fn ablate(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::of(self.command(arguments).output().unwrap())
    }

    /// `ablate run --json` with more arguments.
    pub fn run_with(&self, arguments: &[&str]) -> Ran {
        let text = self.ablate(&[&["run", "--json"], arguments].concat());
        Ran::of(text)
    }

    /// `ablate run --json`.
    pub fn run(&self) -> Ran {
        self.run_with(&[])
    }

    /// Starts `ablate run --json` and does not wait for it.
    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(&[&["run", "--json"], arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The digest of every output of a run, by stage instance.
    pub fn digests(&self) -> BTreeMap<String, String> {
        digests_of(&self.ablate(&["runs", "last", "--json"]).stdout)
    }

    /// The rows of a result, as JSON objects.
    pub fn rows(&self, result: &str) -> Vec<Value> {
        let text = self
            .ablate(&["show", result, "--json", "-n", "1000"])
            .good();
        let shown: Value = serde_json::from_str(&text.stdout).unwrap();
        shown["head"].as_array().unwrap().clone()
    }

    /// The file behind a result.
    pub fn object(&self, result: &str) -> PathBuf {
        let printed = self.ablate(&["show", result, "--json"]).good();
        let shown: Value = serde_json::from_str(&printed.stdout).unwrap();
        self.path(text(&shown["artifacts"][0]["path"]))
    }

    /// Every file below a folder of the store, sorted.
    pub fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![self.path(".ablate").join(folder)];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).into_iter().flatten() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => open.push(path),
                    false => found.push(path),
                }
            }
        }
        found.sort();
        found
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

/// What the program printed.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    pub fn of(output: Output) -> CommandOutput {
        CommandOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// It went well.
    pub fn good(self) -> CommandOutput {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self
    }
}

/// What a run did.
#[derive(Debug)]
pub struct Ran {
    pub printed: CommandOutput,
    pub events: Vec<Value>,
}

impl Ran {
    pub fn of(printed: CommandOutput) -> Ran {
        let lines = printed.stdout.lines();
        let events = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        Ran { printed, events }
    }

    /// The stages with this status, sorted.
    pub fn with(&self, status: &str) -> Vec<String> {
        let stages = self.events.iter().filter(|event| event["status"] == status);
        let mut names: Vec<String> = stages
            .map(|event| text(&event["stage"]).to_owned())
            .collect();
        names.sort();
        names
    }

    /// Exactly these ran, and nothing failed.
    #[track_caller]
    pub fn ran<'a>(&self, stages: impl IntoIterator<Item = &'a str>) -> &Ran {
        let mut expected: Vec<&str> = stages.into_iter().collect();
        expected.sort_unstable();
        assert_eq!(self.printed.code, 0, "{}", self.printed.stderr);
        assert_eq!(self.with("ran"), expected, "{}", self.printed.stderr);
        self
    }

    /// Notes.
    pub fn notes(&self) -> Vec<&str> {
        let notes = self
            .events
            .iter()
            .filter_map(|event| event["note"].as_str());
        notes.collect()
    }

    /// The key of a stage.
    pub fn key(&self, stage: &str) -> String {
        let event = self.events.iter().find(|event| event["stage"] == stage);
        text(&event.unwrap()["key"]).to_owned()
    }

    /// The last event.
    pub fn done(&self) -> &Value {
        self.events.last().unwrap()
    }
}

/// The digest of every output that `ablate runs last --json` printed.
pub fn digests_of(printed: &str) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for line in printed.lines() {
        let stage: Value = serde_json::from_str(line).unwrap();
        for output in stage["execution"]["outputs"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let name = format!("{}.{}", text(&stage["stage"]), text(&output["name"]));
            digests.insert(name, text(&output["digest"]).to_owned());
        }
    }
    digests
}

pub fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {value}"))
}
