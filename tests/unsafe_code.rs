//! `unsafe` is in few places, and each has a reason.

use std::path::Path;

/// Every file that may say `unsafe`, and why.
const PLACES: &[(&str, &str)] = &[
    (
        "nn/benches/products/src/main.rs",
        "the crates beside ours take pointers",
    ),
    (
        "nn/src/numeric/gemm/kernel.rs",
        "the micro-kernel reads without bounds checks",
    ),
    (
        "nn/src/numeric/simd/lanes.rs",
        "what kernels read and write without bounds checks",
    ),
    ("nn/src/numeric/simd/registers.rs", "vector instructions"),
    (
        "nn/src/numeric/simd/launch.rs",
        "vector instructions, after a check at run time",
    ),
    (
        "stages/programs/enter.rs",
        "system calls of a child between fork and exec",
    ),
    (
        "stages/kinds/sql/bridge.rs",
        "tables cross to polars by the C data interface",
    ),
    (
        "store/src/files/disk.rs",
        "a test's fault ends the process as a power cut would",
    ),
    (
        "store/src/lease.rs",
        "the standard library locks whole files only",
    ),
];

#[test]
fn unsafe_is_where_it_is_named_and_has_a_reason_beside_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open = [
        "src", "stages", "nn", "store", "tests", "benches", "build.rs",
    ]
    .map(|name| root.join(name))
    .to_vec();
    let (mut found, mut seen) = (Vec::new(), 0);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
            continue;
        }
        if path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        // As code, not in comments, texts or the names of lints.
        let code = |line: &&str| {
            let line = line.split("//").next().unwrap_or_default();
            [
                "unsafe {",
                "unsafe fn",
                "unsafe impl",
                "unsafe extern",
                "unsafe trait",
            ]
            .iter()
            .any(|start| line.contains(start) && !line.contains('"'))
        };
        let count = text.lines().filter(code).count();
        if count == 0 {
            continue;
        }
        let reasons = text.matches("SAFETY").count() + text.matches("# Safety").count();
        assert!(reasons > 0, "{name} says `unsafe` without a SAFETY comment");
        found.push(name);
    }
    assert!(seen > 200, "only {seen} files were looked at");
    found.sort();
    let mut named: Vec<&str> = PLACES.iter().map(|(name, _)| *name).collect();
    named.sort_unstable();
    assert_eq!(
        found, named,
        "name a file in PLACES of tests/unsafe_code.rs, with the reason, or do without"
    );
}
