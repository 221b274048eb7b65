//! What draws have shown before, kept in the store's folder by the digest of all that decides it. It is a cache: it
//! can be deleted at any time, is part of no result, and is not believed unless it is whole.

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::Digest;

/// The folder, within that of the store.
const FOLDER: &str = "draws";

/// What a file holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// What it is evidence for.
    key: Digest,
    /// The digest of the evidence as it is written here.
    digest: Digest,
    evidence: String,
}

fn path(root: &Path, key: &Digest) -> PathBuf {
    root.join(FOLDER).join(format!("{key}.json"))
}

/// What was kept under a key; none if nothing was, or if it is not what was written.
pub fn find<T: DeserializeOwned>(root: &Path, key: &Digest) -> Option<T> {
    let text = fs::read(path(root, key)).ok()?;
    let kept: Kept = serde_json::from_slice(&text).ok()?;
    let whole = kept.key == *key && kept.digest == Digest::of(kept.evidence.as_bytes());
    serde_json::from_str(&kept.evidence).ok().filter(|_| whole)
}

/// Keeps evidence, and gives it as it will be found: floats may lose a bit on the way. Where it cannot be written, it
/// is computed again next time.
pub fn keep<T: Serialize + DeserializeOwned>(root: &Path, key: &Digest, found: &T) -> T {
    let evidence = serde_json::to_string(found).expect("plain data");
    let found = serde_json::from_str(&evidence).expect("what was just written");
    let kept = Kept {
        key: *key,
        digest: Digest::of(evidence.as_bytes()),
        evidence,
    };
    let write = || -> std::io::Result<()> {
        let path = path(root, key);
        let folder = path.parent().expect("it is in a folder");
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&mut file, &kept)?;
        file.persist(&path)?;
        Ok(())
    };
    let _ = write();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let (key, other) = (Digest::of(b"a"), Digest::of(b"b"));
        let evidence = vec![("holds".to_owned(), 873)];
        let find = |root: &Path, key: &Digest| find::<Vec<(String, i64)>>(root, key);
        assert_eq!(find(dir.path(), &key), None);
        assert_eq!(keep(dir.path(), &key, &evidence), evidence);
        assert_eq!(find(dir.path(), &key), Some(evidence));
        let file = path(dir.path(), &key);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("873", "973")).unwrap();
        assert_eq!(find(dir.path(), &key), None, "forged");
        fs::copy(&file, path(dir.path(), &other)).unwrap();
        fs::write(path(dir.path(), &other), text).unwrap();
        assert_eq!(find(dir.path(), &other), None, "another claim's");
        fs::write(&file, "{").unwrap();
        assert_eq!(find(dir.path(), &key), None);
    }

    #[test]
    fn a_second_look_finds_the_same() {
        use crate::results::statistics::{Interval, Method};
        use std::collections::BTreeMap;
        let dir = tempfile::tempdir().unwrap();
        let interval = Interval {
            low: 0.1 + 0.2,
            high: 1.0 / 3.0,
            method: Method::Draws,
        };
        let evidence: BTreeMap<String, Interval> = [("a".to_owned(), interval)].into();
        let first = keep(dir.path(), &Digest::of(b"a"), &evidence);
        assert_eq!(find(dir.path(), &Digest::of(b"a")), Some(first));
    }
}
