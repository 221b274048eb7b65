//! The parameters of kinds that start programs, and reading them once they are checked.

use std::collections::BTreeMap;
use std::time::Duration;

use store::{Params, Value};

use crate::contract::description::{Param, Presence, Type};
use crate::contract::program::ProgramSpec;

/// See its help.
pub const RUN: Param = Param {
    name: "run",
    ty: Type::Texts,
    presence: Presence::Required,
    help: "The program and its arguments. No shell: write [\"sh\", \"-c\", \"…\"] for one.",
    ..Param::PLAIN
};

/// See its help.
pub const FILES: Param = Param {
    name: "files",
    ty: Type::Files,
    presence: Presence::Default(|| Value::List(Vec::new())),
    help: "Files and folders that the program needs; copied to its folder, hashed with the key.",
    ..Param::PLAIN
};

/// See its help.
pub const ENV: Param = Param {
    name: "env",
    ty: Type::TextTable,
    presence: Presence::Default(|| Value::Table(BTreeMap::new())),
    help: "Environment variables; only PATH is inherited.",
    ..Param::PLAIN
};

/// See its help.
pub const ENVIRONMENT: Param = Param {
    name: "environment",
    ty: Type::Texts,
    presence: Presence::Default(|| Value::List(Vec::new())),
    help: "Folders with programs and packages, such as a virtual environment; hashed with the key.",
    ..Param::PLAIN
};

/// See its help.
pub const LOCK: Param = Param {
    name: "lock",
    ty: Type::Text,
    presence: Presence::Optional,
    help: "A uv.lock, requirements.txt, environment.yml or renv.lock that stands for the contents of environments in the key.",
    ..Param::PLAIN
};

/// See its help.
pub const SECRET_ENV: Param = Param {
    name: "secret_env",
    ty: Type::Texts,
    presence: Presence::Default(|| Value::List(Vec::new())),
    help: "Your own environment variables that are passed on, such as HF_TOKEN; masked in logs, stored nowhere.",
    ..Param::PLAIN
};

/// See its help.
pub const NETWORK: Param = Param {
    name: "network",
    ty: Type::Bool,
    presence: Presence::Default(|| Value::Bool(false)),
    help: "Whether the program may use the network; audits list it as a doubt.",
    ..Param::PLAIN
};

/// See its help.
pub const MEMORY: Param = Param {
    name: "memory",
    ty: Type::Float,
    presence: Presence::Optional,
    help: "Memory limit in GB; default: the memory of the machine. Not in the key.",
    ..Param::PLAIN
};

/// See its help.
pub const PROCESSES: Param = Param {
    name: "processes",
    ty: Type::Int,
    presence: Presence::Default(|| Value::Int(4096)),
    help: "Maximum number of processes and threads. Not in the key.",
    ..Param::PLAIN
};

/// See its help.
pub const TIMEOUT: Param = Param {
    name: "timeout",
    ty: Type::Float,
    presence: Presence::Default(|| Value::Float(3600.0)),
    help: "Seconds after which the program is stopped and the stage fails. Not in the key.",
    ..Param::PLAIN
};

/// Those that say what a program may take or use, and that decide no result.
pub const LIMITS: &[&str] = &["memory", "processes", "secret_env", "timeout"];

/// The program that checked parameters start; none if they name none.
pub fn program(params: &Params) -> Option<ProgramSpec> {
    let run = texts(params, "run");
    let env = params.get("env").and_then(Value::as_table);
    let path = env.and_then(|env| env.get("PATH")).and_then(Value::as_text);
    let lock = params.get("lock").and_then(Value::as_text);
    let program = ProgramSpec {
        run,
        lock: lock.map(str::to_owned),
        path: path.map(str::to_owned),
        secrets: texts(params, "secret_env"),
        environments: texts(params, "environment"),
    };
    (!program.run.is_empty()).then_some(program)
}

/// A list of strings among the checked parameters; empty if it is absent.
pub fn texts(params: &Params, name: &str) -> Vec<String> {
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

/// How long the program may run.
pub fn timeout(params: &Params) -> Duration {
    match params.get("timeout") {
        Some(Value::Float(seconds)) => {
            Duration::try_from_secs_f64(*seconds).unwrap_or(Duration::MAX)
        }
        _ => Duration::MAX,
    }
}

/// The folders that a program reads in place, each with the parameter that names it.
pub fn environments(params: &Params) -> Vec<(&'static str, &str)> {
    let names = params.get("environment").and_then(Value::as_list);
    let names = names.unwrap_or_default().iter();
    names
        .filter_map(|name| Some(("environment", name.as_text()?)))
        .collect()
}
