//! A remote in a bucket of S3, or of anything that speaks its language. Credentials, region and endpoint come from the
//! environment or the files that other programs of S3 read; they are never kept and never printed.

use std::collections::HashMap;
use std::io::Read;
use std::time::{Duration, SystemTime};

use ureq::http::{Response, StatusCode};

use super::bucket::{Body, Bucket, Listed};
use super::sigv4::{self, Credentials, encoded, sha256};

/// A bucket, and a prefix of names in it.
pub struct S3 {
    agent: ureq::Agent,
    /// Scheme, host and port.
    endpoint: String,
    region: String,
    bucket: String,
    prefix: String,
    credentials: Credentials,
}

/// How often a request is made that the server or the network did not answer.
const ATTEMPTS: u32 = 4;

/// The SHA-256 of large bodies is not sent: their own digest is checked whenever they are read.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// The largest body of a request without parts.
const LARGEST: u64 = 5 << 30;

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
    fn ask(
        &self,
        method: &str,
        name: &str,
        query: &str,
        body: &Body<'_>,
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
        body: &Body<'_>,
    ) -> Result<Answer, String> {
        let mut path = format!("/{}", encoded(&self.bucket, false));
        if !name.is_empty() {
            path = format!(
                "{path}/{}",
                encoded(&format!("{}{name}", self.prefix), true)
            );
        }
        let payload = match body {
            Body::Bytes(bytes) => sha256(bytes),
            Body::File(_) => UNSIGNED.to_owned(),
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
            ("PUT", Body::Bytes(bytes)) => {
                let request = request.body(*bytes).map_err(|error| unsent(&error))?;
                self.agent.run(request)
            }
            ("PUT", Body::File(path)) => {
                let file = std::fs::File::open(path).map_err(|error| unsent(&error))?;
                let length = file.metadata().map_err(|error| unsent(&error))?.len();
                let request = request.header("content-length", length).body(file);
                self.agent.run(request.map_err(|error| unsent(&error))?)
            }
            _ => self
                .agent
                .run(request.body(()).map_err(|error| unsent(&error))?),
        };
        answer.map_err(|error| unsent(&error))
    }

    /// What an answer that is no success means.
    fn refused(&self, what: &str, mut answer: Answer) -> String {
        let status = answer.status();
        let text = answer
            .body_mut()
            .with_config()
            .limit(64 << 10)
            .read_to_string();
        let text = text.unwrap_or_default();
        let code = tag(&text, "Code").unwrap_or_else(|| status.to_string());
        let help = match status {
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

type Answer = Response<ureq::Body>;

const NOTHING: Body<'static> = Body::Bytes(b"");

/// Whether the same request may do better in a moment.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

impl Bucket for S3 {
    fn get(&self, name: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
        let answer = self.ask("GET", name, "", &NOTHING)?;
        match answer.status() {
            StatusCode::OK => Ok(Some(Box::new(answer.into_body().into_reader()))),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refused("read", answer)),
        }
    }

    fn put(&self, name: &str, body: Body<'_>) -> Result<(), String> {
        if let Body::File(path) = &body {
            let length = std::fs::metadata(path).map_or(0, |about| about.len());
            if length > LARGEST {
                return Err(format!(
                    "`{name}` has {length} bytes, more than S3 takes in one piece"
                ));
            }
        }
        let answer = self.ask("PUT", name, "", &body)?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(self.refused("write", answer)),
        }
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
            let text = answer
                .body_mut()
                .with_config()
                .limit(64 << 20)
                .read_to_string();
            let text = text.map_err(|error| format!("cannot read the list: {error}"))?;
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

/// The text of the first element of this name. Our names have nothing in them that XML would write otherwise, and
/// what has is left out of lists.
fn tag(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    Some(value.to_owned())
}

/// What the files `~/.aws/config` and `~/.aws/credentials` say of one profile.
struct Profile(HashMap<String, String>);

impl Profile {
    fn read() -> Profile {
        let named = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
        let home = dirs::home_dir().unwrap_or_default().join(".aws");
        let place = |variable: &str, name: &str| {
            std::env::var_os(variable).map_or_else(|| home.join(name), Into::into)
        };
        let files = [
            place("AWS_CONFIG_FILE", "config"),
            place("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        ];
        let mut values = HashMap::new();
        for path in files {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            values.extend(section(&text, &named));
        }
        Profile(values)
    }

    fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    fn credentials(&self) -> Option<(String, String, Option<String>)> {
        let (id, secret) = (
            self.get("aws_access_key_id")?,
            self.get("aws_secret_access_key")?,
        );
        Some((id, secret, self.get("aws_session_token")))
    }
}

/// The values of `[NAME]` or `[profile NAME]`.
fn section(text: &str, name: &str) -> HashMap<String, String> {
    let mut inside = false;
    let mut values = HashMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            let head = head.trim();
            inside = head == name || head.strip_prefix("profile ").map(str::trim) == Some(name);
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside) {
            values.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_in_either_spelling() {
        let text = "[default]\na = 1\n[profile lab]\na=2\nb = x=y\n";
        assert_eq!(section(text, "default")["a"], "1");
        assert_eq!(section(text, "lab")["b"], "x=y");
        assert!(section(text, "other").is_empty());
    }
}
