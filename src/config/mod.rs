//! Reads the pipeline file: as written, then as checked.
//! What leaves here has known kinds, known keys and references that resolve by name;
//! it knows nothing of instances, keys or the store.

mod overlay;
mod params;
mod stage;
pub mod tree;

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::path::{Path, PathBuf};

use store::Value;

use crate::diagnostic::{Diagnostic, Problems, Sources, Span, nearest};
use tree::{Entry, Raw, Table};

pub use params::{Bindings, check_params, fill};
pub use stage::{Best, Reference, StageDecl};

/// What the command line says about the pipeline.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The pipeline file.
    pub file: PathBuf,
    /// The name of a `[profile.NAME]` to lay over it.
    pub profile: Option<String>,
    /// `stage.param=value` settings, laid over it last.
    pub sets: Vec<String>,
}

/// A pipeline whose shape has been checked.
#[derive(Debug)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// The seed of every stage that does not set its own.
    pub seed: u64,
    /// The file of claims that it names, found from its folder.
    pub claims: Option<(String, Span)>,
    /// The names of its profiles.
    pub profiles: Vec<String>,
    /// What `[data]` says about where data sets lie.
    pub data: Data,
    /// The folder of the pipeline file: declared files are found from here.
    pub dir: PathBuf,
    /// The axes in the order of the file.
    pub axes: Vec<Axis>,
    /// The stages in the order of the file.
    pub stages: Vec<StageDecl>,
    /// What spans point into.
    pub sources: Sources,
}

/// Where data sets lie. Not part of any key: what is read has a known digest.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// A folder of copies, found from the pipeline's folder.
    pub mirror: Option<PathBuf>,
    /// Whether the network must not be asked.
    pub offline: bool,
}

/// A list of values over which stages are multiplied.
#[derive(Debug)]
pub struct Axis {
    /// Its name, as in `${name}`.
    pub name: String,
    /// Its values: scalars of one type.
    pub values: Vec<Value>,
    /// Where the name is written.
    pub span: Span,
}

/// Words that `--set` and messages use for other things.
const RESERVED: [&str; 3] = ["pipeline", "axes", "profile"];

/// Reads and checks a pipeline file with its overlays.
pub fn read(request: &Request) -> Result<Pipeline, Problems> {
    let shown = request.file.display().to_string();
    let bytes = std::fs::read(&request.file).map_err(|error| {
        Problems::plain(
            Diagnostic::new(format!("cannot read {shown}: {error}"))
                .help("name the pipeline file with `-f FILE`, or its folder with `-C DIR`"),
        )
    })?;
    let text = decoded(bytes, &shown).map_err(Problems::plain)?;
    let mut sources = Sources::default();
    let file = sources.add(shown, text);
    let parent = request.file.parent().unwrap_or(Path::new(""));
    let dir = match parent.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => parent.to_owned(),
    };
    let mut profiles = Vec::new();
    let checked = tree::parse(&sources, file)
        .and_then(|root| {
            profiles = overlay::profiles(&root);
            overlay::apply(root, request, &mut sources)
        })
        .and_then(|root| check(root, dir));
    match checked {
        Ok(pipeline) => Ok(Pipeline {
            profiles,
            sources,
            ..pipeline
        }),
        Err(list) => Err(Problems { sources, list }),
    }
}

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

/// From the tree to the checked form. Collects every error that it can reach.
fn check(mut root: Table, dir: PathBuf) -> Result<Pipeline, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let mut section = |key: &str| -> Table {
        match root.take(key) {
            None => Table::default(),
            Some(entry) => as_table(entry, &mut problems),
        }
    };
    let pipeline = section("pipeline");
    let data = section("data");
    let axes = section("axes");
    let stages = section("stage");
    section("profile");
    for entry in &root.entries {
        let known = ["pipeline", "data", "axes", "stage", "profile"];
        problems.push(unknown_key(entry, "at the top of the file", known));
    }
    let Header { name, seed, claims } = header(pipeline, &mut problems);
    let data = check_data(data, &dir, &mut problems);
    let axes = check_axes(axes, &mut problems);

    if stages.entries.is_empty() && problems.is_empty() {
        problems.push(
            Diagnostic::new("the pipeline has no stages")
                .help("add one: [stage.NAME] with kind = \"table\", \"sql\" or \"command\""),
        );
    }
    let mut decls = Vec::with_capacity(stages.entries.len());
    for entry in stages.entries {
        match stage::check(entry, &axes) {
            Ok(decl) => decls.push(decl),
            Err(mut found) => problems.append(&mut found),
        }
    }
    // A reference to a stage that is itself wrong would be reported twice: stop before.
    if problems.is_empty() {
        stage::resolve(&mut decls, &mut problems);
        unused_axes(&axes, &decls, &mut problems);
    }
    if problems.is_empty() {
        Ok(Pipeline {
            name,
            seed,
            claims,
            profiles: Vec::new(),
            data,
            dir,
            axes,
            stages: decls,
            sources: Sources::default(),
        })
    } else {
        Err(problems)
    }
}

/// What a pipeline is called that has no name.
pub const UNNAMED: &str = "pipeline";

/// What `[pipeline]` says.
struct Header {
    name: String,
    seed: u64,
    claims: Option<(String, Span)>,
}

fn header(table: Table, problems: &mut Vec<Diagnostic>) -> Header {
    let (mut name, mut seed, mut claims) = (UNNAMED.to_owned(), 0, None);
    for entry in table.entries {
        match (entry.key.as_str(), &entry.node.raw) {
            ("name", Raw::Scalar(Value::Text(text))) => name.clone_from(text),
            ("name", _) => problems.push(wrong_type(&entry, "a string")),
            ("seed", Raw::Scalar(Value::Int(int))) if *int >= 0 => seed = int.unsigned_abs(),
            ("seed", _) => problems.push(wrong_type(&entry, "a whole number from 0")),
            ("claims", Raw::Scalar(Value::Text(file))) => {
                claims = Some((file.clone(), entry.node.span));
            }
            ("claims", _) => problems.push(wrong_type(&entry, "a string")),
            _ => {
                let known = ["name", "seed", "claims"];
                problems.push(unknown_key(&entry, "in [pipeline]", known));
            }
        }
    }
    Header { name, seed, claims }
}

fn check_data(table: Table, dir: &Path, problems: &mut Vec<Diagnostic>) -> Data {
    let mut data = Data::default();
    for entry in table.entries {
        match (entry.key.as_str(), &entry.node.raw) {
            ("mirror", Raw::Scalar(Value::Text(text))) => data.mirror = Some(dir.join(text)),
            ("mirror", _) => problems.push(wrong_type(&entry, "a string")),
            ("offline", Raw::Scalar(Value::Bool(offline))) => data.offline = *offline,
            ("offline", _) => problems.push(wrong_type(&entry, "true or false")),
            _ => problems.push(unknown_key(&entry, "in [data]", ["mirror", "offline"])),
        }
    }
    data
}

fn check_axes(table: Table, problems: &mut Vec<Diagnostic>) -> Vec<Axis> {
    let mut axes = Vec::new();
    for entry in table.entries {
        if !is_name(&entry.key) {
            problems.push(bad_name("an axis", &entry));
            continue;
        }
        let Raw::List(items) = &entry.node.raw else {
            problems.push(wrong_type(&entry, "a list of values"));
            continue;
        };
        if items.is_empty() {
            problems.push(
                Diagnostic::new(format!("axis `{}` has no values", entry.key)).at(
                    entry.node.span,
                    "an empty list multiplies its stages by nothing",
                ),
            );
        }
        let floats = items
            .iter()
            .any(|item| matches!(item.raw, Raw::Scalar(Value::Float(_))));
        let mut values: Vec<Value> = Vec::new();
        let mut listed: HashMap<String, (Value, Span)> = HashMap::new();
        for item in items {
            let Raw::Scalar(value) = &item.raw else {
                problems.push(
                    Diagnostic::new(format!(
                        "a value of axis `{}` is {}",
                        entry.key,
                        item.type_name()
                    ))
                    .at(item.span, "must be a string, number or boolean"),
                );
                continue;
            };
            if let Some(first) = values.first()
                && !same_column(first, value)
            {
                problems.push(
                    Diagnostic::new(format!(
                        "axis `{}` mixes {} and {}",
                        entry.key,
                        first.type_name(),
                        value.type_name()
                    ))
                    .at(item.span, "all values of an axis have one type"),
                );
                continue;
            }
            let first = listed.entry(one_value(value, floats));
            if let MapEntry::Occupied(first) = first {
                let (other, span) = first.get();
                problems.push(listed_twice(&entry.key, (other, *span), (value, item.span)));
                continue;
            }
            first.or_insert_with(|| (value.clone(), item.span));
            values.push(value.clone());
        }
        axes.push(Axis {
            name: entry.key,
            values,
            span: entry.key_span,
        });
    }
    axes
}

/// The error for a value that an axis has already.
fn listed_twice(axis: &str, first: (&Value, Span), again: (&Value, Span)) -> Diagnostic {
    let ((other, there), (value, here)) = (first, again);
    if other.to_string() == value.to_string() {
        return Diagnostic::new(format!("axis `{axis}` lists {value} twice"))
            .at(here, "already listed");
    }
    let how = match (other, value) {
        (Value::Int(_), Value::Int(_)) => " in a column of floats",
        _ => "",
    };
    Diagnostic::new(format!(
        "axis `{axis}` lists {other} and {value}, which are the same number{how}"
    ))
    .at(here, "already listed")
    .at(there, "here")
}

/// The same text for values that mean the same. Numbers of an axis with a float are all floats once they
/// stand in a column.
fn one_value(value: &Value, floats: bool) -> String {
    let number = match value {
        Value::Int(int) if floats => *int as f64,
        Value::Float(float) => *float,
        other => return other.to_string(),
    };
    // 0 and -0 are equal, and so are all that are not numbers.
    Value::Float(number + 0.0).to_string()
}

/// Whether two values fit into one column.
fn same_column(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_));
    (number(a) && number(b)) || a.type_name() == b.type_name()
}

fn unused_axes(axes: &[Axis], decls: &[StageDecl], problems: &mut Vec<Diagnostic>) {
    for (n, axis) in axes.iter().enumerate() {
        if !decls.iter().any(|decl| decl.axes.contains(&n)) {
            problems.push(
                Diagnostic::new(format!("axis `{}` is used nowhere", axis.name))
                    .at(axis.span, "")
                    .help(format!(
                        "mention it in a stage as ${{{}}}, or remove it",
                        axis.name
                    )),
            );
        }
    }
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

/// A key that nobody reads.
pub fn unknown_key<'a>(
    entry: &Entry,
    place: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let list = known.clone().into_iter().collect::<Vec<_>>().join(", ");
    Diagnostic::new(format!("unknown key `{}` {place}", entry.key))
        .at(
            entry.key_span,
            nearest(&entry.key, known).unwrap_or_default(),
        )
        .help(format!("known keys: {list}"))
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

/// The position of each stage by name.
fn index(decls: &[StageDecl]) -> HashMap<&str, usize> {
    decls
        .iter()
        .enumerate()
        .map(|(n, decl)| (decl.name.as_str(), n))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan;

    /// Pieces that pipelines are made of, so that chance gets further than the first line.
    const PIECES: &[&str] = &[
        "[stage.a]\n",
        "[stage.b]\n",
        "[axes]\n",
        "[pipeline]\n",
        "[profile.p.stage.a]\n",
        "kind = \"table\"\n",
        "kind = \"sql\"\n",
        "kind = \"command\"\n",
        "kind = 1\n",
        "rows = [{ x = 1 }]\n",
        "rows = [{ x = \"${k}\" }]\n",
        "rows = []\n",
        "k = [1, 2]\n",
        "k = [\"x\", 2]\n",
        "over = [\"k\"]\n",
        "inputs = { t = \"a\" }\n",
        "inputs = { t = \"b.rows\" }\n",
        "query = \"SELECT ${k} FROM t\"\n",
        "seed = 1\n",
        "query = \"SELECT * FROM t\"\n",
        "run = [\"true\"]\n",
        "outputs = [\"o\"]\n",
        "select = { over = [\"k\"], metric = \"a\", column = \"x\", best = \"max\" }\n",
        "timeout = nan\n",
        "env = { A = 1 }\n",
        "files = [\"..\"]\n",
        "\u{feff}",
        "# ä\n",
        "= ]",
    ];

    fn read_text(text: String, set: Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pipeline.toml");
        std::fs::write(&file, text).unwrap();
        let request = Request {
            file,
            profile: Some("p".to_owned()).filter(|_| set.is_some()),
            sets: set.into_iter().collect(),
        };
        match read(&request) {
            Ok(pipeline) => {
                if let Err(list) = plan::build(&pipeline) {
                    crate::diagnostic::render(&pipeline.sources, &list);
                }
            }
            Err(problems) => {
                crate::diagnostic::render(&problems.sources, &problems.list);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}", set in proptest::option::of(".{0,40}")) {
            read_text(text, set);
        }

        #[test]
        fn no_mixture_of_pieces_makes_it_panic(
            pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..14),
            set in proptest::option::of("(a|b|axes|pipeline)[.](k|rows|x[.]y)=.{0,20}"),
        ) {
            read_text(pieces.concat(), set);
        }
    }
}
