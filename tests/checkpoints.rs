//! Long stages go on where they stopped: after kill -9, after Ctrl-C, after a request to save. The bytes are those of
//! an undisturbed run, and the provenance says how often it was resumed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::Lab;
use crate::schedule::signal;

const LONG: &str = include_str!("pipelines/long_training.toml");

/// The same of an attack.
const ATTACK: &str = include_str!("pipelines/long_attack.toml");

/// The same of a test generation in which each input depends on what those before it cover.
const RNN_TEST: &str = include_str!("pipelines/long_rnn_test.toml");

/// The checkpoints of a store.
fn checkpoints(lab: &Lab) -> Vec<PathBuf> {
    let folder = lab.path(".ablate/checkpoints");
    let files = std::fs::read_dir(folder).into_iter().flatten();
    files.map(|file| file.unwrap().path()).collect()
}

/// A name with a dot in front is of one that is being written.
fn is_whole(path: &Path) -> bool {
    !path.file_name().unwrap().to_string_lossy().starts_with('.')
}

/// Waits until a checkpoint is there, and has `until` done in between.
fn wait_for_checkpoint(lab: &Lab, mut meanwhile: impl FnMut()) {
    let begun = Instant::now();
    while !checkpoints(lab).iter().any(|path| is_whole(path)) {
        assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint");
        std::thread::sleep(Duration::from_millis(20));
        meanwhile();
    }
}

/// What a process has used of processors, in hundredths of a second.
fn processor_time(process: u32) -> u64 {
    let about = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // Behind the name, which may have anything in it.
    let (_, fields) = about.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn step<'a>(audit: &'a Value, stage: &str) -> &'a Value {
    let steps = audit["steps"].as_array().unwrap();
    steps.iter().find(|step| step["stage"] == stage).unwrap()
}

/// Runs to the end, and checks that the stage was resumed so often and gave what it would have given.
fn ends_the_same(lab: &Lab, pipeline: &str, stage: &str, resumed: u64) {
    let ran = lab.run();
    ran.ran([stage]);
    assert_eq!(checkpoints(lab), Vec::<PathBuf>::new());
    let undisturbed = Lab::new(pipeline);
    undisturbed.run();
    assert_eq!(lab.digests(), undisturbed.digests());
    let audit = lab.ablate(&["audit", stage, "--json"]).good().stdout;
    let audit: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!(step(&audit, stage)["resumed"], resumed, "{audit}");
    let log = step(&audit, stage)["log"].as_str().unwrap();
    assert!(log.starts_with("resumed from a checkpoint after "), "{log}");
    lab.ablate(&["fsck"]).good();
}

#[test]
fn killed_twice_it_ends_as_if_it_had_not_been() {
    killed_twice(LONG, "model");
}

#[test]
fn so_does_an_attack_that_is_killed_twice() {
    killed_twice(ATTACK, "jsma");
}

#[test]
fn so_does_a_test_generation_that_is_killed_twice() {
    killed_twice(RNN_TEST, "covered");
}

fn killed_twice(pipeline: &str, stage: &str) {
    let lab = Lab::new(pipeline);
    // The checkpoints of this stage alone: what it reads is there already.
    if stage != "model" {
        lab.run_with(&["model"]);
    }
    for _ in 0..2 {
        // As often as can be: whatever the machine, most of the stage is still to come when it is killed.
        let mut child = lab.start(&["--checkpoint-every", "0"]);
        let left = checkpoints(&lab).into_iter().filter(|path| is_whole(path));
        left.for_each(|path| {
            // Only a checkpoint of this execution counts; the one before is read when the stage begins.
            let seen = std::fs::metadata(&path).unwrap().modified().unwrap();
            let begun = Instant::now();
            while std::fs::metadata(&path).is_ok_and(|now| now.modified().unwrap() == seen) {
                assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint");
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        wait_for_checkpoint(&lab, || ());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    ends_the_same(&lab, pipeline, stage, 2);
}

#[test]
fn it_saves_when_it_is_asked_to_and_when_it_is_stopped() {
    saves_when_asked(LONG, "model", "tokens");
}

#[test]
fn so_does_an_attack_that_is_asked_and_stopped() {
    saves_when_asked(ATTACK, "jsma", "model");
}

#[test]
fn so_does_a_test_generation_that_is_asked_and_stopped() {
    saves_when_asked(RNN_TEST, "covered", "model");
}

fn saves_when_asked(pipeline: &str, stage: &str, before: &str) {
    let lab = Lab::new(pipeline);
    if stage != "model" {
        lab.run_with(&["model"]);
    }
    let mut child = lab.start(&["--checkpoint-every", "100000"]);
    let pid = child.id();
    // A signal that comes before the program listens would end it: by the end of the first stages it does.
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines();
    let ended = format!("\"stage\":\"{before}\"");
    let is_before = |line: std::io::Result<String>| line.unwrap().contains(&ended);
    assert!(events.any(is_before), "the first stages end");
    wait_for_checkpoint(&lab, || signal(pid, "USR1"));
    let first = std::fs::read(&checkpoints(&lab)[0]).unwrap();
    // It goes on for a while, on whatever else the machine does.
    let (from, begun) = (processor_time(pid), Instant::now());
    while processor_time(pid) < from + 20 {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "it stands still"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(pid, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let last = std::fs::read(&checkpoints(&lab)[0]).unwrap();
    assert!(first != last, "the interrupt saves where it stopped");
    let plan = lab.ablate(&["plan"]).good().stdout;
    let goes_on = format!("will run  {stage}: interrupted, continues from its checkpoint");
    assert!(plan.contains(&goes_on), "{plan}");
    let shown = lab.ablate(&["gc", "--dry-run"]).good().stdout;
    assert!(shown.contains("would remove 1 checkpoint "), "{shown}");
    ends_the_same(&lab, pipeline, stage, 1);
}

/// A checkpoint that was damaged is not believed: the stage starts from the beginning.
#[test]
fn a_damaged_checkpoint_is_ignored_and_gc_removes_it() {
    let lab = Lab::new(LONG);
    let path = loop {
        let mut child = lab.start(&["--checkpoint-every", "0"]);
        wait_for_checkpoint(&lab, || ());
        child.kill().unwrap();
        child.wait().unwrap();
        // Beside it there may be one that was being written.
        match checkpoints(&lab).into_iter().find(|path| is_whole(path)) {
            Some(path) => break path,
            // On a busy machine it came to its end meanwhile: from the beginning.
            None => std::fs::remove_dir_all(lab.path(".ablate")).unwrap(),
        }
    };
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    // On a busy machine what the stage reads may not have been recorded yet when it was killed.
    let ran = lab.run().with("ran");
    assert!(ran.contains(&"model".to_owned()), "{ran:?}");
    let audit = lab.ablate(&["audit", "model", "--json"]).good().stdout;
    let audit: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!(step(&audit, "model")["resumed"], 0);
    std::fs::write(path, "left by a key that nobody asks for").unwrap();
    lab.ablate(&["gc"]).good();
    assert_eq!(checkpoints(&lab), Vec::<PathBuf>::new());
}
