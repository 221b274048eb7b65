//! Declared files: found from the pipeline's folder, hashed by content.
//! Size and time are never trusted: a file edited within the same second must count.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use stages::Stage;
use store::{Digest, Params};

/// Files by the name that the stage sees: where they lie and what they hold.
pub type Files = BTreeMap<String, (PathBuf, Digest)>;

/// Hashes files once, however many stages declare them.
#[derive(Debug, Default)]
pub struct Hasher {
    digests: Mutex<HashMap<PathBuf, Digest>>,
    none: Arc<Files>,
}

/// A declared file that cannot be used.
pub struct Unusable {
    /// The parameter that declares it.
    pub param: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Hasher {
    /// The files that a stage's parameters declare.
    pub fn declared(
        &self,
        dir: &Path,
        kind: &dyn Stage,
        params: &Params,
    ) -> Result<Arc<Files>, Unusable> {
        let mut files = Files::new();
        for (param, name) in kind.files(params) {
            self.add(dir, name, &mut files)
                .map_err(|message| Unusable { param, message })?;
        }
        match files.is_empty() {
            true => Ok(self.none.clone()),
            false => Ok(Arc::new(files)),
        }
    }

    /// Adds a file, or every file below a folder.
    fn add(&self, dir: &Path, name: &str, files: &mut Files) -> Result<(), String> {
        let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || !Path::new(name).components().all(inside) {
            return Err(format!(
                "`{name}` does not lie below the folder of the pipeline file"
            ));
        }
        let mut open = vec![PathBuf::from(name)];
        while let Some(relative) = open.pop() {
            let path = dir.join(&relative);
            let failed = |error| format!("cannot read {}: {error}", relative.display());
            if fs::metadata(&path).map_err(failed)?.is_dir() {
                for entry in fs::read_dir(&path).map_err(failed)? {
                    let entry = entry.map_err(failed)?;
                    // A linked folder could lead back to where it stands.
                    let linked = entry.file_type().map_err(failed)?.is_symlink();
                    if linked && fs::metadata(entry.path()).is_ok_and(|found| found.is_dir()) {
                        continue;
                    }
                    open.push(relative.join(entry.file_name()));
                }
                continue;
            }
            let known = self
                .digests
                .lock()
                .expect("nobody panics")
                .get(&path)
                .copied();
            let digest = match known {
                Some(digest) => digest,
                None => Digest::of_file(&path).map_err(failed)?,
            };
            let mut digests = self.digests.lock().expect("nobody panics");
            digests.insert(path.clone(), digest);
            drop(digests);
            let plain: PathBuf = relative
                .components()
                .filter(|c| *c != Component::CurDir)
                .collect();
            let Some(seen) = plain.to_str() else {
                return Err(format!("{} is not a UTF-8 name", relative.display()));
            };
            files.insert(seen.to_owned(), (path, digest));
        }
        Ok(())
    }
}
