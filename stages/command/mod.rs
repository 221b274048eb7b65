//! `command`: any program that reads Parquet files and writes Parquet files.
//!
//! The door for other languages. The program runs in its own empty folder, with a clean
//! environment and nothing but what the stage declares: [`sandbox`] lays that out, [`child`]
//! runs it, [`log`] keeps what it printed, [`outputs`] takes what it made.

mod check;
mod child;
mod confine;
mod log;
mod outputs;
mod sandbox;
mod stray;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use store::{Params, Value};

use crate::describe::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::determinism::Determinism;
use crate::{Failure, Outputs, ParamError, Stage, Task};
use child::End;
use sandbox::Sandbox;

pub use child::kill_all;
pub use confine::let_loose;

/// The kind `command`.
pub struct Command;

static DESCRIPTION: Description = Description {
    kind: "command",
    summary: "Runs a program that reads Parquet inputs and writes Parquet outputs.",
    params: &[
        Param {
            name: "run",
            ty: Type::Texts,
            presence: Presence::Required,
            help: "The program and its arguments. No shell: write [\"sh\", \"-c\", \"…\"] for one.",
        },
        Param {
            name: "files",
            ty: Type::Files,
            presence: Presence::Default(|| Value::List(Vec::new())),
            help: "Files and folders that the program needs; copied to its folder, hashed with the key.",
        },
        Param {
            name: "outputs",
            ty: Type::Texts,
            presence: Presence::Required,
            help: "The tables that it writes, each to $ABLATE_OUT/<name>.parquet.",
        },
        Param {
            name: "env",
            ty: Type::TextTable,
            presence: Presence::Default(|| Value::Table(BTreeMap::new())),
            help: "Environment variables; only PATH is inherited.",
        },
        Param {
            name: "timeout",
            ty: Type::Float,
            presence: Presence::Default(|| Value::Float(3600.0)),
            help: "Seconds after which the program is stopped and the stage fails.",
        },
    ],
    seeded: true,
};

impl Stage for Command {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, params: &Params) -> Ports {
        Ports {
            inputs: Inputs::Any(Vec::new()),
            outputs: texts(params, "outputs")
                .into_iter()
                .map(Port::table)
                .collect(),
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        check::params(params)
    }

    fn determinism(&self, _: &Params) -> Determinism {
        Determinism::Outside
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let argv = texts(task.params, "run");
        let sandbox = Sandbox::new(task)?;
        let (end, usage) = child::run(&sandbox, &argv, timeout(task.params), task.watch)?;
        task.watch.child(usage);
        let printed = log::Log::read(&sandbox.log)?;
        printed.lines().for_each(|line| task.watch.log(line));
        let program = argv.join(" ");
        match end {
            End::Exited(status) if status.success() => outputs::take(
                &sandbox.out,
                &texts(task.params, "outputs"),
                &printed,
                task.watch,
            ),
            End::Exited(status) => {
                let tail = printed.tail();
                let failure = Failure::new(format!(
                    "`{program}` failed: {}\n{tail}",
                    child::describe(status)
                ));
                Err(match confine::refused(&tail) {
                    Some(path) => failure.help(format!(
                        "a program sees its declared files, its inputs and system folders only, and \
                         writes to its own folders: if it needs {path}, name it in `files`, make it \
                         an input, or run with --no-sandbox"
                    )),
                    None => failure,
                }
                .at("run"))
            }
            End::TimedOut => Err(Failure::new(format!(
                "`{program}` was stopped after {} s\n{}",
                timeout(task.params).as_secs_f64(),
                printed.tail()
            ))
            .help("if it needs longer, raise `timeout`")
            .at("timeout")),
            End::Stopped => Err(Failure::stopped()),
        }
    }
}

/// A list of strings among the checked parameters; empty if it is absent.
fn texts(params: &Params, name: &str) -> Vec<String> {
    let items = params
        .get(name)
        .and_then(Value::as_list)
        .unwrap_or_default();
    items
        .iter()
        .filter_map(Value::as_text)
        .map(str::to_owned)
        .collect()
}

fn timeout(params: &Params) -> Duration {
    match params.get("timeout") {
        Some(Value::Float(seconds)) => {
            Duration::try_from_secs_f64(*seconds).unwrap_or(Duration::MAX)
        }
        _ => Duration::MAX,
    }
}
