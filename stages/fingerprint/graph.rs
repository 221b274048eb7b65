//! The modules of crates and the arrows between them: who uses whose items.
//!
//! A path is followed through the modules that re-export what it names, to the file that defines it.
//! When in doubt there is an arrow: a needless rerun costs time, a stale result is wrong. Included by
//! the build script and by tests.
//!
//! Not seen: a method that a third module gives to a type by a trait of a fourth, when whoever
//! calls it names neither.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path as FilePath;

use super::paths::{self, Imports, Mentions, Path};
use super::tokens::{self, Source};

/// A module: one file.
pub struct Module {
    /// Its file, such as `nn/src/layers/dense.rs`.
    pub file: String,
    /// Its tokens.
    #[allow(dead_code, reason = "the tests look at arrows only")]
    pub source: Source,
    /// What it includes: files that are not Rust, in its folder and below.
    pub assets: BTreeMap<String, Vec<u8>>,
    mentions: Mentions,
    exports: Imports,
}

/// A module by the name of its crate and its path below the root: `("nn", ["layers", "dense"])`.
pub type Place = (String, Path);

/// Crates, module by module.
#[derive(Default)]
pub struct Graph {
    modules: BTreeMap<Place, Module>,
}

/// How one file depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arrow {
    /// It names an item of the other.
    Uses,
    /// The other adds methods to one of its types, and may be called by whoever has one.
    Extended,
}

/// What a path leads to.
enum Target {
    Module(Place),
    Item(Place),
}

impl Graph {
    /// Adds the crate `name`, whose sources lie in `folder` and are called `label/…`.
    pub fn add(&mut self, name: &str, folder: &FilePath, label: &str) -> Result<(), String> {
        let mut crate_files = Vec::new();
        files(folder, "", &mut crate_files)?;
        let mut sources = BTreeMap::new();
        for file in crate_files.iter().filter(|file| file.ends_with(".rs")) {
            if let Some(place) = place(file) {
                let text = fs::read_to_string(folder.join(file));
                let text = text.map_err(|e| format!("{label}/{file}: {e}"))?;
                let source = tokens::read(&text).map_err(|e| format!("{label}/{file}: {e}"))?;
                sources.insert(place, (file.clone(), source));
            }
        }
        let in_test = |path: &Path| {
            (0..path.len()).any(|k| {
                let parent = sources.get(&path[..k]);
                parent.is_some_and(|(_, source)| source.test_mods.contains(&path[k]))
            })
        };
        let tests: BTreeSet<Path> = sources.keys().filter(|p| in_test(p)).cloned().collect();
        for (path, (file, source)) in sources {
            if tests.contains(&path) {
                continue;
            }
            let wrong = |e: String| format!("{label}/{file}: {e}");
            let mentions = paths::mentions(&source.tokens).map_err(wrong)?;
            let mut exports = Imports::default();
            for export in &source.exports {
                let at = export.iter().position(|token| token == "use");
                exports.add(export, at.unwrap_or_default() + 1);
            }
            let includes = ["include", "include_str", "include_bytes"];
            let assets = match includes.iter().any(|call| mentions.calls.contains(*call)) {
                true => assets(folder, label, &file, &crate_files)?,
                false => BTreeMap::new(),
            };
            let module = Module {
                file: format!("{label}/{file}"),
                source,
                assets,
                mentions,
                exports,
            };
            self.modules.insert((name.to_owned(), path), module);
        }
        Ok(())
    }

    /// The modules in order of their places.
    pub fn modules(&self) -> impl Iterator<Item = (&Place, &Module)> {
        self.modules.iter()
    }

    /// The arrows from each file, and what each path in it leads to.
    pub fn arrows(&self) -> BTreeMap<&str, BTreeSet<(&str, Arrow)>> {
        let mut all: BTreeMap<&str, BTreeSet<(&str, Arrow)>> = BTreeMap::new();
        for (place, module) in &self.modules {
            let own = module.file.as_str();
            all.entry(own).or_default();
            for (_, target) in self.used(place, module) {
                if target != own {
                    all.entry(own).or_default().insert((target, Arrow::Uses));
                }
            }
            for (of, ty) in &module.mentions.impls {
                let of = of.as_ref().and_then(|of| self.item(place, of));
                let extended = self.item(place, ty).or(of);
                if let Some(extended) = extended.filter(|file| *file != own) {
                    let arrows = all.entry(extended).or_default();
                    arrows.insert((own, Arrow::Extended));
                }
            }
        }
        all
    }

    /// What a file names, and the file that defines it.
    pub fn used(&self, place: &Place, module: &Module) -> BTreeSet<(String, &str)> {
        let mentions = &module.mentions;
        let exported = module.exports.names.iter();
        let exported = exported.filter(|(name, _)| mentions.idents.contains(*name));
        let single = exported
            .chain(&mentions.imports.names)
            .map(|(_, path)| path);
        let mut used = BTreeSet::new();
        for path in single.chain(&mentions.paths) {
            if let Some(file) = self.item(place, path) {
                used.insert((path.join("::"), file));
            }
        }
        for path in &mentions.imports.globs {
            for file in self.glob(place, path) {
                used.insert((format!("{}::*", path.join("::")), file));
            }
        }
        for (other, defining) in self.modules.iter().filter(|(other, _)| other.0 == place.0) {
            let mut called = mentions.calls.intersection(&defining.mentions.macros);
            if let Some(name) = called.next().filter(|_| other != place) {
                used.insert((format!("{name}!"), defining.file.as_str()));
            }
        }
        used
    }

    /// The file that defines what a path leads to, unless it leads to a module or out of these crates.
    fn item(&self, from: &Place, path: &[String]) -> Option<&str> {
        match self.resolve(from, path, 0)? {
            Target::Item(place) => Some(self.modules[&place].file.as_str()),
            Target::Module(_) => None,
        }
    }

    /// The files behind `path::*`.
    fn glob(&self, from: &Place, path: &[String]) -> Vec<&str> {
        let place = match self.resolve(from, path, 0) {
            Some(Target::Module(place)) => place,
            Some(Target::Item(place)) => return vec![self.modules[&place].file.as_str()],
            None => return Vec::new(),
        };
        let module = &self.modules[&place];
        let mut files = vec![module.file.as_str()];
        let names = module.exports.names.values();
        files.extend(names.filter_map(|path| self.item(&place, path)));
        for path in &module.exports.globs {
            files.extend(self.glob(&place, path));
        }
        // A module sees the private imports of those above it.
        if from.1.starts_with(&place.1) && from.0 == place.0 {
            let names = module.mentions.imports.names.values();
            files.extend(names.filter_map(|path| self.item(&place, path)));
        }
        files
    }

    fn resolve(&self, from: &Place, path: &[String], depth: usize) -> Option<Target> {
        // Cyclic re-exports do not compile.
        if depth > 16 {
            return None;
        }
        let (head, rest) = path.split_first()?;
        let here = self.modules.get(from)?;
        let imported = here.mentions.imports.names.get(head);
        let imported = imported.or_else(|| here.exports.names.get(head));
        let crate_root = |name: &str| (name.to_owned(), Vec::new());
        let start = match head.as_str() {
            "crate" => Target::Module(crate_root(&from.0)),
            "self" => Target::Module(from.clone()),
            "super" => {
                let (_, above) = from.1.split_last()?;
                Target::Module((from.0.clone(), above.to_vec()))
            }
            // `use nn;` would import a name by itself.
            _ if imported.is_some_and(|path| path.as_slice() != [head.clone()]) => {
                self.resolve(from, imported?, depth + 1)?
            }
            _ if self.modules.contains_key(&child(from, head)) => Target::Module(child(from, head)),
            _ if here.mentions.items.contains(head) => Target::Item(from.clone()),
            _ if self.modules.contains_key(&crate_root(head)) => Target::Module(crate_root(head)),
            _ => return None,
        };
        self.descend(start, rest, depth)
    }

    /// Follows the segments of a path below what its head leads to.
    fn descend(&self, start: Target, rest: &[String], depth: usize) -> Option<Target> {
        let mut place = match start {
            Target::Module(place) => place,
            item => return Some(item),
        };
        for (k, segment) in rest.iter().enumerate() {
            let module = self.modules.get(&place)?;
            if segment == "super" {
                place.1.pop()?;
            } else if self.modules.contains_key(&child(&place, segment)) {
                place = child(&place, segment);
            } else if module.mentions.items.contains(segment) {
                return Some(Target::Item(place));
            } else {
                let imports = &module.mentions.imports.names;
                let path = module.exports.names.get(segment).or(imports.get(segment));
                let globs = module.exports.globs.iter();
                let found = match path {
                    Some(path) => self.resolve(&place, path, depth + 1),
                    None => globs
                        .filter_map(|glob| {
                            let mut path = glob.clone();
                            path.push(segment.clone());
                            self.defined(&place, &path, depth + 1)
                        })
                        .next(),
                };
                return match (found, path) {
                    (Some(target), _) => self.descend(target, &rest[k + 1..], depth + 1),
                    // Re-exported from another crate: that one's version is in the lock file.
                    (None, Some(_)) => None,
                    // A registry, or what a macro defines.
                    (None, None) => Some(Target::Item(place)),
                };
            }
        }
        Some(Target::Module(place))
    }

    /// As [`Graph::resolve`], if the module at the end of the path really has the name.
    fn defined(&self, from: &Place, path: &[String], depth: usize) -> Option<Target> {
        let name = path.last()?;
        match self.resolve(from, path, depth)? {
            Target::Item(place) if !self.modules[&place].mentions.items.contains(name) => None,
            target => Some(target),
        }
    }
}

fn child(place: &Place, name: &str) -> Place {
    let mut path = place.1.clone();
    path.push(name.to_owned());
    (place.0.clone(), path)
}

/// The path of the module in a file: `a/b.rs` and `a/b/mod.rs` are `a::b`.
fn place(file: &str) -> Option<Path> {
    let path = file.strip_suffix(".rs")?;
    if ["lib", "main"].contains(&path) {
        return Some(Vec::new());
    }
    // The build script is not a module.
    if path == "build" {
        return None;
    }
    let path = path.strip_suffix("/mod").unwrap_or(path);
    Some(path.split('/').map(str::to_owned).collect())
}

/// All files of a folder, relative to it, in order: the order of a directory differs between systems.
fn files(root: &FilePath, below: &str, all: &mut Vec<String>) -> Result<(), String> {
    let folder = root.join(below);
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|e| e.to_string())?.file_name();
        names.push(name.into_string().map_err(|_| "file names are UTF-8")?);
    }
    names.sort();
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let path = match below {
            "" => name.clone(),
            below => format!("{below}/{name}"),
        };
        match root.join(&path).is_dir() {
            true => files(root, &path, all)?,
            false => all.push(path),
        }
    }
    Ok(())
}

/// What lies in the folder of a file that includes something, and below. READMEs and examples are for people.
fn assets(
    root: &FilePath,
    label: &str,
    file: &str,
    all: &[String],
) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let within = |name: &&String| {
        name.strip_prefix(folder)
            .is_some_and(|n| n.starts_with('/'))
    };
    let counts = |name: &&String| {
        ![".rs", ".md", "example.toml"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    let mut assets = BTreeMap::new();
    for name in all.iter().filter(within).filter(counts) {
        let bytes = fs::read(root.join(name)).map_err(|e| format!("{label}/{name}: {e}"))?;
        assets.insert(format!("{label}/{name}"), bytes);
    }
    Ok(assets)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn graph(sources: &[(&str, &str)]) -> (tempfile::TempDir, Graph) {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in sources {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut graph = Graph::default();
        graph.add("x", folder.path(), "x").unwrap();
        (folder, graph)
    }

    #[track_caller]
    fn drawn(sources: &[(&str, &str)], expected: &[&str]) {
        let (_folder, graph) = graph(sources);
        let arrows = graph.arrows();
        let drawn = arrows.iter().flat_map(|(from, to)| {
            let arrow = |(to, how): &(&str, Arrow)| format!("{from} {how:?} {to}");
            to.iter().map(arrow).collect::<Vec<_>>()
        });
        assert_eq!(drawn.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn arrows_go_through_re_exports_to_the_file_that_defines() {
        drawn(
            &[
                ("lib.rs", "mod a; mod b; pub use a::inner::f;"),
                (
                    "a/mod.rs",
                    "pub mod inner; pub use inner::*; pub fn own() {}",
                ),
                ("a/inner.rs", "pub fn f() {} pub struct S;"),
                ("b.rs", "use crate::a; fn g() { a::f(); }"),
                ("c.rs", "use crate::f;"),
                ("d.rs", "fn g() -> crate::a::S { super::a::own() }"),
            ],
            &[
                "x/b.rs Uses x/a/inner.rs",
                "x/c.rs Uses x/a/inner.rs",
                "x/d.rs Uses x/a/inner.rs",
                "x/d.rs Uses x/a/mod.rs",
            ],
        );
    }

    #[test]
    fn whoever_uses_a_type_depends_on_methods_that_others_give_it() {
        drawn(
            &[
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", "pub struct A;"),
                ("b.rs", "use crate::a::A; impl A { fn f(&self) {} }"),
            ],
            &["x/a.rs Extended x/b.rs", "x/b.rs Uses x/a.rs"],
        );
    }

    #[test]
    fn registries_macros_globs_and_tests() {
        drawn(
            &[
                (
                    "lib.rs",
                    "mod a; mod b; pub static ALL: &[&dyn T] = &[&b::B];",
                ),
                ("a.rs", "macro_rules! m { () => {} } pub enum E { X }"),
                ("b.rs", "use crate::a::E::*; fn f() { let _ = crate::ALL; }"),
                ("c/mod.rs", "#[cfg(test)] mod tests; fn f() { m!() }"),
                ("c/tests.rs", "use crate::b::B;"),
            ],
            &[
                "x/b.rs Uses x/a.rs",
                "x/b.rs Uses x/lib.rs",
                "x/c/mod.rs Uses x/a.rs",
            ],
        );
    }

    #[test]
    fn what_is_included_is_an_asset() {
        let (_folder, graph) = graph(&[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "const W: &str = include_str!(\"words.txt\");"),
            ("a/words.txt", "x"),
            ("a/README.md", "for people"),
        ]);
        let assets = graph.modules().flat_map(|(_, module)| module.assets.keys());
        assert_eq!(assets.collect::<Vec<_>>(), ["x/a/words.txt"]);
    }

    /// The sources of `stages` and of `nn`, with `change` made to a copy of the latter.
    fn with_nn(change: impl Fn(&FilePath)) -> (tempfile::TempDir, Graph) {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let (from, copy) = (here.join("../nn/src"), tempfile::tempdir().unwrap());
        let mut all = Vec::new();
        files(&from, "", &mut all).unwrap();
        for file in &all {
            let to = copy.path().join(file);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from.join(file), to).unwrap();
        }
        change(copy.path());
        let mut graph = Graph::default();
        graph.add("stages", &here, "stages").unwrap();
        graph.add("nn", copy.path(), "nn/src").unwrap();
        (copy, graph)
    }

    fn edit(root: &FilePath, file: &str, change: impl Fn(String) -> String) {
        let text = fs::read_to_string(root.join(file)).unwrap();
        fs::write(root.join(file), change(text)).unwrap();
    }

    /// Each file with its tokens and what its paths lead to, and what it depends on.
    type Table = BTreeMap<String, (String, Vec<String>)>;

    fn table(graph: &Graph) -> Table {
        let arrows = graph.arrows();
        let row = |(place, module): (&Place, &Module)| {
            let text = format!("{} {:?}", module.source.text, graph.used(place, module));
            let needs = arrows[module.file.as_str()].iter();
            let needs = needs.map(|(to, _)| (*to).to_owned()).collect();
            (module.file.clone(), (text, needs))
        };
        graph.modules().map(row).collect()
    }

    /// All that a file depends on.
    fn closure<'t>(table: &'t Table, root: &'t str) -> BTreeMap<&'t str, &'t str> {
        let (mut found, mut todo) = (BTreeMap::new(), vec![root]);
        while let Some(file) = todo.pop() {
            let (text, needs) = &table[file];
            if found.insert(file, text.as_str()).is_none() {
                todo.extend(needs.iter().map(String::as_str));
            }
        }
        found
    }

    /// Everything from which some stage's code starts: kinds, attacks, models.
    fn roots(table: &Table) -> impl Iterator<Item = &String> {
        let starts = ["stages/kinds/", "stages/models/", "nn/src/models/"];
        let begins = move |file: &&String| starts.iter().any(|start| file.starts_with(start));
        table.keys().filter(begins)
    }

    #[test]
    fn a_new_file_of_nn_changes_no_code() {
        let before = table(&with_nn(|_| {}).1);
        for folder in ["layers", "models", "objectives", "training", "victim"] {
            let (_copy, after) = with_nn(|root| {
                let text = "//! New.\n\n/// New.\npub struct BrandNew;\n";
                fs::write(root.join(folder).join("brand_new.rs"), text).unwrap();
                edit(root, &format!("{folder}/mod.rs"), |text| {
                    format!("{text}\nmod brand_new;\npub use brand_new::BrandNew;\n")
                });
            });
            let after = table(&after);
            assert_eq!(after.len(), before.len() + 1);
            for root in roots(&before) {
                let same = closure(&before, root) == closure(&after, root);
                assert!(same, "a new file of {folder} changes the code of {root}");
            }
        }
    }

    #[test]
    fn an_edited_layer_changes_the_code_of_the_models_that_have_it() {
        let before = table(&with_nn(|_| {}).1);
        let (_copy, after) = with_nn(|root| {
            edit(root, "layers/gru/layer.rs", |text| {
                format!("{text}\nconst EDITED: usize = 1;\n")
            });
        });
        let after = table(&after);
        let models = [
            "gru",
            "lstm",
            "rnn",
            "kim_cnn",
            "char_cnn",
            "transformer",
            "seq2seq",
        ];
        let changed = models.into_iter().filter(|model| {
            let root = format!("nn/src/models/{model}.rs");
            closure(&before, &root) != closure(&after, &root)
        });
        assert_eq!(changed.collect::<Vec<_>>(), ["gru"]);
    }

    #[test]
    fn these_sources_can_be_read() {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut graph = Graph::default();
        graph.add("stages", &here, "stages").unwrap();
        graph.add("nn", &here.join("../nn/src"), "nn/src").unwrap();
        let arrows = graph.arrows();
        let train = &arrows["stages/kinds/train/mod.rs"];
        assert!(train.contains(&("stages/contract/failure.rs", Arrow::Uses)));
        assert!(!train.contains(&("stages/lib.rs", Arrow::Uses)));
    }
}
