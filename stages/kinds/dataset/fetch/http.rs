//! One file over https: resumed where it broke off, checked before it gets its name.
//! Knows nothing of data sets.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::Agent;
use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::cache::{check, keep};
use crate::kinds::dataset::catalogue::File;
use crate::{DataHome, Watch};

/// Time limits, retries and trust.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How long a server may be silent.
    pub silence: Duration,
    /// How often to resume an interrupted transfer.
    pub attempts: u32,
    /// Plain http to this very machine, for the tests' own server. Never set by the program.
    pub plain_loopback: bool,
    /// More of an environment for registries' clients, for the tests' own registry. Never set
    /// by the program.
    pub client_environment: Vec<(&'static str, PathBuf)>,
    /// Trusted certificates, for the tests' own server; if empty, the usual authorities.
    /// Never set by the program.
    pub trusted: Vec<Certificate<'static>>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            silence: Duration::from_secs(30),
            attempts: 4,
            plain_loopback: false,
            client_environment: Vec::new(),
            trusted: Vec::new(),
        }
    }
}

/// Fetches a file into the cache. What has arrived stays beside it when the transfer breaks off.
pub fn get(
    address: &str,
    file: &File,
    home: &DataHome,
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<(), String> {
    let part = part_path(home, file);
    let folder = part.parent().expect("a file in the cache has a folder");
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", part.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&part)
        .map_err(failed)?;
    // Two programs that want the same file: the second waits, and finds it here.
    while lock.try_lock().is_err() {
        if watch.stopped() {
            return Err("stopped".to_owned());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    if check(&home.cache.join(&file.path), file).is_ok() {
        return Ok(());
    }
    let mut tries = 0;
    loop {
        tries += 1;
        match transfer(address, file, &part, rules, watch) {
            Ok(()) => break,
            Err(Broken::For(why)) if tries < rules.attempts && !watch.stopped() => {
                watch.log(&format!("{why}; retrying"))
            }
            Err(Broken::For(why) | Broken::Good(why)) => return Err(why),
        }
    }
    let arrived = fs::File::open(&part).map_err(failed)?;
    let kept = keep(home, file, arrived).map_err(|_| {
        format!(
            "{address} sent a file that does not match its checksum in the catalogue, SHA-256 {}",
            file.sha256
        )
    });
    // A wrong file must not be resumed. It is emptied, not removed: others may wait for its lock.
    let done = match &kept {
        Ok(()) => fs::remove_file(&part),
        Err(_) => lock.set_len(0),
    };
    done.map_err(failed)?;
    kept
}

/// The file of an unfinished transfer.
pub fn part_path(home: &DataHome, file: &File) -> PathBuf {
    home.cache
        .join(format!("{}.{}.part", file.path, &file.sha256[..12]))
}

/// Why a transfer ended.
enum Broken {
    /// It may work again: the connection broke, or the server was silent.
    For(String),
    /// It will not.
    Good(String),
}

fn transfer(
    address: &str,
    file: &File,
    part: &Path,
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<(), Broken> {
    let cannot =
        |error: std::io::Error| Broken::Good(format!("cannot write {}: {error}", part.display()));
    let have = fs::metadata(part).map_err(cannot)?.len();
    // A part of the full size may still be wrong, and more is wrong for certain.
    let have = if have < file.size { have } else { 0 };
    let mut response = request(address, have, file.size, rules)?;
    let start = match response.status().as_u16() {
        206 if resumes_at(&response, have, file.size) => have,
        206 => {
            return Err(Broken::Good(format!("{address} sent the wrong byte range")));
        }
        200 => 0,
        // The partial file does not match the server's: start again.
        416 if have > 0 => {
            OpenOptions::new()
                .write(true)
                .open(part)
                .and_then(|f| f.set_len(0))
                .map_err(cannot)?;
            return Err(Broken::For(format!(
                "{address} cannot resume at byte {have}"
            )));
        }
        status @ (429 | 500..=599) => {
            return Err(Broken::For(format!("{address} answered {status}")));
        }
        status => return Err(Broken::Good(format!("{address} answered {status}"))),
    };
    let out = OpenOptions::new().append(true).open(part).map_err(cannot)?;
    out.set_len(start).map_err(cannot)?;
    let mut out = out;
    let mut done = start;
    let mut body = response.body_mut().as_reader();
    let mut buffer = vec![0; 1 << 16];
    loop {
        if watch.stopped() {
            return Err(Broken::Good("stopped".to_owned()));
        }
        let read = body.read(&mut buffer).map_err(|error| {
            Broken::For(format!(
                "{address}: connection lost after {done} of {} bytes: {error}",
                file.size
            ))
        })?;
        if read == 0 {
            break;
        }
        done += read as u64;
        if done > file.size {
            out.set_len(0).map_err(cannot)?;
            return Err(Broken::Good(format!(
                "{address} sends more than the expected {} bytes",
                file.size
            )));
        }
        out.write_all(&buffer[..read]).map_err(cannot)?;
        watch.progress(done, file.size);
    }
    match done == file.size {
        true => Ok(()),
        false => Err(Broken::For(format!(
            "{address} ended after {done} of {} bytes",
            file.size
        ))),
    }
}

/// Asks, following redirects to https only.
fn request(
    address: &str,
    from: u64,
    size: u64,
    rules: &Rules,
) -> Result<Response<ureq::Body>, Broken> {
    let agent = agent(size, rules);
    let mut address = address.to_owned();
    for _ in 0..6 {
        allowed(&address, rules).map_err(Broken::Good)?;
        let mut request = agent.get(&address);
        if from > 0 {
            request = request.header("Range", format!("bytes={from}-"));
        }
        let response = request
            .call()
            .map_err(|error| Broken::For(format!("cannot get {address}: {error}")))?;
        if !response.status().is_redirection() {
            return Ok(response);
        }
        let location = response
            .headers()
            .get("location")
            .and_then(|value| value.to_str().ok());
        let location = location
            .ok_or_else(|| Broken::Good(format!("{address} redirects without a location")))?;
        address = join(&address, location).map_err(Broken::Good)?;
    }
    Err(Broken::Good(format!("{address} redirects too often")))
}

fn agent(size: u64, rules: &Rules) -> Agent {
    // Slower than this is as good as silent: 16 kB/s.
    let whole = rules.silence * 4 + Duration::from_secs(size / (16 << 10));
    let roots = match rules.trusted.is_empty() {
        true => RootCerts::WebPki,
        false => RootCerts::new_with_certs(&rules.trusted),
    };
    Agent::config_builder()
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .https_only(!rules.plain_loopback)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(rules.silence))
        .timeout_recv_response(Some(rules.silence))
        .timeout_per_read(Some(rules.silence))
        .timeout_recv_body(Some(whole))
        // The digest is of the file itself, not of what a proxy makes of it.
        .accept_encoding("identity")
        .user_agent(concat!("ablate/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn allowed(address: &str, rules: &Rules) -> Result<(), String> {
    let uri: Uri = address
        .parse()
        .map_err(|error| format!("{address} is not a valid URL: {error}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(_)) => Ok(()),
        (Some("http"), Some("127.0.0.1")) if rules.plain_loopback => Ok(()),
        _ => Err(format!("{address} is not https: refused")),
    }
}

/// An absolute address from a redirect's `Location`.
fn join(base: &str, location: &str) -> Result<String, String> {
    if location.contains("://") {
        return Ok(location.to_owned());
    }
    let base: Uri = base
        .parse()
        .map_err(|_| format!("{base} is not a valid URL"))?;
    match (
        base.scheme_str(),
        base.authority(),
        location.starts_with('/'),
    ) {
        (Some(scheme), Some(host), true) if !location.starts_with("//") => {
            Ok(format!("{scheme}://{host}{location}"))
        }
        _ => Err(format!(
            "{base} redirects to `{location}`, which is not a full URL"
        )),
    }
}

/// Whether the answer begins where we left off and belongs to a file of this size.
fn resumes_at<B>(response: &Response<B>, from: u64, size: u64) -> bool {
    let range = response
        .headers()
        .get("content-range")
        .and_then(|value| value.to_str().ok());
    let Some((span, total)) = range.and_then(|range| range.strip_prefix("bytes ")?.split_once('/'))
    else {
        return false;
    };
    let start = span
        .split_once('-')
        .and_then(|(start, _)| start.parse().ok());
    start == Some(from) && (total == "*" || total.parse() == Ok(size))
}
