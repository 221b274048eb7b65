//! What can be said of a command before it runs: of its program, and of the tables that it should make.

use std::collections::BTreeSet;

use store::Params;

use crate::ParamError;
use crate::programs::check::{error, is_name, program};
use crate::programs::params::texts;

/// Refuses parameters with which it cannot run.
pub fn params(params: &Params) -> Result<(), ParamError> {
    program(params)?;
    outputs(&texts(params, "outputs"))
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

#[cfg(test)]
mod tests {
    use store::Value;

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
