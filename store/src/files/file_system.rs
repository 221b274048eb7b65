//! What a folder lies on. SQLite's WAL keeps its index in memory that all processes share, which a network file system
//! does not have, and locks are not seen by other machines on all of them. Knows nothing of databases.

use std::io;
use std::path::Path;

/// File systems that other machines may have mounted at the same time, by the number that `statfs` gives. FUSE stands
/// for all that are served by a program, such as sshfs and many cluster file systems.
const SHARED: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB"),
    (0x0BD0_0BD0, "Lustre"),
    (0x1983_0326, "BeeGFS"),
    (0x4750_4653, "GPFS"),
    (0x00C3_6400, "CephFS"),
    (0xAAD7_AAEA, "PanFS"),
    (0x5346_414F, "AFS"),
    (0x0102_1997, "9P"),
    (0x7461_636F, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x6573_5546, "FUSE"),
];

/// The name of the network file system that a folder lies on; none for a local disk.
pub(crate) fn network(folder: &Path) -> io::Result<Option<&'static str>> {
    if let Some(pretended) = pretended(folder) {
        return Ok(Some(pretended));
    }
    let found = rustix::fs::statfs(folder)?;
    // The sign of the field depends on the architecture; the numbers have 32 bits.
    Ok(named(found.f_type as u64 & 0xFFFF_FFFF))
}

fn named(number: u64) -> Option<&'static str> {
    let known = SHARED.iter().find(|(known, _)| *known == number);
    known.map(|(_, name)| *name)
}

/// For tests: `ABLATE_FILE_SYSTEM=NFS@FOLDER` takes what is below a folder for a network file system.
#[cfg(debug_assertions)]
fn pretended(folder: &Path) -> Option<&'static str> {
    let text = std::env::var("ABLATE_FILE_SYSTEM").ok();
    #[cfg(test)]
    let text = text.or_else(|| PRETENDED.with_borrow(Clone::clone));
    let text = text?;
    let (name, below) = text.split_once('@')?;
    let inside = folder.canonicalize().ok()?.starts_with(below);
    let known = SHARED.iter().find(|(_, known)| *known == name);
    known.filter(|_| inside).map(|(_, name)| *name)
}

#[cfg(test)]
thread_local! {
    /// The same for the tests of this thread: variables belong to all of them.
    pub(crate) static PRETENDED: std::cell::RefCell<Option<String>> = const { std::cell::RefCell::new(None) };
}

#[cfg(not(debug_assertions))]
fn pretended(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_disks_and_network_file_systems_are_told_apart() {
        for (number, name) in [
            (0x6969, Some("NFS")),
            (0xFF53_4D42, Some("CIFS")),
            (0x0BD0_0BD0, Some("Lustre")),
            (0x1983_0326, Some("BeeGFS")),
            (0x6573_5546, Some("FUSE")),
            (0xEF53, None),      // ext4
            (0x0102_1994, None), // tmpfs
            (0x794C_7630, None), // overlayfs
            (0x5846_5342, None), // XFS
        ] {
            assert_eq!(named(number), name, "{number:x}");
        }
        assert!(network(Path::new("/no such folder")).is_err());
    }
}
