//! What a remote does when S3 refuses, is busy or fails: moto is the server, and a proxy before it gives the answers
//! that no server gives on demand. Skipped where there is no moto.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::daemons::moto::Moto;
use crate::lab::{CommandOutput, Lab};

const URL: &str = "s3://bucket/prefix";

/// Somebody with a store, settings and credentials of their own.
struct Person<'a> {
    lab: &'a Lab,
    name: String,
    endpoint: String,
    pair: (String, String),
}

impl Person<'_> {
    fn ablate(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = self.lab.command(arguments);
        command
            .env(
                "ABLATE_CONFIG",
                self.lab.path(&format!("config-{}", self.name)),
            )
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_ACCESS_KEY_ID", &self.pair.0)
            .env("AWS_SECRET_ACCESS_KEY", &self.pair.1);
        if arguments.first() != Some(&"key") {
            command.args(["--store", &self.name]);
        }
        CommandOutput::of(command.output().unwrap())
    }

    /// A key of their own, and a remote called `shared`.
    fn set_up(&self, url: &str) -> String {
        let key = self.ablate(&["key", "new"]).good().stdout.trim().to_owned();
        self.ablate(&["remote", "add", "shared", url]).good();
        key
    }

    fn digests(&self) -> BTreeMap<String, String> {
        crate::lab::digests_of(&self.ablate(&["runs", "last", "--json"]).stdout)
    }
}

fn person<'a>(lab: &'a Lab, name: &str, endpoint: &str, pair: (&str, &str)) -> Person<'a> {
    Person {
        lab,
        name: name.to_owned(),
        endpoint: endpoint.to_owned(),
        pair: (pair.0.to_owned(), pair.1.to_owned()),
    }
}

const ANYBODY: (&str, &str) = ("anybody", "anything");

/// What a proxy makes of a request, by its method, its path and how often both have come before: an answer of its own,
/// or none to let it through.
type Fault = fn(&str, &str, usize) -> Option<(&'static str, &'static str)>;

/// A proxy before a server; its address. Ends with the test's process.
fn proxy(port: u16, fault: Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let seen: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let seen = seen.clone();
            std::thread::spawn(move || pass(client, port, fault, &seen));
        }
    });
    at
}

/// One request for each connection.
fn pass(
    mut client: TcpStream,
    port: u16,
    fault: Fault,
    seen: &Mutex<HashMap<String, usize>>,
) -> Option<()> {
    let (head, body) = request(&mut client)?;
    let mut words = head.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let times = {
        let mut seen = seen.lock().unwrap();
        let times = seen.entry(format!("{method} {path}")).or_default();
        *times += 1;
        *times - 1
    };
    let answer = match fault(method, path, times) {
        Some((status, code)) => {
            let text = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
            let text = if method == "HEAD" {
                String::new()
            } else {
                text
            };
            let length = text.len();
            format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
            )
            .into_bytes()
        }
        None => {
            let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
            let head = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
            server.write_all(head.as_bytes()).ok()?;
            server.write_all(&body).ok()?;
            let mut answer = Vec::new();
            server.read_to_end(&mut answer).ok()?;
            answer
        }
    };
    client.write_all(&answer).ok()
}

/// The head of a request, with its empty line, and its body.
fn request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let body = bytes.split_off(end + 4);
            let head = String::from_utf8(bytes).ok()?;
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let named = name.eq_ignore_ascii_case("content-length");
                named.then(|| value.trim().parse::<usize>().ok())?
            });
            let mut body = body;
            while body.len() < length.unwrap_or(0) {
                let n = client.read(&mut piece).ok().filter(|n| *n > 0)?;
                body.extend(&piece[..n]);
            }
            return Some((head, body));
        }
        let n = client.read(&mut piece).ok().filter(|n| *n > 0)?;
        bytes.extend(&piece[..n]);
    }
}

/// Every request is refused twice before it is answered.
fn busy(_: &str, _: &str, times: usize) -> Option<(&'static str, &'static str)> {
    match times {
        0 => Some(("500 Internal Server Error", "InternalError")),
        1 => Some(("503 Slow Down", "SlowDown")),
        _ => None,
    }
}

/// Objects cannot be written, however often one tries.
fn full(method: &str, path: &str, _: usize) -> Option<(&'static str, &'static str)> {
    let object = method == "PUT" && path.contains("/cas/");
    object.then_some(("503 Slow Down", "SlowDown"))
}

/// As AWS says it of a session that is over.
fn expired(_: &str, _: &str, _: usize) -> Option<(&'static str, &'static str)> {
    Some(("400 Bad Request", "ExpiredToken"))
}

/// Results can be looked up, and their objects cannot be read.
fn no_objects(method: &str, path: &str, _: usize) -> Option<(&'static str, &'static str)> {
    let object = method == "GET" && path.contains("/cas/");
    object.then_some(("403 Forbidden", "AccessDenied"))
}

#[test]
fn errors_of_s3_are_waited_for_or_told_of_and_nothing_wrong_is_taken() {
    let Some(server) = Moto::start() else {
        return;
    };
    let lab = Lab::demo();
    let at = |fault: Fault| proxy(server.port, fault);

    // An object that cannot be written: nothing is shown.
    let ada = person(&lab, "ada", &at(full), ANYBODY);
    let key = ada.set_up(URL);
    ada.ablate(&["run", "-q"]).good();
    let expected = ada.digests();
    let failed = ada.ablate(&["push"]);
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("answered 503"), "{}", failed.stderr);
    let direct = person(&lab, "ada", &server.endpoint, ANYBODY);
    let examined = direct.ablate(&["remote", "fsck"]).good().stdout;
    assert_eq!(
        examined,
        "ablate: 0 objects and 0 entries are intact, 0 problems found\n"
    );

    // A server that is busy: all of it arrives, and comes back.
    let busy_at = at(busy);
    person(&lab, "ada", &busy_at, ANYBODY)
        .ablate(&["push"])
        .good();
    let examined = direct.ablate(&["remote", "fsck"]).good().stdout;
    assert_eq!(
        examined,
        "ablate: 4 objects and 5 entries are intact, 0 problems found\n"
    );
    let trusts = |who: &Person<'_>| {
        who.ablate(&["key", "trust", &key, "--name", "ada"]).good();
    };
    let bob = person(&lab, "bob", &busy_at, ANYBODY);
    bob.set_up(URL);
    trusts(&bob);
    let pulled = bob.ablate(&["pull"]).good();
    assert_eq!(bob.digests(), expected, "{pulled:?}");
    bob.ablate(&["fsck"]).good();

    // Refusals are told of once, and everything is computed here.
    let refused: [(&str, &str, Fault, &str, &str); 3] = [
        (
            "carl",
            URL,
            expired,
            "(ExpiredToken)",
            "the session has expired",
        ),
        (
            "dora",
            URL,
            no_objects,
            "(AccessDenied)",
            "the credentials may be wrong",
        ),
        (
            "emil",
            "s3://no-such-bucket/x",
            |_, _, _| None,
            "(NoSuchBucket)",
            "is there such a bucket?",
        ),
    ];
    for (name, url, fault, code, help) in refused {
        let who = person(&lab, name, &at(fault), ANYBODY);
        who.set_up(url);
        trusts(&who);
        let pulled = who.ablate(&["pull", "--all"]);
        assert_eq!(pulled.code, 1, "{name}: {pulled:?}");
        let ran = who
            .ablate(&["run", "--remote", "shared", "--read-only"])
            .good();
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(told.matches(code).count(), 1, "{name}: {told}");
        assert!(told.contains(help), "{name}: {told}");
        assert!(!told.contains(ANYBODY.1), "{name}: {told}");
        assert_eq!(who.digests(), expected, "{name}");
        who.ablate(&["fsck"]).good();
    }

    writers(&lab, &server, &expected);

    // From here on the server asks who somebody is.
    let users = server.users();
    let user = |n: usize| (users[n].0.as_str(), users[n].1.as_str());
    let all = person(&lab, "ada", &server.endpoint, user(0));
    all.ablate(&["push"]).good();
    let reader = person(&lab, "fritz", &server.endpoint, user(1));
    reader.set_up(URL);
    trusts(&reader);
    reader.ablate(&["pull"]).good();
    assert_eq!(reader.digests(), expected);
    lab.edit("{ x = 2 }", "{ x = 4 }");
    reader.ablate(&["run", "-q"]).good();
    let refused = reader.ablate(&["push"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("does not let us"),
        "{}",
        refused.stderr
    );
    for (name, pair) in [("gerda", user(2)), ("hans", ANYBODY)] {
        let who = person(&lab, name, &server.endpoint, pair);
        who.set_up(URL);
        trusts(&who);
        let ran = who
            .ablate(&["run", "--remote", "shared", "--read-only"])
            .good();
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("does not let us read"), "{name}: {told}");
        assert!(!told.contains(pair.1), "{name}: {told}");
        assert_eq!(who.digests(), reader.digests(), "{name}");
    }
}

/// Thirty-two people push the same results at once, and all of them are there.
fn writers(lab: &Lab, server: &Moto, expected: &BTreeMap<String, String>) {
    let url = "s3://bucket/race";
    let keys: Vec<String> = std::thread::scope(|threads| {
        let each = (0..32).map(|n| {
            threads.spawn(move || {
                let who = person(lab, &format!("writer{n}"), &server.endpoint, ANYBODY);
                let key = who.set_up(url);
                who.ablate(&["run", "-q", "-j", "1"]).good();
                who.ablate(&["push", "-q"]).good();
                key
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let reader = person(lab, "writer0", &server.endpoint, ANYBODY);
    let examined = reader.ablate(&["remote", "fsck"]).good().stdout;
    let whole = format!(" {} entries are intact, 0 problems found", 32 * 5);
    assert!(examined.contains(&whole), "{examined}");
    let reader = person(lab, "reader", &server.endpoint, ANYBODY);
    reader.set_up(url);
    for (n, key) in keys.iter().enumerate() {
        let name = format!("writer{n}");
        reader
            .ablate(&["key", "trust", key, "--name", &name])
            .good();
    }
    reader.ablate(&["pull", "-q"]).good();
    assert_eq!(&reader.digests(), expected);
}
