//! The code behind a kind, as an input of its results. The build script made the table;
//! this turns it into digests. Knows nothing of tokens or of where sources lie.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use store::Digest;

include!(concat!(env!("OUT_DIR"), "/code.rs"));

/// The code that decides a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// What enters the key.
    pub digest: Digest,
    /// What it is made of: sources such as `stages/kinds/sql/mod.rs`, by the digest of their tokens,
    /// and locked crates such as `crate polars-core 0.55.2`, by their checksum.
    pub files: Arc<BTreeMap<String, Digest>>,
}

/// Modules that word errors, make promises, make fingerprints or have work done elsewhere: they
/// decide no result, whoever names them.
const DECIDE_NOTHING: &[&str] = &[
    "stages/contract/data_home.rs",
    "stages/contract/determinism.rs",
    "stages/contract/expected.rs",
    "stages/contract/replayed.rs",
    "stages/contract/role.rs",
    "stages/fingerprint/",
    "stages/kinds/attack/expect.rs",
    // Looking into a result later decides nothing.
    "stages/kinds/attack/replay/",
    "stages/isolated/",
    "stages/contract/nearest.rs",
    "stages/tables/foreign.rs",
];

/// Crates that every kind depends on, because they encode its outputs.
const ALWAYS: &[&str] = &["arrow", "parquet"];

/// The module that makes one table of many for stages with `over`, whatever their kind.
const COLLECT: &str = "stages/collect.rs";

/// The folder of a kind: Rust's names have no dash.
pub fn folder(kind: &str) -> String {
    kind.replace('-', "_")
}

/// All code that decides results, of all kinds: a program with another one is another program.
pub fn of_all() -> Digest {
    let modules = MODULES
        .iter()
        .map(|(name, tokens, ..)| format!("{name} {tokens}\n"));
    let crates = ENCODER.iter().map(|(name, sum)| format!("{name} {sum}\n"));
    Digest::of(modules.chain(crates).collect::<String>().as_bytes())
}

/// The code of a kind.
pub fn of_kind(kind: &str) -> Code {
    with_chosen(kind, &[])
}

/// The code of a kind, and of what its parameters choose from registries: the files of an attack,
/// of a model.
pub fn with_chosen(kind: &str, chosen: &[&str]) -> Code {
    static CODES: LazyLock<Mutex<BTreeMap<Vec<String>, Code>>> = LazyLock::new(Mutex::default);
    let mut roots = vec![format!("stages/kinds/{}/mod.rs", folder(kind))];
    roots.extend(chosen.iter().map(|file| (*file).to_owned()));
    let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
    let made = codes.entry(roots);
    made.or_insert_with_key(|roots| closure(roots)).clone()
}

/// The same without what cannot change these results, though modules that can depend on it.
pub fn narrowed(kind: &str, chosen: &[&str], counts: impl Fn(&str) -> bool) -> Code {
    let mut files = with_chosen(kind, chosen).files.as_ref().clone();
    files.retain(|name, _| counts(name));
    digested(files)
}

impl Code {
    /// With what makes one table of many, for a stage that collects instances: its key names
    /// the parts that it reads, so how they are put together must be in its code.
    pub fn collecting(&self) -> Code {
        let mut files = self.files.as_ref().clone();
        files.extend(closure(&[COLLECT.to_owned()]).files.as_ref().clone());
        digested(files)
    }
}

/// Some modules and all that they depend on.
fn closure(roots: &[String]) -> Code {
    type Row = (
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    );
    static BY_NAME: LazyLock<BTreeMap<&str, Row>> = LazyLock::new(|| {
        let modules = MODULES.iter();
        modules
            .map(|(name, digest, needs, crates)| (*name, (*digest, *needs, *crates)))
            .collect()
    });
    let mut files: BTreeMap<&str, &str> = ENCODER.iter().copied().collect();
    let mut crates: BTreeSet<&str> = ALWAYS.iter().copied().collect();
    let mut todo: Vec<&str> = roots.iter().map(String::as_str).collect();
    while let Some(name) = todo.pop() {
        let decides_nothing = DECIDE_NOTHING.iter().any(|start| name.starts_with(start));
        if files.contains_key(name) || decides_nothing {
            continue;
        }
        let Some((name, row)) = BY_NAME.get_key_value(name) else {
            panic!(
                "there is no module {name} in this program: name its file as it lies in the workspace"
            );
        };
        files.insert(name, row.0);
        todo.extend(row.1);
        crates.extend(row.2);
    }
    let locked = CRATES.iter().filter(|(name, _)| crates.contains(name));
    files.extend(locked.flat_map(|(_, packages)| packages.iter().copied()));
    code(&files)
}

fn code(files: &BTreeMap<&str, &str>) -> Code {
    let parse = |hex: &str| hex.parse().expect("the build script writes digests");
    let files = files.iter();
    digested(
        files
            .map(|(name, hex)| ((*name).to_owned(), parse(hex)))
            .collect(),
    )
}

fn digested(files: BTreeMap<String, Digest>) -> Code {
    Code {
        digest: store::code_digest(&files),
        files: Arc::new(files),
    }
}

// The build script's half is tested here: a build script runs no tests of its own.
#[cfg(test)]
mod graph;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod tokens;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::STAGES;

    /// If this fails, the format changed and every stage of every user would run again:
    /// raise the number in `store::code_digest`, say so in CHANGELOG.md, then pin the new digest.
    #[test]
    fn the_format_is_pinned() {
        let digest = Digest::of(b"tokens").to_string();
        let files = [
            ("stages/sql/mod.rs", digest.as_str()),
            ("crate arrow 1.0.0", digest.as_str()),
        ];
        let code = code(&files.into_iter().collect());
        assert_eq!(
            code.digest.to_string(),
            "981cb57dc769597aebba61502524a79f0f5dca6aa275e4c9c738b327922e1288"
        );
    }

    #[test]
    fn a_kind_is_what_it_uses_the_encoder_and_its_crates() {
        let sql = of_kind("sql").files;
        for name in [
            "stages/kinds/sql/mod.rs",
            "stages/kinds/sql/query.rs",
            "stages/contract/description.rs",
            "store/src/tables/codec.rs",
        ] {
            assert!(sql.contains_key(name), "{name} is missing: {sql:#?}");
        }
        let has = |start: &str| sql.keys().any(|name| name.starts_with(start));
        assert!(has("crate polars-core ") && has("crate arrow-array ") && has("crate parquet "));
        assert!(!has("stages/kinds/table/") && !has("nn/"));
        assert!(!has("crate tempfile"), "plumbing decides no result");
        for other in [
            "stages/kinds/sql/README.md",
            "stages/build.rs",
            "stages/fingerprint/tokens.rs",
        ] {
            assert!(!sql.contains_key(other), "{other} decides no result");
        }
        let table = of_kind("table");
        assert!(!table.files.keys().any(|name| name.contains("polars")));
        assert_ne!(table.digest, of_kind("sql").digest);
    }

    #[test]
    fn a_module_enters_the_code_of_the_kinds_that_use_it_only() {
        for stage in STAGES {
            let kind = stage.describe().kind;
            let files = of_kind(kind).files;
            let has = |start: &str| files.keys().any(|name| name.starts_with(start));
            assert!(has(&format!("stages/kinds/{}/mod.rs", folder(kind))));
            assert!(!has(COLLECT), "{kind} does not collect");
            assert!(!has("stages/fingerprint/") && !has("stages/contract/nearest.rs"));
            for other in STAGES.iter().map(|stage| stage.describe().kind) {
                let shares = other == kind || (kind, other) == ("adversarial-retrain", "attack");
                let theirs = format!("stages/kinds/{}/", folder(other));
                assert!(shares || !has(&theirs), "{kind} uses {other}");
            }
        }
    }

    /// The key of a stage with `over` names the parts, not the table that they make.
    #[test]
    fn a_stage_that_collects_depends_on_how() {
        let sql = of_kind("sql");
        let collecting = sql.collecting();
        assert!(collecting.files.contains_key(COLLECT));
        assert!(
            collecting
                .files
                .keys()
                .any(|name| name.starts_with("crate arrow-select "))
        );
        assert!(
            sql.files
                .keys()
                .all(|name| collecting.files.contains_key(name))
        );
        assert_ne!(sql.digest, collecting.digest);
    }

    /// Names must not depend on where the checkout lies.
    #[test]
    fn names_are_relative() {
        for (name, ..) in MODULES {
            assert!(!name.starts_with('/') && !name.contains(".."), "{name}");
        }
    }

    #[test]
    fn every_folder_is_listed_and_documented() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("kinds");
        let mut forgotten = Vec::new();
        let folders = std::fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap());
        let folders = folders.filter(|entry| entry.path().is_dir());
        for kind in folders.map(|entry| entry.file_name().into_string().unwrap()) {
            let kind = kind.as_str();
            let Some(stage) = STAGES.iter().find(|s| folder(s.describe().kind) == kind) else {
                forgotten.push(format!(
                    "stages/kinds/{kind}/ is not in STAGES: add `pub mod {kind};` and its type to stages/kinds/mod.rs"
                ));
                continue;
            };
            for file in ["README.md", "example.toml"] {
                if !root.join(kind).join(file).is_file() {
                    forgotten.push(format!("stages/kinds/{kind}/{file} is missing: write it"));
                }
            }
            let described = stage.describe();
            if described.summary.is_empty() || described.params.iter().any(|p| p.help.is_empty()) {
                forgotten.push(format!(
                    "`{kind}` needs a summary and a help line for each parameter"
                ));
            }
            let readme =
                std::fs::read_to_string(root.join(kind).join("README.md")).unwrap_or_default();
            // Those of attacks and models are in the README of the kind that lists them, made from their entries.
            for param in crate::common(*stage) {
                if !readme.contains(&format!("`{}`", param.name)) {
                    forgotten.push(format!(
                        "stages/kinds/{kind}/README.md does not explain `{}`",
                        param.name
                    ));
                }
            }
        }
        assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
    }

    #[test]
    fn every_example_is_a_pipeline_that_uses_its_kind() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("kinds");
        for stage in STAGES {
            let kind = stage.describe().kind;
            let text =
                std::fs::read_to_string(root.join(folder(kind)).join("example.toml")).unwrap();
            let example: toml::Table = text.parse().unwrap_or_else(|e| panic!("{kind}: {e}"));
            assert!(example["pipeline"]["name"].is_str(), "{kind}");
            let stages = example["stage"].as_table().unwrap();
            assert!(
                stages.values().any(|s| s["kind"].as_str() == Some(kind)),
                "stages/kinds/{kind}/example.toml has no stage with kind = \"{kind}\""
            );
        }
    }
}
