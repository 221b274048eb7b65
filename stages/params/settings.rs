//! Reading completed parameters by name, and errors about them. Types, ranges and defaults are right already.

use store::{Params, Value};

use crate::contract::description::Param;
use crate::contract::nearest::nearest;
use crate::{Failure, ParamError};

/// A stage's parameters, asked for by name.
#[derive(Clone, Copy)]
pub struct Settings<'a>(pub &'a Params);

impl<'a> Settings<'a> {
    /// A string, if it is there.
    pub fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name).and_then(Value::as_text)
    }

    /// A boolean.
    pub fn flag(self, name: &'static str) -> Result<bool, ParamError> {
        match self.0.get(name) {
            Some(Value::Bool(flag)) => Ok(*flag),
            _ => Err(absent(name)),
        }
    }

    /// An integer that is a size.
    pub fn int(self, name: &'static str) -> Result<usize, ParamError> {
        self.maybe_int(name).ok_or_else(|| absent(name))
    }

    /// An integer that may be absent.
    pub fn maybe_int(self, name: &str) -> Option<usize> {
        let number = self.0.get(name).and_then(Value::as_int);
        number.and_then(|number| usize::try_from(number).ok())
    }

    /// A float.
    pub fn float(self, name: &'static str) -> Result<f64, ParamError> {
        self.maybe_float(name).ok_or_else(|| absent(name))
    }

    /// A float that may be absent.
    pub fn maybe_float(self, name: &str) -> Option<f64> {
        match self.0.get(name) {
            Some(Value::Float(number)) => Some(*number),
            Some(Value::Int(number)) => Some(*number as f64),
            _ => None,
        }
    }

    /// The value of one of several names.
    pub fn one_of<T: Copy>(self, name: &'static str, all: &[(&str, T)]) -> Result<T, ParamError> {
        let given = self.text(name).ok_or_else(|| absent(name))?;
        let found = all.iter().find(|(known, _)| *known == given);
        let known = all.iter().map(|(known, _)| *known);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| unknown(name, given, known))
    }
}

/// Refuses a parameter that would have no effect, if it is given and not as it would be without.
pub fn idle(
    params: &Params,
    param: Option<&Param>,
    help: impl Fn() -> String,
) -> Result<(), ParamError> {
    let Some(param) = param else { return Ok(()) };
    let default = param.presence.default();
    match params.get(param.name) {
        Some(given) if Some(given) != default.as_ref() => Err(wrong(
            param.name,
            format!("`{}` would have no effect here", param.name),
            format!("leave it out: {}", help()),
        )),
        _ => Ok(()),
    }
}

/// The error for a parameter that `complete` has not been asked about.
fn absent(name: &'static str) -> ParamError {
    let message = format!("`{name}` is absent, and its default was not written out");
    wrong(name, message, "plan the pipeline again")
}

/// A parameter error with a next step.
pub fn wrong(param: &'static str, message: String, help: impl Into<String>) -> ParamError {
    ParamError {
        param,
        message,
        help: Some(help.into()),
    }
}

/// The error for a name that is none of the known ones.
pub fn unknown<'a>(
    param: &'static str,
    given: &str,
    known: impl Iterator<Item = &'a str>,
) -> ParamError {
    let known: Vec<&str> = known.collect();
    let help = match nearest(given, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of: {}", known.join(", ")),
    };
    wrong(param, format!("`{param}` cannot be `{given}`"), help)
}

/// What `check` has found wrong, for a stage that runs: they were checked, so this is rare.
pub fn failure(error: ParamError) -> Failure {
    Failure {
        help: error.help,
        ..Failure::new(error.message).at(error.param)
    }
}
