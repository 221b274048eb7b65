//! The verdicts of all papers, as README.md shows them, are those of `papers/*/verdicts.json`, and those are of the
//! pipelines and claims of today. `UPDATE_VERDICTS=1 cargo test --workspace --test pipelines verdicts` writes the table.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// The columns of the table, as verdicts are called.
const COLUMNS: [&str; 5] = [
    "reproduced",
    "uncertain",
    "not reproduced",
    "not run",
    "reported",
];
const BEGIN: &str =
    "<!-- verdicts: UPDATE_VERDICTS=1 cargo test --workspace --test pipelines verdicts -->\n";
const END: &str = "<!-- /verdicts -->\n";

/// The row of a paper; an error if what it was judged by has changed.
fn row(folder: &Path) -> Result<String, String> {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let paper = name.split('_').next().unwrap().to_uppercase();
    let linked = format!("[{paper}](papers/{name}/README.md)");
    let Ok(text) = std::fs::read_to_string(folder.join("verdicts.json")) else {
        let none = " |".repeat(COLUMNS.len() + 1);
        return Ok(format!(
            "| {linked} | not judged with today's files{none}\n"
        ));
    };
    let file: Value = serde_json::from_str(&text).unwrap();
    let profile = file["profile"].as_str().unwrap_or("smoke");
    for (key, source) in [("pipeline", "pipeline.toml"), ("claims", "claims.toml")] {
        let now = blake3::hash(&std::fs::read(folder.join(source)).unwrap()).to_hex();
        if file[key].as_str() != Some(now.as_str()) {
            return Err(format!(
                "papers/{name}/verdicts.json was judged by another {source}: `ablate -C papers/{name} run --profile {profile}`, \
                 then `ablate -C papers/{name} claims --profile {profile} --write papers/{name}/verdicts.json`; or delete it"
            ));
        }
    }
    let mut cells: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in file["verdicts"].as_array().unwrap() {
        let claim = one["claim"].as_str().unwrap();
        let short = claim.strip_prefix(&format!("A-{paper}-"));
        let verdict = one["verdict"].as_str().unwrap();
        assert!(COLUMNS.contains(&verdict), "{verdict}");
        cells
            .entry(verdict)
            .or_default()
            .push(short.unwrap_or(claim));
    }
    let mut row = format!("| {linked} | `{profile}`");
    for column in COLUMNS {
        row += &format!(" | {}", cells.remove(column).unwrap_or_default().join(", "));
    }
    Ok(row + " |\n")
}

#[test]
fn the_readme_has_the_verdicts_of_all_papers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(root.join("papers")).unwrap();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    let rows: Result<Vec<String>, String> = folders.iter().map(|folder| row(folder)).collect();
    let rows = rows.unwrap_or_else(|why| panic!("{why}"));
    let table = format!(
        "| | profile | {} |\n|---|---|{}\n{}",
        COLUMNS.join(" | "),
        "---|".repeat(COLUMNS.len()),
        rows.concat()
    );
    let path = root.join("README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("README.md has the marker");
    let (now, after) = rest
        .split_once(END)
        .expect("README.md has the second marker");
    if now != table {
        let update = std::env::var_os("UPDATE_VERDICTS").is_some();
        assert!(
            update,
            "the table of verdicts in README.md is not that of papers/*/verdicts.json: UPDATE_VERDICTS=1 writes it"
        );
        std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    }
}
