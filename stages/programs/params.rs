//! The parameters of kinds that start programs, and reading them once they are checked.

use std::collections::BTreeMap;
use std::time::Duration;

use store::{Params, Value};

use crate::contract::description::{Param, Presence, Type};

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
