//! Which modules of this crate a source names, so that a kind's code is what it uses.
//!
//! A kind reaches what lies outside its folder by a path from the crate's root: `crate::x`,
//! one name in a group `crate::{x, y}`, or enough `super`s. What such a path ends at may be
//! re-exported by the root, see [`root`]. When in doubt more is named: a needless rerun is a
//! pity, a stale result is a lie. Included by the build script and by tests.
//!
//! Not seen: a method that one module gives to a type of another, and that a third calls
//! without naming the first. Keep the methods of a type in the module of the type.

use std::collections::{BTreeMap, BTreeSet};

/// Stands for every module: the path is a glob, or renames the root.
pub const ALL: &str = "*";

/// The names right below the crate's root in the paths of a source. `depth` is how far the
/// source's own module lies below the root: 1 for `sql/mod.rs`, 2 for `sql/query.rs`.
pub fn named(tokens: &[String], depth: usize) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    // What each open brace belongs to: a module deepens paths, a group continues one.
    let mut open: Vec<Brace> = Vec::new();
    for at in 0..tokens.len() {
        let before = |n: usize| at.checked_sub(n).map_or("", |at| tokens[at].as_str());
        match tokens[at].as_str() {
            "{" if before(2) == "mod" => open.push(Brace::Module),
            "{" if before(1) == "::" => open.push(Brace::Group),
            "{" => open.push(Brace::Other),
            "}" => drop(open.pop()),
            "crate" | "super" if before(1) == "(" && before(2) == "pub" => {}
            "crate" => below_root(tokens, at + 1, &mut names),
            "super" if before(1) == "::" && before(2) == "super" => {}
            "super" if open.last() == Some(&Brace::Group) => {
                return Err("`super` inside a group: write the path from `crate::`".to_owned());
            }
            "super" => {
                let mut end = at + 1;
                while next(tokens, end) == "::" && next(tokens, end + 1) == "super" {
                    end += 2;
                }
                let inline = open.iter().filter(|brace| **brace == Brace::Module);
                if 1 + (end - at - 1) / 2 >= depth + inline.count() {
                    below_root(tokens, end, &mut names);
                }
            }
            "path" if before(1) == "[" && next(tokens, at + 1) == "=" => {
                return Err("`#[path]` hides which file a module is: move the file".to_owned());
            }
            "include" | "include_str" | "include_bytes" if next(tokens, at + 1) == "!" => {
                let within = tokens[at..].iter().take_while(|token| *token != ")");
                let leaves = |token: &String| token.contains("..") || token == "env";
                if within.into_iter().any(leaves) {
                    return Err("it includes a file from outside its folder".to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

#[derive(PartialEq)]
enum Brace {
    Module,
    Group,
    Other,
}

fn next(tokens: &[String], at: usize) -> &str {
    tokens.get(at).map_or("", String::as_str)
}

/// Adds what follows the root in a path: `::x`, `::{x, y::z}`, or nothing, which is all.
fn below_root(tokens: &[String], at: usize, names: &mut BTreeSet<String>) {
    let mut add = |name: &str| {
        let whole = ["self", ALL, ""].contains(&name);
        names.insert(if whole { ALL } else { name }.to_owned());
    };
    if next(tokens, at) != "::" {
        return add(ALL);
    }
    if next(tokens, at + 1) != "{" {
        return add(next(tokens, at + 1));
    }
    let mut depth = 0;
    for at in at + 1..tokens.len() {
        match next(tokens, at) {
            "{" => depth += 1,
            "}" if depth == 1 => return,
            "}" => depth -= 1,
            name if depth == 1 && ["{", ","].contains(&next(tokens, at - 1)) => add(name),
            _ => {}
        }
    }
}

/// What the crate's root offers to paths that start at it, besides modules.
pub struct Root {
    /// The first segment of the path behind each name that the root imports.
    pub imported: BTreeMap<String, BTreeSet<String>>,
    /// Items of the root itself. One that reaches for the list of kinds is left out: it may
    /// lead anywhere.
    pub own: BTreeSet<String>,
    /// Names that its items use: of imports, and of modules before `::`.
    pub used: BTreeSet<String>,
}

/// Reads the root's tokens.
pub fn root(tokens: &[String]) -> Root {
    let mut root = Root {
        imported: BTreeMap::new(),
        own: BTreeSet::new(),
        used: BTreeSet::new(),
    };
    let (mut depth, mut at) = (0_usize, 0);
    let (mut item, mut anywhere) = (String::new(), BTreeSet::new());
    while at < tokens.len() {
        match tokens[at].as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "use" if depth == 0 => {
                let end = tokens[at..].iter().position(|t| t == ";");
                let end = end.map_or(tokens.len(), |length| at + length);
                import(&tokens[at + 1..end], &mut root.imported);
                at = end;
            }
            "struct" | "enum" | "union" | "trait" | "fn" | "type" | "static" | "const" | "impl"
                if depth == 0 =>
            {
                item = next(tokens, at + 1).to_owned();
                root.own.insert(item.clone());
            }
            "STAGES" => drop(anywhere.insert(item.clone())),
            name if at == 0 || tokens[at - 1] != "." => {
                if next(tokens, at + 1) == "::" {
                    root.used.insert(format!("{name}::"));
                }
                root.used.insert(name.to_owned());
            }
            _ => {}
        }
        at += 1;
    }
    root.own.retain(|name| !anywhere.contains(name));
    root
}

/// Adds the names that a `use` brings in, each with the first segment of its path.
fn import(tokens: &[String], imported: &mut BTreeMap<String, BTreeSet<String>>) {
    let skipped = ["crate", "self", "::"];
    let first = tokens.iter().find(|t| !skipped.contains(&t.as_str()));
    let Some(first) = first else { return };
    if first == "{" {
        // `use {a::b, c::d};` has no first segment; nobody writes it, so each may be any.
        for name in tokens {
            imported
                .entry(name.clone())
                .or_default()
                .insert(ALL.to_owned());
        }
        return;
    }
    for (at, name) in tokens.iter().enumerate() {
        let last = matches!(next(tokens, at + 1), "" | "," | "}");
        if last && !["{", "}", ",", ALL].contains(&name.as_str()) {
            let name = if name == "self" { first } else { name };
            imported
                .entry(name.clone())
                .or_default()
                .insert(first.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::{read, read_root};
    use super::*;

    #[track_caller]
    fn names(source: &str, depth: usize, expected: &[&str]) {
        let found = named(&read(source).unwrap().tokens, depth).unwrap();
        let expected: BTreeSet<String> = expected.iter().map(|n| (*n).to_owned()).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn a_path_from_the_crate_names_a_module() {
        names("use crate::weights::Loaded;", 1, &["weights"]);
        names("fn f() -> crate::a::T { crate::b::g() }", 2, &["a", "b"]);
        names(
            "use crate::{Failure, weights::{Loaded, x::Y}, training as t};",
            1,
            &["Failure", "weights", "training"],
        );
        names("use crate::{a::{b::{c}, d}, e};", 1, &["a", "e"]);
        names("macro_rules! m { () => { $crate::a::f() } }", 1, &["a"]);
        names("impl crate::a::T for Vec<crate::b::U> {}", 1, &["a", "b"]);
    }

    #[test]
    fn what_is_not_a_path_from_the_crate_names_nothing() {
        names("use arrow::array; use self::weights::x;", 1, &[]);
        names("pub(crate) fn f() {} pub(super) struct S;", 1, &[]);
        names("const S: &str = \"crate::weights\"; // crate::a", 1, &[]);
        names("#[cfg(test)] use crate::weights::Loaded;", 1, &[]);
        names(
            "#[cfg(test)] mod tests { use super::*; use crate::a; }",
            1,
            &[],
        );
    }

    #[test]
    fn enough_supers_reach_the_crate() {
        names("use super::weights::Loaded;", 1, &["weights"]);
        names("use super::weights::Loaded;", 2, &[]);
        names("use super::super::weights::Loaded;", 2, &["weights"]);
        names("use super::super::{a, b::C};", 2, &["a", "b"]);
        names("use super::super::archive;", 3, &[]);
        names("mod inner { use super::weights; }", 1, &[]);
        names("mod inner { use super::super::weights; }", 1, &["weights"]);
        names("mod inner {} use super::weights;", 1, &["weights"]);
    }

    #[test]
    fn a_renamed_or_globbed_root_names_everything() {
        for source in [
            "use crate::*;",
            "use crate as c;",
            "use crate::{self as c, a};",
            "extern crate self as stages;",
            "use super::*;",
            "use super as up;",
        ] {
            let found = named(&read(source).unwrap().tokens, 1).unwrap();
            assert!(found.contains(ALL), "{source}: {found:?}");
        }
    }

    #[test]
    fn what_hides_a_file_is_refused() {
        for source in [
            "use super::{super::weights};",
            "#[path = \"../weights.rs\"] mod weights;",
            "const T: &str = include_str!(\"../words.txt\");",
            "include!(concat!(env!(\"OUT_DIR\"), \"/x.rs\"));",
        ] {
            let found = named(&read(source).unwrap().tokens, 2);
            assert!(found.is_err(), "{source}: {found:?}");
        }
        names("const T: &str = include_str!(\"words.txt\");", 2, &[]);
    }

    #[test]
    fn the_root_says_where_its_names_come_from() {
        let source = "mod a; pub mod b; mod c;\n\
            use arrow::array::{Array, ArrayRef};\n\
            pub use a::a;\n\
            pub use b::{self, Home, x::Y as Z};\n\
            pub static STAGES: &[&dyn Stage] = &[&b::B];\n\
            pub fn find() -> B { STAGES.iter().collect() }\n\
            pub struct Task { home: Home }\n\
            pub trait Stage { fn code(&self) { c::of() } }";
        let root = root(&read_root(source).unwrap().tokens);
        let from = |name: &str| root.imported[name].iter().cloned().collect::<Vec<_>>();
        assert_eq!(from("a"), ["a"]);
        assert_eq!(from("b"), ["b"]);
        assert_eq!(from("Home"), ["b"]);
        assert_eq!(from("Z"), ["b"]);
        assert_eq!(from("ArrayRef"), ["arrow"]);
        assert!(!root.imported.contains_key("Y"));
        assert!(root.own.contains("Task") && root.own.contains("Stage"));
        assert!(!root.own.contains("find"), "it leads to any kind");
        assert!(root.used.contains("Home") && root.used.contains("c::"));
        assert!(!root.used.contains("b::"), "the list of kinds is no use");
        assert!(!root.used.contains("collect"), "a method is no function");
    }
}
