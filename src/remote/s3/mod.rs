//! A remote in a bucket of S3, or of anything that speaks its language.

mod client;
mod parts;
mod profile;
mod sigv4;

use std::io::Read;
use std::time::SystemTime;

use ureq::http::StatusCode;

use super::bucket::{Body, Bucket, Listed};
use super::http::{FilePart, NOTHING, Payload, encoded, tag, text};
pub use client::{Provider, S3};

impl Bucket for S3 {
    fn get(&self, name: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
        let answer = self.ask("GET", name, "", &NOTHING)?;
        match answer.status() {
            StatusCode::OK => Ok(Some(Box::new(answer.into_body().into_reader()))),
            StatusCode::NOT_FOUND => match self.refused("read", answer) {
                // A bucket that is not there is not an object that is not there.
                why if why.contains(client::NO_BUCKET) => Err(why),
                _ => Ok(None),
            },
            _ => Err(self.refused("read", answer)),
        }
    }

    fn put(&self, name: &str, body: Body<'_>) -> Result<(), String> {
        let body = match body {
            Body::Bytes(bytes) => Payload::Bytes(bytes),
            Body::File(path) => {
                let whole = FilePart::whole(path)?;
                if whole.length > parts::WHOLE {
                    return parts::put(self, name, whole);
                }
                Payload::Part(whole)
            }
        };
        self.granted("write", self.ask("PUT", name, "", &body)?)
            .map(drop)
    }

    fn look(&self, name: &str) -> Result<Option<Listed>, String> {
        let answer = self.ask("HEAD", name, "", &NOTHING)?;
        let header = |name: &str| answer.headers().get(name)?.to_str().ok();
        match answer.status() {
            StatusCode::OK => Ok(Some(Listed {
                name: name.to_owned(),
                bytes: header("content-length")
                    .and_then(|it| it.parse().ok())
                    .unwrap_or(0),
                modified: header("last-modified")
                    .and_then(|text| jiff::fmt::rfc2822::parse(text).ok())
                    .map_or(SystemTime::UNIX_EPOCH, |time| time.timestamp().into()),
            })),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused("look at it", answer)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, String> {
        let mut found = Vec::new();
        let mut page: Option<String> = None;
        loop {
            // Sorted by name, as the signature wants it.
            let from = page
                .as_ref()
                .map(|it| format!("continuation-token={}&", encoded(it, false)));
            let whole = encoded(&format!("{}{prefix}", self.prefix), false);
            let query = format!("{}list-type=2&prefix={whole}", from.unwrap_or_default());
            let mut answer = self.ask("GET", "", &query, &NOTHING)?;
            if !answer.status().is_success() {
                return Err(self.refused("list", answer));
            }
            let text = text(&mut answer, 64 << 20)?;
            found.extend(
                text.split("<Contents>")
                    .skip(1)
                    .filter_map(|it| self.listed(it)),
            );
            page = tag(&text, "NextContinuationToken");
            if page.is_none() {
                return Ok(found);
            }
        }
    }

    fn remove(&self, name: &str) -> Result<(), String> {
        let answer = self.ask("DELETE", name, "", &NOTHING)?;
        match answer.status().is_success() || answer.status() == StatusCode::NOT_FOUND {
            true => Ok(()),
            false => Err(self.refused("remove", answer)),
        }
    }
}

impl S3 {
    /// One item of a list. Names that are not ours are left out.
    fn listed(&self, item: &str) -> Option<Listed> {
        let name = tag(item, "Key")?;
        let modified: jiff::Timestamp = tag(item, "LastModified")?.parse().ok()?;
        Some(Listed {
            name: name.strip_prefix(&self.prefix)?.to_owned(),
            bytes: tag(item, "Size")?.parse().ok()?,
            modified: modified.into(),
        })
    }
}
