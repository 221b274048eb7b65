//! Reads `figures.toml`: which figures to draw from which tables. Not part of any key.
//! Knows nothing of results: what can be wrong without them is found here.

use std::path::Path;

use store::Value;

use crate::config::entries::{as_table, bad_name, decoded, is_name, unknown_key, wrong_type};
use crate::config::tree::{self, Entry, Raw};
use crate::diagnostic::{Diagnostic, Problems, Sources, nearest};

/// The file's name, beside the pipeline file.
pub const FILE: &str = "figures.toml";

/// A figure of `figures.toml`.
#[derive(Clone, Debug, Default)]
pub struct FigureSpec {
    /// Its name in the file.
    pub id: String,
    /// The result: `stage`, `stage.output` or `stage[axis=value].output`.
    pub table: String,
    /// SQL over it, as the table `t`.
    pub query: Option<String>,
    /// How it is drawn.
    pub kind: Kind,
    /// The column along.
    pub x: String,
    /// The column that goes up.
    pub y: Option<String>,
    /// The column that distinguishes series.
    pub by: Option<String>,
    /// For lines and paths: the column that breaks them, so that a series may have many.
    pub each: Option<String>,
    /// For a matrix: the column of numbers.
    pub value: Option<String>,
    /// For series and images: columns of lists.
    pub columns: Vec<String>,
    /// For images: numbers in a row of pixels.
    pub width: Option<usize>,
    /// For series and images: how many rows of the table.
    pub rows: usize,
    /// The profiles in which it is drawn; empty means all.
    pub profiles: Vec<String>,
    /// A line above it.
    pub title: String,
    /// A remark below it.
    pub note: String,
    /// What the axis along is called.
    pub x_label: String,
    /// What the axis upward is called.
    pub y_label: String,
}

/// How a table is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A bar for each `x`, side by side for each `by`.
    #[default]
    Bars,
    /// A box of all `y` with the same `x`, side by side for each `by`.
    Boxes,
    /// A line for each `by`.
    Lines,
    /// A line in the order of the rows: phase plots.
    Path,
    /// A point for each row.
    Points,
    /// How often each `x` occurs.
    Histogram,
    /// A grid of `value` by `x` and `y`.
    Matrix,
    /// Lists over time.
    Series,
    /// Lists as pictures.
    Images,
}

/// Every kind with the keys that it needs.
const KINDS: [(&str, Kind, &[&str]); 9] = [
    ("bars", Kind::Bars, &["x", "y"]),
    ("boxes", Kind::Boxes, &["x", "y"]),
    ("lines", Kind::Lines, &["x", "y"]),
    ("path", Kind::Path, &["x", "y"]),
    ("points", Kind::Points, &["x", "y"]),
    ("histogram", Kind::Histogram, &["x"]),
    ("matrix", Kind::Matrix, &["x", "y"]),
    ("series", Kind::Series, &["columns"]),
    ("images", Kind::Images, &["columns", "width"]),
];

const KEYS: [&str; 16] = [
    "table", "query", "kind", "x", "y", "by", "each", "value", "columns", "width", "rows",
    "profiles", "title", "note", "x_label", "y_label",
];

/// The kinds of figures by name, each with the keys that it needs.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    KINDS.into_iter().map(|(name, _, needs)| (name, needs))
}

/// How many rows of series and images are drawn by default.
const ROWS: usize = 6;

/// Reads the file beside a pipeline file. No file, no figures.
pub fn read(pipeline: &Path) -> Result<Vec<FigureSpec>, Problems> {
    let path = pipeline.with_file_name(FILE);
    let shown = path.display().to_string();
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let problem = Diagnostic::new(format!("cannot read {shown}: {error}"));
            return Err(Problems::plain(problem));
        }
        Ok(bytes) => bytes,
    };
    let text = decoded(bytes, &shown).map_err(Problems::plain)?;
    let mut sources = Sources::default();
    let source = sources.add(shown, text);
    let checked = tree::parse(&sources, source).and_then(check);
    checked.map_err(|list| Problems { sources, list })
}

fn check(mut root: tree::Table) -> Result<Vec<FigureSpec>, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let figures = match root.take("figure") {
        Some(entry) => as_table(entry, &mut problems).entries,
        None => Vec::new(),
    };
    for entry in &root.entries {
        problems.push(unknown_key(entry, "at the top of the file", ["figure"]));
    }
    let each = figures.into_iter();
    let list: Vec<FigureSpec> = each.filter_map(|entry| one(entry, &mut problems)).collect();
    match problems.is_empty() {
        true => Ok(list),
        false => Err(problems),
    }
}

fn one(entry: Entry, problems: &mut Vec<Diagnostic>) -> Option<FigureSpec> {
    let before = problems.len();
    let (id, id_span) = (entry.key.clone(), entry.key_span);
    if !is_name(&id) {
        problems.push(bad_name("a figure", &entry));
    }
    let mut spec = FigureSpec {
        id: id.clone(),
        rows: ROWS,
        ..FigureSpec::default()
    };
    let mut given = Vec::new();
    for entry in as_table(entry, problems).entries {
        given.push(entry.key.clone());
        match (entry.key.as_str(), &entry.node.raw) {
            ("kind", Raw::Scalar(Value::Text(name))) => {
                match KINDS.iter().find(|(known, ..)| known == name) {
                    Some((_, kind, _)) => spec.kind = *kind,
                    None => {
                        let hint = nearest(name, KINDS.map(|(known, ..)| known));
                        let list = KINDS.map(|(known, ..)| known).join(", ");
                        problems.push(
                            Diagnostic::new(format!("no kind of figure `{name}`"))
                                .at(entry.node.span, hint.unwrap_or_default())
                                .help(format!("kinds: {list}")),
                        );
                    }
                }
            }
            ("query", Raw::Scalar(Value::Text(sql))) => {
                match stages::sql::tables_of(sql) {
                    Ok(read) if read.iter().any(|name| name != "t") => problems.push(
                        Diagnostic::new(format!(
                            "the query of figure `{id}` reads another table than `t`"
                        ))
                        .at(entry.node.span, "")
                        .help("`t` is the table that the figure is drawn from"),
                    ),
                    Ok(_) => {}
                    Err(error) => problems.push(
                        Diagnostic::new(error.message)
                            .at(entry.node.span, "")
                            .maybe_help(error.help),
                    ),
                }
                spec.query = Some(sql.clone());
            }
            (key @ ("columns" | "profiles"), Raw::List(items)) => {
                let list = match key {
                    "columns" => &mut spec.columns,
                    _ => &mut spec.profiles,
                };
                for item in items {
                    match item.as_text() {
                        Some(name) => list.push(name.to_owned()),
                        None => problems.push(wrong_type(&entry, &format!("a list of {key}"))),
                    }
                }
            }
            ("width" | "rows", Raw::Scalar(Value::Int(number))) if *number > 0 => {
                let number = usize::try_from(*number).unwrap_or(usize::MAX);
                match entry.key.as_str() {
                    "width" => spec.width = Some(number),
                    _ => spec.rows = number,
                }
            }
            (key, Raw::Scalar(Value::Text(text))) if spec.text(key).is_some() => {
                if let Some(slot) = spec.text(key) {
                    *slot = text.clone();
                }
            }
            (key @ ("columns" | "profiles"), _) => {
                problems.push(wrong_type(&entry, &format!("a list of {key}")));
            }
            ("width" | "rows", _) => problems.push(wrong_type(&entry, "a positive integer")),
            (key, _) if KEYS.contains(&key) => problems.push(wrong_type(&entry, "a string")),
            _ => problems.push(unknown_key(&entry, &format!("in figure `{id}`"), KEYS)),
        }
    }
    let needed = KINDS.iter().find(|(_, kind, _)| *kind == spec.kind);
    let needed = ["table", "kind"]
        .iter()
        .chain(needed.map_or(&[][..], |(.., keys)| keys));
    for key in needed.filter(|key| !given.iter().any(|known| known == *key)) {
        if problems.len() == before {
            problems.push(
                Diagnostic::new(format!("figure `{id}` has no `{key}`"))
                    .at(id_span, "")
                    .help("docs/report.md lists what each kind of figure needs"),
            );
        }
    }
    spec.name_the_rest();
    (problems.len() == before).then_some(spec)
}

impl FigureSpec {
    /// Whether it is drawn in this profile.
    pub fn is_for(&self, profile: Option<&str>) -> bool {
        let named = |profile| self.profiles.iter().any(|known| known == profile);
        self.profiles.is_empty() || profile.is_some_and(named)
    }

    /// Where a key that is a string goes.
    fn text(&mut self, key: &str) -> Option<&mut String> {
        Some(match key {
            "table" => &mut self.table,
            "x" => &mut self.x,
            "y" => self.y.get_or_insert_default(),
            "by" => self.by.get_or_insert_default(),
            "each" => self.each.get_or_insert_default(),
            "value" => self.value.get_or_insert_default(),
            "title" => &mut self.title,
            "note" => &mut self.note,
            "x_label" => &mut self.x_label,
            "y_label" => &mut self.y_label,
            _ => return None,
        })
    }

    /// What was not named is named after its columns.
    pub fn name_the_rest(&mut self) {
        let fill = |slot: &mut String, name: &str| {
            if slot.is_empty() {
                *slot = name.to_owned();
            }
        };
        fill(&mut self.title, &self.id);
        let up = match self.kind {
            Kind::Histogram => "count",
            Kind::Series => "value",
            _ => self.y.as_deref().unwrap_or_default(),
        };
        fill(&mut self.y_label, up);
        let along = if self.kind == Kind::Series {
            "step"
        } else {
            &self.x
        };
        fill(&mut self.x_label, along);
    }
}
