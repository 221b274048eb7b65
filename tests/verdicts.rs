//! The verdicts that are committed beside papers are about the pipelines and claims that are committed beside them, and
//! README.md has all of them in one table, which `UPDATE_README=1 cargo test --workspace --test pipelines verdicts` writes.

use std::path::{Path, PathBuf};

use serde_json::Value;

const BEGIN: &str = "<!-- verdicts of all papers: UPDATE_README=1 cargo test --workspace --test pipelines verdicts -->\n";
const END: &str = "<!-- end of verdicts -->\n";

/// The columns of the table, each with the verdicts in it.
const COLUMNS: [(&str, &[&str]); 4] = [
    ("reproduced", &["reproduced"]),
    ("uncertain", &["uncertain"]),
    ("not reproduced", &["not reproduced"]),
    ("not run, or reported", &["not run", "reported"]),
];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folders of papers, in order.
fn papers() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository().join("papers")).unwrap();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.join("claims.toml").is_file());
    folders.sort();
    folders
}

fn name(folder: &Path) -> &str {
    folder.file_name().unwrap().to_str().unwrap()
}

fn verdicts(folder: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(folder.join("verdicts.json")).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn verdicts_are_about_the_files_beside_them() {
    let mut stale = Vec::new();
    for folder in papers() {
        let Some(file) = verdicts(&folder) else {
            continue;
        };
        assert_eq!(file["record"], "verdicts/1", "{}", name(&folder));
        for (which, path) in [("pipeline", "pipeline.toml"), ("claims", "claims.toml")] {
            let now = blake3::hash(&std::fs::read(folder.join(path)).unwrap());
            if file[which] != now.to_hex().as_str() {
                let (name, profile) = (name(&folder), &file["profile"]);
                stale.push(format!(
                    "papers/{name}/verdicts.json is about another {path}: run the profile {profile}, then \
                     ablate -C papers/{name} claims --profile {profile} --write papers/{name}/verdicts.json"
                ));
            }
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

#[test]
fn the_readme_has_the_verdicts_of_all_papers() {
    let path = repository().join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("README.md has the table");
    let (shown, after) = rest.split_once(END).expect("README.md has its end");
    let table = table();
    if std::env::var_os("UPDATE_README").is_some() {
        return std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    }
    assert_eq!(
        shown, table,
        "README.md has other verdicts than papers/*/verdicts.json: \
         UPDATE_README=1 cargo test --workspace --test pipelines verdicts"
    );
}

/// A row for each paper, with the ids of its claims.
fn table() -> String {
    let titles: Vec<&str> = COLUMNS.iter().map(|(title, _)| *title).collect();
    let mut table = format!("| paper | profile | {} |\n", titles.join(" | "));
    table += &format!("|---|---|{}\n", "---|".repeat(COLUMNS.len()));
    for folder in papers() {
        let short = name(&folder).split('_').next().unwrap().to_uppercase();
        let Some(file) = verdicts(&folder) else {
            let nothing = " |".repeat(COLUMNS.len());
            table += &format!("| {short} | no verdicts.json yet: see its README |{nothing}\n");
            continue;
        };
        let all = file["verdicts"].as_array().unwrap();
        let ids = |wanted: &[&str]| {
            let of = |one: &&Value| wanted.contains(&one["verdict"].as_str().unwrap());
            let ids = all.iter().filter(of).map(|one| {
                let id = one["claim"].as_str().unwrap();
                id.strip_prefix(&format!("A-{short}-")).unwrap_or(id)
            });
            ids.collect::<Vec<_>>().join(", ")
        };
        let cells: Vec<String> = COLUMNS.iter().map(|(_, wanted)| ids(wanted)).collect();
        // A verdict without a column would be left out in silence.
        let known = COLUMNS.iter().flat_map(|(_, wanted)| *wanted);
        let known: Vec<&str> = known.copied().collect();
        for one in all {
            assert!(known.contains(&one["verdict"].as_str().unwrap()), "{one}");
        }
        let profile = file["profile"].as_str().unwrap_or("as written");
        table += &format!("| {short} | {profile} | {} |\n", cells.join(" | "));
    }
    table
}
