//! The remotes of a store, by the names that the user gave them: the file `remotes.toml` in its folder.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use super::Remote;

const FILE: &str = "remotes.toml";

/// The URLs, by name.
pub fn read(store: &Path) -> Result<BTreeMap<String, String>, String> {
    let path = store.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => toml::from_str(&text)
            .map_err(|error| format!("`{}`: {}", path.display(), error.message())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(format!("cannot read `{}`: {error}", path.display())),
    }
}

/// Writes them down.
pub fn write(store: &Path, remotes: &BTreeMap<String, String>) -> Result<(), String> {
    let text = toml::to_string(remotes).map_err(|error| error.to_string())?;
    let written = tempfile::NamedTempFile::new_in(store).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.persist(store.join(FILE))?;
        Ok(())
    });
    written.map_err(|error| format!("cannot write `{FILE}`: {error}"))
}

/// The remote of this name; the only one if none is given.
pub fn open(store: &Path, name: Option<&str>) -> Result<Remote, String> {
    let all = read(store)?;
    let found = match name {
        Some(name) => all.get_key_value(name),
        None => all.first_key_value().filter(|_| all.len() == 1),
    };
    match (found, name) {
        (Some((name, url)), _) => Remote::open(name, url),
        (None, _) if all.is_empty() => {
            Err("this store has no remote: ablate remote add NAME URL".to_owned())
        }
        (None, Some(name)) => {
            let names: Vec<&str> = all.keys().map(String::as_str).collect();
            Err(format!(
                "there is no remote `{name}`: there are {}",
                names.join(", ")
            ))
        }
        (None, None) => {
            let names: Vec<&str> = all.keys().map(String::as_str).collect();
            Err(format!(
                "this store has several remotes, name one: {}",
                names.join(", ")
            ))
        }
    }
}
