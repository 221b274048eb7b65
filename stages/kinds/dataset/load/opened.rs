//! What loaders ask of a checked file: its bytes, its text, and what the catalogue says of it.

use std::io::Read;

use crate::Failure;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::{archive, text};

/// How many bytes may come out of a file.
pub fn limit(opened: &Opened<'_>) -> u64 {
    opened.entry.unpacked.unwrap_or(opened.entry.size)
}

/// All bytes of a file.
pub fn bytes(opened: &mut Opened<'_>) -> Result<Vec<u8>, Failure> {
    let path = &opened.entry.path;
    let mut left = opened.entry.size;
    archive::read(&mut opened.file, &mut left, path, path)
}

/// All bytes that come out of a decoder.
pub fn unpacked(opened: &Opened<'_>, mut decoder: impl Read) -> Result<Vec<u8>, Failure> {
    let path = &opened.entry.path;
    archive::read(&mut decoder, &mut limit(opened), path, path)
}

/// All text of a file.
pub fn whole(opened: &mut Opened<'_>) -> Result<String, Failure> {
    let bytes = bytes(opened)?;
    text::decode(bytes, opened.entry.encoding, &opened.entry.path)
}

/// The one split of a file; the catalogue's test sees that it has one where it must.
pub fn split<'a>(opened: &Opened<'a>) -> &'a str {
    opened.entry.split.as_deref().unwrap_or("train")
}

/// The word that the catalogue gives a file.
pub fn role<'a>(opened: &Opened<'a>) -> &'a str {
    opened.entry.role.as_deref().unwrap_or_default()
}

/// A file that is the right one and still does not read as it should: a defect of a loader.
pub fn unexpected(file: &str, row: usize, what: &str) -> Failure {
    Failure::new(format!("{file}, row {row}: {what}"))
        .help("the file has the right checksum, so this is a bug in its loader: please report it")
}
