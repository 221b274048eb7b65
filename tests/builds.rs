//! Tests, benches and the program share one build of their dependencies.

use std::collections::BTreeSet;
use std::process::Command;

/// All packages of a build with their features.
fn packages(edges: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--prefix", "none", "-e"])
        .args([edges, "-f", "{p}: {f}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.map(|line| line.trim().to_owned()).collect()
}

/// A feature that only a dev-dependency asks for builds everything above it twice: once_cell's `default` did so with
/// arrow and polars, ten minutes of two cores.
#[test]
fn tests_do_not_build_dependencies_of_the_program_again() {
    let (program, tests) = (packages("no-dev"), packages("all"));
    assert!(program.len() > 100, "{program:?}");
    let other: Vec<&String> = program.difference(&tests).collect();
    assert!(
        other.is_empty(),
        "tests and benches build these with more features: ask for the same ones under [dependencies] of Cargo.toml\n{other:#?}"
    );
}
