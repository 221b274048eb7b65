//! Which module names which: every path in the code, followed through imports and re-exports to the module that
//! defines what it names. Importing a module, or re-exporting from one, is not yet a use of it.

use std::collections::BTreeMap;

use proc_macro2::TokenTree;

use super::graph::Arrow;
use super::sources::{Package, import_tree};

/// Every arrow between files once, with the first line that draws it.
pub fn arrows(package: &Package) -> Vec<Arrow> {
    let mut found: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (from, module) in package.modules.iter().enumerate() {
        let mut draw = |to: usize, line: usize| {
            let ends = (module.file, package.modules[to].file);
            if ends.0 != ends.1 {
                let first = found.entry(ends).or_insert(line);
                *first = line.min(*first);
            }
        };
        for import in &module.imports {
            if import.alias != "*"
                && !import.exported
                && let Some(Target::Item(to)) = resolve(package, from, &import.path, 0)
            {
                draw(to, import.line);
            }
        }
        let mut paths = Vec::new();
        collect(&module.body, &mut paths);
        for (path, line) in paths {
            if let Some(Target::Item(to)) = resolve(package, from, &path, 0) {
                draw(to, line);
            }
        }
    }
    let arrow = |((from, to), line)| Arrow { from, to, line };
    found.into_iter().map(arrow).collect()
}

enum Target {
    Module,
    /// Something that this module defines.
    Item(usize),
}

/// What a path means in a module. `None` for other crates, locals and what cannot be known.
fn resolve(package: &Package, from: usize, path: &[String], depth: usize) -> Option<Target> {
    let first = path.first()?;
    let rest = &path[1..];
    match first.as_str() {
        "crate" => walk(package, 0, rest, depth),
        "self" => walk(package, from, rest, depth),
        "super" => walk(package, package.modules[from].parent?, rest, depth),
        _ => walk(package, from, path, depth),
    }
}

fn walk(package: &Package, module: usize, path: &[String], depth: usize) -> Option<Target> {
    let Some(name) = path.first() else {
        return Some(Target::Module);
    };
    // Re-exports may go in circles through globs.
    if depth > 12 {
        return None;
    }
    let here = &package.modules[module];
    if name == "super" {
        return walk(package, here.parent?, &path[1..], depth + 1);
    }
    if here.items.contains(name) {
        return Some(Target::Item(module));
    }
    if let Some(child) = here.children.get(name) {
        return walk(package, *child, &path[1..], depth + 1);
    }
    if let Some(import) = here.imports.iter().find(|import| import.alias == *name) {
        let whole: Vec<String> = import.path.iter().chain(&path[1..]).cloned().collect();
        // An import of another crate that has this very name.
        if import.path.first() == Some(name) && !matches!(name.as_str(), "crate" | "self" | "super")
        {
            return None;
        }
        return resolve(package, module, &whole, depth + 1);
    }
    here.imports
        .iter()
        .filter(|import| import.alias == "*")
        .find_map(|import| {
            let whole: Vec<String> = import.path.iter().chain(path).cloned().collect();
            resolve(package, module, &whole, depth + 1)
        })
}

/// Every path in code, with its line: `a::b::c`, or a lone name.
fn collect(tokens: &[TokenTree], found: &mut Vec<(Vec<String>, usize)>) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                collect(&inner, found);
                at += 1;
            }
            TokenTree::Ident(word) if word == "use" => {
                let ends = |token: &TokenTree| is(token, ';');
                let length = tokens[at..].iter().position(ends).unwrap_or(1);
                let line = word.span().start().line;
                let names = import_tree(&tokens[at + 1..at + length], &[]);
                found.extend(names.into_iter().map(|(_, path)| (path, line)));
                at += length;
            }
            TokenTree::Ident(word) => {
                let line = word.span().start().line;
                // A field or a method is not a path.
                let member =
                    at > 0 && is(&tokens[at - 1], '.') && !(at > 1 && is(&tokens[at - 2], '.'));
                let mut path = vec![word.to_string()];
                at += 1;
                while let (Some(a), Some(b), Some(TokenTree::Ident(next))) =
                    (tokens.get(at), tokens.get(at + 1), tokens.get(at + 2))
                    && is(a, ':')
                    && is(b, ':')
                {
                    path.push(next.to_string());
                    at += 3;
                }
                if !member {
                    found.push((path, line));
                }
            }
            _ => at += 1,
        }
    }
}

fn is(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}
