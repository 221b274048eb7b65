//! Where programs are looked for, and what else starts one: for a script what its first line names. Knows nothing of
//! sandboxes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How many scripts may start each other.
const DEEPEST: usize = 5;

/// Where programs are looked for.
pub struct Search<'a> {
    /// The folders of PATH.
    pub path: OsString,
    /// Folders that are open to the program, by the names that the pipeline gives them.
    pub environments: &'a BTreeMap<String, PathBuf>,
    /// A file by its path in the program's folder; an absolute path stays what it is.
    pub own: &'a dyn Fn(&Path) -> Option<PathBuf>,
}

impl Search<'_> {
    /// The files that start a program, links not followed: itself, and for a script what its first line names.
    pub fn chain(&self, argument: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut next = self.locate(argument);
        for _ in 0..DEEPEST {
            let Some(path) = next.take() else { break };
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            next = interpreter(&real).and_then(|words| self.starter(&words));
            files.push(path);
        }
        files
    }

    /// Where a program is: in the folders of PATH, in an environment, or where its path says.
    fn locate(&self, argument: &str) -> Option<PathBuf> {
        if argument.contains('/') {
            let declared = self.environments.iter().find_map(|(name, path)| {
                let argument = argument.strip_prefix("./").unwrap_or(argument);
                let rest = argument.strip_prefix(name.as_str())?.strip_prefix('/')?;
                Some(path.join(rest))
            });
            return match declared {
                Some(path) => path.is_file().then_some(path),
                None => (self.own)(Path::new(argument)),
            };
        }
        let folders: Vec<PathBuf> = std::env::split_paths(&self.path).collect();
        let files = folders
            .iter()
            .filter_map(|folder| (self.own)(&folder.join(argument)));
        { files }.find(|file| may_run(file))
    }

    /// The file that a script's first line starts: `env` looks for its argument in PATH.
    fn starter(&self, words: &[String]) -> Option<PathBuf> {
        let program = Path::new(&words[0]);
        if program.file_name().is_some_and(|name| name == "env") {
            let named = |word: &&String| !word.starts_with('-') && !word.contains('=');
            return self.locate(words[1..].iter().find(named)?);
        }
        program.is_file().then(|| program.to_owned())
    }
}

/// Environments in the order in which the pipeline names them: the first has the first word.
pub fn in_order<'a>(
    names: &[String],
    environments: &'a BTreeMap<String, PathBuf>,
) -> Vec<&'a PathBuf> {
    let plain: Vec<&str> = names
        .iter()
        .map(|name| name.trim_end_matches('/'))
        .collect();
    let place = |name: &str| plain.iter().position(|named| *named == name);
    let mut found: Vec<(&String, &PathBuf)> = environments.iter().collect();
    found.sort_by_key(|(name, _)| place(name).unwrap_or(plain.len()));
    found.into_iter().map(|(_, path)| path).collect()
}

/// The folders of PATH: the environments' first, as if they were activated.
pub fn search_path<'a>(environments: impl Iterator<Item = &'a PathBuf>) -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let own = environments.map(|folder| folder.join("bin"));
    let own = own.filter(|folder| folder.is_dir());
    let all = own.chain(std::env::split_paths(&inherited));
    // A folder with a colon in its name cannot be in a PATH.
    std::env::join_paths(all).unwrap_or(inherited)
}

fn may_run(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// The words of a script's first line, `#!/usr/bin/env python3`.
fn interpreter(script: &Path) -> Option<Vec<String>> {
    let mut start = Vec::new();
    let file = fs::File::open(script).ok()?;
    file.take(512).read_to_end(&mut start).ok()?;
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}
