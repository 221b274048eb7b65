//! Code is an input: writes the table of what decides each kind's results, with digests.
//!
//! A kind's code is its folder, the shared files of this crate, the encoder of the store,
//! all of `nn` if it is mentioned, and the locked versions of the crates that are mentioned.
//! Everything is named relative to the workspace, so the place of a checkout does not count.

#[path = "tokens.rs"]
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use tokens::Source;

/// The files of `store` that decide the bytes of an artifact, or how a foreign one is read.
const ENCODER: &[&str] = &["canonical.rs", "foreign.rs", "table.rs"];

/// Files beside the kinds that decide fingerprints or nothing at all, never a result.
const NOT_SHARED: &[&str] = &["build.rs", "fingerprint.rs", "nearest.rs", "tokens.rs"];

/// Crates that only move data about or word errors: their versions decide no result.
/// Archives and what is fetched are checked against digests, whoever unpacks them.
const PLUMBING: &[&str] = &[
    "blake3",
    "bzip2",
    "flate2",
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

fn main() {
    for watched in [".", "../nn/src", "../store/src", "../Cargo.lock"] {
        println!("cargo:rerun-if-changed={watched}");
    }
    let packages = locked_packages();
    let direct = direct_dependencies();
    let (mut shared, mut shared_idents) = (Files::new(), BTreeSet::new());
    for file in rust_files_beside(Path::new(".")) {
        let source = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
        let read = if file == "lib.rs" {
            tokens::read_root
        } else {
            tokens::read
        };
        let source = read(&source).unwrap_or_else(|e| panic!("stages/{file}: {e}"));
        shared.insert(format!("stages/{file}"), digest(source.text.as_bytes()));
        shared_idents.extend(source.idents);
    }
    let encoder = Path::new("../store/src");
    for file in ENCODER {
        let path = encoder.join(file);
        let source = fs::read_to_string(&path).unwrap_or_else(|e| {
            panic!("store/src/{file}: {e}: name the encoder's files in ENCODER of stages/build.rs")
        });
        let source = tokens::read(&source).unwrap_or_else(|e| panic!("store/src/{file}: {e}"));
        shared.insert(format!("store/src/{file}"), digest(source.text.as_bytes()));
    }
    let mut nn = Files::new();
    walk(
        Path::new("../nn/src"),
        "nn/src",
        &mut nn,
        &mut BTreeSet::new(),
    );

    let mut table = String::from("pub static KINDS: &[(&str, &[(&str, &str)])] = &[\n");
    for kind in folders(Path::new(".")) {
        let (mut files, mut idents) = (shared.clone(), shared_idents.clone());
        walk(
            Path::new(&kind),
            &format!("stages/{kind}"),
            &mut files,
            &mut idents,
        );
        if idents.contains("nn") {
            files.extend(nn.clone());
        }
        let mentioned = |name: &&String| idents.contains(&name.replace('-', "_"));
        let crates = direct.iter().filter(mentioned).map(String::as_str);
        let crates: BTreeSet<&str> = crates
            .filter(|name| !PLUMBING.contains(name))
            .chain(ALWAYS.iter().copied())
            .collect();
        for (package, digest) in &packages {
            let name = package.split(' ').next().unwrap_or_default();
            // `polars` is a façade: what computes is in `polars-core` and its sisters.
            let part_of = |whole: &&str| {
                let rest = name.strip_prefix(*whole);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            if crates.iter().any(part_of) {
                files.insert(format!("crate {package}"), digest.clone());
            }
        }
        let _ = writeln!(table, "    ({kind:?}, &[");
        for (name, digest) in files {
            let _ = writeln!(table, "        ({name:?}, {digest:?}),");
        }
        table.push_str("    ]),\n");
    }
    table.push_str("];\n");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("code.rs"), table).expect("OUT_DIR can be written");
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

fn rust_files_beside(root: &Path) -> Vec<String> {
    let counts = |name: &String| name.ends_with(".rs") && !NOT_SHARED.contains(&name.as_str());
    names(root).into_iter().filter(counts).collect()
}

/// Adds every file under `folder`: Rust by its tokens, anything else by its bytes, since it
/// may be included in the program. A kind's README and example are for people.
fn walk(folder: &Path, name: &str, files: &mut Files, idents: &mut BTreeSet<String>) {
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
            files.insert(format!("{name}/{file}"), digest(&bytes));
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
            files.insert(format!("{name}/{file}"), digest(source.text.as_bytes()));
            idents.extend(source.idents);
        }
    }
    for sub in names(folder) {
        if folder.join(&sub).is_dir() && !tests.contains(&sub) {
            walk(&folder.join(&sub), &format!("{name}/{sub}"), files, idents);
        }
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
