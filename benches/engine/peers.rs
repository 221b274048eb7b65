//! The peers: ninja, make, DVC and Snakemake. All run the same shell command a stage, which
//! adds up number files, writes a number file, and notes in a log that it ran.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use crate::dag::{Amount, DIAL, Dag, Node};
use crate::tool::{JOBS, Tool, first_line};

/// All peers.
pub fn all() -> Vec<Box<dyn Tool>> {
    let peers = [
        Peer {
            name: "ninja",
            how_to_get: "the distribution's package `ninja-build`",
            file: "build.ninja",
            text: ninja,
            run: &["--quiet", "-j", JOBS],
            plan: &["-n"],
            most: usize::MAX,
        },
        Peer {
            name: "make",
            how_to_get: "the distribution's package `make`",
            file: "Makefile",
            text: make,
            run: &["--silent", "-j", JOBS],
            plan: &["-n"],
            most: usize::MAX,
        },
        Peer {
            name: "dvc",
            how_to_get: "`pip install dvc` (PyPI)",
            file: "dvc.yaml",
            text: dvc,
            run: &["repro", "--quiet"],
            plan: &["status"],
            // About half an hour for a thousand stages, and it grows with their square.
            most: 150,
        },
        Peer {
            name: "snakemake",
            how_to_get: "`pip install snakemake` (PyPI)",
            file: "Snakefile",
            text: snakemake,
            run: &["--quiet", "rules", "progress", "--cores", JOBS],
            plan: &["-n"],
            most: 10_000,
        },
    ];
    let boxed = peers
        .into_iter()
        .map(|peer| Box::new(peer) as Box<dyn Tool>);
    boxed.collect()
}

struct Peer {
    /// Also its program.
    name: &'static str,
    how_to_get: &'static str,
    /// Where it looks for its rules.
    file: &'static str,
    /// Its rules for a DAG.
    text: fn(&Dag) -> String,
    run: &'static [&'static str],
    plan: &'static [&'static str],
    /// The most stages that it is given unasked.
    most: usize,
}

const DIAL_FILE: &str = "dial.txt";
const LOG: &str = "ran.log";

impl Tool for Peer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> Option<String> {
        first_line(self.program().arg("--version"))
    }

    fn how_to_get(&self) -> &'static str {
        self.how_to_get
    }

    fn too_slow_for(&self, stages: usize) -> bool {
        stages > self.most
    }

    fn write(&self, dag: &Dag, dir: &Path) -> io::Result<()> {
        if self.name == "dvc" {
            // What `dvc init --no-scm` makes, with nothing that calls home.
            let config =
                "[core]\n    no_scm = True\n    analytics = false\n    check_update = false\n";
            fs::create_dir_all(dir.join(".dvc/tmp"))?;
            fs::write(dir.join(".dvc/config"), config)?;
            fs::write(dir.join(".dvcignore"), "")?;
        }
        fs::write(dir.join(self.file), (self.text)(dag))?;
        self.turn(dag, dir, DIAL)
    }

    fn turn(&self, _: &Dag, dir: &Path, dial: i64) -> io::Result<()> {
        fs::write(dir.join(DIAL_FILE), format!("{dial}\n"))
    }

    fn run(&self) -> Command {
        let mut command = self.program();
        command.args(self.run);
        command
    }

    fn plan(&self) -> Command {
        let mut command = self.program();
        command.args(self.plan);
        command
    }

    fn take_ran(&self, dir: &Path) -> Result<usize, String> {
        let log = dir.join(LOG);
        match fs::read_to_string(&log) {
            Ok(text) => {
                fs::remove_file(&log).map_err(|error| error.to_string())?;
                Ok(text.lines().count())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error.to_string()),
        }
    }

    fn last_value(&self, dag: &Dag, dir: &Path) -> Result<i64, String> {
        let name = format!("{}.txt", dag.last());
        let text =
            fs::read_to_string(dir.join(&name)).map_err(|error| format!("{name}: {error}"))?;
        let value = text.trim().parse();
        value.map_err(|_| format!("{name} holds {text:?}, not a number"))
    }
}

impl Peer {
    fn program(&self) -> Command {
        let mut command = Command::new(self.name);
        // Cargo's own job server is not theirs.
        command.env_remove("MAKEFLAGS").env_remove("MFLAGS");
        command
    }
}

/// `echo $(( $(cat s1.txt) + 1 )) > s2.txt`, and the line in the log.
fn shell(dag: &Dag, node: &Node) -> String {
    let reads: Vec<String> = node.reads.iter().map(|n| output(&dag.nodes[*n])).collect();
    let sum = match reads.as_slice() {
        [] => "0".to_owned(),
        [one] => format!("$(cat {one})"),
        many => format!("$(cat {} | paste -sd+ -)", many.join(" ")),
    };
    let adds = match node.adds {
        Amount::Fixed(amount) => amount.to_string(),
        Amount::Dial => format!("$(cat {DIAL_FILE})"),
    };
    let name = &node.name;
    format!("echo $(( {sum} + {adds} )) > {name}.txt && echo {name} >> {LOG}")
}

fn output(node: &Node) -> String {
    format!("{}.txt", node.name)
}

/// The files that a stage reads, the dial among them.
fn inputs(dag: &Dag, node: &Node) -> Vec<String> {
    let dial = matches!(node.adds, Amount::Dial).then(|| DIAL_FILE.to_owned());
    let reads = node.reads.iter().map(|n| output(&dag.nodes[*n]));
    reads.chain(dial).collect()
}

fn ninja(dag: &Dag) -> String {
    let mut text = "rule stage\n  command = $cmd\n".to_owned();
    for node in &dag.nodes {
        let (output, inputs) = (output(node), inputs(dag, node).join(" "));
        let command = shell(dag, node).replace('$', "$$");
        let _ = write!(text, "build {output}: stage {inputs}\n  cmd = {command}\n");
    }
    text
}

fn make(dag: &Dag) -> String {
    let leaves: Vec<String> = dag.leaves().into_iter().map(output).collect();
    let mut text = format!(".PHONY: all\nall: {}\n", leaves.join(" "));
    for node in &dag.nodes {
        let (output, inputs) = (output(node), inputs(dag, node).join(" "));
        let command = shell(dag, node).replace('$', "$$");
        let _ = write!(text, "{output}: {inputs}\n\t{command}\n");
    }
    text
}

/// A JSON string is a YAML string too.
fn dvc(dag: &Dag) -> String {
    let mut text = "stages:\n".to_owned();
    for node in &dag.nodes {
        let _ = write!(
            text,
            "  {}:\n    cmd: {}\n    deps: {}\n    outs: {}\n",
            node.name,
            quoted(&shell(dag, node)),
            serde_json::Value::from(inputs(dag, node)),
            serde_json::Value::from(vec![output(node)]),
        );
    }
    text
}

/// A JSON string of plain letters is a Python string too.
fn snakemake(dag: &Dag) -> String {
    let list = |names: Vec<String>| {
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        names.join(", ")
    };
    let leaves = dag.leaves().into_iter().map(output).collect();
    let mut text = format!("rule all:\n    input: {}\n", list(leaves));
    for node in &dag.nodes {
        let _ = writeln!(text, "rule {}:", node.name);
        let inputs = inputs(dag, node);
        if !inputs.is_empty() {
            let _ = writeln!(text, "    input: {}", list(inputs));
        }
        let (output, command) = (quoted(&output(node)), quoted(&shell(dag, node)));
        let _ = write!(text, "    output: {output}\n    shell: {command}\n");
    }
    text
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
