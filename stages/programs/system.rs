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

/// How the devices of graphics processors and the like are called, at the beginning: NVIDIA's, those that draw, AMD's,
/// other accelerators, and those of Windows behind Linux.
const GRAPHICS: &[&str] = &["nvidia", "dri", "kfd", "accel", "dxg"];

/// The devices of graphics processors in `/dev`: open to programs of stages that ask for one.
pub fn graphics_devices() -> Vec<PathBuf> {
    graphics_in(Path::new("/dev"))
}

fn graphics_in(devices: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(devices).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            GRAPHICS.iter().any(|device| match *device {
                // `nvidia0`, `nvidiactl`, `nvidia-uvm`, `nvidia-caps/`.
                "nvidia" => name.starts_with("nvidia"),
                device => name == device,
            })
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// The variables by which a queue says which graphics processors are ours: they decide where something is computed.
pub const GRAPHICS_VARIABLES: &[&str] = &[
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HIP_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
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
    fn graphics_processors_are_found_by_name() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "nvidia0",
            "nvidia-uvm",
            "nvidiactl",
            "kfd",
            "null",
            "sda",
            "kvm",
        ] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        for folder in ["dri", "nvidia-caps", "input"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let expected = [
            "dri",
            "kfd",
            "nvidia-caps",
            "nvidia-uvm",
            "nvidia0",
            "nvidiactl",
        ];
        let expected = expected.map(|name| dir.path().join(name));
        assert_eq!(graphics_in(dir.path()), expected);
    }

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
