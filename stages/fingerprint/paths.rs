//! The paths in a source's tokens: what it imports, names and implements. Included by the build
//! script and by tests; knows nothing of files or of what a path leads to.

use std::collections::{BTreeMap, BTreeSet};

/// A path such as `crate::params::wrong`, in segments.
pub type Path = Vec<String>;

/// The names that `use` items bring into a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imports {
    /// Each name with the path behind it.
    pub names: BTreeMap<String, Path>,
    /// The paths before `::*`.
    pub globs: Vec<Path>,
}

impl Imports {
    /// Adds the tree after `use`, up to its semicolon; gives the place behind it.
    pub fn add(&mut self, tokens: &[String], at: usize) -> usize {
        let end = tokens[at..].iter().position(|token| token == ";");
        let end = end.map_or(tokens.len(), |length| at + length);
        self.tree(&tokens[at..end], &mut Vec::new());
        end
    }

    /// Adds one tree below a path; gives the number of tokens that it took.
    fn tree(&mut self, tokens: &[String], above: &mut Path) -> usize {
        let mut at = 0;
        let depth = above.len();
        while at < tokens.len() {
            match tokens[at].as_str() {
                "::" => {}
                "{" => {
                    at += 1;
                    while next(tokens, at) != "}" {
                        at += self.tree(&tokens[at..], above);
                        at += usize::from(next(tokens, at) == ",");
                    }
                    above.truncate(depth);
                    return at + 1;
                }
                "*" => {
                    self.globs.push(above.clone());
                    above.truncate(depth);
                    return at + 1;
                }
                "," | "}" => break,
                "as" => {
                    let alias = next(tokens, at + 1).to_owned();
                    self.name(alias, above);
                    above.truncate(depth);
                    return at + 2;
                }
                segment => above.push(segment.to_owned()),
            }
            at += 1;
        }
        let name = match above.last().map(String::as_str) {
            Some("self") => above.get(above.len().wrapping_sub(2)).cloned(),
            _ => above.last().cloned(),
        };
        self.name(name.unwrap_or_default(), above);
        above.truncate(depth);
        at
    }

    fn name(&mut self, name: String, path: &Path) {
        let mut path = path.clone();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        self.names.insert(name, path);
    }
}

/// What the tokens of a file say about others.
#[derive(Clone, Debug, Default)]
pub struct Mentions {
    /// Its `use` items, wherever they stand.
    pub imports: Imports,
    /// Every other path of two segments or more.
    pub paths: BTreeSet<Path>,
    /// Every identifier.
    pub idents: BTreeSet<String>,
    /// What it defines at its top level, macros included.
    pub items: BTreeSet<String>,
    /// The macros among these.
    pub macros: BTreeSet<String>,
    /// The macros that it calls.
    pub calls: BTreeSet<String>,
    /// The trait, if there is one, and the type of each `impl` block.
    pub impls: Vec<(Option<Path>, Path)>,
}

/// Reads the tokens of a file.
pub fn mentions(tokens: &[String]) -> Result<Mentions, String> {
    let mut found = Mentions::default();
    let (mut at, mut depth) = (0, 0_usize);
    while at < tokens.len() {
        let before = |n: usize| at.checked_sub(n).map_or("", |at| tokens[at].as_str());
        let token = tokens[at].as_str();
        match token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            "use" => {
                at = found.imports.add(tokens, at + 1);
                continue;
            }
            "mod" if next(tokens, at + 2) == "{" => {
                return Err("a module in a file of another: give it a file".to_owned());
            }
            "path" if before(1) == "[" && next(tokens, at + 1) == "=" => {
                return Err("`#[path]` hides which file a module is: move the file".to_owned());
            }
            "impl" if depth == 0 => found.impls.extend(implemented(&tokens[at + 1..])),
            "macro_rules" => {
                let name = next(tokens, at + 2).to_owned();
                found.items.insert(name.clone());
                found.macros.insert(name);
            }
            "struct" | "enum" | "union" | "trait" | "fn" | "type" | "static" | "const"
                if depth == 0 =>
            {
                let skipped = usize::from(next(tokens, at + 1) == "mut");
                found
                    .items
                    .insert(next(tokens, at + 1 + skipped).to_owned());
            }
            _ if is_ident(token) && !["::", "."].contains(&before(1)) => {
                if next(tokens, at + 1) == "!" {
                    found.calls.insert(token.to_owned());
                }
                let path = path(tokens, at);
                at += 2 * (path.len() - 1);
                if path.len() > 1 {
                    found.paths.insert(path);
                }
                found.idents.insert(token.to_owned());
            }
            _ => {}
        }
        at += 1;
    }
    Ok(found)
}

fn next(tokens: &[String], at: usize) -> &str {
    tokens.get(at).map_or("", String::as_str)
}

fn is_ident(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The path that starts here: identifiers with `::` between.
fn path(tokens: &[String], at: usize) -> Path {
    let mut path = vec![tokens[at].clone()];
    let mut at = at;
    while next(tokens, at + 1) == "::" && is_ident(next(tokens, at + 2)) {
        path.push(tokens[at + 2].clone());
        at += 2;
    }
    path
}

/// The trait and the type of the `impl` block whose tokens follow the keyword.
fn implemented(tokens: &[String]) -> Option<(Option<Path>, Path)> {
    let mut at = 0;
    if next(tokens, 0) == "<" {
        at = after_angles(tokens, 0);
    }
    let head: Vec<&str> = tokens[at..].iter().map(String::as_str).collect();
    let end = head.iter().position(|t| ["{", "where"].contains(t))?;
    // `for<'a>` is not such a `for`.
    let splits = |k: &usize| head[*k] == "for" && head.get(k + 1) != Some(&"<");
    let first = |from: usize, to: usize| {
        let named = |k: &usize| is_ident(head[*k]) && !["dyn", "mut"].contains(&head[*k]);
        let k = (from..to).find(named)?;
        Some(path(&tokens[at..], k))
    };
    match (0..end).find(splits) {
        // A type of nobody's, such as a tuple, has no name.
        Some(k) => Some((first(0, k), first(k + 1, end).unwrap_or_default())),
        None => Some((None, first(0, end)?)),
    }
}

fn after_angles(tokens: &[String], at: usize) -> usize {
    let mut depth = 0_i32;
    for (k, token) in tokens.iter().enumerate().skip(at) {
        depth += match token.as_str() {
            "<" => 1,
            ">" => -1,
            ">>" => -2,
            _ => 0,
        };
        if depth == 0 {
            return k + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::tokens;

    fn read(source: &str) -> Mentions {
        mentions(&tokens::read(source).unwrap().tokens).unwrap()
    }

    fn joined(path: &Path) -> String {
        path.join("::")
    }

    #[test]
    fn imports_are_trees() {
        let found = read("use crate::{a::{self, B as C}, d::*, e};\nfn f() { use super::g; }");
        let names: Vec<String> = found
            .imports
            .names
            .iter()
            .map(|(name, path)| format!("{name}={}", joined(path)))
            .collect();
        assert_eq!(
            names,
            ["C=crate::a::B", "a=crate::a", "e=crate::e", "g=super::g"]
        );
        assert_eq!(found.imports.globs, [["crate", "d"]]);
    }

    #[test]
    fn paths_are_found_in_code_and_in_macros() {
        let found = read("fn f() -> a::B { vec![c::d::e(1), x.g::<h::I>()]; J::K }");
        let paths: Vec<String> = found.paths.iter().map(joined).collect();
        assert_eq!(paths, ["J::K", "a::B", "c::d::e", "h::I"]);
        assert!(found.idents.contains("x") && !found.idents.contains("g"));
        assert_eq!(found.calls.iter().collect::<Vec<_>>(), ["vec"]);
    }

    #[test]
    fn items_and_impls_are_found() {
        let found = read(
            "pub struct A<T>(T);\nimpl<T: B<C>> A<T> { fn g() {} }\nimpl d::D for &A<u8> {}\n\
             impl<F> E for F where F: Fn() {}\nmacro_rules! m { () => {} }\nconst fn h() {}",
        );
        let items: Vec<&String> = found.items.iter().collect();
        assert_eq!(items, ["A", "fn", "h", "m"]);
        let impls: Vec<String> = found
            .impls
            .iter()
            .map(|(of, ty)| format!("{:?} {}", of.as_ref().map(joined), joined(ty)))
            .collect();
        assert_eq!(impls, ["None A", "Some(\"d::D\") A", "Some(\"E\") F"]);
    }

    #[test]
    fn what_hides_a_file_is_refused() {
        for source in ["mod a { fn f() {} }", "#[path = \"x.rs\"]\nfn f() {}"] {
            let tokens = tokens::read(source).unwrap().tokens;
            assert!(mentions(&tokens).is_err(), "{source}");
        }
    }
}
