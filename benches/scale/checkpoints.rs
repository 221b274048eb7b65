//! What checkpoints of training cost: the same training with one every second and with none, in turn. A training saves
//! one every two minutes unless it is told otherwise, so the share of its time follows.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Arguments, ablate, met, timed};

/// An LSTM with 1.7 million weights, whose optimiser keeps two more numbers for each.
const PIPELINE: &str = r#"
[pipeline]
seed = 7

[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 1200, dev = 20, test = 10 }

[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "words"
max_len = 40

[stage.model]
kind = "train"
inputs = { rows = "tokens" }
model = "lstm"
units = 512
dim = 300
batch = 32
epochs = 4
"#;

/// How often training saves one by default.
const EVERY: Duration = Duration::from_secs(120);

const ROUNDS: usize = 5;

pub fn measure(arguments: &Arguments, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::write(folder.join("pipeline.toml"), PIPELINE).expect("a pipeline");
    timed(&mut ablate(arguments, folder, &["run", "-q", "tokens"]));
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let (mut saved, mut size) = (0, 0);
    for round in 0..ROUNDS {
        for every in ["1", "100000"] {
            let store = folder.join(format!("store-{round}-{every}"));
            copy(&folder.join(".ablate"), &store);
            let words = ["run", "-q", "--checkpoint-every", every, "--store"];
            let mut command = ablate(arguments, folder, &words);
            let (took, found, bytes) = watched(command.arg(&store), &store.join("checkpoints"));
            match every {
                "1" => {
                    with.push(took);
                    saved += found;
                    size = size.max(bytes);
                }
                _ => without.push(took),
            }
            std::fs::remove_dir_all(&store).expect("it is ours");
        }
    }
    let (with, without) = (median(with), median(without));
    let each = saved as f64 / ROUNDS as f64;
    let cost = (with.as_secs_f64() - without.as_secs_f64()) / each.max(1.0);
    let share = cost / EVERY.as_secs_f64() * 100.0;
    println!(
        "training: {without:.2?} without checkpoints, {with:.2?} with {each:.1} of {:.1} MB (medians of {ROUNDS}): \
         {:.0} ms each",
        size as f64 / 1e6,
        cost * 1e3
    );
    println!(
        "one every {} s: {share:.3}% of the time of training (goal 2%: {})",
        EVERY.as_secs(),
        met(share <= 2.0)
    );
}

/// Runs a program: how long it took, how many checkpoints were seen, and the bytes of the largest.
fn watched(command: &mut Command, checkpoints: &Path) -> (Duration, usize, u64) {
    let started = Instant::now();
    let mut child = command.spawn().expect("it can be started");
    let (mut seen, mut last, mut largest) = (0, None, 0);
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        for entry in std::fs::read_dir(checkpoints)
            .into_iter()
            .flatten()
            .flatten()
        {
            let whole = !entry.file_name().to_string_lossy().starts_with('.');
            if let Some(about) = entry.metadata().ok().filter(|_| whole) {
                let at = about.modified().ok();
                if at != last {
                    (seen, last) = (seen + 1, at);
                }
                largest = largest.max(about.len());
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{command:?}");
    (started.elapsed(), seen, largest)
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort();
    all[all.len() / 2]
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("a copy")),
        }
    }
}
