//! Stages through Slurm beside a bare job array of the same commands, on the same cluster of three virtual nodes.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use wait4::Wait4;

use crate::daemons::slurm::{Cluster, Limits};
use crate::{Arguments, ablate, met, timed};

/// An array takes all stages, and ended jobs are remembered for as long as most clusters do.
const LIMITS: Limits = Limits {
    array: 2_001,
    remembered: 300,
    cpus: 8,
    memory: false,
};

pub fn measure(arguments: &Arguments, folder: &Path) {
    let Some(cluster) = Cluster::start(LIMITS) else {
        return;
    };
    std::fs::create_dir_all(folder).expect("a folder");
    let stages = arguments.stages;
    let axis: Vec<String> = (1..=stages).map(|n| n.to_string()).collect();
    let text = format!(
        "[axes]\nn = [{}]\n\n[stage.t]\nkind = \"table\"\nrows = [{{ x = 1 }}]\n\n\
         [stage.copied]\nkind = \"command\"\ninputs = {{ t = \"t\" }}\noutputs = [\"o\"]\nenv = {{ N = \"${{n}}\" }}\n\
         run = [\"sh\", \"-c\", \"cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]\n\n\
         [executor.slurm]\nin_flight = {stages}\npoll_every = \"1s\"\n",
        axis.join(", ")
    );
    std::fs::write(folder.join("pipeline.toml"), text).expect("a pipeline");

    client_rates(&cluster, folder, stages);
    let bare = bare_array(&cluster, folder, stages);
    let words = ["run", "-q", "--executor", "slurm"];
    let (ours, cpu) = driven(&mut cluster.of(ablate(arguments, folder, &words)));
    let listed = timed(&mut ablate(arguments, folder, &["plan", "--json"])).1;
    let cached = listed.matches("\"status\":\"cached\"").count();
    assert_eq!(cached, stages + 1, "all stages have results");
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!(
        "{stages} stages through Slurm: {ours:.1?}; a bare array of the same commands: {bare:.1?}; {ratio:.2} x (goal 1.3 x: {})",
        met(ratio <= 1.3)
    );
    let each = ours.saturating_sub(bare) / stages as u32;
    let limit = Duration::from_millis(5);
    println!(
        "beyond the bare array, workers and driver on the same cores: {each:.2?} per stage (goal {limit:?}: {})",
        met(each <= limit)
    );
    let each = cpu / stages as u32;
    println!(
        "CPU time of the driver, with the programs of Slurm that it calls: {each:.2?} per stage (goal {limit:?}: {})",
        met(each <= limit)
    );
}

/// Runs a driver that must succeed: how long it took, and its CPU time.
fn driven(command: &mut Command) -> (Duration, Duration) {
    let started = Instant::now();
    let child = command.spawn().expect("it can be started");
    let ended = child.wait4().expect("it can be waited for");
    assert!(ended.status.success(), "{command:?}");
    (started.elapsed(), ended.rusage.utime + ended.rusage.stime)
}

/// An array whose tasks copy a file, from its submission until the last copy is there.
fn bare_array(cluster: &Cluster, folder: &Path, tasks: usize) -> Duration {
    let copies = folder.join("copies");
    std::fs::create_dir_all(&copies).expect("a folder");
    std::fs::write(folder.join("file"), [0; 1000]).expect("a file");
    let script = format!(
        "#!/bin/sh\ncp {0}/file {0}/copies/$SLURM_ARRAY_TASK_ID\n",
        folder.display()
    );
    std::fs::write(folder.join("task.sh"), script).expect("a script");
    let started = Instant::now();
    let mut sbatch = cluster.of(Command::new("sbatch"));
    sbatch
        .arg(format!("--array=1-{tasks}"))
        .args(["--output=/dev/null", "--no-requeue"])
        .arg(folder.join("task.sh"));
    timed(&mut sbatch);
    while std::fs::read_dir(&copies).map_or(0, Iterator::count) < tasks {
        std::thread::sleep(Duration::from_millis(50));
        assert!(
            started.elapsed() < Duration::from_secs(1800),
            "the array does not end"
        );
    }
    started.elapsed()
}

/// What Slurm's own programs take for an array that waits: the driver calls them.
fn client_rates(cluster: &Cluster, folder: &Path, tasks: usize) {
    std::fs::write(folder.join("held.sh"), "#!/bin/sh\n").expect("a script");
    let mut sbatch = cluster.of(Command::new("sbatch"));
    sbatch
        .arg(format!("--array=1-{tasks}"))
        .args(["--hold", "--parsable", "--output=/dev/null"])
        .arg(folder.join("held.sh"));
    let (submitted, number) = timed(&mut sbatch);
    let mut squeue = cluster.of(Command::new("squeue"));
    squeue.args([
        "--noheader",
        "--array",
        "--me",
        "--states=all",
        "--format=%i|%T|%k",
    ]);
    let (listed, lines) = timed(&mut squeue);
    assert_eq!(lines.lines().count(), tasks);
    let mut scancel = cluster.of(Command::new("scancel"));
    let (cancelled, _) = timed(scancel.arg(number.trim()));
    println!(
        "Slurm's own: sbatch of an array of {tasks} {submitted:.2?}, squeue of its tasks {listed:.2?}, scancel {cancelled:.2?}"
    );
}
