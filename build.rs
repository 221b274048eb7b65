//! Hands the compiler's version and the locked versions of the numeric crates to the program,
//! which writes them into provenance; and has the released program start fast.

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

    start_fast();

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

/// A position-independent program of this size has 600,000 addresses to adjust each time it starts (`readelf -r`), and
/// touches 1,661 pages to do so. At a fixed address it has none to adjust, and touches 171 (`perf stat ablate --version`).
fn start_fast() {
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|it| it == value);
    if is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo:rustc-link-arg-bin=ablate=-no-pie");
    }
}

fn quoted<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
    value.strip_suffix('"')
}
