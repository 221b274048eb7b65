//! Results that several machines share through a bucket or a folder. Objects lie under the digest of their bytes and
//! are hashed whenever they are read; what a key gave is an entry that somebody signed, and only those of people whom
//! the user trusts count. Correctness never depends on what the server promises.
//!
//! ```text
//! cas/<digest>                 an object, written once
//! ac/<key>/<signer>.json       what a key gave, signed; written after its objects
//! tags/<signer>/<name>.json    the keys that somebody has pushed under a name: what gc keeps
//! ```

mod azure;
pub mod bucket;
pub mod entry;
mod folder;
mod http;
pub mod keys;
pub mod known;
pub mod lookup;
pub mod push;
mod s3;
pub mod tidy;

use store::Digest;

use bucket::Bucket;

/// A remote under its name.
pub struct Remote {
    /// As the user calls it.
    pub name: String,
    /// Where it is.
    pub bucket: Box<dyn Bucket>,
}

impl Remote {
    /// The remote at a URL: `s3://BUCKET[/PREFIX]`, `gs://…`, `az://CONTAINER[/PREFIX]` or `file:///FOLDER`.
    pub fn open(name: &str, url: &str) -> Result<Remote, String> {
        Remote::with(name, url, folder::Folder::open)
    }

    /// The same for the first time: a folder is made.
    pub fn create(name: &str, url: &str) -> Result<Remote, String> {
        Remote::with(name, url, folder::Folder::create)
    }

    fn with(
        name: &str,
        url: &str,
        folder: fn(&str) -> Result<folder::Folder, String>,
    ) -> Result<Remote, String> {
        let bucket: Box<dyn Bucket> = match url.split_once("://") {
            Some(("s3", rest)) => Box::new(s3::S3::open(rest, s3::Provider::Aws)?),
            Some(("gs", rest)) => Box::new(s3::S3::open(rest, s3::Provider::Google)?),
            Some(("az", rest)) => Box::new(azure::Azure::open(rest)?),
            Some(("file", path)) => Box::new(folder(path)?),
            _ => {
                return Err(format!(
                    "`{url}` is not s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER"
                ));
            }
        };
        Ok(Remote {
            name: name.to_owned(),
            bucket,
        })
    }
}

/// Refuses a URL with a password in it: it would be kept, and shown.
pub fn check_url(url: &str) -> Result<(), String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    match host.contains('@') || url.contains('?') {
        true => Err(
            "the URL has credentials or options in it, which would be kept and shown".to_owned(),
        ),
        false => Ok(()),
    }
}

fn object_name(digest: &Digest) -> String {
    format!("cas/{digest}")
}

fn entry_name(key: &Digest, signer: &keys::PublicKey) -> String {
    format!("ac/{key}/{}.json", signer.hex())
}
