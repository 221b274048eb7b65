//! References as people write them: `stage`, `stage.output`, `stage[axis=value]`, `results[table=fig8,row=lstm]`,
//! `results[row=lstm].accuracy`. Takes a text apart; knows nothing of what there is.

use crate::diagnostic::Diagnostic;

/// A reference taken apart: the stage, filters in brackets, and the names after dots.
#[derive(Debug)]
pub struct Reference<'a> {
    /// As written.
    pub text: &'a str,
    /// The stage's name.
    pub stage: &'a str,
    /// The output in `stage.output[…]`.
    pub before_brackets: Option<&'a str>,
    /// Axes and columns with the values that are meant.
    pub filters: Vec<(String, String)>,
    /// The output or column in `stage[…].name` and `stage.name`.
    pub after_brackets: Option<&'a str>,
}

/// Takes a reference apart.
pub fn parse(text: &str) -> Result<Reference<'_>, Diagnostic> {
    let wrong = |why: &str| {
        Diagnostic::new(format!("`{text}` is not a reference: {why}")).help(
            "write `stage`, `stage.output`, `stage[axis=value]` or `stage[column=value].column`",
        )
    };
    let (head, inside, tail) = match text.find('[') {
        None => (text, "", ""),
        Some(open) => {
            let close = text.rfind(']').filter(|close| *close > open);
            let close = close.ok_or_else(|| wrong("missing `]`"))?;
            (&text[..open], &text[open + 1..close], &text[close + 1..])
        }
    };
    let (stage, before) = match head.split_once('.') {
        Some((stage, output)) => (stage, Some(output)),
        None => (head, None),
    };
    let after = match tail.strip_prefix('.') {
        Some("") => return Err(wrong("nothing after the dot")),
        Some(name) => Some(name),
        None if tail.is_empty() => None,
        None => return Err(wrong("only `.column` can follow `]`")),
    };
    let (before, after) = match (text.contains('['), before) {
        // `stage.output` without brackets: as if it followed them.
        (false, Some(name)) => (None, Some(name)),
        _ => (before, after),
    };
    let mut filters = Vec::new();
    for part in split_commas(inside) {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| wrong("expected name=value inside [ ]"))?;
        let value = value.trim();
        let bare = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        filters.push((name.trim().to_owned(), bare.unwrap_or(value).to_owned()));
    }
    Ok(Reference {
        text,
        stage,
        before_brackets: before,
        filters,
        after_brackets: after,
    })
}

/// Cuts at commas that stand in no quotes.
fn split_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(&text[from..]);
    }
    parts
}

/// Splits `label.output`, where the label may have dots inside its brackets.
pub fn split_output(text: &str) -> (&str, Option<&str>) {
    let after = text.rfind(']').map_or(0, |at| at + 1);
    match text[after..].split_once('.') {
        Some((rest, output)) => (&text[..after + rest.len()], Some(output)),
        None => (text, None),
    }
}

/// The axes of an instance with their values, as its name has them. A value with signs of its
/// own is written in quotes there.
pub fn axes(label: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut rest = label.split_once('[').map_or("", |(_, rest)| rest);
    rest = rest.strip_suffix(']').unwrap_or(rest);
    while let Some((name, after)) = rest.split_once('=') {
        let mut quoted = serde_json::Deserializer::from_str(after).into_iter::<String>();
        let (value, used) = match quoted.next() {
            Some(Ok(value)) => (value, quoted.byte_offset()),
            _ => {
                let end = after.find(',').unwrap_or(after.len());
                (after[..end].to_owned(), end)
            }
        };
        found.push((name, value));
        rest = after[used..].trim_start_matches(',');
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_follows_the_last_bracket() {
        assert_eq!(split_output("train"), ("train", None));
        assert_eq!(split_output("train.weights"), ("train", Some("weights")));
        assert_eq!(split_output("train[lr=0.5]"), ("train[lr=0.5]", None));
        assert_eq!(
            split_output("train[lr=0.5].w"),
            ("train[lr=0.5]", Some("w"))
        );
    }

    #[test]
    fn axes_are_read_off_a_label() {
        let read = |label: &str| {
            let axes = axes(label).into_iter();
            axes.map(|(name, value)| format!("{name} {value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(read("s[n=3,lr=0.5]"), ["n 3", "lr 0.5"]);
        assert_eq!(
            read(r#"s[a="x, [\"y\"]=",b=plain]"#),
            [r#"a x, ["y"]="#, "b plain"]
        );
        assert_eq!(read("s"), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_a_reference_is_refused() {
        let wrong = |text: &str| parse(text).unwrap_err().title().to_owned();
        assert_eq!(wrong("r[row"), "`r[row` is not a reference: missing `]`");
        assert_eq!(
            wrong("r[row]"),
            "`r[row]` is not a reference: expected name=value inside [ ]"
        );
        assert_eq!(
            wrong("r[row=a]."),
            "`r[row=a].` is not a reference: nothing after the dot"
        );
    }
}
