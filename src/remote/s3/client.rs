//! Requests to a bucket of S3: signed, and what a refusal means. Credentials, region and
//! endpoint come from the environment or the files that other programs of S3 read; they are never kept and never printed.

use ureq::http::{Request, StatusCode};

use super::profile::Profile;
use super::sigv4::{self, Credentials, sha256};
use crate::remote::http::{self, Answer, Payload, encoded, tag};

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

/// What S3 calls a bucket that is not there.
pub const NO_BUCKET: &str = "NoSuchBucket";

/// The SHA-256 of large bodies is not sent: their own digest is checked whenever they are read.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// Whose buckets, which says where they are unless the environment does.
#[derive(Clone, Copy)]
pub enum Provider {
    /// `s3://`: Amazon's.
    Aws,
    /// `gs://`: Google's, which take the same signatures of HMAC keys.
    Google,
}

impl Provider {
    fn endpoint(self, region: &str) -> String {
        match self {
            Provider::Aws => format!("https://s3.{region}.amazonaws.com"),
            Provider::Google => "https://storage.googleapis.com".to_owned(),
        }
    }
}

impl S3 {
    /// The bucket and prefix after `s3://` or `gs://`.
    pub fn open(place: &str, provider: Provider) -> Result<S3, String> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_matches('/');
        if bucket.is_empty() {
            return Err("the URL names no bucket: s3://BUCKET/PREFIX".to_owned());
        }
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let profile = Profile::read();
        let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION"));
        let region = region.or_else(|| profile.get("region"));
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL"));
        let endpoint = endpoint.or_else(|| profile.get("endpoint_url"));
        let endpoint = endpoint.unwrap_or_else(|| provider.endpoint(&region));
        let pair = match (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY")) {
            (Some(id), Some(secret)) => Some((id, secret, set("AWS_SESSION_TOKEN"))),
            _ => profile.credentials(),
        };
        let (id, secret, token) = pair.ok_or(
            "there are no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials",
        )?;
        Ok(S3 {
            agent: http::agent(),
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
        http::persist(&self.endpoint, || self.ask_once(method, name, query, body))
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
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}{mark}{query}", self.endpoint))
            .header("authorization", authorization);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        http::send(&self.agent, request, body)
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
        let text = http::text(&mut answer, 64 << 10).unwrap_or_default();
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
