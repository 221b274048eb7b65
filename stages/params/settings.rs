//! Reading checked parameters: types are right already, ranges and names are looked at here.
//! Also choices: a parameter that names one of several things, each with parameters of its own.

use std::collections::BTreeMap;

use store::{Params, Value};

use crate::contract::description::{Param, Presence};
use crate::params::nearest::nearest;
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
    pub fn flag(self, name: &str, absent: bool) -> bool {
        match self.0.get(name) {
            Some(Value::Bool(flag)) => *flag,
            _ => absent,
        }
    }

    /// A whole number of at least `least`.
    pub fn whole(self, name: &'static str, absent: i64, least: i64) -> Result<usize, ParamError> {
        let number = self.0.get(name).and_then(Value::as_int).unwrap_or(absent);
        if number < least || number > u32::MAX.into() {
            let message = format!("`{name}` is {number}");
            return Err(wrong(name, message, format!("it is at least {least}")));
        }
        Ok(number as usize)
    }

    /// A number from `least` to `most`.
    pub fn number(
        self,
        name: &'static str,
        absent: f64,
        least: f64,
        most: f64,
    ) -> Result<f64, ParamError> {
        let number = match self.0.get(name) {
            Some(Value::Float(number)) => *number,
            Some(Value::Int(number)) => *number as f64,
            _ => absent,
        };
        if !(least..=most).contains(&number) {
            let message = format!("`{name}` is {number}");
            let help = format!("it is between {least} and {most}");
            return Err(wrong(name, message, help));
        }
        Ok(number)
    }

    /// One of several names; the first if it is absent.
    pub fn one_of<T: Copy>(self, name: &'static str, all: &[(&str, T)]) -> Result<T, ParamError> {
        let Some(given) = self.text(name) else {
            return Ok(all[0].1);
        };
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
    let default = match param.presence {
        Presence::Default(value) => Some(value()),
        _ => None,
    };
    match params.get(param.name) {
        Some(given) if Some(given) != default.as_ref() => Err(wrong(
            param.name,
            format!("`{}` would have no effect here", param.name),
            format!("leave it out: {}", help()),
        )),
        _ => Ok(()),
    }
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
        None => format!("it is one of {}", known.join(", ")),
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

/// The parameters of a kind whose `choices` bring their own: the kind's first, then each choice's.
/// What belongs to a choice has no default in the key, so that a new choice changes no key.
pub fn union(base: &[Param], choices: &[&[Param]]) -> &'static [Param] {
    let mut all: Vec<Param> = base.to_vec();
    for param in choices.iter().copied().flatten() {
        if all.iter().all(|known| known.name != param.name) {
            all.push(*param);
        }
    }
    // Once a kind, for as long as the program runs.
    Box::leak(all.into_boxed_slice())
}

/// Refuses parameters that belong to other choices than the one that `selector` names.
pub fn belongs(
    params: &Params,
    selector: &str,
    chosen: &str,
    choices: &BTreeMap<&'static str, Vec<&'static str>>,
) -> Result<(), ParamError> {
    let own = choices.get(chosen);
    for name in choices.values().flatten() {
        if params.contains_key(*name) && !own.is_some_and(|own| own.contains(name)) {
            let owners = choices.iter().filter(|(_, names)| names.contains(name));
            let owners: Vec<&str> = owners.map(|(owner, _)| *owner).collect();
            let message = format!("`{name}` has no meaning for {selector} = \"{chosen}\"");
            let help = format!("leave it out: it belongs to {}", owners.join(", "));
            return Err(wrong(name, message, help));
        }
    }
    Ok(())
}
