//! What can be said of a program before it runs: names that would leave its folder, empty programs, variables that no
//! environment can hold.

use std::path::{Component, Path};

use store::{Params, Value};

use super::lock;
use super::params::texts;
use crate::ParamError;

/// Refuses what no program can be given.
pub fn program(params: &Params) -> Result<(), ParamError> {
    let run = texts(params, "run");
    if run.first().is_none_or(String::is_empty) {
        return Err(error(
            "run",
            "no program to run".into(),
            "write run = [\"program\", \"argument\"]",
        ));
    }
    if run.iter().any(|argument| argument.contains('\0')) {
        return Err(error(
            "run",
            "an argument holds a NUL character".into(),
            "no program can receive it",
        ));
    }
    for file in texts(params, "files") {
        if !stays_inside(&file) {
            return Err(error(
                "files",
                format!("`{file}` is not a name inside the pipeline's folder"),
                "use a relative name without `..`; copy or link the file beside the pipeline",
            ));
        }
    }
    for (name, value) in params
        .get("env")
        .and_then(Value::as_table)
        .into_iter()
        .flatten()
    {
        if name.is_empty()
            || name.contains(['=', '\0'])
            || value.as_text().is_some_and(|v| v.contains('\0'))
        {
            return Err(error(
                "env",
                format!("`{name}` cannot be an environment variable"),
                "use letters, digits and `_`",
            ));
        }
    }
    secrets(params)?;
    if let Some(lock) = params.get("lock").and_then(Value::as_text)
        && (!stays_inside(lock) || !lock::is_known(lock))
    {
        let message = format!("`{lock}` is not a lock file that can be read");
        return Err(error("lock", message, &lock::help()));
    }
    if texts(params, "environment")
        .iter()
        .any(|name| name.trim_end_matches('/').is_empty() || name.contains('\0'))
    {
        return Err(error(
            "environment",
            "an environment has no name".into(),
            "write environment = [\".venv\"]",
        ));
    }
    if let Some(Value::Float(gigabytes)) = params.get("memory")
        && !(*gigabytes > 0.0 && gigabytes.is_finite())
    {
        return Err(error(
            "memory",
            format!("`memory` is {gigabytes:?} GB"),
            "write gigabytes, more than 0",
        ));
    }
    if let Some(Value::Int(most)) = params.get("processes")
        && *most < 1
    {
        return Err(error(
            "processes",
            format!("`processes` is {most}"),
            "it must be at least 1: the program itself",
        ));
    }
    match params.get("timeout") {
        // A year is more than any run, and less than what clocks overflow at.
        Some(Value::Float(seconds)) if *seconds > 0.0 && *seconds <= 31_536_000.0 => Ok(()),
        Some(Value::Float(seconds)) => Err(error(
            "timeout",
            format!("`timeout` is {seconds:?} seconds"),
            "write seconds, more than 0 and at most a year",
        )),
        _ => Ok(()),
    }
}

/// Refuses secrets under names that have a meaning, or a value in the pipeline file.
fn secrets(params: &Params) -> Result<(), ParamError> {
    let env = params.get("env").and_then(Value::as_table);
    for name in texts(params, "secret_env") {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let message = match name.as_str() {
            _ if env.is_some_and(|env| env.contains_key(&name)) => {
                format!("`{name}` is in `env` and in `secret_env`")
            }
            "" => "a variable has no name".to_owned(),
            name if !name.chars().all(plain) => {
                format!("`{name}` cannot be an environment variable")
            }
            "PATH" | "HOME" | "TMPDIR" | "LANG" => {
                format!("`{name}` is set for every program, and is no secret")
            }
            name if name.starts_with("ABLATE_") || name.starts_with("PYTHON") => {
                format!("`{name}` is set for every program, or decides what it computes")
            }
            _ => continue,
        };
        let help = "name variables of your own environment: secret_env = [\"HF_TOKEN\"]";
        return Err(error("secret_env", message, help));
    }
    Ok(())
}

/// Whether a name is a plain word, safe as a file name: `[A-Za-z_][A-Za-z0-9_-]*`.
pub fn is_name(name: &str) -> bool {
    let start = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(start)
        && name
            .chars()
            .all(|c| start(c) || c.is_ascii_digit() || c == '-')
}

/// Whether a name is relative and never climbs.
pub fn stays_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components().peekable();
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    parts.peek().is_some() && parts.all(plain) && !name.contains('\0')
}

/// A parameter that is wrong.
pub fn error(param: &'static str, message: String, help: &str) -> ParamError {
    ParamError {
        param,
        message,
        help: Some(help.to_owned()),
    }
}
