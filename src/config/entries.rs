//! What files that people write have in common: text, tables, keys and names, and what is wrong with them.

use super::tree::{Entry, Raw, Table};
use crate::diagnostic::{Diagnostic, nearest};

/// Words that `--set` and messages use for other things.
pub(super) const RESERVED: [&str; 4] = ["pipeline", "axes", "choices", "profile"];

/// The text of a file that people write.
pub fn decoded(bytes: Vec<u8>, shown: &str) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Diagnostic::new(format!(
            "{shown} is not UTF-8: line {line}, byte {}",
            before.len()
        ))
        .help("save it as UTF-8")
    })
}

/// The table under a key. Anything else is a problem, and no entries.
pub fn as_table(entry: Entry, problems: &mut Vec<Diagnostic>) -> Table {
    match entry.node.raw {
        Raw::Table(table) => table,
        _ => {
            problems.push(wrong_type(&entry, "a table"));
            Table::default()
        }
    }
}

/// A value that is not what its key holds.
pub fn wrong_type(entry: &Entry, expected: &str) -> Diagnostic {
    let got = match &entry.node.raw {
        Raw::Scalar(value) => format!("{value}, {}", value.type_name()),
        _ => entry.node.type_name().to_owned(),
    };
    Diagnostic::new(format!("`{}` must be {expected}", entry.key))
        .at(entry.node.span, format!("this is {got}"))
}

/// Keys that fit in one line of help; of longer lists only the most similar are shown.
const LISTED: usize = 12;
const SIMILAR: usize = 5;

/// A key that has no meaning there.
pub fn unknown_key<'a>(
    entry: &Entry,
    place: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let mut list: Vec<&str> = known.clone().into_iter().collect();
    let help = if list.len() <= LISTED {
        format!("known keys: {}", list.join(", "))
    } else {
        list.sort_by_key(|key| strsim::osa_distance(&entry.key, key));
        format!("similar keys: {}", list[..SIMILAR].join(", "))
    };
    Diagnostic::new(format!("unknown key `{}` {place}", entry.key))
        .at(
            entry.key_span,
            nearest(&entry.key, known).unwrap_or_default(),
        )
        .help(help)
}

/// A name that would not do in labels, files or SQL.
pub fn bad_name(what: &str, entry: &Entry) -> Diagnostic {
    Diagnostic::new(format!("`{}` cannot name {what}", entry.key))
        .at(entry.key_span, "")
        .help("use letters, digits, `_` and `-`, beginning with a letter or `_`")
}

/// Names appear in labels, file names and SQL: keep them plain.
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
