//! The verdicts that are committed beside papers are about the pipelines and claims that are committed beside them;
//! README.md has all of them in one table, and a paper's README has what they are with each of its choices.
//! `UPDATE_README=1 cargo test --workspace --test pipelines verdicts` writes both.

use std::path::{Path, PathBuf};

use serde_json::Value;

const BEGIN: &str = "<!-- verdicts of all papers: UPDATE_README=1 cargo test --workspace --test pipelines verdicts -->\n";
const END: &str = "<!-- end of verdicts -->\n";
const WORLDS: &str =
    "<!-- worlds.json: UPDATE_README=1 cargo test --workspace --test pipelines verdicts -->\n";
const END_OF_WORLDS: &str = "<!-- end of worlds -->\n";

/// The columns of the table, each with the verdicts in it; one more has what turns with a choice.
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
    file(folder, "verdicts.json")
}

fn file(folder: &Path, name: &str) -> Option<Value> {
    let text = std::fs::read_to_string(folder.join(name)).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn verdicts_are_about_the_files_beside_them() {
    let mut stale = Vec::new();
    for folder in papers() {
        let records = [
            ("verdicts.json", "verdicts/1", "claims"),
            ("worlds.json", "worlds/1", "multiverse"),
        ];
        for (written, record, command) in records {
            let Some(file) = file(&folder, written) else {
                continue;
            };
            assert_eq!(file["record"], record, "{}", name(&folder));
            for (which, path) in [("pipeline", "pipeline.toml"), ("claims", "claims.toml")] {
                let now = blake3::hash(&std::fs::read(folder.join(path)).unwrap());
                if file[which] != now.to_hex().as_str() {
                    let (name, profile) = (name(&folder), &file["profile"]);
                    stale.push(format!(
                        "papers/{name}/{written} is about another {path}: run the profile {profile}, then \
                         ablate -C papers/{name} {command} --profile {profile} --write papers/{name}/{written}"
                    ));
                }
            }
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

#[test]
fn a_paper_that_has_been_run_in_its_worlds_shows_claims_by_worlds() {
    for folder in papers() {
        let Some(worlds) = file(&folder, "worlds.json") else {
            continue;
        };
        let path = folder.join("README.md");
        let readme = std::fs::read_to_string(&path).unwrap();
        let between = readme.split_once(WORLDS).and_then(|(before, rest)| {
            let (shown, after) = rest.split_once(END_OF_WORLDS)?;
            Some((before, shown, after))
        });
        let (before, shown, after) = between.unwrap_or_else(|| {
            let name = name(&folder);
            panic!("papers/{name}/README.md has no place for its worlds:\n{WORLDS}{END_OF_WORLDS}")
        });
        let table = claims_by_worlds(&worlds);
        if std::env::var_os("UPDATE_README").is_some() {
            let text = format!("{before}{WORLDS}{table}{END_OF_WORLDS}{after}");
            std::fs::write(&path, text).unwrap();
            continue;
        }
        let name = name(&folder);
        assert_eq!(
            shown, table,
            "papers/{name}/README.md has other verdicts than its worlds.json: \
             UPDATE_README=1 cargo test --workspace --test pipelines verdicts"
        );
    }
}

/// The numbered worlds, and a row for each claim with its verdict in each.
fn claims_by_worlds(file: &Value) -> String {
    let worlds = file["worlds"].as_array().unwrap().iter();
    let worlds: Vec<&str> = worlds.map(|world| world.as_str().unwrap()).collect();
    let numbered = worlds.iter().enumerate();
    let numbered: Vec<String> = numbered.map(|(n, world)| format!("{n} {world}")).collect();
    let heads: Vec<String> = (0..worlds.len()).map(|n| n.to_string()).collect();
    let mut table = format!(
        "Worlds: {}. R reproduced, U uncertain, N not reproduced, i reported, - not run; {} draws.\n\n",
        numbered.join(", "),
        file["draws"]
    );
    table += &format!("| claim | {} | |\n", heads.join(" | "));
    table += &format!("|---|{}---|\n", "---|".repeat(worlds.len()));
    for claim in file["across"].as_array().unwrap() {
        let letters =
            claim["worlds"].as_array().unwrap().iter().map(|world| {
                match world["verdict"].as_str().unwrap() {
                    "reproduced" => "R",
                    "uncertain" => "U",
                    "not reproduced" => "N",
                    "reported" => "i",
                    "not run" => "-",
                    other => panic!("{other}"),
                }
            });
        let letters: Vec<&str> = letters.collect();
        let turns = claim["turns_with"].as_array().unwrap().iter();
        let turns: Vec<&str> = turns.map(|world| world.as_str().unwrap()).collect();
        let says = match (claim["run"].as_u64().unwrap(), turns.is_empty()) {
            (0, _) => "not run".to_owned(),
            (run, true) => format!("stable in {} of {run}", claim["same"]),
            (_, false) => format!("**turns with {}**", turns.join(", ")),
        };
        let id = claim["claim"].as_str().unwrap();
        table += &format!("| {id} | {} | {says} |\n", letters.join(" | "));
    }
    table
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

/// A claim's id without what all of its paper's have in common.
fn brief<'a>(one: &'a Value, paper: &str) -> &'a str {
    let id = one["claim"].as_str().unwrap();
    id.strip_prefix(&format!("A-{paper}-")).unwrap_or(id)
}

/// A row for each paper, with the ids of its claims.
fn table() -> String {
    let titles: Vec<&str> = COLUMNS.iter().map(|(title, _)| *title).collect();
    let mut table = format!(
        "| paper | profile | {} | turn with a choice of ours |\n",
        titles.join(" | ")
    );
    table += &format!("|---|---|{}---|\n", "---|".repeat(COLUMNS.len()));
    for folder in papers() {
        let short = name(&folder).split('_').next().unwrap().to_uppercase();
        let Some(file) = verdicts(&folder) else {
            let nothing = " |".repeat(COLUMNS.len() + 1);
            table += &format!("| {short} | no verdicts.json yet: see its README |{nothing}\n");
            continue;
        };
        let all = file["verdicts"].as_array().unwrap();
        let ids = |wanted: &[&str]| {
            let of = |one: &&Value| wanted.contains(&one["verdict"].as_str().unwrap());
            let ids = all.iter().filter(of).map(|one| brief(one, &short));
            ids.collect::<Vec<_>>().join(", ")
        };
        let mut cells: Vec<String> = COLUMNS.iter().map(|(_, wanted)| ids(wanted)).collect();
        cells.push(match self::file(&folder, "worlds.json") {
            None => "worlds not run".to_owned(),
            Some(worlds) => {
                let turning = worlds["across"].as_array().unwrap().iter();
                let turning = turning.filter(|one| one["turns_with"] != serde_json::json!([]));
                let ids: Vec<&str> = turning.map(|one| brief(one, &short)).collect();
                ids.join(", ")
            }
        });
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
