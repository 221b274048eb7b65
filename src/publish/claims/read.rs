//! Reads a file of claims: as written, then as checked against the pipeline.
//! Knows nothing of results: what can be wrong without them is found here.

use std::path::PathBuf;

use store::Value;

use super::{Claim, Claims, Level, Table};
use crate::config::entries::{as_table, bad_name, decoded, is_name, unknown_key, wrong_type};
use crate::config::tree::{self, Entry, Raw};
use crate::diagnostic::{Diagnostic, Problems, Sources, Span, nearest};
use crate::plan::Plan;
use crate::results::find;

/// The file of claims of a pipeline file: the one that it names, or `claims.toml` beside it
/// if that exists.
pub fn path(file: &std::path::Path, plan: &Plan<'_>) -> Option<PathBuf> {
    match &plan.pipeline.claims {
        Some((name, _)) => Some(file.with_file_name(name)),
        None => Some(file.with_file_name("claims.toml")).filter(|path| path.exists()),
    }
}

/// Reads and checks a file of claims.
pub fn read(path: &std::path::Path, plan: &Plan<'_>) -> Result<Claims, Problems> {
    let shown = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        let problem = Diagnostic::new(format!("cannot read {shown}: {error}"));
        Problems::plain(problem.help("`claims` in [pipeline] names it, from the pipeline's folder"))
    })?;
    let text = decoded(bytes, &shown).map_err(Problems::plain)?;
    let mut sources = Sources::default();
    let source = sources.add(shown, text);
    match tree::parse(&sources, source).and_then(|root| check(root, plan)) {
        Ok((tables, list)) => Ok(Claims {
            tables,
            list,
            sources,
        }),
        Err(list) => Err(Problems { sources, list }),
    }
}

/// Collects every error that it can reach.
fn check(
    mut root: tree::Table,
    plan: &Plan<'_>,
) -> Result<(Vec<Table>, Vec<Claim>), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let mut section = |key: &str| match root.take(key) {
        None => tree::Table::default(),
        Some(entry) => as_table(entry, &mut problems),
    };
    let (header, claims) = (section("claims"), section("claim"));
    for entry in &root.entries {
        let known = ["claims", "claim"];
        problems.push(unknown_key(entry, "at the top of the file", known));
    }
    let mut tables = Vec::new();
    for entry in header.entries {
        match entry.key.as_str() {
            "tables" => tables = check_tables(entry, plan, &mut problems),
            _ => problems.push(unknown_key(&entry, "in [claims]", ["tables"])),
        }
    }
    // A query that reads a table that is itself wrong would be reported twice.
    let good_tables = problems.is_empty();
    let mut list = Vec::with_capacity(claims.entries.len());
    for entry in claims.entries {
        let known = good_tables.then_some(&tables[..]);
        list.extend(check_claim(entry, known, plan, &mut problems));
    }
    if list.is_empty() && problems.is_empty() {
        problems.push(
            Diagnostic::new("the file has no claims")
                .help("add one: [claim.ID] with level, text and query"),
        );
    }
    match problems.is_empty() {
        true => Ok((tables, list)),
        false => Err(problems),
    }
}

fn check_tables(entry: Entry, plan: &Plan<'_>, problems: &mut Vec<Diagnostic>) -> Vec<Table> {
    let mut tables = Vec::new();
    for entry in as_table(entry, problems).entries {
        if !is_name(&entry.key) {
            problems.push(bad_name("a table", &entry));
            continue;
        }
        let Some(result) = entry.node.as_text() else {
            problems.push(wrong_type(&entry, "\"stage\" or \"stage.output\""));
            continue;
        };
        match find::find_table(plan, result) {
            Ok(outputs) => tables.push(Table {
                name: entry.key,
                outputs,
                span: entry.node.span,
            }),
            Err(problem) => problems.push(problem.at(entry.node.span, "")),
        }
    }
    tables
}

const KEYS: [&str; 6] = ["level", "text", "paper", "query", "profiles", "seeds"];

/// One claim, or problems. Without tables, what its query reads is not checked.
fn check_claim(
    entry: Entry,
    tables: Option<&[Table]>,
    plan: &Plan<'_>,
    problems: &mut Vec<Diagnostic>,
) -> Option<Claim> {
    let before = problems.len();
    let (id, id_span) = (entry.key.clone(), entry.key_span);
    if !is_name(&id) {
        problems.push(bad_name("a claim", &entry));
    }
    let (mut level, mut text, mut paper, mut query) = (None, None, None, None);
    let (mut profiles, mut reads) = (Vec::new(), Vec::new());
    let (mut paper_numbers, mut seeds) = (Vec::new(), None);
    for entry in as_table(entry, problems).entries {
        let span = entry.node.span;
        match (entry.key.as_str(), &entry.node.raw) {
            ("level", Raw::Scalar(Value::Text(name))) => {
                level = Some(check_level(name, span).unwrap_or_else(|problem| {
                    problems.push(problem);
                    Level::Info
                }));
            }
            ("text", Raw::Scalar(Value::Text(words))) => text = Some(words.trim().to_owned()),
            ("paper", Raw::Scalar(Value::Text(words))) => paper = Some(words.trim().to_owned()),
            ("paper", Raw::Table(table)) => match numbers(table) {
                Some(found) => paper_numbers = found,
                None => problems.push(wrong_type(&entry, PAPER)),
            },
            ("paper", _) => problems.push(wrong_type(&entry, PAPER)),
            ("seeds", Raw::Scalar(Value::Int(n))) if *n > 0 => seeds = usize::try_from(*n).ok(),
            ("seeds", _) => problems.push(wrong_type(&entry, "an integer of at least 1")),
            ("query", Raw::Scalar(Value::Text(sql))) => {
                match read_tables(sql, span, tables) {
                    Ok(found) => reads = found,
                    Err(mut found) => problems.append(&mut found),
                }
                query = Some((sql.clone(), span));
            }
            ("profiles", Raw::List(items)) => {
                for item in items {
                    match item.as_text() {
                        Some(name) if plan.pipeline.profiles.iter().any(|p| p == name) => {
                            profiles.push(name.to_owned());
                        }
                        Some(name) => problems.push(no_profile(name, item.span, plan)),
                        None => problems.push(wrong_type(&entry, "a list of profile names")),
                    }
                }
            }
            ("profiles", _) => problems.push(wrong_type(&entry, "a list of profile names")),
            (key, _) if KEYS.contains(&key) => problems.push(wrong_type(&entry, "a string")),
            _ => problems.push(unknown_key(&entry, &format!("in claim `{id}`"), KEYS)),
        }
    }
    let text = text.filter(|text| !text.is_empty());
    if problems.len() == before {
        let needs = |what: &str, help: &str| {
            Diagnostic::new(format!("claim `{id}` has no {what}"))
                .at(id_span, "")
                .help(help.to_owned())
        };
        if text.is_none() {
            problems.push(needs(
                "text",
                "say in words what is claimed: text = \"Three swaps cost more than 5 points.\"",
            ));
        }
        if level.is_none() {
            let help = "level = \"must\", \"should\" or \"info\"";
            problems.push(needs("level", help));
        }
        if query.is_none() {
            let help = "query = \"SELECT … AS holds, … FROM …\", over the tables of [claims]";
            problems.push(needs("query", help));
        }
    }
    let (query, query_span) = query?;
    Some(Claim {
        id,
        level: level?,
        text: text?,
        paper,
        paper_numbers,
        seeds,
        query,
        query_span,
        reads,
        profiles,
    })
}

/// What `paper` may be.
const PAPER: &str = "a string, or numbers by columns of the query: { accuracy = 0.82 }";

/// The paper's numbers by name, if they all are.
fn numbers(table: &tree::Table) -> Option<Vec<(String, f64)>> {
    let each = table.entries.iter().map(|entry| {
        let number = match &entry.node.raw {
            Raw::Scalar(Value::Float(float)) => *float,
            Raw::Scalar(Value::Int(int)) => *int as f64,
            _ => return None,
        };
        Some((entry.key.clone(), number))
    });
    each.collect()
}

fn check_level(name: &str, span: Span) -> Result<Level, Diagnostic> {
    let all = Level::ALL;
    let found = all.into_iter().find(|level| level.name() == name);
    found.ok_or_else(|| {
        let hint = nearest(name, all.map(Level::name));
        Diagnostic::new(format!("no level `{name}`"))
            .at(span, hint.unwrap_or_default())
            .help("levels: must, should, info")
    })
}

fn no_profile(name: &str, span: Span, plan: &Plan<'_>) -> Diagnostic {
    let known = &plan.pipeline.profiles;
    let list = match known.is_empty() {
        true => "the pipeline file has no [profile.NAME]".to_owned(),
        false => format!("profiles of the pipeline: {}", known.join(", ")),
    };
    let hint = nearest(name, known.iter().map(String::as_str));
    Diagnostic::new(format!("no profile `{name}`"))
        .at(span, hint.unwrap_or_default())
        .help(list)
}

/// Which tables a query reads, by position.
fn read_tables(
    query: &str,
    span: Span,
    tables: Option<&[Table]>,
) -> Result<Vec<usize>, Vec<Diagnostic>> {
    let read = stages::sql::tables_of(query).map_err(|error| {
        let problem = Diagnostic::new(error.message).at(span, "");
        vec![problem.maybe_help(error.help)]
    })?;
    let Some(tables) = tables else {
        return Ok(Vec::new());
    };
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for name in read {
        match tables.iter().position(|table| table.name == name) {
            Some(at) => found.push(at),
            None => {
                let known: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
                let list = match known.is_empty() {
                    true => format!("add it: [claims] with tables = {{ {name} = \"stage\" }}"),
                    false => format!("tables of [claims]: {}", known.join(", ")),
                };
                let hint = nearest(&name, known).unwrap_or_default();
                problems.push(
                    Diagnostic::new(format!("no table `{name}`"))
                        .at(span, hint)
                        .help(list),
                );
            }
        }
    }
    match problems.is_empty() {
        true => Ok(found),
        false => Err(problems),
    }
}
