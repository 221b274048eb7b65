//! Bytes on their way to a file, hashed as they go: small ones stay in memory until somebody knows
//! whether they are needed, large ones are written as they come and are never whole in memory.
//! Knows nothing of tables.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::disk;
use crate::digest::Digest;

/// Up to here bytes stay in memory; from here on they are written this many at a time.
const PIECE: usize = 8 << 20;

/// Where the bytes are.
#[derive(Debug)]
pub(crate) enum Spooled {
    /// In memory.
    Memory(Vec<u8>),
    /// In a separate file.
    File(PathBuf),
}

/// A writer of such bytes.
pub(crate) struct Spool {
    path: PathBuf,
    piece: Vec<u8>,
    /// The most bytes that stay in memory.
    most: usize,
    file: Option<File>,
    hasher: blake3::Hasher,
    length: u64,
}

impl Spool {
    /// A spool that writes to this new file, if it must.
    pub fn new(path: PathBuf) -> Spool {
        Spool {
            path,
            piece: Vec::new(),
            most: PIECE,
            file: None,
            hasher: blake3::Hasher::new(),
            length: 0,
        }
    }

    /// A spool for one of many streams at once: what it holds fits a processor's cache, and all of them little memory.
    pub fn of_many(path: PathBuf) -> Spool {
        Spool {
            most: PIECE / 8,
            ..Spool::new(path)
        }
    }

    /// The file that it writes to, if it must.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The digest and number of all bytes, and where they are.
    pub fn finish(mut self) -> io::Result<(Digest, u64, Spooled)> {
        if self.file.is_none() {
            let digest = Digest::of(&self.piece);
            return Ok((digest, self.piece.len() as u64, Spooled::Memory(self.piece)));
        }
        self.write_out()?;
        let digest = Digest::from(<[u8; 32]>::from(self.hasher.finalize()));
        Ok((digest, self.length, Spooled::File(self.path)))
    }

    /// Lets the disk have what was written so far, so that the sync before a commit finds little to do.
    pub fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), disk::sync_data)
    }

    fn write_out(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(disk::create_new(&self.path)?),
        };
        disk::append(file, &self.piece)?;
        self.hasher.update_rayon(&self.piece);
        self.length += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() > self.most {
            self.write_out()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_have_the_digest_of_their_bytes() {
        let dir = tempfile::tempdir().unwrap();
        for (n, size) in [0, 1000, PIECE, PIECE + 1, 3 * PIECE + 17]
            .into_iter()
            .enumerate()
        {
            let bytes: Vec<u8> = (0..size).map(|at| (at * 31 % 251) as u8).collect();
            for (make, most, name) in [
                (Spool::new as fn(PathBuf) -> Spool, PIECE, "one"),
                (Spool::of_many, PIECE / 8, "many"),
            ] {
                let path = dir.path().join(format!("{name}{n}"));
                let mut spool = make(path.clone());
                bytes
                    .chunks(70_001)
                    .for_each(|part| spool.write_all(part).unwrap());
                spool.sync().unwrap();
                let (digest, length, place) = spool.finish().unwrap();
                assert_eq!((digest, length), (Digest::of(&bytes), size as u64));
                let found = match place {
                    Spooled::Memory(found) => found,
                    Spooled::File(path) => std::fs::read(path).unwrap(),
                };
                assert!(found == bytes, "{size} bytes");
                assert_eq!(path.exists(), size > most);
            }
        }
    }
}
