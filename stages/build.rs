//! Code is an input: writes the table of all that may decide a result, with digests and with who
//! uses whom. `fingerprint/` then takes from it what one stage's results depend on.
//!
//! Listed are the modules of this crate and of `nn`, the encoder of the store, and the locked versions
//! of crates. Everything is named relative to the workspace, so the place of a checkout does not count.

#[path = "fingerprint/graph.rs"]
mod graph;
#[path = "fingerprint/paths.rs"]
mod paths;
#[path = "fingerprint/tokens.rs"]
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use graph::{Graph, Module, Place};

/// The files of `store` that decide the bytes of an artifact, or how a foreign one is read.
const ENCODER: &[&str] = &[
    "tables/canonical.rs",
    "tables/codec.rs",
    "tables/content_size.rs",
    "tables/foreign.rs",
];

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

fn main() {
    for watched in [
        ".",
        "../nn/src",
        "../store/src",
        "../Cargo.lock",
        "../nn/Cargo.toml",
    ] {
        println!("cargo:rerun-if-changed={watched}");
    }
    let mut graph = Graph::default();
    let stages = graph.add("stages", Path::new("."), "stages");
    let nn = graph.add("nn", Path::new("../nn/src"), "nn/src");
    stages.and(nn).unwrap_or_else(|error| panic!("{error}"));
    let crates = deciding_crates();
    let mut table = String::new();
    write_modules(&mut table, &graph, &crates);
    write_encoder(&mut table);
    write_crates(&mut table, &crates);
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let out = Path::new(&out);
    fs::write(out.join("code.rs"), table).expect("OUT_DIR can be written");
    fs::write(out.join("catalogue.rs"), catalogue()).expect("OUT_DIR can be written");
}

/// `ENTRIES`: every file of the catalogue of data sets, so that a new one is a file and no line.
fn catalogue() -> String {
    let folder = Path::new("kinds/dataset/catalogue");
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut texts = BTreeMap::new();
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "toml")) {
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .map(str::to_owned);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        texts.insert(name.expect("file names are UTF-8"), text);
    }
    let texts = Vec::from_iter(texts);
    format!("static ENTRIES: &[(&str, &str)] = &{texts:?};\n")
}

/// `MODULES`: name, digest, what it depends on, and the crates that it mentions.
fn write_modules(table: &mut String, graph: &Graph, crates: &BTreeSet<String>) {
    let arrows = graph.arrows();
    table.push_str("pub static MODULES: &[(&str, &str, &[&str], &[&str])] = &[\n");
    for (place, module) in graph.modules() {
        let mut needs: BTreeSet<&str> = BTreeSet::new();
        needs.extend(arrows[module.file.as_str()].iter().map(|(file, _)| *file));
        needs.extend(module.assets.keys().map(String::as_str));
        let tokens: BTreeSet<&str> = module.source.tokens.iter().map(String::as_str).collect();
        let mentioned = |name: &&String| tokens.contains(name.replace('-', "_").as_str());
        let mentioned: Vec<&String> = crates.iter().filter(mentioned).collect();
        let digest = module_digest(graph, place, module);
        let file = &module.file;
        let _ = writeln!(
            table,
            "    ({file:?}, {digest:?}, &{:?}, &{mentioned:?}),",
            Vec::from_iter(needs)
        );
        for (asset, bytes) in &module.assets {
            let _ = writeln!(table, "    ({asset:?}, {:?}, &[], &[]),", digest_of(bytes));
        }
    }
    table.push_str("];\n");
}

/// A module's tokens, and which file each of its paths leads to: a re-export that turns elsewhere
/// changes no token of those who use it.
fn module_digest(graph: &Graph, place: &Place, module: &Module) -> String {
    let mut text = module.source.text.clone();
    for (path, file) in graph.used(place, module) {
        let _ = writeln!(text, "u {path} {file}");
    }
    digest_of(text.as_bytes())
}

/// `ENCODER`: what writes artifacts.
fn write_encoder(table: &mut String) {
    table.push_str("pub static ENCODER: &[(&str, &str)] = &[\n");
    for file in ENCODER {
        let source = fs::read_to_string(Path::new("../store/src").join(file)).unwrap_or_else(|e| {
            panic!("store/src/{file}: {e}: name the encoder's files in ENCODER of stages/build.rs")
        });
        let source = tokens::read(&source).unwrap_or_else(|e| panic!("store/src/{file}: {e}"));
        let digest = digest_of(source.text.as_bytes());
        let _ = writeln!(table, "    (\"store/src/{file}\", {digest:?}),");
    }
    table.push_str("];\n");
}

/// `CRATES`: for each crate that may decide a result, the locked packages that it stands for.
fn write_crates(table: &mut String, crates: &BTreeSet<String>) {
    let locked = locked_packages();
    table.push_str("pub static CRATES: &[(&str, &[(&str, &str)])] = &[\n");
    for name in crates {
        // `polars` is a façade: what computes is in `polars-core` and its sisters.
        let part_of = |package: &str| {
            let package = package.split(' ').next().unwrap_or_default();
            let rest = package.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let packages = locked.iter().filter(|(package, _)| part_of(package));
        let packages: Vec<(String, &String)> = packages
            .map(|(package, digest)| (format!("crate {package}"), digest))
            .collect();
        let _ = writeln!(table, "    ({name:?}, &{packages:?}),");
    }
    table.push_str("];\n");
}

fn digest_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// `name version` of every external package in `Cargo.lock`, with a digest of its checksum.
fn locked_packages() -> BTreeMap<String, String> {
    let text = fs::read_to_string("../Cargo.lock").expect("the workspace has a Cargo.lock");
    let lock: toml::Table = text.parse().expect("cargo writes valid TOML");
    let mut packages = BTreeMap::new();
    for package in lock["package"].as_array().into_iter().flatten() {
        let field = |name: &str| package.get(name).and_then(toml::Value::as_str);
        // Packages of this workspace have no checksum: their sources are hashed instead.
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            packages.insert(format!("{name} {version}"), digest_of(sum.as_bytes()));
        }
    }
    packages
}

/// The dependencies of this crate and of `nn` that may decide a result.
fn deciding_crates() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for manifest in ["Cargo.toml", "../nn/Cargo.toml"] {
        let text = fs::read_to_string(manifest).unwrap_or_else(|e| panic!("{manifest}: {e}"));
        let manifest: toml::Table = text.parse().expect("cargo has read it");
        let dependencies = manifest["dependencies"].as_table();
        names.extend(dependencies.into_iter().flat_map(|d| d.keys().cloned()));
    }
    // Ours, which are listed module by module.
    names.retain(|name| {
        !PLUMBING.contains(&name.as_str()) && !["nn", "store"].contains(&name.as_str())
    });
    // It encodes outputs, and `store` mentions it.
    names.insert("parquet".to_owned());
    names
}
