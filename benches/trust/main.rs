//! What trust costs: the audit of a long lineage, `fsck` beside plain hashing, and the challenge of
//! two large stores. A slow figure never fails this program; a wrong result does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array, UInt8Array};
use arrow::record_batch::RecordBatch;
use clap::Parser;
use store::{Finished, NewRun, RunId, StageKey, Store, Value};

/// Measure audit, fsck and challenge.
#[derive(Parser)]
#[command(name = "trust")]
struct Arguments {
    /// How often to measure; medians are printed
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Stages in the audited chain
    #[arg(long, default_value_t = 1_000)]
    stages: usize,
    /// Keys in each of the challenged stores
    #[arg(long, default_value_t = 10_000)]
    keys: i64,
    /// MiB of objects that are hashed
    #[arg(long, default_value_t = 512)]
    mebibytes: usize,
    /// Measure another build of ablate
    #[arg(long, default_value = env!("CARGO_BIN_EXE_ablate"), hide_default_value = true)]
    ablate: PathBuf,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir().expect("a temporary folder");
    audit(&arguments, &folder.path().join("audit"));
    challenge(&arguments, &folder.path().join("challenge"));
    fsck(&arguments, &folder.path().join("fsck"));
}

/// `ablate` with arguments in a folder: how long it took, and what it printed.
fn ablate(arguments: &Arguments, folder: &Path, words: &[&str]) -> (Duration, String) {
    let started = Instant::now();
    let said = Command::new(&arguments.ablate)
        .args(words)
        .current_dir(folder)
        .output()
        .expect("ablate can be started");
    let took = started.elapsed();
    assert!(
        said.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&said.stderr)
    );
    (took, String::from_utf8_lossy(&said.stdout).into_owned())
}

fn median(rounds: u32, mut measure: impl FnMut() -> Duration) -> Duration {
    let mut all: Vec<Duration> = (0..rounds).map(|_| measure()).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

fn say(what: &str, took: Duration, target: Duration) {
    let met = if took <= target { "met" } else { "NOT met" };
    println!("{what}: {took:.1?} (target {target:?}: {met})");
}

fn audit(arguments: &Arguments, folder: &Path) {
    std::fs::create_dir(folder).expect("a folder");
    let mut text = "[stage.s0]\nkind = \"table\"\nrows = [{ x = 0 }]\n".to_owned();
    for n in 1..arguments.stages {
        let before = n - 1;
        text.push_str(&format!(
            "[stage.s{n}]\nkind = \"sql\"\ninputs = {{ t = \"s{before}\" }}\nquery = \"SELECT x + 1 AS x FROM t\"\n"
        ));
    }
    std::fs::write(folder.join("pipeline.toml"), text).expect("a pipeline");
    let (cold, _) = ablate(arguments, folder, &["run", "--quiet"]);
    println!("a chain of {} stages, cold: {cold:.2?}", arguments.stages);
    let last = format!("s{}", arguments.stages - 1);
    let steps = format!("ablate: {} steps", arguments.stages);
    let target = Duration::from_millis(100);
    for (name, words) in [
        ("audit as a tree", vec!["audit", last.as_str()]),
        ("audit as JSON", vec!["audit", &last, "--json"]),
        ("audit without hashing", vec!["audit", &last, "--no-bytes"]),
    ] {
        let took = median(arguments.rounds, || {
            let (took, said) = ablate(arguments, folder, &words);
            assert!(said.contains(&steps) || words.contains(&"--json"), "{said}");
            took
        });
        say(name, took, target);
    }
}

/// Two stores with the same keys and the same results.
fn challenge(arguments: &Arguments, folder: &Path) {
    for name in ["here", "there"] {
        fill(&folder.join(name), arguments.keys);
    }
    let took = median(arguments.rounds, || {
        let (took, said) = ablate(
            arguments,
            folder,
            &["challenge", "there", "--store", "here"],
        );
        let expected = format!("ablate: {} keys agree, 0 disagree", arguments.keys);
        assert!(said.starts_with(&expected), "{said}");
        took
    });
    let name = format!("challenge of two stores of {} keys", arguments.keys);
    say(&name, took, Duration::from_millis(200));
}

fn fill(root: &Path, keys: i64) {
    let store = Store::open(root).expect("a store");
    let run = store.begin_run(&NewRun::default()).expect("a run");
    let mut batch = Vec::new();
    for n in 0..keys {
        // A few tables for many keys: what is measured is the comparison.
        let column: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![n % 50]));
        let table = RecordBatch::try_from_iter([("x", column)]).expect("a table");
        let staged = store.put(&table).expect("stored");
        batch.push(finished(run, n, staged));
    }
    store.commit(batch, &[]).expect("recorded");
}

fn finished(run: RunId, n: i64, staged: store::Staged) -> Finished {
    let key = StageKey {
        record: StageKey::RECORD.into(),
        kind: "table".into(),
        code: store::code_digest(&Default::default()),
        params: [("n".to_owned(), Value::Int(n))].into(),
        seed: None,
        files: Default::default(),
        executable: Default::default(),
        installed: Default::default(),
        inputs: Default::default(),
    };
    Finished {
        run,
        instance: format!("t[n={n}]"),
        key_digest: key.digest(),
        key,
        code: Default::default(),
        started: 0,
        wall: Duration::ZERO,
        cpu: None,
        peak_memory: None,
        work: Default::default(),
        outcome: Ok(vec![("rows".into(), staged)]),
        log: String::new(),
        inputs: Vec::new(),
        environment: None,
        facts: Default::default(),
        lease: None,
    }
}

/// Hashing all objects, beside `b3sum` of the same files, or beside what it does if it is not
/// there: mapped, on all threads. The sides take turns.
fn fsck(arguments: &Arguments, root: &Path) {
    const OBJECT: usize = 16 << 20;
    let store = Store::open(root).expect("a store");
    let run = store.begin_run(&NewRun::default()).expect("a run");
    let mut batch = Vec::new();
    for n in 0..(arguments.mebibytes << 20) / OBJECT {
        // Bytes that no encoding makes smaller.
        let mut bytes = vec![0; OBJECT];
        let mut random = blake3::Hasher::new();
        random
            .update(&n.to_le_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        let column: ArrayRef = std::sync::Arc::new(UInt8Array::from(bytes));
        let table = RecordBatch::try_from_iter([("x", column)]).expect("a table");
        batch.push(finished(run, n as i64, store.put(&table).expect("stored")));
    }
    store.commit(batch, &[]).expect("recorded");
    drop(store);
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in std::fs::read_dir(root.join("objects")).expect("objects") {
        let folder = folder.expect("a folder").path();
        let entries = std::fs::read_dir(folder).expect("objects");
        files.extend(entries.map(|entry| entry.expect("an object").path()));
    }
    let bytes: u64 = files
        .iter()
        .map(|file| std::fs::metadata(file).expect("there").len())
        .sum();
    let peer = Command::new("b3sum").arg("--version").output().is_ok();
    let hash = || {
        let started = Instant::now();
        if peer {
            let done = Command::new("b3sum").args(&files).output();
            assert!(done.expect("b3sum can be started").status.success());
            return started.elapsed();
        }
        for file in &files {
            let mut hasher = blake3::Hasher::new();
            hasher.update_mmap_rayon(file).expect("readable");
            std::hint::black_box(hasher.finalize());
        }
        started.elapsed()
    };
    let folder = root.parent().expect("it is in a folder");
    let words = ["fsck", "--store", root.to_str().expect("UTF-8")];
    let mut plain = Vec::new();
    let ours = median(arguments.rounds, || {
        plain.push(hash());
        let (took, said) = ablate(arguments, folder, &words);
        assert!(said.contains("ablate: sound: "), "{said}");
        took
    });
    plain.sort_unstable();
    let plain = plain[plain.len() / 2];
    let whose = if peer {
        "b3sum"
    } else {
        "hashing alone (b3sum is not there)"
    };
    let speed = |took: Duration| bytes as f64 / took.as_secs_f64() / 1e9;
    let share = plain.as_secs_f64() / ours.as_secs_f64();
    println!(
        "fsck of {} MiB in {} objects: {ours:.1?}, {:.2} GB/s; {whose} {plain:.1?}, {:.2} GB/s: \
         {:.0}% (target 80%: {})",
        bytes >> 20,
        files.len(),
        speed(ours),
        speed(plain),
        share * 100.0,
        if share >= 0.8 { "met" } else { "NOT met" }
    );
}
