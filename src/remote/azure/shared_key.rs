//! Signs requests as Azure's blobs want it (Shared Key), by HMAC-SHA256. Knows nothing of HTTP.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// A request to be signed.
pub struct Request<'a> {
    /// `GET`, `PUT`, …
    pub method: &'a str,
    /// Encoded, from the first `/`; before it comes the name of the account.
    pub path: &'a str,
    /// Names and values, not encoded.
    pub query: &'a [(&'a str, String)],
    /// Those that begin with `x-ms-`, sorted by name.
    pub headers: &'a [(&'a str, &'a str)],
    /// How many bytes go with it.
    pub length: u64,
}

/// The header `authorization`. The key is as Azure shows it, in base 64.
pub fn authorization(request: &Request<'_>, account: &str, key: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let signature = hmac::sign(&key, text(request, account).as_bytes());
    format!("SharedKey {account}:{}", STANDARD.encode(signature))
}

/// What is signed: the method, eleven headers of HTTP of which we send one, those of Azure, and what is asked for.
fn text(request: &Request<'_>, account: &str) -> String {
    let length = match request.length {
        0 => String::new(),
        length => length.to_string(),
    };
    let headers: String = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}:{value}\n"))
        .collect();
    let mut query: Vec<String> = request
        .query
        .iter()
        .map(|(name, value)| format!("\n{name}:{value}"))
        .collect();
    query.sort();
    format!(
        "{}\n\n\n{length}\n\n\n\n\n\n\n\n\n{headers}/{account}{}{}",
        request.method,
        request.path,
        query.concat()
    )
}

/// The bytes of a key in base 64.
pub fn key(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Get Container Metadata" among the examples of "Authorize with Shared Key" in the documentation of Azure, without
    /// the header `Date`, in whose place `x-ms-date` stands.
    #[test]
    fn the_documented_example_is_signed_as_documented() {
        let request = Request {
            method: "GET",
            path: "/mycontainer",
            query: &[
                ("restype", "container".to_owned()),
                ("comp", "metadata".to_owned()),
                ("timeout", "20".to_owned()),
            ],
            headers: &[
                ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"),
                ("x-ms-version", "2015-02-21"),
            ],
            length: 0,
        };
        assert_eq!(
            text(&request, "myaccount"),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
             /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
        );
        assert!(key("not base 64").is_none());
    }
}
