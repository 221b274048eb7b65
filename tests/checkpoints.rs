//! Long stages go on where they stopped: after kill -9, after Ctrl-C, after a request to save. The bytes are those of
//! an undisturbed run, and the provenance says how often it was resumed.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::Lab;
use crate::schedule::signal;

const LONG: &str = include_str!("pipelines/long_training.toml");

/// The checkpoints of a store.
fn checkpoints(lab: &Lab) -> Vec<PathBuf> {
    let folder = lab.path(".ablate/checkpoints");
    let files = std::fs::read_dir(folder).into_iter().flatten();
    files.map(|file| file.unwrap().path()).collect()
}

/// Waits until a checkpoint is there, and has `until` done in between.
fn wait_for_checkpoint(lab: &Lab, mut meanwhile: impl FnMut()) {
    let begun = Instant::now();
    // A temporary name has a dot in front.
    let saved = |path: &PathBuf| !path.file_name().unwrap().to_string_lossy().starts_with('.');
    while !checkpoints(lab).iter().any(saved) {
        assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint");
        std::thread::sleep(Duration::from_millis(20));
        meanwhile();
    }
}

fn step<'a>(audit: &'a Value, stage: &str) -> &'a Value {
    let steps = audit["steps"].as_array().unwrap();
    steps.iter().find(|step| step["stage"] == stage).unwrap()
}

/// Runs to the end, and checks that the training was resumed so often and gave what it would have given.
fn ends_the_same(lab: &Lab, resumed: u64) {
    let ran = lab.run();
    ran.ran(["model"]);
    assert_eq!(checkpoints(lab), Vec::<PathBuf>::new());
    let undisturbed = Lab::new(LONG);
    undisturbed.run();
    assert_eq!(lab.digests(), undisturbed.digests());
    let audit = lab.ablate(&["audit", "model", "--json"]).good().stdout;
    let audit: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!(step(&audit, "model")["resumed"], resumed, "{audit}");
    let log = step(&audit, "model")["log"].as_str().unwrap();
    assert!(log.starts_with("resumed from a checkpoint after "), "{log}");
    lab.ablate(&["fsck"]).good();
}

#[test]
fn killed_twice_it_ends_as_if_it_had_not_been() {
    let lab = Lab::new(LONG);
    for _ in 0..2 {
        let mut child = lab.start(&["--checkpoint-every", "1"]);
        let left = checkpoints(&lab);
        left.iter().for_each(|path| {
            // Only a checkpoint of this execution counts; the one before is read when the stage begins.
            let seen = std::fs::metadata(path).unwrap().modified().unwrap();
            let begun = Instant::now();
            while std::fs::metadata(path).is_ok_and(|now| now.modified().unwrap() == seen) {
                assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint");
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        wait_for_checkpoint(&lab, || ());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    ends_the_same(&lab, 2);
}

#[test]
fn it_saves_when_it_is_asked_to_and_when_it_is_stopped() {
    let lab = Lab::new(LONG);
    let mut child = lab.start(&["--checkpoint-every", "100000"]);
    let pid = child.id();
    // A signal that comes before the program listens would end it: by the end of the first stages it does.
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines();
    let tokens = |line: std::io::Result<String>| line.unwrap().contains("\"stage\":\"tokens\"");
    assert!(events.any(tokens), "the first stages end");
    wait_for_checkpoint(&lab, || signal(pid, "USR1"));
    let first = std::fs::read(&checkpoints(&lab)[0]).unwrap();
    signal(pid, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let last = std::fs::read(&checkpoints(&lab)[0]).unwrap();
    assert!(first != last, "the interrupt saves where it stopped");
    let shown = lab.ablate(&["gc", "--dry-run"]).good().stdout;
    assert!(shown.contains("would remove 1 checkpoints"), "{shown}");
    ends_the_same(&lab, 1);
}

/// A checkpoint that was damaged is not believed: the stage starts from the beginning.
#[test]
fn a_damaged_checkpoint_is_ignored_and_gc_removes_it() {
    let lab = Lab::new(LONG);
    let mut child = lab.start(&["--checkpoint-every", "1"]);
    wait_for_checkpoint(&lab, || ());
    child.kill().unwrap();
    child.wait().unwrap();
    let path = checkpoints(&lab).remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let ran = lab.run();
    ran.ran(["model"]);
    let audit = lab.ablate(&["audit", "model", "--json"]).good().stdout;
    let audit: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!(step(&audit, "model")["resumed"], 0);
    std::fs::write(path, "left by a key that nobody asks for").unwrap();
    lab.ablate(&["gc"]).good();
    assert_eq!(checkpoints(&lab), Vec::<PathBuf>::new());
}
