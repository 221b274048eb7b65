//! `command`: any program that reads Parquet files and writes Parquet files.
//!
//! The door for other languages. The program runs in its own empty folder, with a clean
//! environment and nothing but what the stage declares, as [`crate::programs`] has it; [`outputs`]
//! takes what it made.

mod check;
mod inherit;
mod outputs;
#[cfg(test)]
mod tests;

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use store::Params;

use crate::contract::description::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::contract::determinism::Determinism;
use crate::contract::program::ProgramSpec;
use crate::contract::role::Role;
use crate::programs::child::{self, End};
use crate::programs::params::{self, texts, timeout};
use crate::programs::program::{self, Program};
use crate::programs::sandbox::{self, Limits, Sandbox};
use crate::programs::{confine, log};
use crate::{Failure, Outputs, ParamError, Stage, Task};

/// The kind `command`.
pub struct Command;

static DESCRIPTION: Description = Description {
    kind: "command",
    summary: "Runs a program that reads Parquet inputs and writes Parquet outputs.",
    params: &[
        params::RUN,
        params::FILES,
        Param {
            name: "outputs",
            ty: Type::Texts,
            presence: Presence::Required,
            help: "The tables that it writes, each to $ABLATE_OUT/<name>.parquet.",
            ..Param::PLAIN
        },
        params::ENV,
        params::SECRET_ENV,
        params::ENVIRONMENT,
        params::LOCK,
        params::NETWORK,
        params::MEMORY,
        params::PROCESSES,
        params::TIMEOUT,
    ],
    seeded: true,
    role: Role::Program,
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

    fn environments<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        params::environments(params)
    }

    fn program(&self, params: &Params) -> Option<ProgramSpec> {
        params::program(params)
    }

    fn limits(&self) -> &'static [&'static str] {
        params::LIMITS
    }

    fn determinism(&self, _: &Params) -> Determinism {
        Determinism::Outside
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let argv = texts(task.params, "run");
        let sandbox = Sandbox::new(task)?;
        let found = program::find(&sandbox, &argv[0])?;
        let limit = timeout(task.params);
        let (end, usage) = child::run(&sandbox, &found, &argv, limit, task.watch)?;
        task.watch.child(usage);
        let printed = log::Log::read(&sandbox.log, &sandbox.secrets)?;
        printed.lines().for_each(|line| task.watch.log(line));
        let program = argv.join(" ");
        match end {
            End::Exited(status) if status.success() => {
                for (name, file) in &task.files {
                    if let Some(name) = name.strip_suffix('/') {
                        sandbox::check_environment(name, file)?;
                    }
                }
                let names = texts(task.params, "outputs");
                outputs::take(&sandbox.out, &names, &printed, task)
            }
            End::Exited(status) => {
                let tail = printed.tail();
                let failure = Failure::new(format!(
                    "`{program}` failed: {}\n{tail}",
                    child::describe(status)
                ));
                Err(match advice(status, &tail, &found, &sandbox.limits) {
                    Some(advice) => failure.help(advice),
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

/// What to do about a program that failed, if what it printed sounds like the sandbox.
fn advice(status: ExitStatus, printed: &str, program: &Program, limits: &Limits) -> Option<String> {
    let said = printed.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    // Of a program that was installed somewhere only its own file is open.
    if let Some(folder) = &program.installed {
        return Some(format!(
            "of {0} only the program itself is open to it: if it needs what lies beside it, write \
             environment = [\"{0}\"]",
            folder.display()
        ));
    }
    if let Some(path) = confine::refused(printed) {
        return Some(format!(
            "a program sees its declared files, its inputs and system folders only, and writes to \
             its own folders: if it needs {path}, name it in `files`, or its folder in \
             `environment`, make it an input, or run with --no-sandbox"
        ));
    }
    const MEMORY: &[&str] = &[
        "memoryerror",
        "bad_alloc",
        "cannot allocate",
        "out of memory",
    ];
    // A shell says so of the last program that it ran.
    let killed = status.signal() == Some(9) || status.code() == Some(128 + 9);
    if says(MEMORY) || killed {
        let gigabytes = limits.memory as f64 / 1e9;
        let why = if killed {
            "if it ran out of memory: "
        } else {
            ""
        };
        return Some(format!(
            "{why}its limit is {gigabytes:.1} GB; raise `memory`"
        ));
    }
    if says(&["cannot fork", "fork: retry", "can't start new thread"]) {
        return Some(format!(
            "its limit is {} processes and threads; raise `processes`",
            limits.processes
        ));
    }
    const NETWORK: &[&str] = &[
        "network is unreachable",
        "name resolution",
        "could not resolve",
        "name or service not known",
        "connection refused",
    ];
    if !limits.network && says(NETWORK) {
        return Some(
            "the network is closed to programs: declare what it fetches in `files` or as an input, \
             or write network = true, which audits name"
                .to_owned(),
        );
    }
    None
}
