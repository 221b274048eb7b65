//! A remote in a container of Azure's blob storage, or of anything that speaks its language.

mod client;
mod shared_key;

use std::io::Read;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ureq::http::StatusCode;

use super::bucket::{Body, Bucket, Listed};
use super::http::{FilePart, NOTHING, Payload, tag, text};
pub use client::Azure;

/// The largest object that goes in one request; larger ones go in blocks, so that one that the network lost is sent again
/// alone. Blocks that nobody puts together are removed by Azure after a week.
const WHOLE: u64 = 64 << 20;

/// Azure takes at most 50,000 blocks.
const BLOCKS: u64 = 49_000;

impl Bucket for Azure {
    fn get(&self, name: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
        let answer = self.ask("GET", name, &[], &NOTHING)?;
        match answer.status() {
            StatusCode::OK => Ok(Some(Box::new(answer.into_body().into_reader()))),
            StatusCode::NOT_FOUND => match self.refused("read", answer) {
                // A container that is not there is not an object that is not there.
                why if why.contains(client::NO_CONTAINER) => Err(why),
                _ => Ok(None),
            },
            _ => Err(self.refused("read", answer)),
        }
    }

    fn put(&self, name: &str, body: Body<'_>) -> Result<(), String> {
        let body = match body {
            Body::Bytes(bytes) => Payload::Bytes(bytes),
            Body::File(path) => match FilePart::whole(path)? {
                whole if whole.length > WHOLE => return self.put_blocks(name, whole),
                whole => Payload::Part(whole),
            },
        };
        self.granted("write", self.ask("PUT", name, &[], &body)?)
            .map(drop)
    }

    fn look(&self, name: &str) -> Result<Option<Listed>, String> {
        let answer = self.ask("HEAD", name, &[], &NOTHING)?;
        let header = |name: &str| answer.headers().get(name)?.to_str().ok();
        match answer.status() {
            StatusCode::OK => Ok(Some(Listed {
                name: name.to_owned(),
                bytes: header("content-length")
                    .and_then(|it| it.parse().ok())
                    .unwrap_or(0),
                modified: header("last-modified").map_or(SystemTime::UNIX_EPOCH, time),
            })),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused("look at it", answer)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, String> {
        let mut found = Vec::new();
        let mut page: Option<String> = None;
        loop {
            let mut query = vec![
                ("comp", "list".to_owned()),
                ("prefix", format!("{}{prefix}", self.prefix)),
                ("restype", "container".to_owned()),
            ];
            query.extend(page.take().map(|page| ("marker", page)));
            let mut answer = self.granted("list", self.ask("GET", "", &query, &NOTHING)?)?;
            let text = text(&mut answer, 64 << 20)?;
            let items = text.split("<Blob>").skip(1);
            found.extend(items.filter_map(|item| self.listed(item)));
            page = tag(&text, "NextMarker").filter(|page| !page.is_empty());
            if page.is_none() {
                return Ok(found);
            }
        }
    }

    fn remove(&self, name: &str) -> Result<(), String> {
        let answer = self.ask("DELETE", name, &[], &NOTHING)?;
        match answer.status().is_success() || answer.status() == StatusCode::NOT_FOUND {
            true => Ok(()),
            false => Err(self.refused("remove", answer)),
        }
    }
}

impl Azure {
    /// One item of a list. Names that are not ours are left out.
    fn listed(&self, item: &str) -> Option<Listed> {
        let name = tag(item, "Name")?;
        Some(Listed {
            name: name.strip_prefix(&self.prefix)?.to_owned(),
            bytes: tag(item, "Content-Length")?.parse().ok()?,
            modified: time(&tag(item, "Last-Modified")?),
        })
    }

    fn put_blocks(&self, name: &str, whole: FilePart<'_>) -> Result<(), String> {
        let mut list = String::new();
        for (n, part) in whole.cut(WHOLE, BLOCKS).into_iter().enumerate() {
            // All of one length, as Azure wants it. Whoever puts the same object at the same time sends the same bytes.
            let id = STANDARD.encode(format!("{n:06}"));
            let query = [("blockid", id.clone()), ("comp", "block".to_owned())];
            let answer = self.ask("PUT", name, &query, &Payload::Part(part))?;
            self.granted("write", answer)?;
            list += &format!("<Latest>{id}</Latest>");
        }
        let list =
            format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{list}</BlockList>");
        let query = [("comp", "blocklist".to_owned())];
        let answer = self.ask("PUT", name, &query, &Payload::Bytes(list.as_bytes()))?;
        self.granted("write", answer).map(drop)
    }
}

/// A time as headers have it.
fn time(text: &str) -> SystemTime {
    jiff::fmt::rfc2822::parse(text).map_or(SystemTime::UNIX_EPOCH, |time| time.timestamp().into())
}
