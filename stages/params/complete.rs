//! Defaults written out and ranges checked, from the entries of parameters alone. Afterwards a kind
//! may read each of its parameters without asking what happens if it is absent.

use std::collections::BTreeMap;

use store::{Params, Value};

use super::settings::{unknown, wrong};
use crate::contract::description::{Choice, Param, Presence, Range, Renamed};
use crate::{ParamError, Stage};

/// The parameters of a stage with the defaults of those that are in force, or what is wrong.
pub fn complete(kind: &dyn Stage, written: &Params) -> Result<Params, ParamError> {
    let own = in_force_of(kind, written)?;
    let mut params = written.clone();
    for renamed in kind.renamed() {
        if let Renamed::Value { param, old, new } = renamed
            && let Some(Value::Text(value)) = params.get_mut(*param)
            && value == old
        {
            *value = (*new).to_owned();
        }
    }
    for param in &own {
        let Some(default) = param.presence.default_beside(written) else {
            continue;
        };
        if !params.contains_key(param.name) && in_force(param, &params) {
            params.insert(param.name.to_owned(), default);
        }
    }
    for param in &own {
        check(param, &params)?;
    }
    kind.check(&params)?;
    Ok(params)
}

/// The parameters of a kind, without those of choices that are not chosen.
fn in_force_of(kind: &dyn Stage, written: &Params) -> Result<Vec<Param>, ParamError> {
    let all = kind.describe().params;
    let choices = kind.choices();
    let Some(selector) = choices.first().map(|choice| choice.selector) else {
        return Ok(all.to_vec());
    };
    let chosen = written.get(selector).and_then(Value::as_text);
    let chosen = chosen.unwrap_or_default();
    let Some(own) = choices.iter().find(|choice| choice.name == chosen) else {
        let known = choices.iter().map(|choice| choice.name);
        return Err(unknown(selector, chosen, known));
    };
    belongs(written, own, &choices)?;
    Ok([common(kind), own.params.to_vec()].concat())
}

/// The parameters of a kind that belong to none of its choices.
pub fn common(kind: &dyn Stage) -> Vec<Param> {
    let choices = kind.choices();
    let of_a_choice = |name: &str| {
        let mut params = choices.iter().flat_map(|choice| choice.params);
        params.any(|param| param.name == name)
    };
    let all = kind.describe().params.iter();
    all.filter(|param| !of_a_choice(param.name))
        .copied()
        .collect()
}

fn in_force(param: &Param, params: &Params) -> bool {
    let Some((other, values)) = param.when else {
        return true;
    };
    let value = params.get(other);
    let text = value.map(|value| match value {
        Value::Text(text) => text.clone(),
        value => value.to_string(),
    });
    text.is_some_and(|text| values.contains(&text.as_str()))
}

/// Refuses a value out of range, and one that would have no effect.
fn check(param: &Param, params: &Params) -> Result<(), ParamError> {
    let (name, Some(value)) = (param.name, params.get(param.name)) else {
        return Ok(());
    };
    if let (Some((other, values)), false) = (param.when, in_force(param, params)) {
        let values = values.join("\" or \"");
        let message = format!("`{name}` would have no effect here");
        let help = format!("remove it: it only applies to {other} = \"{values}\"");
        return Err(wrong(name, message, help));
    }
    let message = || format!("`{name}` is {value}");
    match (param.range, value) {
        (Range::Ints(least, most), Value::Int(number)) => match number {
            number if *number < least => Err(wrong(
                name,
                message(),
                format!("it must be at least {least}"),
            )),
            number if *number > most => {
                Err(wrong(name, message(), format!("it must be at most {most}")))
            }
            _ => Ok(()),
        },
        (Range::Ints(least, most), Value::List(numbers)) => {
            let fits = |n: &Value| n.as_int().is_some_and(|n| (least..=most).contains(&n));
            match numbers.is_empty() || !numbers.iter().all(fits) {
                true => Err(wrong(
                    name,
                    message(),
                    format!("each is at least {least}, and there is at least one"),
                )),
                false => Ok(()),
            }
        }
        (Range::Floats(least, most), Value::Float(number)) => {
            match (least..=most).contains(number) {
                true => Ok(()),
                false => Err(wrong(
                    name,
                    message(),
                    format!("it must be between {least} and {most}"),
                )),
            }
        }
        (Range::OneOf(all), Value::Text(text)) if !all.contains(&text.as_str()) => {
            Err(unknown(name, text, all.iter().copied()))
        }
        _ => Ok(()),
    }
}

/// Refuses parameters that belong to other choices than the one that is made.
fn belongs(params: &Params, chosen: &Choice, choices: &[Choice]) -> Result<(), ParamError> {
    let mut owners: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
    for choice in choices {
        for param in choice.params {
            owners.entry(param.name).or_default().push(choice.name);
        }
    }
    for (name, owners) in owners {
        if params.contains_key(name) && !owners.contains(&chosen.name) {
            let (selector, chosen) = (chosen.selector, chosen.name);
            let message = format!("`{name}` does not apply to {selector} = \"{chosen}\"");
            let help = format!("remove it: it is a parameter of {}", owners.join(", "));
            return Err(wrong(name, message, help));
        }
    }
    Ok(())
}

/// The parameters of a kind whose choices bring their own: the kind's first, then each choice's. A
/// name that choices share means the same to all of them, with defaults of their own.
pub fn union(base: &[Param], choices: &[Choice]) -> &'static [Param] {
    let mut all: Vec<Param> = base.to_vec();
    for param in choices.iter().flat_map(|choice| choice.params) {
        if all.iter().all(|known| known.name != param.name) {
            all.push(Param {
                presence: Presence::Optional,
                range: Range::Any,
                when: None,
                ..*param
            });
        }
    }
    // Once a kind, for as long as the program runs.
    Box::leak(all.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::attack::AttackStage;
    use crate::tests::trial::{params, text};

    /// `explain` and `audit` show what is in the key.
    #[test]
    fn the_defaults_of_what_is_chosen_are_written_out_and_those_of_others_are_not() {
        let jsma = complete(&AttackStage, &params(&[("attack", text("jsma"))])).unwrap();
        assert_eq!(jsma["max_words"], Value::Int(35));
        assert_eq!(jsma["direction"], text("sign"));
        assert!(!jsma.contains_key("alpha") && !jsma.contains_key("n"));
        let sign = [("attack", text("gradient-sign"))];
        let sign = complete(&AttackStage, &params(&sign)).unwrap();
        assert_eq!(sign["alpha"], Value::Float(0.15));
        assert!(!sign.contains_key("eps"));
    }

    #[test]
    fn both_spellings_of_a_value_give_one_key() {
        let among = |value| {
            let given = params(&[("attack", text("none")), ("among", text(value))]);
            complete(&AttackStage, &given).unwrap()
        };
        assert_eq!(among("right"), among("correct"));
    }
}
