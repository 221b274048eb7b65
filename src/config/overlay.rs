//! Values that come from elsewhere than the file's main part: `[profile.NAME]` and `--set`.
//! They replace values in the tree before anything is checked, so that a wrong one is
//! reported where it was written.

use super::axis_overlay::{self, LeftOut, nested};
use super::entries::{as_table, unknown_key, wrong_type};
use super::pipeline::PipelineRequest;
use super::tree::{self, Entry, NoValue, Node, Raw, Table};
use crate::diagnostic::{Diagnostic, Sources, Span, nearest};

/// The names of the profiles in the file.
pub fn profiles(root: &Table) -> Vec<String> {
    match root.get("profile").map(|entry| &entry.node.raw) {
        Some(Raw::Table(table)) => table.entries.iter().map(|e| e.key.clone()).collect(),
        _ => Vec::new(),
    }
}

/// What overlays have done beside changing values.
#[derive(Default)]
pub struct Overlaid {
    /// The values of axes that they leave out.
    pub left_out: LeftOut,
    /// The alternatives of `[choices]` that they take: `--set choices.NAME=true`.
    pub choices: Vec<String>,
    /// The parameters that `--set` gives a value: stage, key, and where the value is.
    pub settings: Vec<(String, String, Span)>,
}

/// Applies the profile and then the settings to the tree.
pub fn apply(
    mut root: Table,
    request: &PipelineRequest,
    sources: &mut Sources,
) -> Result<(Table, Overlaid), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let mut overlaid = Overlaid::default();
    if let Some(name) = &request.profile {
        profile(&mut root, name, &mut overlaid.left_out, &mut problems);
    }
    for setting in &request.sets {
        if let Err(problem) = set(&mut root, setting, &mut overlaid, sources) {
            problems.push(problem);
        }
    }
    if problems.is_empty() {
        Ok((root, overlaid))
    } else {
        Err(problems)
    }
}

/// `[profile.NAME.stage.X]` replaces single keys of `[stage.X]`; likewise `axes`, `pipeline`.
fn profile(root: &mut Table, name: &str, left_out: &mut LeftOut, problems: &mut Vec<Diagnostic>) {
    let mut profiles = match root.take("profile").map(|entry| entry.node.raw) {
        Some(Raw::Table(table)) => table,
        _ => Table::default(),
    };
    apply_profile(root, &mut profiles, &[name], left_out, problems);
}

/// Applies the last profile of a path, after the one that it is like. Each is taken out, so that none is applied
/// twice. `path`: the profiles that lead to it by `like`.
fn apply_profile(
    root: &mut Table,
    profiles: &mut Table,
    path: &[&str],
    left_out: &mut LeftOut,
    problems: &mut Vec<Diagnostic>,
) {
    let name = path[path.len() - 1];
    let known: Vec<String> = profiles.entries.iter().map(|e| e.key.clone()).collect();
    let Some(Entry { node, .. }) = profiles.take(name) else {
        let list = match known.is_empty() {
            true => "the pipeline file has no [profile.NAME]".to_owned(),
            false => format!("profiles in the file: {}", known.join(", ")),
        };
        let hint = nearest(name, known.iter().map(String::as_str));
        problems.push(
            Diagnostic::new(format!("no profile `{name}`"))
                .maybe_help(hint)
                .help(list),
        );
        return;
    };
    let Raw::Table(mut overlay) = node.raw else {
        problems.push(
            Diagnostic::new(format!("profile `{name}` must be a table"))
                .at(node.span, "write it as [profile.NAME.stage.STAGE]"),
        );
        return;
    };
    if let Some(like) = overlay.take("like") {
        match like.node.as_text() {
            Some(other) if profiles.get(other).is_some() => {
                let path: Vec<&str> = path.iter().copied().chain([other]).collect();
                apply_profile(root, profiles, &path, left_out, problems);
            }
            Some(other) => problems.push(no_such_like(other, path, profiles, like.node.span)),
            None => problems.push(wrong_type(&like, "the name of a profile")),
        }
    }
    for section in overlay.entries {
        let per_stage = section.key == "stage";
        if !per_stage && section.key != "axes" && section.key != "pipeline" {
            let known = ["like", "pipeline", "axes", "stage"];
            problems.push(unknown_key(&section, "in a profile", known));
            continue;
        }
        for entry in as_table(section.clone(), problems).entries {
            let target = child(root, &section.key, section.key_span);
            if section.key == "axes" {
                problems.extend(axis_overlay::put(target, entry, left_out).err());
                continue;
            }
            if !per_stage {
                target.put(entry);
                continue;
            }
            let is_new = target.get(&entry.key).is_none();
            let table = as_table(entry.clone(), problems);
            let says_what = ["kind", "like", "pick"]
                .iter()
                .any(|key| table.get(key).is_some());
            if is_new && !says_what {
                let names = target.entries.iter().map(|e| e.key.as_str());
                let hint = nearest(&entry.key, names).unwrap_or_default();
                problems.push(
                    Diagnostic::new(format!("no stage `{}` to change", entry.key))
                        .at(entry.key_span, hint),
                );
                continue;
            }
            let stage = child(target, &entry.key, entry.key_span);
            table.entries.into_iter().for_each(|value| stage.put(value));
        }
    }
}

/// A profile that is like one that the file does not have, or like itself through others.
fn no_such_like(other: &str, path: &[&str], profiles: &Table, span: Span) -> Diagnostic {
    if let Some(at) = path.iter().position(|known| *known == other) {
        let names: Vec<&str> = path[at..].iter().copied().chain([other]).collect();
        let names = names.join(" -> ");
        return Diagnostic::new(format!("profiles are like each other: {names}"))
            .at(span, "one of them must not have `like`");
    }
    let names = profiles.entries.iter().map(|e| e.key.as_str());
    Diagnostic::new(format!("no other profile `{other}`"))
        .at(span, nearest(other, names).unwrap_or_default())
}

/// `stage.param=value`, also `pipeline.seed=8` and `axes.scale=[1, 2]`.
fn set(
    root: &mut Table,
    setting: &str,
    overlaid: &mut Overlaid,
    sources: &mut Sources,
) -> Result<(), Diagnostic> {
    let form = "the form is --set stage.param=value, for instance --set train.epochs=3";
    let Some((path, value)) = setting.split_once('=') else {
        return Err(Diagnostic::new(format!("--set {setting} has no `=`")).help(form));
    };
    let path: Vec<&str> = path.trim().split('.').collect();
    if path.len() < 2 || path.iter().any(|part| part.is_empty()) {
        return Err(Diagnostic::new(format!("--set {setting} names no parameter")).help(form));
    }
    let node = value_node(setting, value, sources)?;
    let span = node.span;
    let mut table = root;
    if path[0] == "choices" {
        return choice(&path, &node, overlaid);
    }
    if path[0] == "axes" {
        let name = path[1..].join(".");
        overlaid.settings.push(("axes".to_owned(), name, span));
        let entry = nested(&path[1..], span, node);
        return axis_overlay::put(child(table, "axes", span), entry, &mut overlaid.left_out);
    }
    let parents: &[&str] = match path[0] {
        "pipeline" => &path[..path.len() - 1],
        name => {
            let stages = child(table, "stage", span);
            if stages.get(name).is_none() {
                let names = stages.entries.iter().map(|entry| entry.key.as_str());
                let names = names.chain(["pipeline", "axes", "choices"]);
                return Err(
                    Diagnostic::new(format!("--set {setting}: no stage `{name}`"))
                        .maybe_help(nearest(name, names)),
                );
            }
            table = stages;
            &path[..path.len() - 1]
        }
    };
    overlaid
        .settings
        .push((path[0].to_owned(), path[1..].join("."), span));
    for part in parents {
        table = child(table, part, span);
    }
    table.put(Entry {
        key: path[path.len() - 1].to_owned(),
        key_span: span,
        node,
    });
    Ok(())
}

/// `choices.NAME=true` takes an alternative in place of what is written.
fn choice(path: &[&str], node: &Node, overlaid: &mut Overlaid) -> Result<(), Diagnostic> {
    match (path, &node.raw) {
        ([_, name], Raw::Scalar(store::Value::Bool(true))) => {
            overlaid.choices.push((*name).to_owned());
            Ok(())
        }
        _ => Err(Diagnostic::new("a choice is taken by --set choices.NAME=true").at(node.span, "")),
    }
}

/// The value as TOML; what is not TOML at all is taken as a string, because a shell has
/// already eaten one pair of quotes.
fn value_node(setting: &str, value: &str, sources: &mut Sources) -> Result<Node, Diagnostic> {
    let source = sources.add(format!("--set {setting}"), value.trim());
    let quoted = value.trim_start().starts_with(['[', '{', '"', '\'']);
    match tree::parse_value(sources, source) {
        Ok(node) => Ok(node),
        Err(NoValue::Refused(problem)) => Err(problem),
        Err(NoValue::Text(problem)) if quoted => Err(problem),
        Err(NoValue::Text(_)) => Ok(Node {
            raw: Raw::Scalar(store::Value::Text(value.trim().to_owned())),
            span: Span::new(source, 0..value.trim().len()),
        }),
    }
}

/// The table under a key, made if it is not there. A value in its place is replaced:
/// the check of the whole reports it.
fn child<'a>(table: &'a mut Table, key: &str, span: Span) -> &'a mut Table {
    let at = match table.entries.iter().position(|entry| entry.key == key) {
        Some(at) => at,
        None => {
            table.entries.push(Entry {
                key: key.to_owned(),
                key_span: span,
                node: Node {
                    raw: Raw::Table(Table::default()),
                    span,
                },
            });
            table.entries.len() - 1
        }
    };
    let node = &mut table.entries[at].node;
    if !matches!(node.raw, Raw::Table(_)) {
        node.raw = Raw::Table(Table::default());
    }
    match &mut node.raw {
        Raw::Table(table) => table,
        _ => unreachable!("just made a table"),
    }
}
