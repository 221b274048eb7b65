//! Requests to a bucket of S3: signed, made again if nobody answered, and what a refusal means. Credentials, region and
//! endpoint come from the environment or the files that other programs of S3 read; they are never kept and never printed.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use ureq::http::{Response, StatusCode};

use super::profile::Profile;
use super::sigv4::{self, Credentials, encoded, sha256};

/// A bucket, and a prefix of names in it.
pub struct S3 {
    agent: ureq::Agent,
    /// Scheme, host and port.
    endpoint: String,
    region: String,
    bucket: String,
    /// What every name begins with.
    pub prefix: String,
    credentials: Credentials,
}

/// How often a request is made that the server or the network did not answer.
const ATTEMPTS: u32 = 4;

/// What S3 calls a bucket that is not there.
pub const NO_BUCKET: &str = "NoSuchBucket";

/// The SHA-256 of large bodies is not sent: their own digest is checked whenever they are read.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

impl S3 {
    /// The bucket and prefix after `s3://`.
    pub fn open(place: &str) -> Result<S3, String> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_matches('/');
        if bucket.is_empty() {
            return Err("an S3 URL names a bucket: s3://BUCKET/PREFIX".to_owned());
        }
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let profile = Profile::read();
        let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION"));
        let region = region.or_else(|| profile.get("region"));
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL"));
        let endpoint = endpoint.or_else(|| profile.get("endpoint_url"));
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let pair = match (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY")) {
            (Some(id), Some(secret)) => Some((id, secret, set("AWS_SESSION_TOKEN"))),
            _ => profile.credentials(),
        };
        let (id, secret, token) = pair.ok_or(
            "there are no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials",
        )?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_idle_connections(64)
            .max_idle_connections_per_host(64)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .build();
        Ok(S3 {
            agent: config.into(),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            region,
            bucket: bucket.to_owned(),
            prefix: match prefix {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
            credentials: Credentials { id, secret, token },
        })
    }

    /// Makes a request, again if nobody answered it.
    pub fn ask(
        &self,
        method: &str,
        name: &str,
        query: &str,
        body: &Payload<'_>,
    ) -> Result<Answer, String> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let why = match self.ask_once(method, name, query, body) {
                Ok(answer) if is_passing(answer.status()) => {
                    format!("answered {}", answer.status())
                }
                Ok(answer) => return Ok(answer),
                Err(why) => why,
            };
            if attempt == ATTEMPTS {
                return Err(format!("{} {why}", self.endpoint));
            }
            std::thread::sleep(Duration::from_millis(100 << attempt));
        }
    }

    fn ask_once(
        &self,
        method: &str,
        name: &str,
        query: &str,
        body: &Payload<'_>,
    ) -> Result<Answer, String> {
        let mut path = format!("/{}", encoded(&self.bucket, false));
        if !name.is_empty() {
            path = format!(
                "{path}/{}",
                encoded(&format!("{}{name}", self.prefix), true)
            );
        }
        let payload = match body {
            Payload::Bytes(bytes) => sha256(bytes),
            Payload::Part(_) => UNSIGNED.to_owned(),
        };
        let time = jiff::Timestamp::now()
            .strftime("%Y%m%dT%H%M%SZ")
            .to_string();
        let host = self.endpoint.split_once("://").map_or("", |(_, host)| host);
        let mut headers = vec![
            ("host", host),
            ("x-amz-content-sha256", payload.as_str()),
            ("x-amz-date", time.as_str()),
        ];
        let token = self.credentials.token.as_deref();
        headers.extend(token.map(|token| ("x-amz-security-token", token)));
        let authorization = sigv4::authorization(
            &sigv4::Request {
                method,
                path: &path,
                query,
                headers: &headers,
                payload: &payload,
                time: &time,
                region: &self.region,
            },
            &self.credentials,
        );
        let mark = if query.is_empty() { "" } else { "?" };
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}{mark}{query}", self.endpoint))
            .header("authorization", authorization);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let unsent = |error: &dyn std::fmt::Display| format!("cannot be asked: {error}");
        let answer = match (method, body) {
            ("PUT" | "POST", Payload::Bytes(bytes)) => {
                let request = request.body(*bytes).map_err(|error| unsent(&error))?;
                self.agent.run(request)
            }
            ("PUT", Payload::Part(part)) => {
                let bytes = part.open().map_err(|error| unsent(&error))?;
                let request = request.header("content-length", part.length);
                let request = request.body(ureq::SendBody::from_owned_reader(bytes));
                self.agent.run(request.map_err(|error| unsent(&error))?)
            }
            _ => self
                .agent
                .run(request.body(()).map_err(|error| unsent(&error))?),
        };
        answer.map_err(|error| unsent(&error))
    }

    /// An answer that is a success.
    pub fn granted(&self, what: &str, answer: Answer) -> Result<Answer, String> {
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(self.refused(what, answer)),
        }
    }

    /// What an answer that is not a success means.
    pub fn refused(&self, what: &str, mut answer: Answer) -> String {
        let status = answer.status();
        let text = answer
            .body_mut()
            .with_config()
            .limit(64 << 10)
            .read_to_string();
        let text = text.unwrap_or_default();
        let code = tag(&text, "Code").unwrap_or_else(|| status.to_string());
        let help = match status {
            _ if ["ExpiredToken", "TokenRefreshRequired"].contains(&code.as_str()) => {
                ": the session has expired, get new credentials"
            }
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
                ": the credentials may be wrong, expired, or not allowed to do this"
            }
            StatusCode::NOT_FOUND => ": is there such a bucket?",
            _ => "",
        };
        format!(
            "the bucket `{}` does not let us {what} ({code}){help}",
            self.bucket
        )
    }
}

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

impl FilePart<'_> {
    fn open(&self) -> std::io::Result<impl Read + Send + 'static> {
        let mut file = std::fs::File::open(self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        Ok(file.take(self.length))
    }
}

/// Whether the same request may do better in a moment.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// The text of the first element of this name. Our names have nothing in them that XML would write otherwise, and
/// what has is left out of lists.
pub fn tag(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    Some(value.to_owned())
}
