//! What can be said of a command before it runs: names that would leave its folder, empty
//! programs, variables that no environment can hold.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use store::{Params, Value};

use super::params::texts;
use crate::ParamError;

pub fn params(params: &Params) -> Result<(), ParamError> {
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
    outputs(&texts(params, "outputs"))?;
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

fn outputs(names: &[String]) -> Result<(), ParamError> {
    if names.is_empty() {
        return Err(error(
            "outputs",
            "a command needs at least one output, or nothing could read its result".into(),
            "write outputs = [\"name\"], and let the program write $ABLATE_OUT/name.parquet",
        ));
    }
    let mut seen = BTreeSet::new();
    for name in names {
        if !is_name(name) {
            return Err(error(
                "outputs",
                format!("`{name}` cannot name an output"),
                "start with a letter or `_`, then letters, digits, `_` and `-`; `.parquet` is added",
            ));
        }
        if !seen.insert(name) {
            return Err(error(
                "outputs",
                format!("duplicate output `{name}`"),
                "name each output once",
            ));
        }
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

fn error(param: &'static str, message: String, help: &str) -> ParamError {
    ParamError {
        param,
        message,
        help: Some(help.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(overrides: &[(&str, Value)]) -> Option<String> {
        let text = |t: &str| Value::Text(t.into());
        let mut all: Params = [
            ("run".to_owned(), Value::List(vec![text("sh")])),
            ("outputs".to_owned(), Value::List(vec![text("x")])),
            ("files".to_owned(), Value::List(vec![])),
            ("timeout".to_owned(), Value::Float(1.0)),
        ]
        .into();
        all.extend(overrides.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
        params(&all)
            .err()
            .map(|e| format!("{}: {}", e.param, e.message))
    }

    fn list(items: &[&str]) -> Value {
        Value::List(items.iter().map(|t| Value::Text((*t).into())).collect())
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for bad in ["../x", "/etc/passwd", "a/../../b", "", "a\0b"] {
            let expected = format!("files: `{bad}` is not a name inside the pipeline's folder");
            assert_eq!(message(&[("files", list(&[bad]))]), Some(expected));
        }
        assert_eq!(message(&[("files", list(&["a/b.py", "./c"]))]), None);
    }

    #[test]
    fn output_names_are_plain_words() {
        for bad in ["..", "a/b", "../a", "1a", "", "a.b", "é", "-a"] {
            assert_eq!(
                message(&[("outputs", list(&[bad]))]),
                Some(format!("outputs: `{bad}` cannot name an output"))
            );
        }
        assert_eq!(message(&[("outputs", list(&["a-1", "_b"]))]), None);
        assert_eq!(
            message(&[("outputs", list(&["a", "a"]))]),
            Some("outputs: duplicate output `a`".into())
        );
        assert!(
            message(&[("outputs", list(&[]))])
                .unwrap()
                .contains("at least one output")
        );
    }

    #[test]
    fn the_rest_is_checked_too() {
        assert_eq!(
            message(&[("run", list(&[]))]),
            Some("run: no program to run".into())
        );
        assert_eq!(
            message(&[("timeout", Value::Float(0.0))]),
            Some("timeout: `timeout` is 0.0 seconds".into())
        );
        assert!(message(&[("timeout", Value::Float(f64::NAN))]).is_some());
        let env = Value::Table([("A=B".to_owned(), Value::Text("x".into()))].into());
        assert_eq!(
            message(&[("env", env)]),
            Some("env: `A=B` cannot be an environment variable".into())
        );
    }
}
