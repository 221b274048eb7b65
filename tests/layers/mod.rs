//! The modules of every package form layers: nothing depends, directly or through others, on what depends on it.
//!
//! [`sources`] reads a package into modules, [`uses`] finds which module names which, and [`graph`] looks for
//! cycles. At every folder its children are compared as wholes, so that folders are layers too. Tests
//! (`#[cfg(test)]`) are left out. `cargo test --test pipelines layers -- --nocapture` prints the figures; with
//! `ABLATE_ARROWS=store` before it, every arrow of that package.

mod graph;
mod sources;
mod uses;

use std::path::Path;

use graph::Arrow;
use sources::Package;

/// The packages: a name, the folder of the sources, and the file of the root module.
const PACKAGES: [(&str, &str, &str); 4] = [
    ("ablate", "src", "main.rs"),
    ("stages", "stages", "lib.rs"),
    ("nn", "nn/src", "lib.rs"),
    ("store", "store/src", "lib.rs"),
];

/// Lines that one function in ten may exceed.
const P90_LINES: usize = 40;

fn packages() -> impl Iterator<Item = (&'static str, Package)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    PACKAGES.into_iter().map(move |(name, folder, file)| {
        let package = Package::read(root, folder, file);
        assert!(package.modules.len() > 5, "{name} has hardly any modules");
        (name, package)
    })
}

#[test]
fn modules_form_layers_without_cycles() {
    let mut complaints = Vec::new();
    for (name, package) in packages() {
        let arrows = uses::arrows(&package);
        if std::env::var("ABLATE_ARROWS").is_ok_and(|asked| asked == name) {
            let lines = arrows.iter().map(|arrow| arrow.named(&package));
            println!("{}", lines.collect::<Vec<_>>().join("\n"));
        }
        let cycles = graph::cycles(&package, &arrows);
        let within: usize = cycles.iter().map(|cycle| cycle.members.len()).sum();
        println!(
            "{name}: {} modules, {} cycles with {within} modules in them",
            package.modules.len(),
            cycles.len()
        );
        for cycle in &cycles {
            println!("  {}", cycle.shortest);
        }
        complaints.extend(cycles.into_iter().map(|cycle| cycle.shortest));
    }
    assert!(
        complaints.is_empty(),
        "modules depend on each other:\n{}",
        complaints.join("\n")
    );
}

#[test]
fn nine_functions_in_ten_are_short() {
    for (name, package) in packages() {
        let mut lengths = package.function_lengths();
        lengths.sort_by_key(|function| function.0);
        let at = (lengths.len() * 9).div_ceil(10) - 1;
        println!(
            "{name}: {} functions, p90 {} lines, the longest {} ({})",
            lengths.len(),
            lengths[at].0,
            lengths[lengths.len() - 1].0,
            lengths[lengths.len() - 1].1,
        );
        assert!(
            lengths[at].0 <= P90_LINES,
            "{name}: p90 of function length is {} lines, and the limit is {P90_LINES}",
            lengths[at].0
        );
    }
}

/// Arrows of a package that is written down here, as `from -> to`.
fn drawn(files: &[(&str, &str)]) -> (Package, Vec<Arrow>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let package = Package::read(folder.path(), "", "lib.rs");
    let arrows = uses::arrows(&package);
    (package, arrows)
}

#[test]
fn a_cycle_is_found_and_printed_with_the_place_of_each_arrow() {
    let (package, arrows) = drawn(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n"),
        (
            "a.rs",
            "use crate::b::{self, Other};\npub struct A;\nfn f() { b::g() }",
        ),
        (
            "b.rs",
            "//! Text.\n\npub struct Other;\npub fn g() { crate::c::h(\"crate::a\") }",
        ),
        ("c.rs", "pub fn h(_: &str) -> crate::A { crate::A }"),
    ]);
    let cycles = graph::cycles(&package, &arrows);
    assert_eq!(cycles.len(), 1);
    assert_eq!(
        cycles[0].shortest,
        "a -> b (a.rs:1) -> c (b.rs:4) -> a (c.rs:1)"
    );
}

#[test]
fn re_exports_and_tests_are_not_uses_but_an_item_of_the_parent_is() {
    let (package, arrows) = drawn(&[
        ("lib.rs", "mod a;\nmod b;"),
        (
            "a/mod.rs",
            "mod inner;\npub use inner::deep;\n#[cfg(test)]\nmod tests { use crate::b::f; }",
        ),
        ("a/inner.rs", "pub fn deep() {}"),
        (
            "b.rs",
            "mod under;\nuse crate::a::deep;\npub fn f() { deep() }\n",
        ),
        ("b/under.rs", "use super::f;\nuse super::super::a::inner;"),
    ]);
    let named: Vec<String> = arrows.iter().map(|arrow| arrow.named(&package)).collect();
    assert_eq!(named, ["b -> a::inner", "b::under -> b"]);
    assert!(graph::cycles(&package, &arrows).is_empty());
}

#[test]
fn folders_are_layers_even_if_no_file_is_in_a_cycle() {
    let (package, arrows) = drawn(&[
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "pub mod x; pub mod y;"),
        ("a/x.rs", "pub fn x() { crate::b::b() }"),
        ("a/y.rs", "pub fn y() {}"),
        ("b.rs", "use crate::a::y::*;\npub fn b() { y() }"),
    ]);
    let cycles = graph::cycles(&package, &arrows);
    assert_eq!(cycles[0].shortest, "a -> b (a/x.rs:1) -> a (b.rs:2)");
}
