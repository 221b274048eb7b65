//! https, to servers on this machine.

use std::process::{Command, Stdio};

use ureq::tls::Certificate;

use super::*;

/// A server that answers nothing but what is no TLS: https must not fall back to plain http.
#[test]
fn https_to_a_server_without_tls_is_an_error_and_nothing_is_kept() {
    let (address, _) = server(|stream, _, from| honest(stream, from));
    let case = Case::new();
    let secure = address.replace("http://", "https://");
    let rules = Rules {
        silence: Duration::from_millis(400),
        attempts: 2,
        ..Rules::default()
    };
    let message = http::get(&secure, &entry(BODY), &case.home, &rules, &case.ears).unwrap_err();
    assert!(
        message.starts_with(&format!("cannot get {secure}: ")),
        "{message}"
    );
    assert_eq!((case.cached(), case.part()), (None, Some(Vec::new())));
}

/// Ends a process of ours when the test does.
struct Ending(std::process::Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A real https server of a folder on this machine, until it is dropped.
struct Secure {
    folder: tempfile::TempDir,
    address: String,
    _server: Ending,
}

impl Secure {
    /// Serves [`BODY`] as `/f`. Without the program that makes certificates there is none.
    fn start() -> Option<Secure> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f"), BODY).unwrap();
        let openssl = |arguments: &[&str]| {
            let mut command = Command::new("openssl");
            command.args(arguments).current_dir(folder.path());
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::null());
            command
        };
        let request = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 \
                       -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
                       -addext basicConstraints=critical,CA:FALSE";
        let request: Vec<&str> = request.split_whitespace().collect();
        if !openssl(&request)
            .status()
            .is_ok_and(|status| status.success())
        {
            eprintln!("skipped: no openssl that makes certificates");
            return None;
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let accept = format!("127.0.0.1:{}", free.local_addr().unwrap().port());
        drop(free);
        let mut server = openssl(&[
            "s_server", "-accept", &accept, "-cert", "cert.pem", "-key", "key.pem", "-WWW",
            "-quiet",
        ]);
        let server = Ending(server.spawn().unwrap());
        let started = Instant::now();
        while TcpStream::connect(&accept).is_err() {
            assert!(started.elapsed() < Duration::from_secs(10), "it listens");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Secure {
            folder,
            address: format!("https://{accept}/f"),
            _server: server,
        })
    }

    fn get(&self, case: &Case, trusted: Vec<Certificate<'static>>) -> Result<(), String> {
        let rules = Rules {
            silence: Duration::from_secs(5),
            attempts: 1,
            trusted,
            ..Rules::default()
        };
        http::get(&self.address, &entry(BODY), &case.home, &rules, &case.ears).map(drop)
    }
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let Some(server) = Secure::start() else {
        return;
    };
    let case = Case::new();
    let message = server.get(&case, Vec::new()).unwrap_err();
    assert!(message.to_lowercase().contains("certificate"), "{message}");
    assert_eq!(case.cached(), None);
}

#[test]
fn a_file_arrives_over_https_from_a_server_that_is_vouched_for() {
    let Some(server) = Secure::start() else {
        return;
    };
    let case = Case::new();
    let pem = fs::read(server.folder.path().join("cert.pem")).unwrap();
    let certificate = Certificate::from_pem(&pem).unwrap().to_owned();
    server.get(&case, vec![certificate]).unwrap();
    assert_eq!(case.cached().as_deref(), Some(BODY));
}
