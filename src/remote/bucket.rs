//! What a remote needs of the place that it is in. Names consist of letters, digits, `.`, `-`, `_` and `/`.

use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

/// Holds bytes under names. Errors are words for people.
pub trait Bucket: Send + Sync {
    /// The bytes under a name; none if there is nothing.
    fn get(&self, name: &str) -> Result<Option<Box<dyn Read + Send>>, String>;

    /// Puts bytes under a name, in place of what is there.
    fn put(&self, name: &str, body: Body<'_>) -> Result<(), String>;

    /// What is known of the bytes under a name; none if there is nothing.
    fn look(&self, name: &str) -> Result<Option<Listed>, String>;

    /// All names that begin like this.
    fn list(&self, prefix: &str) -> Result<Vec<Listed>, String>;

    /// Removes what is under a name, if anything is.
    fn remove(&self, name: &str) -> Result<(), String>;
}

/// Bytes to be put somewhere.
pub enum Body<'a> {
    /// Few of them.
    Bytes(&'a [u8]),
    /// A file, whole.
    File(&'a Path),
}

/// Something in a bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was put there, by the bucket's clock.
    pub modified: SystemTime,
}

/// The bytes of something small.
pub fn read_small(bucket: &dyn Bucket, name: &str) -> Result<Option<Vec<u8>>, String> {
    let found = bucket.get(name)?;
    found.map(|reader| read_all(reader, name)).transpose()
}

/// All that comes out of a reader of something small.
pub fn read_all(reader: Box<dyn Read + Send>, name: &str) -> Result<Vec<u8>, String> {
    /// An entry has a log in it, no more.
    const SMALL: u64 = 64 << 20;
    let mut bytes = Vec::new();
    let read = reader.take(SMALL).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot read `{name}`: {error}"))?;
    Ok(bytes)
}
