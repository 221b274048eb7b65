//! Requests to a container of Azure's blobs: signed, and what a refusal means. Account, key and endpoint come from the
//! environment, as Azure's own programs read it; they are never kept and never printed.

use ureq::http::{Request, StatusCode};

use super::shared_key;
use crate::remote::http::{self, Answer, Payload, encoded, tag};

/// A container, and a prefix of names in it.
pub struct Azure {
    agent: ureq::Agent,
    /// Scheme, host, port and, for imitations, the account.
    endpoint: String,
    container: String,
    /// What every name begins with.
    pub prefix: String,
    account: String,
    access: Access,
}

/// What lets us in.
enum Access {
    /// The account's key.
    Key(Vec<u8>),
    /// A shared access signature: what a query ends with.
    Token(String),
}

/// The version of the service whose rules we follow.
const VERSION: &str = "2021-08-06";

/// What Azure calls a container that is not there.
pub const NO_CONTAINER: &str = "ContainerNotFound";

impl Azure {
    /// The container and prefix after `az://`.
    pub fn open(place: &str) -> Result<Azure, String> {
        let (container, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_matches('/');
        if container.is_empty() {
            return Err("an Azure URL names a container: az://CONTAINER/PREFIX".to_owned());
        }
        let connection = std::env::var("AZURE_STORAGE_CONNECTION_STRING").unwrap_or_default();
        let set = |variable: &str, part: &str| {
            let value = std::env::var(variable).ok();
            let value = value.filter(|value| !value.is_empty());
            value.or_else(|| part_of(&connection, part))
        };
        let account = set("AZURE_STORAGE_ACCOUNT", "AccountName")
            .ok_or("there is no account of Azure: set AZURE_STORAGE_ACCOUNT")?;
        let key = set("AZURE_STORAGE_KEY", "AccountKey");
        let token = set("AZURE_STORAGE_SAS_TOKEN", "SharedAccessSignature");
        let access = match (key, token) {
            (Some(key), _) => Access::Key(
                shared_key::key(&key).ok_or("the key in AZURE_STORAGE_KEY is not base 64")?,
            ),
            (None, Some(token)) => Access::Token(token.trim_start_matches('?').to_owned()),
            (None, None) => {
                return Err(
                    "there are no credentials for Azure: set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN"
                        .to_owned(),
                );
            }
        };
        let endpoint = set("AZURE_STORAGE_BLOB_ENDPOINT", "BlobEndpoint");
        let endpoint =
            endpoint.unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
        Ok(Azure {
            agent: http::agent(),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            container: container.to_owned(),
            prefix: match prefix {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
            account,
            access,
        })
    }

    /// Makes a request, again if nobody answered it. The container itself has no name.
    pub fn ask(
        &self,
        method: &str,
        name: &str,
        query: &[(&str, String)],
        body: &Payload<'_>,
    ) -> Result<Answer, String> {
        http::persist(&self.endpoint, || self.ask_once(method, name, query, body))
    }

    fn ask_once(
        &self,
        method: &str,
        name: &str,
        query: &[(&str, String)],
        body: &Payload<'_>,
    ) -> Result<Answer, String> {
        let mut place = format!("/{}", encoded(&self.container, false));
        if !name.is_empty() {
            place = format!(
                "{place}/{}",
                encoded(&format!("{}{name}", self.prefix), true)
            );
        }
        let time = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT");
        let time = time.to_string();
        let mut headers = vec![("x-ms-date", time.as_str()), ("x-ms-version", VERSION)];
        if method == "PUT" && query.is_empty() {
            headers.insert(0, ("x-ms-blob-type", "BlockBlob"));
        }
        let mut asked: Vec<String> = query
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(value, false)))
            .collect();
        let authorization = match &self.access {
            Access::Token(token) => {
                asked.push(token.clone());
                None
            }
            Access::Key(key) => {
                // Of an imitation the account is a part of the path, and is signed twice.
                let host = self.endpoint.split_once("://").map_or("", |(_, host)| host);
                let before = host.split_once('/').map_or("", |(_, path)| path);
                let path = match before {
                    "" => place.clone(),
                    before => format!("/{before}{place}"),
                };
                let request = shared_key::Request {
                    method,
                    path: &path,
                    query,
                    headers: &headers,
                    length: body.length(),
                };
                Some(shared_key::authorization(&request, &self.account, key))
            }
        };
        let mark = if asked.is_empty() { "" } else { "?" };
        let asked = asked.join("&");
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{place}{mark}{asked}", self.endpoint));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
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
        let header = answer.headers().get("x-ms-error-code").cloned();
        let header = header.and_then(|code| Some(code.to_str().ok()?.to_owned()));
        let text = http::text(&mut answer, 64 << 10).unwrap_or_default();
        let code = header.or_else(|| tag(&text, "Code"));
        let code = code.unwrap_or_else(|| status.to_string());
        let help = match status {
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
                ": the credentials may be wrong, expired, or not allowed to do this"
            }
            StatusCode::NOT_FOUND => ": is there such a container?",
            _ => "",
        };
        format!(
            "the container `{}` does not let us {what} ({code}){help}",
            self.container
        )
    }
}

/// A part of a connection string: `AccountName=…;AccountKey=…`.
fn part_of(connection: &str, name: &str) -> Option<String> {
    let mut parts = connection.split(';');
    parts.find_map(|part| {
        Some(
            part.trim()
                .strip_prefix(name)?
                .strip_prefix('=')?
                .to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::part_of;

    #[test]
    fn a_connection_string_has_parts_whose_values_may_have_equals_signs() {
        let text = "AccountName=ada;AccountKey=a2V5==;BlobEndpoint=http://127.0.0.1:1/ada;";
        assert_eq!(part_of(text, "AccountKey").unwrap(), "a2V5==");
        assert_eq!(part_of(text, "AccountName").unwrap(), "ada");
        assert!(part_of(text, "Account").is_none() && part_of("", "AccountName").is_none());
    }
}
