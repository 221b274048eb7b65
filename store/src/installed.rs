//! What a program of the user runs on: the programs that start it, and the packages that are installed for it.
//! Knows nothing of where they are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The programs and packages that are no files of the stage, and that its results depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installed {
    /// Programs by their name, with the digest of their file.
    pub programs: BTreeMap<String, Digest>,
    /// Packages by their name.
    pub packages: BTreeMap<String, Package>,
}

/// A package: installed, or in a lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// As it calls it.
    pub version: String,
    /// Of what its installation says of its files, or of its entry in a lock file.
    pub digest: Digest,
}

impl Installed {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty() && self.packages.is_empty()
    }

    /// What differs in another, a line each: "numpy was 1.2.0, now 1.3.0".
    pub fn changes(&self, now: &Installed) -> Vec<InstalledChange> {
        let mut changes = Vec::new();
        let names = |a: &[&String], b: &[&String]| {
            let mut all: Vec<String> = a.iter().chain(b).map(|name| (*name).clone()).collect();
            all.sort();
            all.dedup();
            all
        };
        let (old, new) = (&self.packages, &now.packages);
        let all = names(&Vec::from_iter(old.keys()), &Vec::from_iter(new.keys()));
        for name in all {
            let (was, now) = (old.get(&name), new.get(&name));
            if was != now {
                changes.push(InstalledChange::package(name, was, now));
            }
        }
        let (old, new) = (&self.programs, &now.programs);
        let all = names(&Vec::from_iter(old.keys()), &Vec::from_iter(new.keys()));
        for name in all {
            let (was, now) = (old.get(&name), new.get(&name));
            if was != now {
                changes.push(InstalledChange {
                    name,
                    was: was.map(Digest::short),
                    now: now.map(Digest::short),
                });
            }
        }
        changes
    }
}

/// One program or package that is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledChange {
    /// Which.
    pub name: String,
    /// The version, or the beginning of the digest, that it had.
    pub was: Option<String>,
    /// The one that it has.
    pub now: Option<String>,
}

impl InstalledChange {
    /// By version; packages of one version are told apart by what they say of their files.
    fn package(name: String, was: Option<&Package>, now: Option<&Package>) -> InstalledChange {
        let one_version = was
            .zip(now)
            .is_some_and(|(was, now)| was.version == now.version);
        let show = |package: &Package| match one_version {
            true => format!("{} ({})", package.version, package.digest.short()),
            false => package.version.clone(),
        };
        InstalledChange {
            name,
            was: was.map(show),
            now: now.map(show),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(version: &str, record: &str) -> Package {
        Package {
            version: version.to_owned(),
            digest: Digest::of(record.as_bytes()),
        }
    }

    #[test]
    fn what_was_upgraded_removed_added_and_rebuilt_is_told_apart() {
        let packages = |all: &[(&str, Package)]| Installed {
            programs: BTreeMap::new(),
            packages: all
                .iter()
                .map(|(n, p)| ((*n).to_owned(), p.clone()))
                .collect(),
        };
        let mut old = packages(&[
            ("numpy", package("1.2.0", "a")),
            ("left", package("1", "l")),
            ("same", package("1", "s")),
            ("built", package("2", "one")),
        ]);
        let mut new = packages(&[
            ("numpy", package("1.3.0", "b")),
            ("same", package("1", "s")),
            ("built", package("2", "two")),
            ("more", package("4", "m")),
        ]);
        old.programs
            .insert("python3".to_owned(), Digest::of(b"old"));
        new.programs
            .insert("python3".to_owned(), Digest::of(b"new"));
        let shown = old.changes(&new);
        let line = |n: usize| {
            let InstalledChange { name, was, now } = &shown[n];
            let text = |it: &Option<String>| it.clone().unwrap_or("-".to_owned());
            format!("{name}: {} {}", text(was), text(now))
        };
        let (one, two) = (Digest::of(b"one").short(), Digest::of(b"two").short());
        let expected = [
            format!("built: 2 ({one}) 2 ({two})"),
            "left: 1 -".to_owned(),
            "more: - 4".to_owned(),
            "numpy: 1.2.0 1.3.0".to_owned(),
            format!(
                "python3: {} {}",
                Digest::of(b"old").short(),
                Digest::of(b"new").short()
            ),
        ];
        assert_eq!((0..shown.len()).map(line).collect::<Vec<_>>(), expected);
        assert!(old.changes(&old).is_empty());
    }
}
