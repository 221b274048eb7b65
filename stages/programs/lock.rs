//! Lock files: `lock = "uv.lock"` says which packages a program runs on, in place of all files of its environments.
//!
//! A package that the file pins to one version counts by its entry there; one that it does not pin counts as it is
//! installed. Where both are known they must agree. Knows nothing of where anything is installed.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use store::{Digest, Package};

use super::environment::Problem;

/// What a lock file pins.
#[derive(Debug, Default)]
pub struct Locked {
    /// Packages by name.
    pub packages: BTreeMap<String, Package>,
    /// Whether they are distributions of Python, which can be compared with what is installed.
    python: bool,
    /// Those that are needed on every machine, where the file can tell.
    needed: Vec<String>,
}

/// The formats that are known, by the name of the file.
const KNOWN: &str = "uv.lock, requirements.txt, environment.yml or renv.lock";

/// Whether a lock file of this name can be read.
pub fn is_known(name: &str) -> bool {
    reader_of(name).is_some()
}

/// What to write instead of a name that is not known.
pub fn help() -> String {
    format!("name a {KNOWN} beside the pipeline file")
}

/// How a text is read.
type Reader = fn(&str) -> Result<Locked, String>;

fn reader_of(name: &str) -> Option<Reader> {
    let file = Path::new(name).file_name()?.to_str()?;
    let reader: Reader = match file {
        "uv.lock" => uv,
        "renv.lock" => renv,
        "environment.yml" | "environment.yaml" => conda,
        _ if file.starts_with("requirements") && file.ends_with(".txt") => requirements,
        _ => return None,
    };
    Some(reader)
}

/// A lock file that cannot be read.
pub fn unreadable(name: &str, error: &io::Error) -> Problem {
    Problem {
        message: format!("cannot read {name}: {error}"),
        help: help(),
    }
}

/// What the file of this name and these contents pins.
pub fn read(name: &str, text: &str) -> Result<Locked, Problem> {
    let problem = |why: String| Problem {
        message: format!("{name} {why}"),
        help: help(),
    };
    let reader =
        reader_of(name).ok_or_else(|| problem("is not a lock file that is known".into()))?;
    reader(text).map_err(problem)
}

/// Refuses a lock file that says something else than what is installed.
pub fn agrees(
    name: &str,
    locked: &Locked,
    installed: &BTreeMap<String, Package>,
) -> Result<(), Problem> {
    // Where nothing is installed nothing is known of what is.
    let missing = |name: &&String| !installed.is_empty() && !installed.contains_key(*name);
    if let Some(package) = locked.needed.iter().find(missing) {
        return Err(Problem {
            message: format!(
                "{name} says {package} {}, and it is not installed",
                locked.packages[package].version
            ),
            help: "install what it says (`pip install -r`), or make it anew from what is installed"
                .to_owned(),
        });
    }
    for (package, said) in locked.packages.iter().filter(|_| locked.python) {
        let Some(found) = installed.get(package) else {
            continue;
        };
        // A lock for several platforms may have several versions.
        let mut versions = said.version.split(", ");
        if !versions.any(|version| is_same(version, &found.version)) {
            return Err(Problem {
                message: format!(
                    "{name} says {package} {}, and {} is installed",
                    said.version, found.version
                ),
                help: "install what it says (`uv sync`, `pip install -r`), or make it anew from what is installed"
                    .to_owned(),
            });
        }
    }
    Ok(())
}

/// `1.0` is `1.0.0`, and `2.1.0` is also `2.1.0+cpu`.
fn is_same(said: &str, found: &str) -> bool {
    let found = match said.contains('+') {
        true => found,
        false => found.split('+').next().unwrap_or_default(),
    };
    let plain = |version: &str| {
        let mut version = version.to_ascii_lowercase();
        while let Some(shorter) = version.strip_suffix(".0") {
            version = shorter.to_owned();
        }
        version
    };
    plain(said) == plain(found)
}

impl Locked {
    fn add(&mut self, name: String, version: &str, entry: &str) {
        let new = Package {
            version: version.to_owned(),
            digest: Digest::of(entry.as_bytes()),
        };
        let known = self.packages.remove(&name);
        let both = known.map(|known| Package {
            version: format!("{}, {version}", known.version),
            digest: Digest::of(format!("{} {}", known.digest, new.digest).as_bytes()),
        });
        self.packages.insert(name, both.unwrap_or(new));
    }
}

fn uv(text: &str) -> Result<Locked, String> {
    let table: toml::Table = text
        .parse()
        .map_err(|error| format!("is not TOML: {error}"))?;
    let mut locked = Locked {
        python: true,
        ..Locked::default()
    };
    let packages = table.get("package").and_then(toml::Value::as_array);
    for package in packages.into_iter().flatten() {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str);
        if let (Some(name), Some(version)) = (text("name"), text("version")) {
            locked.add(normal(name), version, &package.to_string());
        }
    }
    Ok(locked)
}

fn renv(text: &str) -> Result<Locked, String> {
    let all: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    let mut locked = Locked::default();
    for (name, package) in all["Packages"].as_object().into_iter().flatten() {
        let version = package["Version"].as_str().unwrap_or("unknown");
        // R tells names apart by their case.
        locked.add(name.clone(), version, &package.to_string());
    }
    Ok(locked)
}

fn requirements(text: &str) -> Result<Locked, String> {
    let mut locked = Locked {
        python: true,
        ..Locked::default()
    };
    for line in text.replace("\\\n", " ").lines() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.starts_with("-r") || line.starts_with("--requirement") {
            return Err(format!(
                "leads to another file (`{line}`), which would not be in the key: write one file, for instance with \
                 `pip freeze`"
            ));
        }
        if let Some((name, version)) = pinned(line) {
            let name = normal(name);
            // A marker may leave it out: `; sys_platform == "win32"`.
            if !line.contains(';') && !locked.needed.contains(&name) {
                locked.needed.push(name.clone());
            }
            locked.add(name, version, line);
        }
    }
    Ok(locked)
}

/// The name and the version of `name[extra]==1.0 ; marker --hash=…`; none of what allows several.
fn pinned(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once("==")?;
    let name = name.split('[').next()?.trim();
    let ends = |c: char| c.is_whitespace() || c == ';' || c == ',';
    let version = rest.trim_start_matches('=').trim_start();
    let version = version.split(ends).next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let exact = !version.is_empty() && !version.contains('*') && !rest.contains(',');
    (exact && !name.is_empty() && name.chars().all(plain)).then_some((name, version))
}

fn conda(text: &str) -> Result<Locked, String> {
    // The names and versions of conda's packages are not always those of Python's, so they are not compared.
    let mut locked = Locked::default();
    let mut listed = false;
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or_default();
        match line.trim_start().strip_prefix("- ") {
            Some(entry) if listed => {
                let entry = entry.trim().trim_matches(['"', '\'']);
                if let Some((name, version)) = pinned(entry).or_else(|| exported(entry)) {
                    locked.add(normal(name), version, entry);
                }
            }
            Some(_) => {}
            None if line.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                listed = line.starts_with("dependencies:");
            }
            None => {}
        }
    }
    if !text.lines().any(|line| line.starts_with("dependencies:")) {
        return Err("has no list of `dependencies`".to_owned());
    }
    Ok(locked)
}

/// The name and the version of `name=1.0=build`, as `conda env export` writes it.
fn exported(entry: &str) -> Option<(&str, &str)> {
    let mut parts = entry.split('=');
    let (name, version, _build) = (parts.next()?, parts.next()?, parts.next()?);
    (!version.is_empty()).then_some((name.trim(), version))
}

/// A distribution's name as all tools write it: lower case, with single `-`.
pub fn normal(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if plain.ends_with('-') => {}
            '-' | '_' | '.' => plain.push('-'),
            c => plain.push(c.to_ascii_lowercase()),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(name: &str, text: &str) -> Vec<String> {
        let locked = read(name, text).unwrap().packages;
        let each = locked.iter();
        each.map(|(name, package)| format!("{name} {}", package.version))
            .collect()
    }

    #[test]
    fn all_formats_are_read() {
        let uv = "version = 1\n[[package]]\nname = \"Num.Py\"\nversion = \"1.2.0\"\n\
                  [[package]]\nname = \"mine\"\nsource = { virtual = \".\" }\n";
        assert_eq!(versions("uv.lock", uv), ["num-py 1.2.0"]);
        let requirements = "# all of it\nnumpy==1.2.0 \\\n    --hash=sha256:aa\nTorch[cpu] == 2.1.0+cpu ; python_version > '3'\n\
                            loose>=1\nany\nsome==1.*\nboth==1,<2\n--index-url https://x\n";
        assert_eq!(
            versions("sub/requirements-dev.txt", requirements),
            ["numpy 1.2.0", "torch 2.1.0+cpu"]
        );
        let conda = "name: x\nchannels:\n  - conda-forge\ndependencies:\n  - python=3.12.1=h1_0\n  - numpy=1.26\n  \
                     - scipy==1.0\n  - pip:\n      - tiny==0.1\nprefix: /x\n";
        assert_eq!(
            versions("environment.yml", conda),
            ["python 3.12.1", "scipy 1.0", "tiny 0.1"]
        );
        let renv = r#"{"R": {"Version": "4.3"}, "Packages": {"ggplot2": {"Package": "ggplot2", "Version": "3.4.0"}}}"#;
        assert_eq!(versions("renv.lock", renv), ["ggplot2 3.4.0"]);
    }

    #[test]
    fn an_entry_counts_with_its_hashes() {
        let digest = |text: &str| read("requirements.txt", text).unwrap().packages["a"].digest;
        assert_ne!(
            digest("a==1 --hash=sha256:aa\n"),
            digest("a==1 --hash=sha256:bb\n")
        );
        assert_eq!(digest("a==1\n"), digest("# why\na==1 # because\nb==2\n"));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let message = |name: &str, text: &str| read(name, text).unwrap_err().message;
        assert_eq!(
            message("poetry.lock", ""),
            "poetry.lock is not a lock file that is known"
        );
        assert!(message("uv.lock", "=").starts_with("uv.lock is not TOML: "));
        assert!(message("renv.lock", "").starts_with("renv.lock is not JSON: "));
        assert!(message("requirements.txt", "-r base.txt\n").contains("`-r base.txt`"));
        assert_eq!(
            message("environment.yml", "name: x\n"),
            "environment.yml has no list of `dependencies`"
        );
    }

    #[test]
    fn versions_are_compared_as_installers_do() {
        for (said, found, same) in [
            ("1.0", "1.0.0", true),
            ("2.1.0", "2.1.0+cpu", true),
            ("2.1.0+cpu", "2.1.0", false),
            ("1.2", "1.20", false),
            ("1.0RC1", "1.0rc1", true),
        ] {
            assert_eq!(is_same(said, found), same, "{said} {found}");
        }
    }
}
