//! Texts and bytes that nobody would write on purpose, fed to everything that reads what others
//! wrote: it must end in a value or an error. Runs on a stable compiler, a few seconds as a test;
//! `ABLATE_FUZZ_SECONDS=60 cargo test --bin ablate fuzz` goes on for a minute each.
//!
//! Seeds are real inputs, and each try is a seed with a few changes, all from one number: a
//! failure says which, and the same number does it again.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Float64Array, StringArray};
use arrow::record_batch::RecordBatch;

use crate::config::{self, PipelineRequest};
use crate::diagnostic;
use crate::inspect::audit::check;
use crate::inspect::lock::Lock;
use crate::publish::{claims, manuscript};
use crate::{environment, plan};

/// Random numbers that a seed repeats (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Words that readers have a meaning for, and some that none has.
const WORDS: &[&str] = &[
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'''",
    "=",
    ".",
    ",",
    "${k}",
    "$${k}",
    "\\u0000",
    "\n",
    "\u{0}",
    "\u{feff}",
    "é",
    "[stage.a]",
    "kind = \"sql\"",
    "over = [\"k\"]",
    "inputs = { t = \"a\" }",
    "-1",
    "9223372036854775808",
    "1e999",
    "nan",
    "SELECT",
    "FROM",
    "(",
    ")",
    "*",
    "'",
    "WITH",
    "GROUP BY",
    "JOIN",
    "CASE WHEN",
    "--",
    "/*",
    "null",
    "true",
    "[[",
    "{{ablate:",
    "}}",
    "|%1",
];

/// A seed with one to eight changes.
fn changed(seed: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + dice.below(8) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(16)).min(bytes.len());
        match dice.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 if at < bytes.len() => bytes[at] = dice.next() as u8,
            2 => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4 => {
                let part = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, part.repeat(1 + dice.below(40))));
            }
            5 => {
                let from = dice.below(other.len());
                let to = (from + dice.below(64)).min(other.len());
                drop(bytes.splice(at..at, other[from..to].iter().copied()));
            }
            _ => {
                let word = WORDS[dice.below(WORDS.len())];
                drop(bytes.splice(at..at, word.bytes()));
            }
        }
    }
    bytes.truncate(1 << 16);
    bytes
}

/// Tries a reader with changed seeds, for a fixed number of tries or for a given time.
fn fuzz(name: &str, seeds: &[Vec<u8>], tries: u64, read: impl Fn(&[u8])) {
    let seconds = std::env::var("ABLATE_FUZZ_SECONDS").ok();
    let seconds: Option<u64> = seconds.and_then(|text| text.parse().ok());
    let before = environment::peak_memory().unwrap_or(0);
    let started = Instant::now();
    let (mut number, mut slow) = (0, Vec::new());
    loop {
        let done = match seconds {
            Some(seconds) => started.elapsed() >= Duration::from_secs(seconds),
            None => number >= tries,
        };
        if done {
            break;
        }
        let mut dice = Dice(number);
        let seed = &seeds[dice.below(seeds.len())];
        let other = &seeds[dice.below(seeds.len())];
        let bytes = changed(seed, other, &mut dice);
        let began = Instant::now();
        let ended = catch_unwind(AssertUnwindSafe(|| read(&bytes)));
        assert!(
            ended.is_ok(),
            "{name}: try {number} panicked on {:?}",
            String::from_utf8_lossy(&bytes)
        );
        if began.elapsed() > Duration::from_secs(5) {
            slow.push(number);
        }
        number += 1;
    }
    let grown = environment::peak_memory()
        .unwrap_or(0)
        .saturating_sub(before);
    println!("{name}: {number} tries, {} MiB more memory", grown >> 20);
    if !slow.is_empty() {
        println!("{name}: slower than 5 s: tries {slow:?}");
    }
    // Other tests of this process take memory too; what has no bound takes more than all of them.
    assert!(grown < 2 << 30, "{name}: {} MiB more memory", grown >> 20);
}

fn texts(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|text| text.as_bytes().to_vec()).collect()
}

const PIPELINE: &str = r#"
[pipeline]
name = "p"
seed = 7
[axes]
k = [1, 2]
[stage.a]
kind = "table"
rows = [{ x = 1, y = "${k}" }, { x = 2, y = 3 }]
[stage.b]
kind = "sql"
inputs = { t = "a" }
over = ["k"]
query = "SELECT k, SUM(x) AS x FROM t GROUP BY k ORDER BY k"
[stage.c]
kind = "command"
inputs = { t = "b" }
run = ["sh", "-c", "true"]
outputs = ["o"]
env = { A = "1" }
[profile.smoke.stage.a]
rows = []
"#;

/// Reads, checks and plans a pipeline, and renders what is wrong with it.
fn planned(folder: &std::path::Path, text: &[u8], set: Option<&str>) {
    let file = folder.join("pipeline.toml");
    std::fs::write(&file, text).unwrap();
    let request = PipelineRequest {
        file,
        profile: None,
        sets: set.map(str::to_owned).into_iter().collect(),
    };
    match config::read(&request) {
        Err(problems) => drop(diagnostic::render(&problems.sources, &problems.list)),
        Ok(pipeline) => {
            if let Err(list) = plan::build(&pipeline) {
                drop(diagnostic::render(&pipeline.sources, &list));
            }
        }
    }
}

#[test]
fn pipelines() {
    let folder = tempfile::tempdir().unwrap();
    let own = include_str!("../pipeline.toml");
    let seeds = texts(&[
        PIPELINE,
        own,
        "",
        "[stage.a]\nkind = \"table\"\nrows = []\n",
    ]);
    fuzz("pipeline.toml", &seeds, 1500, |bytes| {
        planned(folder.path(), bytes, None)
    });
}

#[test]
fn settings() {
    let folder = tempfile::tempdir().unwrap();
    let seeds = texts(&[
        "a.rows=[{ x = 3 }]",
        "b.query=SELECT 1",
        "axes.k=[1,2]",
        "c.env.A=2",
    ]);
    fuzz("--set", &seeds, 1500, |bytes| {
        let set = String::from_utf8_lossy(bytes);
        planned(folder.path(), PIPELINE.as_bytes(), Some(&set));
    });
}

#[test]
fn claims_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pipeline.toml");
    std::fs::write(&file, PIPELINE).unwrap();
    let request = PipelineRequest {
        file,
        profile: None,
        sets: Vec::new(),
    };
    let pipeline = config::read(&request).unwrap();
    let plan = plan::build(&pipeline).unwrap();
    let claim = "[claims]\ntables = { b = \"b\" }\n[claim.x]\nlevel = \"must\"\ntext = \"t\"\n\
                 query = \"SELECT MAX(x) > 1 AS holds FROM b\"\n";
    let path = folder.path().join("claims.toml");
    fuzz(
        "claims.toml",
        &texts(&[claim, "[claims]\n"]),
        1000,
        |bytes| {
            std::fs::write(&path, bytes).unwrap();
            if let Err(problems) = claims::read(&path, &plan) {
                drop(diagnostic::render(&problems.sources, &problems.list));
            }
        },
    );
}

#[test]
fn queries_of_claims() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("name", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("value", Arc::new(Float64Array::from(vec![0.5, 0.25]))),
    ];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let seeds = texts(&[
        "SELECT MAX(value) > 0.4 AS holds, MAX(value) AS v FROM t",
        "SELECT name, SUM(value) AS s FROM t WHERE name = 'a' GROUP BY name ORDER BY name LIMIT 3",
        "WITH u AS (SELECT * FROM t) SELECT CASE WHEN value > 0.3 THEN 1 ELSE 0 END AS c FROM u",
    ]);
    fuzz("claims SQL", &seeds, 600, |bytes| {
        let query = String::from_utf8_lossy(bytes);
        let tables = BTreeMap::from([("t".to_owned(), table.clone())]);
        let _ = stages::sql::query(tables, &query, || false);
    });
}

#[test]
fn parquet_of_others() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("name", Arc::new(StringArray::from(vec!["a", "b", "a"]))),
        (
            "value",
            Arc::new(Float64Array::from(vec![Some(0.5), None, Some(1.0)])),
        ),
    ];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let seeds = [
        store::encode(&table).unwrap(),
        b"PAR1PAR1PAR1".to_vec(),
        Vec::new(),
    ];
    fuzz("Parquet", &seeds, 3000, |bytes| {
        let _ = store::decode_foreign(bytes.to_vec());
    });
}

#[test]
fn proofs() {
    let digest = store::Digest::of(b"x");
    let proof = format!(
        r#"{{"record":"ablate-proof/2","asked":"a","root":"{digest}","output":"rows","cell":{{"wanted":{{"filters":[["x","1"]],"column":null}},"found":{{"row":0,"column":"x","value":"1"}}}},"nodes":[{{"stage":"a","key":{{"record":"stage-key/1","kind":"table","code":"{digest}","params":{{"rows":[{{"x":1}}]}},"seed":null,"files":{{}},"inputs":{{}}}},"outputs":{{"rows":"{digest}"}},"inputs":[],"raw":[]}},{{"stage":"b","key":{{"record":"stage-key/1","kind":"sql","code":"{digest}","params":{{}},"seed":1,"files":{{}},"inputs":{{"t":"{digest}"}}}},"outputs":{{"rows":"{digest}"}},"inputs":[{{"port":"t","axes":"[[\"k\"],[1]]","node":0,"output":"rows","digest":"{digest}"}}],"raw":[{{"name":"f","checksum":"sha256:00","bytes":1}}]}}],"accepted":[],"artifact":"50415231"}}"#
    );
    assert!(check::parse(proof.as_bytes()).is_ok(), "the seed is one");
    fuzz("proof", &texts(&[&proof, "{}", "[]"]), 4000, |bytes| {
        if let Ok(proof) = check::parse(bytes) {
            let checked = check::check(&proof, None).unwrap();
            let _ = checked.holds();
        }
    });
}

#[test]
fn locks() {
    let digest = store::Digest::of(b"x");
    let stage =
        format!("{{ outputs = {{ rows = \"{digest}\" }}, promise = \"p\", key = \"{digest}\" }}");
    let lock = format!(
        "format = 1\npipeline = \"p\"\nmachine = \"avx\"\n[stages]\n\"a[k=1]\" = {stage}\n\"b\" = {stage}\n"
    );
    assert!(Lock::parse(&lock).is_ok(), "the seed is one");
    fuzz(
        "results.lock",
        &texts(&[&lock, "format = 1\n"]),
        3000,
        |bytes| {
            let text = String::from_utf8_lossy(bytes);
            if let Ok(lock) = Lock::parse(&text) {
                assert_eq!(Lock::parse(&lock.to_string()), Ok(lock));
            }
        },
    );
}

#[test]
fn manuscripts() {
    let text =
        "It is 0.916<!-- ablate:r[row=a] -->, 91.6\\% and {{ablate:r[row=a,col=\"b, c\"]|%1}}.\n";
    fuzz(
        "manuscript",
        &texts(&[text, "12.5% ablate:x\n", ""]),
        4000,
        |bytes| {
            let text = String::from_utf8_lossy(bytes);
            for number in manuscript::numbers::written(&text) {
                let _ = (number.is(0.9163), number.is_vague());
            }
            let _ = manuscript::render::render(&text, |name| Ok(name.to_owned()));
        },
    );
}
