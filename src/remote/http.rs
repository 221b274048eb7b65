//! Requests to servers that hold objects, whichever they are: made again if nobody answered, with the parts of files that go
//! with them. Knows nothing of signatures.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use ureq::http::request::Builder;
use ureq::http::{Response, StatusCode};

/// How often a request is made that the server or the network did not answer.
const ATTEMPTS: u32 = 4;

/// What a server said.
pub type Answer = Response<ureq::Body>;

/// A request without a body.
pub const NOTHING: Payload<'static> = Payload::Bytes(b"");

/// What a request has with it.
pub enum Payload<'a> {
    /// Few bytes.
    Bytes(&'a [u8]),
    /// A file, or a part of one.
    Part(FilePart<'a>),
}

impl Payload<'_> {
    /// How many bytes.
    pub fn length(&self) -> u64 {
        match self {
            Payload::Bytes(bytes) => bytes.len() as u64,
            Payload::Part(part) => part.length,
        }
    }
}

/// Consecutive bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilePart<'a> {
    /// The file.
    pub path: &'a Path,
    /// The first byte.
    pub from: u64,
    /// How many.
    pub length: u64,
}

impl<'a> FilePart<'a> {
    /// A file, whole.
    pub fn whole(path: &'a Path) -> Result<FilePart<'a>, String> {
        let about = std::fs::metadata(path);
        let about = about.map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        let length = about.len();
        Ok(FilePart {
            path,
            from: 0,
            length,
        })
    }

    /// Consecutive parts of `each` bytes, or of more bytes if there would be more than `most` parts.
    pub fn cut(self, each: u64, most: u64) -> Vec<FilePart<'a>> {
        let each = each.max(self.length.div_ceil(most));
        let starts = (0..self.length.div_ceil(each)).map(|n| n * each);
        starts
            .map(|from| FilePart {
                from,
                length: each.min(self.length - from),
                ..self
            })
            .collect()
    }

    fn open(&self) -> std::io::Result<impl Read + Send + 'static> {
        let mut file = std::fs::File::open(self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        Ok(file.take(self.length))
    }
}

/// Somebody who makes requests and keeps connections.
pub fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_idle_connections(64)
        .max_idle_connections_per_host(64)
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .build()
        .into()
}

/// Makes a request, again if nobody answered it.
pub fn persist(endpoint: &str, ask: impl Fn() -> Result<Answer, String>) -> Result<Answer, String> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let why = match ask() {
            Ok(answer) if is_passing(answer.status()) => format!("answered {}", answer.status()),
            Ok(answer) => return Ok(answer),
            Err(why) => why,
        };
        if attempt == ATTEMPTS {
            return Err(format!("{endpoint} {why}"));
        }
        std::thread::sleep(Duration::from_millis(100 << attempt));
    }
}

/// Sends a request with its body, once.
pub fn send(agent: &ureq::Agent, request: Builder, body: &Payload<'_>) -> Result<Answer, String> {
    let unsent = |error: &dyn std::fmt::Display| format!("cannot be asked: {error}");
    let method = request.method_ref().map_or("", |method| method.as_str());
    let answer = match (method, body) {
        ("PUT" | "POST", Payload::Bytes(bytes)) => {
            agent.run(request.body(*bytes).map_err(|error| unsent(&error))?)
        }
        ("PUT", Payload::Part(part)) => {
            let bytes = part.open().map_err(|error| unsent(&error))?;
            let request = request.header("content-length", part.length);
            let request = request.body(ureq::SendBody::from_owned_reader(bytes));
            agent.run(request.map_err(|error| unsent(&error))?)
        }
        _ => agent.run(request.body(()).map_err(|error| unsent(&error))?),
    };
    answer.map_err(|error| unsent(&error))
}

/// Whether the same request may do better in a moment.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// The text of an answer, up to this many bytes.
pub fn text(answer: &mut Answer, most: u64) -> Result<String, String> {
    let text = answer.body_mut().with_config().limit(most).read_to_string();
    text.map_err(|error| format!("cannot read the answer: {error}"))
}

/// The text of the first element of this name. Our names have nothing in them that XML would write otherwise, and
/// what has is left out of lists.
pub fn tag(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    Some(value.to_owned())
}

/// Letters, digits and `-._~` as they are, and `/` if it is to stay; the rest by `%`.
pub fn encoded(text: &str, keep_slash: bool) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte as char);
            }
            b'/' if keep_slash => encoded.push('/'),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_and_never_too_many() {
        const EACH: u64 = 64 << 20;
        for length in [EACH + 1, 2 * EACH, 700 << 30, (700 << 30) + 1] {
            let path = Path::new("object");
            let whole = FilePart {
                path,
                from: 0,
                length,
            };
            let parts = whole.cut(EACH, 9_000);
            let mut at = 0;
            for part in &parts {
                assert_eq!(part.from, at);
                assert!(part.length > 0);
                at += part.length;
            }
            assert_eq!(at, length);
            assert!((2..=9_000).contains(&parts.len()), "{}", parts.len());
        }
    }

    #[test]
    fn names_in_paths_and_queries_are_encoded() {
        assert_eq!(encoded("a b/ü", true), "a%20b/%C3%BC");
        assert_eq!(encoded("a/b", false), "a%2Fb");
    }
}
