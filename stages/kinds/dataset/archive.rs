//! Members of archives, one after another, without trusting a word of them: a member with an
//! absolute path, with `..`, or that is a link is refused, and so is one that holds more
//! bytes than it may. Nothing is ever unpacked to where an archive says.

use std::io::{Read, Seek};
use std::path::{Component, Path};

use crate::Failure;

/// Whether a name is relative and never climbs.
pub fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components().peekable();
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    parts.peek().is_some() && parts.all(plain) && !name.contains(['\\', '\0'])
}

/// Calls `visit` with the name and contents of each member of a tar that `wanted` names,
/// in the order of the archive. All of them together may hold `limit` bytes. Contents lie in
/// one buffer that is used again: an archive may have very many small members.
pub fn tar(
    reader: impl Read,
    file: &str,
    limit: u64,
    wanted: impl Fn(&str) -> bool,
    mut visit: impl FnMut(&str, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut archive = tar::Archive::new(reader);
    let mut left = limit;
    let mut bytes = Vec::new();
    let damaged = |error| broken(file, error);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| refused(file, "a name that is not UTF-8"))?;
        let kind = entry.header().entry_type();
        // A folder, or the comment that git and others put first.
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        let name = name.strip_prefix("./").unwrap_or(&name);
        if !is_plain(name) {
            return Err(refused(
                file,
                &format!("the member `{name}`, which would leave its folder"),
            ));
        }
        if !kind.is_file() {
            return Err(refused(
                file,
                &format!("the member `{name}`, which is a link or a device"),
            ));
        }
        if wanted(name) {
            bytes.clear();
            read_into(&mut bytes, &mut entry, &mut left, file, name)?;
            visit(name, &bytes)?;
        }
    }
    Ok(())
}

/// The contents of one member of a zip, of at most `limit` bytes.
pub fn zip_member(
    reader: impl Read + Seek,
    file: &str,
    member: &str,
    limit: u64,
) -> Result<Vec<u8>, Failure> {
    let damaged = |error: zip::result::ZipError| broken(file, error);
    let mut archive = zip::ZipArchive::new(reader).map_err(damaged)?;
    for at in 0..archive.len() {
        let entry = archive.by_index_raw(at).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        if !is_plain(name.trim_end_matches('/')) {
            let what = format!("the member `{name}`, which would leave its folder");
            return Err(refused(file, &what));
        }
        if entry.is_symlink() {
            return Err(refused(
                file,
                &format!("the member `{name}`, which is a link"),
            ));
        }
    }
    let mut entry = archive.by_name(member).map_err(|error| match error {
        zip::result::ZipError::FileNotFound => {
            Failure::new(format!("{file} has no member `{member}`"))
        }
        other => broken(file, other),
    })?;
    if !is_plain(member) || !entry.is_file() {
        return Err(refused(
            file,
            &format!("the member `{member}`, which is not a regular file"),
        ));
    }
    let mut left = limit;
    read(&mut entry, &mut left, file, member)
}

/// Everything that a reader gives, if it is not more than is left.
pub fn read(
    reader: &mut impl Read,
    left: &mut u64,
    file: &str,
    name: &str,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    read_into(&mut bytes, reader, left, file, name)?;
    Ok(bytes)
}

fn read_into(
    bytes: &mut Vec<u8>,
    reader: &mut impl Read,
    left: &mut u64,
    file: &str,
    name: &str,
) -> Result<(), Failure> {
    let read = reader.take(left.saturating_add(1)).read_to_end(bytes);
    let read = read.map_err(|error| broken(file, error))? as u64;
    if read > *left {
        return Err(refused(
            file,
            &format!("`{name}`, which is larger than expected"),
        ));
    }
    *left -= read;
    Ok(())
}

fn broken(file: &str, error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{file} is damaged: {error}"))
}

fn refused(file: &str, what: &str) -> Failure {
    Failure::new(format!("{file} contains {what}"))
        .help("nothing was unpacked; get the archive from elsewhere")
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use proptest::prelude::*;

    use super::*;

    fn archive(name: &str, kind: tar::EntryType, bytes: &[u8]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_old();
        // As an attacker would: the safe setter refuses what is tested here.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
        builder.into_inner().unwrap()
    }

    fn read_tar(bytes: &[u8], limit: u64) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut found = Vec::new();
        let visit = |name: &str, bytes: &[u8]| {
            found.push((name.to_owned(), bytes.to_vec()));
            Ok(())
        };
        tar(bytes, "a.tar", limit, |_| true, visit).map_err(|failure| failure.message)?;
        Ok(found)
    }

    #[test]
    fn members_that_would_leave_their_folder_are_refused() {
        let file = tar::EntryType::Regular;
        for bad in ["../x", "/etc/passwd", "a/../../b", "a\\..\\b"] {
            let message = read_tar(&archive(bad, file, b"x"), 9).unwrap_err();
            assert_eq!(
                message,
                format!("a.tar contains the member `{bad}`, which would leave its folder")
            );
        }
        for link in [
            tar::EntryType::Symlink,
            tar::EntryType::Link,
            tar::EntryType::Char,
        ] {
            let message = read_tar(&archive("a", link, b""), 9).unwrap_err();
            assert_eq!(
                message,
                "a.tar contains the member `a`, which is a link or a device"
            );
        }
        let good = read_tar(&archive("./a/b", file, b"x"), 1).unwrap();
        assert_eq!(good, [("a/b".to_owned(), b"x".to_vec())]);
    }

    #[test]
    fn more_bytes_than_declared_are_refused() {
        let tar = archive("a", tar::EntryType::Regular, b"0123456789");
        assert_eq!(
            read_tar(&tar, 9).unwrap_err(),
            "a.tar contains `a`, which is larger than expected"
        );
        assert!(read_tar(&tar, 10).is_ok());
        assert!(
            read_tar(&tar[..600.min(tar.len() - 1020)], 99).is_err(),
            "cut off"
        );

        for bad in ["../x", "/x"] {
            let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file("b", options).unwrap();
            zip.start_file(bad, options).unwrap();
            let zip = zip.finish().unwrap().into_inner();
            let said = zip_member(Cursor::new(&zip), "a.zip", "b", 9).unwrap_err();
            assert_eq!(
                said.message,
                format!("a.zip contains the member `{bad}`, which would leave its folder")
            );
        }
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file("b", options).unwrap();
        zip.add_symlink("c", "/etc/passwd", options).unwrap();
        let zip = zip.finish().unwrap().into_inner();
        let said = zip_member(Cursor::new(&zip), "a.zip", "b", 9).unwrap_err();
        assert_eq!(
            said.message,
            "a.zip contains the member `c`, which is a link"
        );

        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("b", zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(&[0; 5000]).unwrap();
        let zip = zip.finish().unwrap().into_inner();
        let member = |name: &str, limit| zip_member(Cursor::new(&zip), "a.zip", name, limit);
        assert_eq!(member("b", 5000).unwrap(), [0; 5000]);
        assert_eq!(
            member("b", 4999).unwrap_err().message,
            "a.zip contains `b`, which is larger than expected"
        );
        assert_eq!(
            member("c", 1).unwrap_err().message,
            "a.zip has no member `c`"
        );
    }

    proptest! {
        #[test]
        fn noise_is_an_error_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let _ = read_tar(&bytes, 1 << 20);
            let _ = zip_member(Cursor::new(&bytes), "a", "b", 1 << 20);
        }

        #[test]
        fn a_flipped_byte_is_never_a_panic(at in 0usize..512, flip in 1u8..) {
            let mut tar = archive("a/b", tar::EntryType::Regular, b"0123456789");
            tar[at] ^= flip;
            let _ = read_tar(&tar, 1 << 20);
        }
    }
}
