//! The key of a result: hash it to find the result, store it to explain a miss.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::installed::Installed;
use crate::value::Params;

/// The source files behind a code fingerprint, with their digests.
pub type CodeFiles = BTreeMap<String, Digest>;

/// The tag of this version of a code fingerprint's record.
const CODE: &str = "code/1";

/// The fingerprint of code: what enters keys.
pub fn code_digest(files: &CodeFiles) -> Digest {
    let canonical = serde_json::to_string(&(CODE, files)).expect("keys are strings");
    Digest::of(canonical.as_bytes())
}

/// Everything that decides a stage's bytes, and nothing else: no path, time, host, commit,
/// thread count, stage name or axis name, and nothing of how the pipeline file is laid out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageKey {
    /// The record's type and version, so that different records never collide.
    pub record: String,
    /// The stage kind.
    pub kind: String,
    /// Fingerprint of the code behind the kind.
    pub code: Digest,
    /// Checked parameters with their defaults written out.
    pub params: Params,
    /// The seed, for kinds that draw random numbers.
    pub seed: Option<u64>,
    /// Declared files by the name that the stage sees, with the digest of their contents.
    pub files: BTreeMap<String, Digest>,
    /// Those of them that may be run as programs, where the kind can tell. Left out when there are
    /// none, so that such keys are what they were before this was known.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub executable: BTreeSet<String>,
    /// What its program runs on, for kinds that start programs. Left out when there is nothing, for the same reason.
    #[serde(default, skip_serializing_if = "Installed::is_empty")]
    pub installed: Installed,
    /// Input ports with the digest of the contents that they receive.
    pub inputs: BTreeMap<String, Digest>,
}

impl StageKey {
    /// The tag of this version of the record.
    pub const RECORD: &str = "stage-key/1";

    /// The canonical form: JSON, no white space, fields as declared, map keys in order.
    pub fn canonical(&self) -> String {
        serde_json::to_string(self).expect("a key has no map with keys that are not strings")
    }

    /// The digest under which the result is found.
    pub fn digest(&self) -> Digest {
        Digest::of(self.canonical().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn key() -> StageKey {
        StageKey {
            record: StageKey::RECORD.into(),
            kind: "sql".into(),
            code: Digest::of(b"code"),
            params: [("query".to_owned(), Value::Text("SELECT 1".into()))].into(),
            seed: Some(7),
            files: [("plot.py".to_owned(), Digest::of(b"print()"))].into(),
            executable: BTreeSet::new(),
            installed: Installed::default(),
            inputs: [("t".to_owned(), Digest::of(b"rows"))].into(),
        }
    }

    /// If this fails, the format of keys changed and every cache in the world would go cold:
    /// raise the number in `StageKey::RECORD`, say so in CHANGELOG.md, then pin the new digest.
    #[test]
    fn the_format_is_pinned() {
        assert_eq!(
            key().digest().to_string(),
            "6afd9bc268133d17edc2414f6c182fe34b35fd4e4307fcaf4ef83eebef1748a4"
        );
    }

    #[test]
    fn a_file_that_may_be_run_is_another_key() {
        let mut run = key();
        run.executable.insert("plot.py".to_owned());
        assert_ne!(run.digest(), key().digest());
        let read: StageKey = serde_json::from_str(&run.canonical()).unwrap();
        assert_eq!(read, run);
    }

    #[test]
    fn another_interpreter_or_package_is_another_key() {
        let mut other = key();
        let programs = &mut other.installed.programs;
        programs.insert("python3".to_owned(), Digest::of(b"python"));
        assert_ne!(other.digest(), key().digest());
        let read: StageKey = serde_json::from_str(&other.canonical()).unwrap();
        assert_eq!(read, other);
    }

    #[test]
    fn the_stored_form_reads_back_equal() {
        let read: StageKey = serde_json::from_str(&key().canonical()).unwrap();
        assert_eq!(read, key());
    }
}
