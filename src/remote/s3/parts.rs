//! A large object in parts: S3 takes at most 5 GiB in one request, and a part that the network lost is sent again
//! alone. An upload that fails is given up, so that its parts are not paid for.

use ureq::http::header::ETAG;

use super::client::S3;
use crate::remote::http::{FilePart, NOTHING, Payload, encoded, tag, text};

/// The largest object that goes in one request.
pub const WHOLE: u64 = 64 << 20;

/// S3 takes at most 10,000 parts.
const PARTS: u64 = 9_000;

/// Puts a file under a name, part by part.
pub fn put(s3: &S3, name: &str, whole: FilePart<'_>) -> Result<(), String> {
    let begun = s3.ask("POST", name, "uploads=", &NOTHING)?;
    let begun = text(&mut s3.granted("write", begun)?, 1 << 20)?;
    let id = tag(&begun, "UploadId").ok_or("S3 did not name the upload")?;
    let id = encoded(&id, false);
    let sent = parts(s3, name, &id, whole);
    if sent.is_err() {
        // What is wrong has been found already.
        let _ = s3.ask("DELETE", name, &format!("uploadId={id}"), &NOTHING);
    }
    sent
}

fn parts(s3: &S3, name: &str, id: &str, whole: FilePart<'_>) -> Result<(), String> {
    let mut list = String::new();
    for (n, part) in whole.cut(WHOLE, PARTS).into_iter().enumerate() {
        let number = n + 1;
        let query = format!("partNumber={number}&uploadId={id}");
        let answer = s3.ask("PUT", name, &query, &Payload::Part(part))?;
        let answer = s3.granted("write", answer)?;
        let tag = answer.headers().get(ETAG);
        let tag = tag.and_then(|tag| tag.to_str().ok());
        let tag = tag.ok_or("S3 did not name a part of the upload")?;
        list += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>");
    }
    let list = format!("<CompleteMultipartUpload>{list}</CompleteMultipartUpload>");
    let query = format!("uploadId={id}");
    let ended = s3.ask("POST", name, &query, &Payload::Bytes(list.as_bytes()))?;
    // It may begin as a success and end as an error.
    let ended = text(&mut s3.granted("write", ended)?, 1 << 20)?;
    match tag(&ended, "Code") {
        None => Ok(()),
        Some(code) => Err(format!("S3 did not put the parts together ({code})")),
    }
}
