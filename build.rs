//! Hands the compiler's version and the locked versions of the numeric crates to the program,
//! which writes them into provenance.

use std::process::Command;

/// Crates that make numbers or files.
const NUMERIC: [&str; 7] = [
    "arrow", "blake3", "gemm", "parquet", "polars", "rayon", "rusqlite",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=Cargo.lock");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    println!(
        "cargo:rustc-env=ABLATE_RUSTC={}",
        version.unwrap_or_default()
    );

    let lock = std::fs::read_to_string("Cargo.lock").unwrap_or_default();
    let mut crates = Vec::new();
    let mut lines = lock.lines();
    while let Some(line) = lines.next() {
        let Some(name) = quoted(line, "name") else {
            continue;
        };
        if NUMERIC.contains(&name)
            && let Some(version) = lines.next().and_then(|line| quoted(line, "version"))
        {
            crates.push(format!("{name}={version}"));
        }
    }
    println!("cargo:rustc-env=ABLATE_CRATES={}", crates.join(" "));
}

fn quoted<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
    value.strip_suffix('"')
}
