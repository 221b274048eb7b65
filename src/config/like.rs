//! `like = "stage"`: a stage that has all keys of another one, but for those that it writes itself.

use super::tree::{Entry, Node, Raw, Table};
use crate::diagnostic::{Diagnostic, nearest};

/// Replaces every `like` by the keys of the stage that it names.
pub fn copy_keys(stages: &mut Table, problems: &mut Vec<Diagnostic>) {
    // Few stages are like others: a search for each of a hundred thousand would take minutes.
    let is_like = |entry: &&Entry| match &entry.node.raw {
        Raw::Table(table) => table.get("like").is_some(),
        _ => false,
    };
    let like = stages.entries.iter().filter(is_like);
    let names: Vec<String> = like.map(|entry| entry.key.clone()).collect();
    for name in names {
        let mut path = Vec::new();
        if let Err(problem) = fill(stages, &name, &mut path) {
            problems.push(problem);
        }
    }
}

/// Fills in one stage, after the one that it is like. `path`: the stages that are being filled in.
fn fill(stages: &mut Table, name: &str, path: &mut Vec<String>) -> Result<(), Diagnostic> {
    let Some(Raw::Table(table)) = stages.get(name).map(|entry| &entry.node.raw) else {
        return Ok(());
    };
    let Some(like) = table.get("like").cloned() else {
        return Ok(());
    };
    let Some(other) = like.node.as_text() else {
        return Err(super::entries::wrong_type(&like, "the name of a stage"));
    };
    path.push(name.to_owned());
    if let Some(at) = path.iter().position(|known| known == other) {
        let mut names: Vec<&str> = path[at..].iter().map(String::as_str).collect();
        names.push(other);
        let problem = Diagnostic::new(format!(
            "stages are like each other: {}",
            names.join(" -> ")
        ));
        remove_like(stages, name);
        return Err(problem.at(like.node.span, "one of them must write its own keys"));
    }
    if stages.get(other).is_none() {
        let known = stages.entries.iter().map(|entry| entry.key.as_str());
        let hint = nearest(other, known.filter(|known| *known != name)).unwrap_or_default();
        let problem = Diagnostic::new(format!("no stage `{other}`")).at(like.node.span, hint);
        remove_like(stages, name);
        return Err(problem);
    }
    fill(stages, other, path)?;
    path.pop();
    let base = match stages.get(other).map(|entry| &entry.node.raw) {
        Some(Raw::Table(base)) => base.clone(),
        _ => Table::default(),
    };
    let stage = stages.entries.iter_mut().find(|entry| entry.key == name);
    if let Some(Raw::Table(own)) = stage.map(|entry| &mut entry.node.raw) {
        *own = merged(base, std::mem::take(own));
    }
    Ok(())
}

/// So that what is wrong with it is reported once.
fn remove_like(stages: &mut Table, name: &str) {
    let stage = stages.entries.iter_mut().find(|entry| entry.key == name);
    if let Some(Raw::Table(own)) = stage.map(|entry| &mut entry.node.raw) {
        own.take("like");
    }
}

/// The keys of the base with the stage's own in their place, `inputs` port by port.
fn merged(mut base: Table, own: Table) -> Table {
    for entry in own.entries {
        if entry.key == "like" {
            continue;
        }
        // What a stage is replaces whatever the other one is.
        if entry.key == "kind" {
            base.take("pick");
        }
        if entry.key == "pick" {
            base.take("kind");
        }
        let old = base.entries.iter_mut().find(|old| old.key == entry.key);
        match (old.map(|old| &mut old.node.raw), entry.node.raw) {
            (Some(Raw::Table(old)), Raw::Table(new)) if entry.key == "inputs" => {
                new.entries.into_iter().for_each(|input| old.put(input));
            }
            (_, raw) => base.put(Entry {
                node: Node { raw, ..entry.node },
                ..entry
            }),
        }
    }
    base
}
