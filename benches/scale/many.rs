//! What the driver and its database do with many stages that take no time of their own: rates behind the figures of
//! docs/scale.md.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::{Arguments, ablate, timed};

pub fn measure(arguments: &Arguments, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let stages = arguments.many;
    let axis: Vec<String> = (1..=stages).map(|n| n.to_string()).collect();
    let text = format!(
        "[axes]\nn = [{}]\n\n[stage.t]\nkind = \"table\"\nrows = [{{ x = \"${{n}}\" }}]\n",
        axis.join(", ")
    );
    std::fs::write(folder.join("pipeline.toml"), text).expect("a pipeline");
    let per_second = |took: Duration| stages as f64 / took.as_secs_f64();
    for (what, words) in [
        ("planned", &["plan", "-q"][..]),
        ("executed and recorded", &["run", "-q"]),
        ("found in the store", &["run", "-q"]),
        ("examined", &["fsck"]),
        ("looked at by gc", &["gc", "--dry-run"]),
    ] {
        let (took, _) = timed(&mut ablate(arguments, folder, words));
        println!(
            "{stages} stages {what}: {took:.2?}, {:.0} a second",
            per_second(took)
        );
    }
    let database = folder.join(".ablate/provenance.db");
    let bytes = std::fs::metadata(database).map_or(0, |about| about.len());
    println!(
        "the database has {:.1} MB, {} bytes a stage",
        bytes as f64 / 1e6,
        bytes / stages as u64
    );
    let took = looked_at(&folder.join("jobs"), stages);
    println!("{stages} folders of jobs listed, as a driver does that waits for them: {took:.2?}");
}

/// Lists folders with the files of a running job, one after the other.
fn looked_at(jobs: &Path, count: usize) -> Duration {
    for n in 0..count {
        let folder = jobs.join(n.to_string());
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in ["task.json", "submitted.json", "started.json"] {
            std::fs::write(folder.join(name), "{}").expect("a file");
        }
    }
    let started = Instant::now();
    for n in 0..count {
        let files = std::fs::read_dir(jobs.join(n.to_string())).expect("a folder");
        assert_eq!(files.count(), 3);
    }
    started.elapsed()
}
