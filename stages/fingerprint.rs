//! The code behind a kind, as an input of its results. The build script made the table;
//! this turns it into digests. Knows nothing of tokens or of where sources lie.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use store::Digest;

include!(concat!(env!("OUT_DIR"), "/code.rs"));

/// The code that decides a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// What enters the key.
    pub digest: Digest,
    /// What it is made of: sources such as `stages/sql/mod.rs`, by the digest of their tokens,
    /// and locked crates such as `crate polars-core 0.55.2`, by their checksum.
    pub files: Arc<BTreeMap<String, Digest>>,
}

/// The folder of a kind: Rust's names have no dash.
fn folder(kind: &str) -> String {
    kind.replace('-', "_")
}

/// The code of a kind that has a folder in this crate.
pub fn of_kind(kind: &str) -> Code {
    static CODES: LazyLock<BTreeMap<&str, Code>> = LazyLock::new(|| {
        let kinds = KINDS.iter();
        kinds.map(|(kind, files)| (*kind, code(files))).collect()
    });
    match CODES.get(folder(kind).as_str()) {
        Some(code) => code.clone(),
        None => panic!("the kind `{kind}` has no folder stages/{kind}/ with a mod.rs"),
    }
}

/// The part of a kind's code that decides one result, when its parameters choose between
/// sources. What is left out must not be able to change that result.
pub fn narrowed(kind: &str, counts: impl Fn(&str) -> bool) -> Code {
    let mut files = of_kind(kind).files.as_ref().clone();
    files.retain(|name, _| counts(name));
    digested(files)
}

impl Code {
    /// With what makes one table of many, for a stage that collects instances: its key names
    /// the parts that it reads, so how they are put together must be in its code.
    pub fn collecting(&self) -> Code {
        let mut files = self.files.as_ref().clone();
        files.extend(code(COLLECT).files.as_ref().clone());
        digested(files)
    }
}

fn code(files: &[(&str, &str)]) -> Code {
    let parse = |hex: &str| hex.parse().expect("the build script writes digests");
    digested(
        files
            .iter()
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
#[path = "names.rs"]
mod names;
#[cfg(test)]
#[path = "tokens.rs"]
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
        let code = code(&[
            ("stages/sql/mod.rs", &digest),
            ("crate arrow 1.0.0", &digest),
        ]);
        assert_eq!(
            code.digest.to_string(),
            "981cb57dc769597aebba61502524a79f0f5dca6aa275e4c9c738b327922e1288"
        );
    }

    #[test]
    fn a_kind_is_its_folder_the_shared_files_the_encoder_and_its_crates() {
        let sql = of_kind("sql").files;
        for name in [
            "stages/sql/mod.rs",
            "stages/lib.rs",
            "stages/describe.rs",
            "store/src/tables/codec.rs",
        ] {
            assert!(sql.contains_key(name), "{name} is missing: {sql:#?}");
        }
        let has = |start: &str| sql.keys().any(|name| name.starts_with(start));
        assert!(has("crate polars-core ") && has("crate arrow-array ") && has("crate parquet "));
        assert!(!has("stages/table/") && !has("nn/"));
        assert!(!has("crate tempfile"), "plumbing decides no result");
        for other in [
            "stages/sql/README.md",
            "stages/build.rs",
            "stages/tokens.rs",
        ] {
            assert!(!sql.contains_key(other), "{other} decides no result");
        }
        assert!(
            !of_kind("table")
                .files
                .keys()
                .any(|name| name.contains("polars"))
        );
        assert_ne!(of_kind("table").digest, of_kind("sql").digest);
    }

    /// `lib.rs` imports from modules for the engine's sake; that is no use by a kind.
    #[test]
    fn a_module_enters_the_code_of_the_kinds_that_use_it_only() {
        for (kind, files) in KINDS {
            let has = |start: &str| files.iter().any(|(name, _)| name.starts_with(start));
            assert!(has(&format!("stages/{kind}/")) && has("stages/lib.rs"));
            assert!(!has("stages/collect.rs"), "{kind} does not collect");
            assert!(!has("stages/fingerprint.rs") && !has("stages/nearest.rs"));
        }
        for (kind, other) in [
            ("table", "dataset"),
            ("sql", "table"),
            ("embed", "tokenize"),
        ] {
            let files = of_kind(kind).files;
            let other = format!("stages/{other}/");
            assert!(!files.keys().any(|name| name.starts_with(&other)), "{kind}");
        }
    }

    /// The key of a stage with `over` names the parts, not the table that they make.
    #[test]
    fn a_stage_that_collects_depends_on_how() {
        let sql = of_kind("sql");
        let collecting = sql.collecting();
        assert!(collecting.files.contains_key("stages/collect.rs"));
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
        for (kind, files) in KINDS {
            for (name, _) in *files {
                assert!(
                    !name.starts_with('/') && !name.contains(".."),
                    "{kind}: {name}"
                );
            }
        }
    }

    #[test]
    fn every_folder_is_listed_and_documented() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut forgotten = Vec::new();
        for (kind, _) in KINDS {
            let Some(stage) = STAGES.iter().find(|s| folder(s.describe().kind) == *kind) else {
                forgotten.push(format!(
                    "stages/{kind}/ is not in STAGES: add `pub mod {kind};` and its type to stages/lib.rs"
                ));
                continue;
            };
            for file in ["README.md", "example.toml"] {
                if !root.join(kind).join(file).is_file() {
                    forgotten.push(format!("stages/{kind}/{file} is missing: write it"));
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
            for param in described.params {
                if !readme.contains(&format!("`{}`", param.name)) {
                    forgotten.push(format!(
                        "stages/{kind}/README.md does not explain `{}`",
                        param.name
                    ));
                }
            }
        }
        assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
    }

    #[test]
    fn every_example_is_a_pipeline_that_uses_its_kind() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for stage in STAGES {
            let kind = stage.describe().kind;
            let text =
                std::fs::read_to_string(root.join(folder(kind)).join("example.toml")).unwrap();
            let example: toml::Table = text.parse().unwrap_or_else(|e| panic!("{kind}: {e}"));
            assert!(example["pipeline"]["name"].is_str(), "{kind}");
            let stages = example["stage"].as_table().unwrap();
            assert!(
                stages.values().any(|s| s["kind"].as_str() == Some(kind)),
                "stages/{kind}/example.toml has no stage with kind = \"{kind}\""
            );
        }
    }
}
