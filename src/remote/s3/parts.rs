//! A large object in parts: S3 takes at most 5 GiB in one request, and a part that the network lost is sent again
//! alone. An upload that fails is given up, so that its parts are not paid for.

use ureq::http::header::ETAG;

use super::client::{Answer, FilePart, NOTHING, Payload, S3, tag};
use super::sigv4::encoded;

/// The largest object that goes in one request.
pub const WHOLE: u64 = 64 << 20;

/// S3 takes at most 10,000 parts.
const PARTS: u64 = 9_000;

/// Consecutive parts of a file: of 64 MiB, or of more if there would be too many.
fn cut(whole: FilePart<'_>) -> Vec<FilePart<'_>> {
    let each = WHOLE.max(whole.length.div_ceil(PARTS));
    let starts = (0..whole.length.div_ceil(each)).map(|n| n * each);
    starts
        .map(|from| FilePart {
            from,
            length: each.min(whole.length - from),
            ..whole
        })
        .collect()
}

/// Puts a file under a name, part by part.
pub fn put(s3: &S3, name: &str, whole: FilePart<'_>) -> Result<(), String> {
    let begun = s3.ask("POST", name, "uploads=", &NOTHING)?;
    let begun = text(s3.granted("write", begun)?)?;
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
    for (n, part) in cut(whole).into_iter().enumerate() {
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
    let ended = text(s3.granted("write", ended)?)?;
    match tag(&ended, "Code") {
        None => Ok(()),
        Some(code) => Err(format!("S3 did not put the parts together ({code})")),
    }
}

fn text(mut answer: Answer) -> Result<String, String> {
    let text = answer.body_mut().with_config().limit(1 << 20);
    let text = text.read_to_string();
    text.map_err(|error| format!("cannot read what S3 answers: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_and_never_too_many() {
        for length in [WHOLE + 1, 2 * WHOLE, 700 << 30, (700 << 30) + 1] {
            let path = std::path::Path::new("object");
            let whole = FilePart {
                path,
                from: 0,
                length,
            };
            let parts = cut(whole);
            let mut at = 0;
            for part in &parts {
                assert_eq!(part.from, at);
                assert!(part.length > 0);
                at += part.length;
            }
            assert_eq!(at, length);
            assert!((2..=10_000).contains(&parts.len()), "{}", parts.len());
        }
    }
}
