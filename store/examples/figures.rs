//! Prints how long the store's common operations take: `cargo run --release -p store --example figures`.
//! With `-- large` what memory it takes to store a table of two gigabytes.
//! A tool for people: no test depends on these times.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{
    ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Float32Type};
use store::{Digest, Finished, NewRun, StageKey, Status, Store, Use, Value};

fn main() -> Result<(), store::Error> {
    if std::env::args().any(|argument| argument == "large") {
        return large();
    }
    for (name, table) in [
        ("2 columns x 2 rows", scalars(2)),
        ("text, 10,000 rows", text(10_000)),
        ("scalars, 1,000,000 rows", scalars(1_000_000)),
        ("vectors, 20,000 x 256 f32", vectors(20_000)),
    ] {
        let bytes = store::encode(&table)?;
        let size = bytes.len();
        let bytes = bytes::Bytes::from(bytes);
        let encode = time(|| drop(black_box(store::encode(&table))));
        let decode = time(|| drop(black_box(store::decode(bytes.clone()))));
        println!("{name:28} encode {encode:>10.1?}  decode {decode:>10.1?}  {size:>10} bytes");
    }

    const N: i64 = 1_000;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(dir.path())?;
    let run = store.begin_run(&NewRun::default())?;
    for batch_size in [1, 10, 100, 1000] {
        let (mut put, mut commit) = (Duration::ZERO, Duration::ZERO);
        let (mut batch, mut uses) = (Vec::new(), Vec::new());
        let count = if batch_size == 1 { N / 10 } else { N };
        for n in 0..count {
            let n = batch_size * 1_000_000 + n;
            let start = Instant::now();
            let lease = store.try_lease(&key(n).digest())?;
            let staged = store.put(&numbers(n))?;
            put += start.elapsed();
            let one = finished(run, n, staged, lease);
            uses.push(Use {
                run,
                instance: one.instance.clone(),
                status: Status::Ran,
                key: Some(one.key_digest),
                wall: one.wall,
            });
            batch.push(one);
            if batch.len() as i64 == batch_size {
                let start = Instant::now();
                store.commit(std::mem::take(&mut batch), &uses)?;
                uses.clear();
                commit += start.elapsed();
            }
        }
        let each = |total: Duration| total / count as u32;
        println!(
            "batches of {batch_size:>4}: lease + put {:>8.1?}, commit {:>8.1?} each",
            each(put),
            each(commit)
        );
    }
    let keys: Vec<Digest> = (0..N).map(|n| key(1_000_000_000 + n).digest()).collect();
    let start = Instant::now();
    let found = keys.iter().filter_map(|key| store.lookup(key).transpose());
    let found = found.collect::<Result<Vec<_>, _>>()?;
    println!("{} lookups: {:.1?}", found.len(), start.elapsed());
    let start = Instant::now();
    for one in &found {
        store.read(&one.outputs[0].digest)?;
    }
    println!("{} verified reads: {:.1?}", found.len(), start.elapsed());
    drop(store);
    let start = Instant::now();
    let store = Store::open(dir.path())?;
    println!("open: {:.1?}", start.elapsed());
    let start = Instant::now();
    let report = store.fsck(&|_, _| {})?;
    println!(
        "fsck of {} objects: {:.1?}",
        report.objects,
        start.elapsed()
    );
    Ok(())
}

fn time(mut work: impl FnMut()) -> Duration {
    let (start, mut times) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(300) {
        work();
        times += 1;
    }
    start.elapsed() / times
}

fn numbers(n: i64) -> RecordBatch {
    let x: ArrayRef = Arc::new(Int64Array::from(vec![n, 2]));
    RecordBatch::try_from_iter([("x", x)]).expect("one column")
}

fn scalars(rows: i64) -> RecordBatch {
    let x: ArrayRef = Arc::new((0..rows).map(|n| n * 7919 % 1000).collect::<Int64Array>());
    let y: ArrayRef = Arc::new(
        (0..rows)
            .map(|n| (n as f64).sin())
            .collect::<Float64Array>(),
    );
    RecordBatch::try_from_iter([("x", x), ("y", y)]).expect("two columns")
}

fn text(rows: usize) -> RecordBatch {
    let words = "the film was not as good as its cast but never dull for a minute of it";
    let words: Vec<&str> = words.split(' ').collect();
    let mut state = 7u64;
    let mut word = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        words[(state >> 33) as usize % words.len()]
    };
    let sentences = (0..rows).map(|_| (0..30).map(|_| word()).collect::<Vec<_>>().join(" "));
    let t: ArrayRef = Arc::new(StringArray::from_iter_values(sentences));
    let label: ArrayRef = Arc::new((0..rows as i64).map(|n| n % 2).collect::<Int64Array>());
    RecordBatch::try_from_iter([("text", t), ("label", label)]).expect("two columns")
}

fn vectors(rows: usize) -> RecordBatch {
    let row = |r: usize| Some((0..256).map(move |c| Some(((r * 256 + c) as f32).sin())));
    let rows = (0..rows).map(row);
    let v = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 256);
    RecordBatch::try_from_iter([("v", Arc::new(v) as ArrayRef)]).expect("one column")
}

fn key(n: i64) -> StageKey {
    StageKey {
        record: StageKey::RECORD.into(),
        kind: "table".into(),
        code: Digest::of(b"code"),
        params: BTreeMap::from([("n".to_owned(), Value::Int(n))]),
        seed: None,
        files: BTreeMap::new(),
        executable: Default::default(),
        installed: Default::default(),
        inputs: BTreeMap::new(),
    }
}

fn finished(
    run: store::RunId,
    n: i64,
    staged: store::Staged,
    lease: Option<store::Lease>,
) -> Finished {
    let key = key(n);
    Finished {
        run,
        instance: format!("numbers[n={n}]"),
        key_digest: key.digest(),
        key,
        code: Default::default(),
        started: 0,
        wall: Duration::from_millis(1),
        cpu: None,
        peak_memory: None,
        work: Default::default(),
        outcome: Ok(vec![("table".into(), staged)]),
        log: String::new(),
        inputs: Vec::new(),
        environment: None,
        facts: Default::default(),
        lease,
    }
}

/// Two gigabytes of vectors, written: the table is in memory, and what comes on top is the store's.
fn large() -> Result<(), store::Error> {
    let (rows, size) = (2_000_000, 256_i32);
    // Noise, which no compression makes smaller.
    let noise = |n: i32| (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let numbers = (0..rows * size).map(|n| noise(n) as f32 / 1e6);
    let numbers = Arc::new(Float32Array::from_iter_values(numbers));
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let column = FixedSizeListArray::new(item, size, numbers, None);
    let table = RecordBatch::try_from_iter([("v", Arc::new(column) as ArrayRef)]).expect("a table");
    let dir = tempfile::tempdir_in(".").expect("a temporary folder");
    let store = Store::open(dir.path())?;
    let before = peak();
    let start = Instant::now();
    let staged = store.put(&table)?;
    println!(
        "{} MB stored in {:.1?}: {} MB at most before, {} MB at most after",
        staged.bytes >> 20,
        start.elapsed(),
        before >> 10,
        peak() >> 10
    );
    Ok(())
}

/// The most memory that this process had, in kilobytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}
