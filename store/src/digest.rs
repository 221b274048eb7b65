//! BLAKE3 digests: the names of objects and the fingerprints of keys.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A BLAKE3 digest, written as 64 lower-case hexadecimal digits, as `b3sum` prints it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes. Large inputs are hashed on all threads of the current rayon pool.
    pub fn of(bytes: &[u8]) -> Digest {
        // Below this size waking other threads costs more than it saves.
        const PARALLEL: usize = 1 << 20;
        if bytes.len() < PARALLEL {
            Digest(blake3::hash(bytes).into())
        } else {
            let mut hasher = blake3::Hasher::new();
            hasher.update_rayon(bytes);
            Digest(hasher.finalize().into())
        }
    }

    /// The digest of a file's contents. Large files are mapped and hashed on all threads.
    pub fn of_file(path: &Path) -> io::Result<Digest> {
        // A pipe in the place of a file would be waited for.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a plain file"));
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_mmap_rayon(path)?;
        Ok(Digest(hasher.finalize().into()))
    }

    /// The first twelve digits: enough to tell artifacts apart on a screen.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Digest {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Digest(*blake3::Hash::from_hex(text)?.as_bytes()))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
