//! ablate as one of the tools: a `table` at the start and `sql` after it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use serde_json::Value;

use crate::dag::{Amount, DIAL, Dag, Shape};
use crate::tool::{JOBS, Tool, first_line};

/// A build of ablate.
pub struct Ablate {
    /// Where it is.
    pub program: PathBuf,
}

impl Tool for Ablate {
    fn name(&self) -> &'static str {
        "ablate"
    }

    fn version(&self) -> Option<String> {
        first_line(Command::new(&self.program).arg("--version"))
    }

    fn how_to_get(&self) -> &'static str {
        "cargo build --release"
    }

    fn write(&self, dag: &Dag, dir: &Path) -> io::Result<()> {
        self.turn(dag, dir, DIAL)
    }

    fn turn(&self, dag: &Dag, dir: &Path, dial: i64) -> io::Result<()> {
        let text = match dag.shape {
            Shape::Chain | Shape::Fan => stage_by_stage(dag, dial),
            Shape::Sweep => sweep(dag, dial),
            Shape::Grid => grid(dag, dial),
        };
        fs::write(dir.join("pipeline.toml"), text)
    }

    fn run(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["run", "--quiet", "--jobs", JOBS]);
        command
    }

    fn plan(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("plan");
        command
    }

    fn planned(&self, words: &str) -> Option<usize> {
        let stages = words.lines().filter(|line| !line.starts_with("ablate: "));
        Some(stages.filter(|line| !line.starts_with("cached ")).count())
    }

    fn take_ran(&self, dir: &Path) -> Result<usize, String> {
        let run = self.ask(dir, &["runs", "--limit", "1"])?;
        let ran = run["ran"].as_u64().filter(|_| run["outcome"] == "ok");
        ran.map(|ran| ran as usize)
            .ok_or_else(|| format!("the last run did not go well: {run}"))
    }

    fn last_value(&self, dag: &Dag, dir: &Path) -> Result<i64, String> {
        let table = self.ask(dir, &["show", dag.last()])?;
        let value = table["head"][0]["x"].as_i64();
        value.ok_or_else(|| format!("{} has no x: {table}", dag.last()))
    }
}

impl Ablate {
    /// The one JSON object that a command prints.
    fn ask(&self, dir: &Path, arguments: &[&str]) -> Result<Value, String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .arg("--json")
            .current_dir(dir)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("ablate {}: {error}", arguments.join(" ")))
    }
}

const HEAD: &str = "[pipeline]\nname = \"bench\"\n";

fn stage_by_stage(dag: &Dag, dial: i64) -> String {
    let mut text = HEAD.to_owned();
    for node in &dag.nodes {
        let adds = node.adds.at(dial);
        match node.reads.first() {
            None => table(&mut text, &node.name, adds),
            Some(read) => sql(
                &mut text,
                &node.name,
                &dag.nodes[*read].name,
                &adds.to_string(),
            ),
        }
    }
    text
}

/// A sweep as a user writes it: one stage and an axis.
fn sweep(dag: &Dag, dial: i64) -> String {
    let configs = dag.nodes.iter().filter(|node| node.reads.len() == 1);
    let values: Vec<String> = configs
        .map(|node| match node.adds {
            Amount::Fixed(amount) => amount.to_string(),
            Amount::Dial => unreachable!("the dial of a sweep is in its first stage"),
        })
        .collect();
    let mut text = format!("{HEAD}\n[axes]\nconfig = [{}]\n", values.join(", "));
    table(&mut text, "base", dial);
    sql(&mut text, "configured", "base", "${config}");
    let _ = write!(
        text,
        "\n[stage.{}]\nkind = \"sql\"\ninputs = {{ t = \"configured\" }}\nover = [\"config\"]\n\
         query = \"SELECT SUM(x) AS x FROM t\"\n",
        dag.last()
    );
    text
}

/// A grid as a user writes it: rows that are points with a query, columns that are values, and an axis that chooses
/// the input.
fn grid(dag: &Dag, dial: i64) -> String {
    let side = dag.size.isqrt();
    let columns: Vec<String> = (1..=side).map(|column| column.to_string()).collect();
    let mut text = format!(
        "{HEAD}\n[axes]\nfrom = [\"base\"]\ncolumn = [{}]\n\n[axes.row]\n",
        columns.join(", ")
    );
    for row in 0..side {
        let add = row * side;
        let _ = writeln!(
            text,
            "r{row} = {{ query = \"SELECT x + {add} + ${{column}} AS x FROM t\" }}"
        );
    }
    table(&mut text, "base", dial);
    text.push_str(
        "\n[stage.cell]\nkind = \"sql\"\ninputs = { t = \"${from}\" }\nwith = [\"row\"]\n",
    );
    text
}

fn table(text: &mut String, name: &str, x: i64) {
    let _ = write!(
        text,
        "\n[stage.{name}]\nkind = \"table\"\nrows = [{{ x = {x} }}]\n"
    );
}

fn sql(text: &mut String, name: &str, reads: &str, adds: &str) {
    let _ = write!(
        text,
        "\n[stage.{name}]\nkind = \"sql\"\ninputs = {{ t = \"{reads}\" }}\n\
         query = \"SELECT x + {adds} AS x FROM t\"\n"
    );
}
