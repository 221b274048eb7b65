//! Fills references in: `{{ablate:results[row=lstm,col=clean]}}` becomes what the store has.
//! `|.3` after a reference asks for three decimals, `|%1` for a percentage with one.

use super::numbers::{Computed, references};

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// As it is stored.
    Plain,
    /// With this many decimals.
    Decimals(usize),
    /// Times a hundred, with this many decimals.
    Percent(usize),
}

/// A reference that cannot be resolved: where it stands, and why.
pub struct Unfilled {
    /// In bytes.
    pub place: std::ops::Range<usize>,
    /// Why.
    pub why: String,
}

/// The text with every reference filled in, or all that cannot be. `cell` looks one up.
pub fn render(
    text: &str,
    cell: impl Fn(&str) -> Result<String, String>,
) -> Result<String, Vec<Unfilled>> {
    let (mut filled, mut problems) = (String::with_capacity(text.len()), Vec::new());
    let mut from = 0;
    for (place, inside) in references(text) {
        filled.push_str(&text[from..place.start]);
        from = place.end;
        let value = match inside {
            Some(inside) => one(inside, &cell),
            None => Err("it is not closed by }} on its line".to_owned()),
        };
        match value {
            Ok(value) => filled.push_str(&value),
            Err(why) => problems.push(Unfilled { place, why }),
        }
    }
    filled.push_str(&text[from..]);
    match problems.is_empty() {
        true => Ok(filled),
        false => Err(problems),
    }
}

fn one(inside: &str, cell: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let (name, form) = match inside.rsplit_once('|') {
        Some((name, form)) => (name.trim(), parse(form.trim())?),
        None => (inside.trim(), Form::Plain),
    };
    let value = cell(name)?;
    let number = || {
        let number = Computed::parse(&value);
        number.ok_or_else(|| format!("`{value}` is not a number, so it has no decimals"))
    };
    Ok(match form {
        Form::Plain => value,
        Form::Decimals(decimals) => written(number()?, 1, decimals),
        Form::Percent(decimals) => written(number()?, 100, decimals),
    })
}

/// A multiple of a number with this many decimals. An integer keeps all its digits.
fn written(number: Computed, times: i32, decimals: usize) -> String {
    match number {
        Computed::Float(float) => rounded(float * f64::from(times), decimals),
        Computed::Integer(integer) => {
            let product = i128::from(integer) * i128::from(times);
            let point = if decimals > 0 { "." } else { "" };
            format!("{product}{point}{}", "0".repeat(decimals))
        }
    }
}

/// With this many decimals, and without the sign of a zero.
fn rounded(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if !zero.contains(|c: char| matches!(c, '1'..='9')) => zero.to_owned(),
        _ => text,
    }
}

/// A text as TeX prints it.
pub fn tex(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn parse(form: &str) -> Result<Form, String> {
    let wrong = || format!("`{form}` is neither `.3` (decimals) nor `%1` (a percentage)");
    let (make, digits): (fn(usize) -> Form, &str) = match form.split_at_checked(1) {
        Some((".", digits)) => (Form::Decimals, digits),
        Some(("%", digits)) => (Form::Percent, digits),
        _ => return Err(wrong()),
    };
    match digits.parse() {
        Ok(decimals) if decimals <= 17 => Ok(make(decimals)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_become_values() {
        let cell = |name: &str| match name {
            "a[x=1]" => Ok("0.91634".to_owned()),
            "b[x=1]" => Ok("good".to_owned()),
            _ => Err(format!("no `{name}`")),
        };
        let done = |text: &str| render(text, cell).map_err(|all| all[0].why.clone());
        let text = "{{ablate:a[x=1]}}, {{ablate:a[x=1]|.3}}, {{ablate:a[x=1]|%1}}\\% {{other}}";
        assert_eq!(done(text).unwrap(), "0.91634, 0.916, 91.6\\% {{other}}");
        assert_eq!(done("{{ablate:c}}").unwrap_err(), "no `c`");
        assert_eq!(done("{{ Ablate: a[x=1] |.1 }}").unwrap(), "0.9");
        assert_eq!(rounded(-0.0001, 2), "0.00");
        assert_eq!(tex(r"a_b & 50% \x"), r"a\_b \& 50\% \textbackslash{}x");
        let wrong = "it is not closed by }} on its line";
        assert_eq!(done("{{ablate:a[x=1]\nand}}").unwrap_err(), wrong);
        let wrong = "`good` is not a number, so it has no decimals";
        assert_eq!(done("{{ablate:b[x=1]|.3}}").unwrap_err(), wrong);
        let wrong = "`x` is neither `.3` (decimals) nor `%1` (a percentage)";
        assert_eq!(done("{{ablate:a[x=1]|x}}").unwrap_err(), wrong);
    }
}
