//! `command`: any program that reads Parquet files and writes Parquet files.
//!
//! The door for other languages. The program runs in its own empty folder, with a clean
//! environment and nothing but what the stage declares, as [`crate::programs`] has it; [`outputs`]
//! takes what it made.

mod check;
mod outputs;
#[cfg(test)]
mod tests;

use store::Params;

use crate::contract::description::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::contract::determinism::Determinism;
use crate::contract::program::ProgramSpec;
use crate::contract::role::Role;
use crate::programs::advice::advice;
use crate::programs::child::{self, End};
use crate::programs::params::{self, texts, timeout};
use crate::programs::sandbox::{self, Sandbox};
use crate::programs::{log, program};
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
        printed.tell(task.watch);
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
