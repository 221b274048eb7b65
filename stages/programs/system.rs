//! The folders of the system: where programs and what they need lie on most machines. They are open
//! to every program, but for the pipeline's own folder, should it be in one of them.

use std::path::{Path, PathBuf};

/// Open to every program, with everything below.
const SYSTEM: &[&str] = &[
    "/bin", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/sbin",
    "/snap", "/sys", "/usr",
];

/// Devices that anybody may write to.
pub const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/shm",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// Whether a path without links is in a folder of the system.
pub fn in_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

/// What is open of the system when the pipeline lies in `closed`.
pub fn folders(closed: Option<&Path>) -> Vec<PathBuf> {
    let each = SYSTEM.iter().map(PathBuf::from);
    each.flat_map(|folder| {
        // `/bin` may be a link to `/usr/bin`.
        let folder = folder.canonicalize().unwrap_or(folder);
        match closed.filter(|closed| closed.starts_with(&folder)) {
            Some(closed) => around(&folder, closed),
            None => vec![folder],
        }
    })
    .collect()
}

/// Everything below a folder but what is in `closed`: the kernel can only open, never close again.
fn around(folder: &Path, closed: &Path) -> Vec<PathBuf> {
    if folder == closed {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut open = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        match closed.starts_with(&path) {
            true => open.extend(around(&path, closed)),
            false => open.push(path),
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipelines_folder_stays_closed_inside_an_open_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["a/b/mine", "a/b/other", "a/c", "d"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let mut open = around(&root, &root.join("a/b/mine"));
        open.sort();
        let expected = ["a/b/other", "a/c", "d"].map(|name| root.join(name));
        assert_eq!(open, expected);
        assert!(around(&root, &root).is_empty());
        assert!(in_system(Path::new("/usr/bin/env")) && !in_system(Path::new("/home/a")));
    }
}
