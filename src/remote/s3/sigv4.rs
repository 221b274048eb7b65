//! Signs requests as S3 wants it (Signature Version 4), by HMAC-SHA256. Knows nothing of HTTP.

use ring::{digest, hmac};

use crate::remote::keys::hex;

/// Who asks.
pub struct Credentials {
    /// The name of the key.
    pub id: String,
    /// The key.
    pub secret: String,
    /// Of credentials that expire.
    pub token: Option<String>,
}

/// A request to be signed. Headers and query are sorted by name, and encoded.
pub struct Request<'a> {
    /// `GET`, `PUT`, …
    pub method: &'a str,
    /// Encoded, from the first `/`.
    pub path: &'a str,
    /// Encoded.
    pub query: &'a str,
    /// Names in lower case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The SHA-256 of the body, or a word in its place.
    pub payload: &'a str,
    /// Such as `20261117T120000Z`.
    pub time: &'a str,
    /// Such as `eu-central-1`.
    pub region: &'a str,
}

/// The header `authorization`.
pub fn authorization(request: &Request<'_>, credentials: &Credentials) -> String {
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let headers: String = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}:{}\n", value.trim()))
        .collect();
    let canonical = format!(
        "{}\n{}\n{}\n{headers}\n{names}\n{}",
        request.method, request.path, request.query, request.payload
    );
    let day = &request.time[..8];
    let scope = format!("{day}/{}/s3/aws4_request", request.region);
    let text = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        request.time,
        sha256(canonical.as_bytes())
    );
    let first = format!("AWS4{}", credentials.secret).into_bytes();
    let parts = [day, request.region, "s3", "aws4_request"];
    let key = parts
        .iter()
        .fold(first, |key, part| mac(&key, part.as_bytes()));
    let signature = hex(&mac(&key, text.as_bytes()));
    let id = &credentials.id;
    format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
}

/// In hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn mac(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, bytes).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first example of "Signature Calculations for the Authorization Header" in the documentation of S3.
    #[test]
    fn the_documented_example_gets_the_documented_signature() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let request = Request {
            method: "GET",
            path: "/test.txt",
            query: "",
            headers: &[
                ("host", "examplebucket.s3.amazonaws.com"),
                ("range", "bytes=0-9"),
                ("x-amz-content-sha256", empty),
                ("x-amz-date", "20130524T000000Z"),
            ],
            payload: empty,
            time: "20130524T000000Z",
            region: "us-east-1",
        };
        let credentials = Credentials {
            id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            token: None,
        };
        assert_eq!(sha256(b""), empty);
        assert_eq!(
            authorization(&request, &credentials),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }
}
