//! Reading the parameters of a command, which are checked already.

use std::time::Duration;

use store::{Params, Value};

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
