//! Code is an input: writes the table of what decides each kind's results, with digests.
//!
//! A kind's code is its folder, `lib.rs` and `describe.rs`, every other module of this crate
//! that these name (see `names.rs`) and so on, the encoder of the store, all of `nn` if it is
//! mentioned, and the locked versions of the crates that are mentioned. A folder with a
//! `mod.rs` is a kind; code that kinds share is a file, or `x.rs` with a folder `x`.
//! Everything is named relative to the workspace, so the place of a checkout does not count.

#[path = "names.rs"]
mod names;
#[path = "tokens.rs"]
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use tokens::Source;

/// The files of `store` that decide the bytes of an artifact, or how a foreign one is read.
const ENCODER: &[&str] = &[
    "tables/canonical.rs",
    "tables/codec.rs",
    "tables/content_size.rs",
    "tables/foreign.rs",
];

/// Files beside the kinds that are no modules of the crate.
const NO_MODULES: &[&str] = &["build.rs", "lib.rs", "names.rs", "tokens.rs"];

/// Modules that every kind's code has.
const SHARED: &[&str] = &["describe"];

/// Modules that word errors, make promises, make fingerprints or have work done elsewhere: they
/// decide no result, whoever names them.
const DECIDE_NOTHING: &[&str] = &[
    "determinism",
    "expected",
    "fingerprint",
    "foreign",
    "isolated",
    "nearest",
    "replayed",
];

/// What the root uses of a kind's folder without making all results depend on that kind:
/// `DataHome` says where files with known digests lie.
const USED_BY_ROOT: &[&str] = &["DataHome"];

/// The module that makes one table of many for stages with `over`, whatever their kind.
const COLLECT: &str = "collect";

/// Crates that only move data about or word errors: their versions decide no result.
/// Archives and what is fetched are checked against digests, whoever unpacks them.
const PLUMBING: &[&str] = &[
    "arrow-ipc",
    "blake3",
    "bzip2",
    "flate2",
    "landlock",
    "libc",
    "lzma-rust2",
    "rustix",
    "sha2",
    "strsim",
    "tar",
    "tempfile",
    "thiserror",
    "toml",
    "ureq",
    "wait4",
    "zip",
];

/// Crates that every kind depends on, because they encode its outputs.
const ALWAYS: &[&str] = &["arrow", "parquet"];

/// A name such as `stages/sql/mod.rs` or `crate arrow 60.1.0`, with a digest in hexadecimal.
type Files = BTreeMap<String, String>;

/// Some sources: a module of this crate with all below it, or several together.
#[derive(Clone, Default)]
struct Part {
    files: Files,
    /// Every token, to see which crates are mentioned.
    tokens: BTreeSet<String>,
    /// What is named right below the crate's root.
    names: BTreeSet<String>,
}

impl Part {
    /// Adds a file. `depth` is that of its module in this crate; other crates have none.
    fn add(&mut self, name: String, source: Source, depth: Option<usize>) {
        if let Some(depth) = depth {
            let named = names::named(&source.tokens, depth);
            self.names
                .extend(named.unwrap_or_else(|e| panic!("{name}: {e}")));
        }
        self.files.insert(name, digest(source.text.as_bytes()));
        self.tokens.extend(source.tokens);
    }

    fn extend(&mut self, other: &Part) {
        self.files.extend(other.files.clone());
        self.tokens.extend(other.tokens.iter().cloned());
        self.names.extend(other.names.iter().cloned());
    }
}

fn main() {
    for watched in [".", "../nn/src", "../store/src", "../Cargo.lock"] {
        println!("cargo:rerun-if-changed={watched}");
    }
    let here = Path::new(".");
    let modules = modules(here);
    let source = fs::read_to_string("lib.rs").expect("this crate has a root");
    let source = tokens::read_root(&source).unwrap_or_else(|e| panic!("stages/lib.rs: {e}"));
    let root = names::root(&source.tokens);
    let mut shared = Part::default();
    shared.add("stages/lib.rs".to_owned(), source, Some(0));
    for name in SHARED {
        shared.names.insert((*name).to_owned());
    }
    let counts = |name: &&String| !USED_BY_ROOT.contains(&name.as_str());
    for name in root.used.iter().filter(counts) {
        let module = name.strip_suffix("::").filter(|m| modules.contains_key(*m));
        let imported = root.imported.contains_key(name).then_some(name.as_str());
        shared.names.extend(module.or(imported).map(str::to_owned));
    }
    for file in ENCODER {
        let path = Path::new("../store/src").join(file);
        let source = fs::read_to_string(&path).unwrap_or_else(|e| {
            panic!("store/src/{file}: {e}: name the encoder's files in ENCODER of stages/build.rs")
        });
        let source = tokens::read(&source).unwrap_or_else(|e| panic!("store/src/{file}: {e}"));
        let digest = digest(source.text.as_bytes());
        shared.files.insert(format!("store/src/{file}"), digest);
    }
    let mut nn = Part::default();
    walk(Path::new("../nn/src"), "nn/src", None, &mut nn);
    let crates = Crates {
        locked: locked_packages(),
        direct: direct_dependencies(),
    };
    let written = |start: &Part| {
        let mut code = closed(start, &modules, &root);
        if code.tokens.contains("nn") {
            code.files.extend(nn.files.clone());
        }
        code.files.extend(crates.mentioned(&code.tokens));
        let each = code.files.iter();
        let each = each.map(|(name, digest)| format!("        ({name:?}, {digest:?}),\n"));
        each.collect::<String>()
    };

    let mut table = String::from("pub static KINDS: &[(&str, &[(&str, &str)])] = &[\n");
    for kind in folders(here) {
        let mut start = shared.clone();
        start.names.insert(kind.clone());
        let _ = write!(table, "    ({kind:?}, &[\n{}    ]),\n", written(&start));
    }
    table.push_str("];\n");
    let mut collect = Part::default();
    collect.names.insert(COLLECT.to_owned());
    let _ = write!(
        table,
        "pub static COLLECT: &[(&str, &str)] = &[\n{}];\n",
        written(&collect)
    );
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("code.rs"), table).expect("OUT_DIR can be written");
}

/// `start` with every module that it names, and that these name in turn.
fn closed(start: &Part, modules: &BTreeMap<String, Part>, root: &names::Root) -> Part {
    let mut code = start.clone();
    let mut todo: Vec<String> = start.names.iter().cloned().collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if !seen.insert(name.clone()) || DECIDE_NOTHING.contains(&name.as_str()) {
            continue;
        }
        let module = modules.get(&name);
        if let Some(module) = module {
            code.extend(module);
            todo.extend(module.names.iter().cloned());
        }
        let known = module.is_some() || root.own.contains(&name);
        match root.imported.get(&name) {
            Some(from) => {
                // The others are crates, and the root's tokens mention those.
                let ours = |from: &&String| *from == names::ALL || modules.contains_key(*from);
                todo.extend(from.iter().filter(ours).cloned());
            }
            None if known => {}
            None => todo.extend(modules.keys().cloned()),
        }
    }
    code
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Names in a folder, in order: the order of a directory differs between file systems.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("a readable folder").file_name())
        .map(|name| name.into_string().expect("file names are UTF-8"))
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn folders(root: &Path) -> Vec<String> {
    let folder = |name: &String| root.join(name).join("mod.rs").is_file();
    names(root).into_iter().filter(folder).collect()
}

/// The modules of this crate by name: `x.rs`, the folder `x`, or both.
fn modules(root: &Path) -> BTreeMap<String, Part> {
    let mut modules: BTreeMap<String, Part> = BTreeMap::new();
    for name in names(root) {
        let path = root.join(&name);
        let module = name.trim_end_matches(".rs").to_owned();
        let decides = !DECIDE_NOTHING.contains(&module.as_str());
        if path.is_dir() {
            let part = modules.entry(module).or_default();
            walk(&path, &format!("stages/{name}"), Some(1), part);
        } else if name.ends_with(".rs") && !NO_MODULES.contains(&name.as_str()) && decides {
            let part = modules.entry(module).or_default();
            let name = format!("stages/{name}");
            let source = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
            let source = tokens::read(&source).unwrap_or_else(|e| panic!("{name}: {e}"));
            part.add(name, source, Some(1));
        }
    }
    modules
}

/// Adds every file under `folder`: Rust by its tokens, anything else by its bytes, since it
/// may be included in the program. A kind's README and example are for people.
fn walk(folder: &Path, name: &str, depth: Option<usize>, part: &mut Part) {
    let mut sources: BTreeMap<String, Source> = BTreeMap::new();
    for file in names(folder) {
        let path = folder.join(&file);
        if path.is_dir() {
            continue;
        }
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{name}/{file}: {e}"));
        if file.ends_with(".rs") {
            let text = String::from_utf8(bytes).unwrap_or_else(|e| panic!("{name}/{file}: {e}"));
            let source = tokens::read(&text).unwrap_or_else(|e| panic!("{name}/{file}: {e}"));
            sources.insert(file, source);
        } else if !file.ends_with(".md") && file != "example.toml" {
            part.files.insert(format!("{name}/{file}"), digest(&bytes));
        }
    }
    // A module declared in `mod.rs` (or `lib.rs`) as a test's lies beside it.
    let tests: BTreeSet<String> = ["mod.rs", "lib.rs"]
        .iter()
        .filter_map(|root| sources.get(*root))
        .flat_map(|source| source.test_mods.iter().cloned())
        .collect();
    for (file, source) in sources {
        if !tests.contains(file.trim_end_matches(".rs")) {
            let below = usize::from(file != "mod.rs");
            let depth = depth.map(|depth| depth + below);
            part.add(format!("{name}/{file}"), source, depth);
        }
    }
    for sub in names(folder) {
        if folder.join(&sub).is_dir() && !tests.contains(&sub) {
            let depth = depth.map(|depth| depth + 1);
            walk(&folder.join(&sub), &format!("{name}/{sub}"), depth, part);
        }
    }
}

/// The external crates.
struct Crates {
    /// All that are locked, as `name version`, with a digest of the checksum.
    locked: Files,
    /// Those that this crate depends on.
    direct: Vec<String>,
}

impl Crates {
    /// The locked packages of the crates that decide results and are mentioned.
    fn mentioned(&self, tokens: &BTreeSet<String>) -> Files {
        let mentioned = |name: &&String| tokens.contains(&name.replace('-', "_"));
        let crates = self.direct.iter().filter(mentioned).map(String::as_str);
        let crates: BTreeSet<&str> = crates
            .filter(|name| !PLUMBING.contains(name))
            .chain(ALWAYS.iter().copied())
            .collect();
        let counts = |package: &str| {
            let name = package.split(' ').next().unwrap_or_default();
            // `polars` is a façade: what computes is in `polars-core` and its sisters.
            let part_of = |whole: &&str| {
                let rest = name.strip_prefix(*whole);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            crates.iter().any(part_of)
        };
        let locked = self.locked.iter();
        locked
            .filter(|(package, _)| counts(package))
            .map(|(package, digest)| (format!("crate {package}"), digest.clone()))
            .collect()
    }
}

/// `name version` of every external package in `Cargo.lock`, with a digest of its checksum.
fn locked_packages() -> Files {
    let text = fs::read_to_string("../Cargo.lock").expect("the workspace has a Cargo.lock");
    let lock: toml::Table = text.parse().expect("cargo writes valid TOML");
    let mut packages = Files::new();
    for package in lock["package"].as_array().into_iter().flatten() {
        let field = |name: &str| package.get(name).and_then(toml::Value::as_str);
        // Packages of this workspace have no checksum: their sources are hashed instead.
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            packages.insert(format!("{name} {version}"), digest(sum.as_bytes()));
        }
    }
    packages
}

fn direct_dependencies() -> Vec<String> {
    let text = fs::read_to_string("Cargo.toml").expect("this crate has a Cargo.toml");
    let manifest: toml::Table = text.parse().expect("cargo has read it");
    let dependencies = manifest["dependencies"].as_table();
    dependencies
        .into_iter()
        .flat_map(|d| d.keys().cloned())
        .collect()
}
