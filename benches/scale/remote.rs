//! Pushes, pulls and look-ups beside s5cmd, which copies the same files to and from the same server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::daemons::seaweed::Server;
use crate::{Arguments, ablate, met, timed};

/// The bytes of a large object.
const LARGE: usize = 32_000_000;

pub fn measure(arguments: &Arguments, folder: &Path) {
    let Some(server) = Server::start() else {
        return;
    };
    make_bucket(arguments, &server, &folder.join("first"));
    let small = (0..arguments.small)
        .map(|n| n.to_string())
        .collect::<Vec<_>>();
    let text = format!(
        "[axes]\nn = [{}]\n\n[stage.small]\nkind = \"table\"\nrows = [{{ x = \"${{n}}\" }}]\n",
        small.join(", ")
    );
    let sizes = format!("{} small objects", arguments.small);
    both_ways(arguments, &server, &folder.join("small"), &text, &sizes);

    let large = folder.join("large");
    std::fs::create_dir_all(&large).expect("a folder");
    let mut text = String::new();
    for n in 0..arguments.large {
        write_noise(&large.join(format!("noise{n}.parquet")), n as u64);
        text += &format!(
            "[stage.large{n}]\nkind = \"command\"\nfiles = [\"noise{n}.parquet\"]\noutputs = [\"rows\"]\n\
             run = [\"sh\", \"-c\", \"cp noise{n}.parquet $ABLATE_OUT/rows.parquet\"]\n\n"
        );
    }
    let sizes = format!("{} objects of {} MB", arguments.large, LARGE / 1_000_000);
    both_ways(arguments, &server, &large, &text, &sizes);
}

/// SeaweedFS makes a bucket with the first object, and look-ups in one that is not there are errors.
fn make_bucket(arguments: &Arguments, server: &Server, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let text = "[stage.one]\nkind = \"table\"\nrows = [{ x = 1 }]\n";
    std::fs::write(folder.join("pipeline.toml"), text).expect("a pipeline");
    for words in [
        &["key", "new"][..],
        &["remote", "add", "shared", "s3://bucket/first"],
        &["run", "-q"],
        &["push", "-q"],
    ] {
        timed(&mut with_keys(ablate(arguments, folder, words), server));
    }
}

/// The same objects by `ablate` and by s5cmd.
fn both_ways(arguments: &Arguments, server: &Server, folder: &Path, pipeline: &str, what: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::write(folder.join("pipeline.toml"), pipeline).expect("a pipeline");
    let name = folder
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let url = format!("s3://bucket/{name}");
    let own = |words: &[&str]| with_keys(ablate(arguments, folder, words), server);
    timed(&mut own(&["key", "new"]));
    timed(&mut own(&["remote", "add", "shared", &url]));
    timed(&mut own(&["run", "-q"]));

    // Nothing is there yet: each look-up is one request that finds nothing.
    let key = timed(&mut own(&["key", "list", "--json"])).1;
    let key: serde_json::Value =
        serde_json::from_str(key.lines().next().expect("a key")).expect("JSON");
    let key = key["key"].as_str().expect("a key").to_owned();
    let reader = |store: &str, words: &[&str]| {
        // What `key` has no use for.
        let place = ["--store", store];
        let place = if words[0] == "key" { &[][..] } else { &place };
        let mut command = own(&[words, place].concat());
        command.env("ABLATE_CONFIG", folder.join("reader"));
        command
    };
    timed(&mut reader(
        "new",
        &["key", "trust", &key, "--name", "ada", "--commands"][..],
    ));
    timed(&mut reader("missed", &["remote", "add", "shared", &url]));
    let (missed, _) = timed(&mut reader("missed", &["pull", "-q"]));
    let keys = pipeline
        .matches("kind")
        .count()
        .max(arguments.small * usize::from(name == "small"));
    let limit = Duration::from_secs(2);
    println!(
        "look-up of {keys} keys that are not there: {missed:.2?} (goal for 1,000: {limit:?}: {})",
        met(missed <= limit)
    );

    let (push, _) = timed(&mut own(&["push", "-q"]));
    timed(&mut reader("new", &["remote", "add", "shared", &url]));
    // What the server has written is not ours to wait for.
    timed(Command::new("sync").arg("-f").arg(folder));
    let (pull, _) = timed(&mut reader("new", &["pull", "-q"]));
    let (again, _) = timed(&mut own(&["push", "-q"]));
    println!("{what}: push {push:.2?}, push again {again:.2?}, pull {pull:.2?}");
    let (examined, _) = timed(&mut own(&["remote", "fsck"]));
    let (listed, _) = timed(&mut own(&["remote", "gc", "--dry-run"]));
    println!("{what}: remote fsck {examined:.2?}, remote gc --dry-run {listed:.2?}");

    let files = objects(&folder.join(".ablate"));
    let bytes: u64 = files
        .iter()
        .filter_map(|f| f.metadata().ok())
        .map(|m| m.len())
        .sum();
    let pulled: u64 = objects(&folder.join("new"))
        .iter()
        .filter_map(|f| f.metadata().ok())
        .map(|m| m.len())
        .sum();
    assert_eq!(pulled, bytes, "all of it was pulled");
    let Some(plain) = plain(arguments, server, folder, &name) else {
        return;
    };
    let share = |theirs: Duration, ours: Duration| theirs.as_secs_f64() / ours.as_secs_f64();
    let synced = plain.down + plain.sync;
    for (which, theirs, ours) in [
        ("push: s5cmd", plain.up, push),
        ("pull: s5cmd", plain.down, pull),
        // What was pulled is on the disk, and what s5cmd copied is not yet.
        ("pull: s5cmd and sync", synced, pull),
    ] {
        let share = share(theirs, ours);
        println!(
            "{what}, {which} {theirs:.2?} for the same {} files, ours {:.0}% of its rate (goal 70%: {})",
            plain.files,
            share * 100.0,
            met(share >= 0.7)
        );
    }
}

/// How long s5cmd took.
struct Plain {
    files: usize,
    up: Duration,
    down: Duration,
    /// How long the disk took for what came down.
    sync: Duration,
}

fn with_keys(mut command: Command, server: &Server) -> Command {
    command
        .env("AWS_ENDPOINT_URL", &server.endpoint)
        .env("AWS_ACCESS_KEY_ID", "all")
        .env("AWS_SECRET_ACCESS_KEY", "secret-all")
        .env("AWS_REGION", "us-east-1");
    command
}

/// Uploads and downloads with s5cmd what the remote has.
fn plain(arguments: &Arguments, server: &Server, folder: &Path, name: &str) -> Option<Plain> {
    let s5cmd = |words: &[&str]| {
        let mut command = with_keys(Command::new(&arguments.s5cmd), server);
        command
            .args(["--endpoint-url", &server.endpoint])
            .args(words);
        command
    };
    if !s5cmd(&["version"])
        .output()
        .is_ok_and(|said| said.status.success())
    {
        println!("skipped: there is no s5cmd (--s5cmd)");
        return None;
    }
    let (from, back) = (folder.join("plain"), folder.join("back"));
    // The same files as are in the remote: a result is an object and an entry.
    let pushed = format!("s3://bucket/{name}/*");
    timed(&mut s5cmd(&[
        "cp",
        &pushed,
        &format!("{}/", from.display()),
    ]));
    let there = format!("s3://bucket/plain-{name}/");
    let (up, _) = timed(&mut s5cmd(&["cp", &format!("{}/", from.display()), &there]));
    // What was written before is not this copy's to wait for.
    timed(Command::new("sync").arg("-f").arg(&from));
    let all = format!("{there}*");
    let (down, _) = timed(&mut s5cmd(&["cp", &all, &format!("{}/", back.display())]));
    let (sync, _) = timed(Command::new("sync").arg("-f").arg(&back));
    let files = files_below(&from).len();
    assert_eq!(files_below(&back).len(), files, "all of it was copied");
    Some(Plain {
        files,
        up,
        down,
        sync,
    })
}

/// The Parquet files below a folder.
fn objects(folder: &Path) -> Vec<PathBuf> {
    let mut found = files_below(folder);
    found.retain(|path| path.extension().is_some_and(|end| end == "parquet"));
    found
}

/// All files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Integers that cannot be compressed.
fn write_noise(path: &Path, seed: u64) {
    let stream = nn::Stream::new(seed, "noise");
    let number = |n: u64| stream.item(n).below(0, usize::MAX) as i64;
    let numbers = arrow::array::Int64Array::from_iter_values((0..LARGE as u64 / 8).map(number));
    let columns = [("x", std::sync::Arc::new(numbers) as _)];
    let table = arrow::record_batch::RecordBatch::try_from_iter(columns).expect("a table");
    let file = std::fs::File::create(path).expect("a file");
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(file, table.schema(), None).expect("a writer");
    writer.write(&table).expect("rows");
    writer.close().expect("an end");
}
