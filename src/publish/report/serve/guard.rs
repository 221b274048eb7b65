//! What every request must be and every answer has: asked of this machine by its own name, so
//! that no page of another site can read it under a name of its choice, and closed to scripts,
//! frames and caches.

use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::publish::report::page::SERVED_POLICY;

/// Lets a request through, or not, and puts the headers on the answer.
pub async fn guard(State(at): State<SocketAddr>, request: Request, next: Next) -> Response {
    let mut response = match refusal(request.method(), request.headers(), at) {
        Some((status, why)) => (status, why).into_response(),
        None => next.run(request).await,
    };
    let policy = format!("{}; frame-ancestors 'none'", *SERVED_POLICY);
    let headers = response.headers_mut();
    let all: [(HeaderName, &str); 6] = [
        (header::CONTENT_SECURITY_POLICY, &policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in all {
        headers.insert(name, HeaderValue::from_str(value).expect("plain letters"));
    }
    response
}

/// Why a request is turned away.
fn refusal(
    method: &Method,
    headers: &HeaderMap,
    at: SocketAddr,
) -> Option<(StatusCode, &'static str)> {
    if method != Method::GET && method != Method::HEAD {
        return Some((
            StatusCode::METHOD_NOT_ALLOWED,
            "Nothing can be changed here.\n",
        ));
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    match (
        hosts.next().and_then(|host| host.to_str().ok()),
        hosts.next(),
    ) {
        (Some(host), None) if is_ours(host, at) => None,
        _ => Some((
            StatusCode::MISDIRECTED_REQUEST,
            "This server does not serve this host.\n",
        )),
    }
}

/// Whether a Host header names the address that is listened to: by number, or as localhost.
fn is_ours(host: &str, at: SocketAddr) -> bool {
    if host.parse() == Ok(at) {
        return true;
    }
    let port = at.port();
    let names = ["localhost", "127.0.0.1", "[::1]"];
    let loopback = at.ip().is_loopback() || at.ip().is_unspecified();
    loopback
        && names
            .iter()
            .any(|name| host == format!("{name}:{port}") || (port == 80 && host == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_by_its_own_name_is_answered() {
        let at: SocketAddr = "127.0.0.1:8042".parse().unwrap();
        for good in ["127.0.0.1:8042", "localhost:8042", "[::1]:8042"] {
            assert!(is_ours(good, at), "{good}");
        }
        for bad in [
            "evil.example:8042",
            "localhost",
            "localhost:80",
            "localhost.evil.example:8042",
            "",
            "127.0.0.1:8042.evil",
        ] {
            assert!(!is_ours(bad, at), "{bad}");
        }
        let mut headers = HeaderMap::new();
        assert!(
            refusal(&Method::GET, &headers, at).is_some(),
            "no host at all"
        );
        headers.append(header::HOST, HeaderValue::from_static("localhost:8042"));
        assert!(refusal(&Method::GET, &headers, at).is_none());
        assert_eq!(
            refusal(&Method::POST, &headers, at).unwrap().0,
            StatusCode::METHOD_NOT_ALLOWED
        );
        headers.append(header::HOST, HeaderValue::from_static("evil.example"));
        assert!(refusal(&Method::GET, &headers, at).is_some(), "two hosts");
    }
}
