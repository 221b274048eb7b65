//! Reads the sources of a package into modules: their items, their imports, their tokens.
//! Knows nothing of arrows and cycles.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A module: a file, or a block `mod name { … }` in one.
pub struct Module {
    /// Its path below the root, such as `plan::files`; empty for the root.
    pub path: Vec<String>,
    /// The module whose file it is in: itself, unless it is a block.
    pub file: usize,
    /// The file's name below the folder of the package.
    pub name: String,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// Names of functions, types, constants and macros that are defined here.
    pub items: Vec<String>,
    pub imports: Vec<Import>,
    /// What is left when imports, child modules and tests are taken out.
    pub body: Vec<TokenTree>,
}

/// One name of a `use`: what it is called here, and its path. `*` stands for all names.
pub struct Import {
    pub alias: String,
    pub path: Vec<String>,
    /// With `pub` before it.
    pub exported: bool,
    pub line: usize,
}

pub struct Package {
    pub modules: Vec<Module>,
}

impl Package {
    pub fn read(root: &Path, folder: &str, file: &str) -> Package {
        let mut package = Package {
            modules: Vec::new(),
        };
        let folder = root.join(folder);
        package.read_file(&folder, &folder.join(file), Vec::new(), None);
        package
    }

    fn read_file(&mut self, folder: &Path, file: &Path, path: Vec<String>, parent: Option<usize>) {
        let text = std::fs::read_to_string(file).unwrap();
        let tokens: TokenStream = text
            .parse()
            .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let name = file.strip_prefix(folder).unwrap().to_str().unwrap();
        let module = self.add(path, None, name, parent);
        self.read_items(folder, module, without_tests(tokens));
    }

    fn add(
        &mut self,
        path: Vec<String>,
        file: Option<usize>,
        name: &str,
        parent: Option<usize>,
    ) -> usize {
        let index = self.modules.len();
        if let (Some(parent), Some(last)) = (parent, path.last()) {
            self.modules[parent].children.insert(last.clone(), index);
        }
        self.modules.push(Module {
            path,
            file: file.unwrap_or(index),
            name: name.to_owned(),
            parent,
            children: BTreeMap::new(),
            items: Vec::new(),
            imports: Vec::new(),
            body: Vec::new(),
        });
        index
    }

    /// Takes the items of a module apart: imports, child modules, and the rest.
    fn read_items(&mut self, folder: &Path, module: usize, tokens: Vec<TokenTree>) {
        let mut at = 0;
        while at < tokens.len() {
            let word = tokens[at].to_string();
            let exported = at > 0 && after_pub(&tokens[..at]);
            match (word.as_str(), tokens.get(at + 1), tokens.get(at + 2)) {
                ("use", Some(_), _) => {
                    let end = (at..tokens.len())
                        .find(|i| tokens[*i].to_string() == ";")
                        .unwrap();
                    let line = tokens[at].span().start().line;
                    let found = import_tree(&tokens[at + 1..end], &[]);
                    self.modules[module]
                        .imports
                        .extend(found.into_iter().map(|(alias, path)| Import {
                            alias,
                            path,
                            exported,
                            line,
                        }));
                    at = end + 1;
                }
                ("mod", Some(TokenTree::Ident(name)), Some(after)) => {
                    let mut path = self.modules[module].path.clone();
                    path.push(name.to_string());
                    if let TokenTree::Group(block) = after {
                        let (owner, text) =
                            (self.modules[module].file, self.modules[module].name.clone());
                        let inner = self.add(path, Some(owner), &text, Some(module));
                        self.read_items(folder, inner, block.stream().into_iter().collect());
                    } else {
                        self.read_file(folder, &file_of(folder, &path), path.clone(), Some(module));
                    }
                    at += 3;
                }
                (
                    "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union",
                    Some(TokenTree::Ident(name)),
                    _,
                ) => {
                    self.modules[module].items.push(name.to_string());
                    self.modules[module].body.push(tokens[at].clone());
                    at += 1;
                }
                ("macro_rules", _, Some(TokenTree::Ident(name))) => {
                    self.modules[module].items.push(name.to_string());
                    self.modules[module].body.push(tokens[at].clone());
                    at += 1;
                }
                _ => {
                    self.modules[module].body.push(tokens[at].clone());
                    at += 1;
                }
            }
        }
    }

    /// The length in lines of every function with a body, and where it is.
    pub fn function_lengths(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for module in &self.modules {
            lengths(&module.body, &module.name, &mut found);
        }
        found
    }
}

fn file_of(folder: &Path, path: &[String]) -> PathBuf {
    let stem = folder.join(path.join("/"));
    let flat = stem.with_extension("rs");
    if flat.exists() {
        flat
    } else {
        stem.join("mod.rs")
    }
}

/// Whether what stands before is `pub` or `pub(…)`.
fn after_pub(before: &[TokenTree]) -> bool {
    let last = before.len() - 1;
    before[last].to_string() == "pub"
        || (last > 0
            && matches!(&before[last], TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
            && before[last - 1].to_string() == "pub")
}

/// The names that `a::{b, c as d, e::*}` brings in, each with its path.
pub fn import_tree(tokens: &[TokenTree], prefix: &[String]) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for branch in tokens.split(|token| token.to_string() == ",") {
        let mut path = prefix.to_vec();
        let mut alias = None;
        let mut at = 0;
        let mut open = !branch.is_empty();
        while at < branch.len() {
            match &branch[at] {
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    found.extend(import_tree(&inner, &path));
                    open = false;
                }
                TokenTree::Ident(word) if word == "as" => {
                    alias = branch.get(at + 1).map(ToString::to_string);
                    break;
                }
                TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Punct(mark) if mark.as_char() == '*' => alias = Some("*".to_owned()),
                _ => {}
            }
            at += 1;
        }
        if open {
            found.push((alias.unwrap_or_else(|| path[path.len() - 1].clone()), path));
        }
    }
    found
}

/// The tokens of a file without the items under `#[cfg(test)]`, at any depth.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if is_test(&tokens[at..]) {
            at += 2;
            // The item ends with `;` or with its block.
            while at < tokens.len() {
                let ends = match &tokens[at] {
                    TokenTree::Punct(mark) => mark.as_char() == ';' || mark.as_char() == ',',
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    _ => false,
                };
                at += 1;
                if ends {
                    break;
                }
            }
            continue;
        }
        kept.push(match &tokens[at] {
            TokenTree::Group(group) => {
                let inside: TokenStream = without_tests(group.stream()).into_iter().collect();
                let mut new = proc_macro2::Group::new(group.delimiter(), inside);
                new.set_span(group.span());
                TokenTree::Group(new)
            }
            other => other.clone(),
        });
        at += 1;
    }
    kept
}

/// Whether `#[cfg(test)]`, alone or with more conditions, stands here.
fn is_test(tokens: &[TokenTree]) -> bool {
    let (Some(TokenTree::Punct(mark)), Some(TokenTree::Group(group))) =
        (tokens.first(), tokens.get(1))
    else {
        return false;
    };
    let text = group.stream().to_string().replace(' ', "");
    mark.as_char() == '#'
        && (text == "cfg(test)" || text.starts_with("cfg(all(test,") || text == "test")
}

fn lengths(tokens: &[TokenTree], name: &str, found: &mut Vec<(usize, String)>) {
    let mut start = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word)
                if word == "fn" && matches!(tokens.get(at + 1), Some(TokenTree::Ident(_))) =>
            {
                start = Some((token.span().start().line, tokens[at + 1].to_string()));
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => start = None,
            TokenTree::Group(group) => {
                let block = group.delimiter() == Delimiter::Brace;
                if let Some((line, function)) = start.take_if(|_| block) {
                    let length = group.span_close().end().line + 1 - line;
                    found.push((length, format!("{function}, {name}:{line}")));
                }
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                lengths(&inner, name, found);
            }
            _ => {}
        }
    }
}
