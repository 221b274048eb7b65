//! Claims about the kind `command`, made with real programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::array::Int64Array;
use arrow::record_batch::RecordBatch;
use store::{Digest, Params, Value};

use super::Command;
use crate::{Failure, Outputs, SourceFile, Stage, Task, Usage, Watch};

#[derive(Default)]
struct Eyes {
    log: Mutex<Vec<String>>,
    used: Mutex<Option<Usage>>,
    stop: AtomicBool,
    progress: Mutex<Vec<(u64, u64)>>,
}

impl Watch for Eyes {
    fn progress(&self, done: u64, total: u64) {
        self.progress.lock().unwrap().push((done, total));
    }
    fn work(&self, _: &'static str, _: u64) {}

    fn log(&self, line: &str) {
        self.log.lock().unwrap().push(line.to_owned());
    }
    fn child(&self, usage: Usage) {
        *self.used.lock().unwrap() = Some(usage);
    }
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A command stage to be run, and what was seen of it.
struct Case {
    params: Params,
    files: Vec<(String, PathBuf, Digest)>,
    devices: Vec<PathBuf>,
    eyes: Eyes,
}

fn texts(items: &[&str]) -> Value {
    Value::List(items.iter().map(|t| Value::Text((*t).into())).collect())
}

fn program(run: &[&str]) -> Case {
    let params = [
        ("run".to_owned(), texts(run)),
        ("outputs".to_owned(), texts(&["x"])),
        ("env".to_owned(), Value::Table(BTreeMap::new())),
        ("timeout".to_owned(), Value::Float(20.0)),
    ];
    Case {
        params: params.into(),
        files: Vec::new(),
        devices: Vec::new(),
        eyes: Eyes::default(),
    }
}

fn sh(script: &str) -> Case {
    program(&["sh", "-c", script])
}

fn numbers() -> RecordBatch {
    let x = Arc::new(Int64Array::from(vec![1, 2, 3])) as _;
    RecordBatch::try_from_iter_with_nullable([("x", x, true)]).unwrap()
}

impl Case {
    fn set(mut self, name: &str, value: Value) -> Case {
        self.params.insert(name.into(), value);
        self
    }

    fn file(mut self, name: &str, path: &Path, digest: Digest) -> Case {
        self.files.push((name.into(), path.into(), digest));
        self
    }

    fn run(&self) -> Result<Outputs, Failure> {
        let files = self.files.iter().map(|(name, path, digest)| {
            (
                name.clone(),
                SourceFile {
                    path,
                    digest: *digest,
                    executable: std::fs::metadata(path).is_ok_and(|found| {
                        std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0
                    }),
                },
            )
        });
        Command.run(&Task {
            inputs: [("t".to_owned(), numbers())].into(),
            params: &self.params,
            seed: 7,
            files: files.collect(),
            data: &crate::DataHome::nowhere(),
            place: &crate::Place {
                devices: self.devices.clone(),
                ..crate::Place::default()
            },
            watch: &self.eyes,
        })
    }

    fn message(&self) -> String {
        self.run().unwrap_err().message
    }

    fn log(&self) -> String {
        self.eyes.log.lock().unwrap().join("\n")
    }
}

const COPY: &str = "cp $ABLATE_IN/t.parquet $ABLATE_OUT/x.parquet";

/// A file stands for the device of a graphics processor, which must be opened for writing.
#[test]
fn a_graphics_processor_is_open_to_those_who_ask_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let device = folder.path().join("nvidia0");
    std::fs::write(&device, "").unwrap();
    let mut case = sh(&format!("echo computed > {} && {COPY}", device.display()));
    let closed = case.run();
    if closed.is_ok() {
        println!("skipped: this kernel has no Landlock");
        return;
    }
    case.devices = vec![device.clone()];
    assert_eq!(case.run().unwrap()["x"], numbers());
    assert_eq!(std::fs::read_to_string(&device).unwrap(), "computed\n");
    // What lies beside it stays closed.
    let beside = folder.path().join("sda");
    std::fs::write(&beside, "").unwrap();
    let mut case = sh(&format!("echo broken > {} && {COPY}", beside.display()));
    case.devices = vec![device];
    assert!(case.message().contains("Permission denied"));
}

#[test]
fn a_program_reads_its_inputs_and_writes_its_outputs() {
    let case = sh(&format!("echo one; echo two >&2; echo three; {COPY}"));
    assert_eq!(case.run().unwrap()["x"], numbers());
    assert_eq!(
        case.log(),
        "one\ntwo\nthree",
        "both streams, in the order of printing"
    );
    let used = case.eyes.used.lock().unwrap().unwrap();
    assert!(
        used.peak_memory > 100_000 && used.cpu < Duration::from_secs(5),
        "{used:?}"
    );
}

#[test]
fn the_environment_is_clean() {
    let env = Value::Table([("MODE".to_owned(), Value::Text("fast".into()))].into());
    let case = program(&["sh", "-c", &format!("env | cut -d= -f1 | sort; {COPY}")]).set("env", env);
    case.run().unwrap();
    let expected = "ABLATE_IN ABLATE_OUT ABLATE_PROGRESS ABLATE_SEED HOME LANG MODE PATH PWD PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONPYCACHEPREFIX TMPDIR";
    // `PWD`, and `_`, `SHLVL`, `OLDPWD` in some, are the shell's own.
    let log = case.log();
    let names: Vec<&str> = log
        .lines()
        .filter(|n| !["_", "SHLVL", "OLDPWD"].contains(n))
        .collect();
    assert_eq!(names.join(" "), expected);
    let case = sh(&format!("echo $ABLATE_SEED $LANG $MODE; ls; cat; {COPY}"));
    case.run().unwrap();
    assert_eq!(
        case.log(),
        "7 C.UTF-8",
        "the folder and the standard input are empty"
    );
}

#[test]
fn declared_files_are_copied_where_they_were_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    std::fs::write(&path, format!("#!/bin/sh\n{COPY}\n")).unwrap();
    let digest = Digest::of(&std::fs::read(&path).unwrap());
    let case = program(&["sh", "tools/run.sh"]).file("tools/run.sh", &path, digest);
    assert_eq!(case.run().unwrap()["x"], numbers());
    // Its own "may be run" comes along.
    let case = program(&["./run.sh"]).file("run.sh", &path, digest);
    let failure = case.run().unwrap_err();
    assert_eq!(
        failure.help.unwrap(),
        "make it executable: chmod +x ./run.sh"
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&path, mode).unwrap();
    case.run().unwrap();
    let case = program(&["run.sh"]).file("run.sh", &path, digest);
    assert_eq!(
        case.run().unwrap_err().help.unwrap(),
        "write \"./run.sh\" to run a file of the stage"
    );
}

#[test]
fn a_file_that_changed_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plot.py");
    std::fs::write(&path, "new").unwrap();
    let case = sh(COPY).file("plot.py", &path, Digest::of(b"old"));
    assert_eq!(
        case.message(),
        "plot.py changed while the pipeline was running"
    );
    let case = sh(COPY).file("../plot.py", &path, Digest::of(b"new"));
    assert_eq!(
        case.message(),
        "`../plot.py` is not a name inside the stage's folder"
    );
}

#[test]
fn a_failing_program_is_quoted() {
    let case = sh("echo before; echo 'no such column' >&2; exit 3");
    let expected = "` failed: exit code 3\nits output:\n  before\n  no such column";
    let message = case.message();
    assert!(
        message.starts_with("`sh -c echo before") && message.ends_with(expected),
        "{message}"
    );
    assert_eq!(case.log(), "before\nno such column");
    assert!(
        sh("kill -9 $$")
            .message()
            .ends_with("failed: killed by signal 9\nit printed nothing")
    );
}

#[test]
fn a_missing_program_is_a_failure_with_advice() {
    let failure = program(&["no-such-program-at-all"]).run().unwrap_err();
    assert_eq!(
        failure.message,
        "the program `no-such-program-at-all` was not found"
    );
    assert!(failure.help.unwrap().starts_with("searched the "));
    assert_eq!(failure.param, Some("run"));
    let env = Value::Table([("PATH".to_owned(), Value::Text("/bin".into()))].into());
    let failure = program(&["shh"]).set("env", env).run().unwrap_err();
    let help = failure.help.unwrap();
    assert!(
        help.starts_with("searched the 1 folders in PATH; did you mean `"),
        "{help}"
    );
    let failure = program(&["./plot.py"]).run().unwrap_err();
    assert_eq!(
        failure.help.unwrap(),
        "programs of your own must be named in `files`"
    );
}

#[test]
fn a_program_that_writes_nothing_is_a_failure() {
    let failure = sh("true").run().unwrap_err();
    assert_eq!(
        failure.message,
        "the program did not write its output `x`: $ABLATE_OUT is empty\nit printed nothing"
    );
    assert_eq!(
        failure.help.unwrap(),
        "it must write a Parquet file to $ABLATE_OUT/x.parquet"
    );
    let failure = sh("cp $ABLATE_IN/t.parquet $ABLATE_OUT/X.parquet; echo done")
        .run()
        .unwrap_err();
    assert_eq!(
        failure.message,
        "the program did not write its output `x`: $ABLATE_OUT holds X.parquet\nits output:\n  done"
    );
    assert_eq!(failure.help.unwrap(), "did it mean X.parquet to be `x`?");
    assert!(
        sh("rm -r $ABLATE_OUT; true")
            .message()
            .contains("$ABLATE_OUT is empty")
    );
}

#[test]
fn broken_files_are_failures() {
    for script in [
        "echo hello > $ABLATE_OUT/x.parquet",
        ": > $ABLATE_OUT/x.parquet",
        "head -c 200 $ABLATE_IN/t.parquet > $ABLATE_OUT/x.parquet",
        "{ head -c 100 $ABLATE_IN/t.parquet; tail -c 40 $ABLATE_IN/t.parquet; } > $ABLATE_OUT/x.parquet",
    ] {
        let failure = sh(script).run().unwrap_err();
        let first = failure.message.lines().next().unwrap();
        assert_eq!(
            first, "the output `x` is not a readable Parquet file",
            "{script}"
        );
        assert_eq!(failure.param, Some("outputs"));
        assert!(!failure.message.contains("/tmp/"), "{failure}");
    }
}

#[test]
fn only_plain_files_are_taken() {
    let refused = |script: &str| sh(script).message();
    assert_eq!(
        refused("ln -s $ABLATE_IN/t.parquet $ABLATE_OUT/x.parquet"),
        "the output $ABLATE_OUT/x.parquet is a symbolic link"
    );
    assert_eq!(
        refused("mkdir $ABLATE_OUT/x.parquet"),
        "the output $ABLATE_OUT/x.parquet is a folder"
    );
    assert_eq!(
        refused("mkfifo $ABLATE_OUT/x.parquet"),
        "the output $ABLATE_OUT/x.parquet is not a regular file"
    );
}

#[test]
fn undeclared_outputs_are_ignored_and_said() {
    let case = sh(&format!("{COPY}; touch $ABLATE_OUT/notes.txt"));
    assert_eq!(case.run().unwrap().len(), 1);
    assert_eq!(
        case.log(),
        "ablate: ignored $ABLATE_OUT/notes.txt, which `outputs` does not name"
    );
}

/// Whether a process is alive: it exists and is not a zombie waiting for somebody to reap it.
fn alive(pid: &str) -> bool {
    let ps = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", pid])
        .output()
        .unwrap();
    let state = String::from_utf8(ps.stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// A grandchild that ignores SIGTERM, and prints its number first.
const STUBBORN: &str = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' & ";

#[test]
fn a_timeout_ends_the_whole_group() {
    let case = sh(&format!("{STUBBORN} wait")).set("timeout", Value::Float(0.5));
    let started = Instant::now();
    let failure = case.run().unwrap_err();
    assert!(
        failure
            .message
            .contains("` was stopped after 0.5 s\nits output:\n  "),
        "{failure}"
    );
    assert_eq!(failure.param, Some("timeout"));
    assert!(started.elapsed() < Duration::from_secs(4));
    assert!(!alive(case.log().trim()), "the grandchild lives on");
}

#[test]
fn a_leader_that_ignores_sigterm_is_killed_after_its_grace() {
    let case =
        sh("trap '' TERM; echo $$; while :; do sleep 0.05; done").set("timeout", Value::Float(0.2));
    let started = Instant::now();
    assert!(case.message().contains("was stopped after 0.2 s"));
    let took = started.elapsed();
    assert!(
        took > Duration::from_secs(2) && took < Duration::from_secs(6),
        "{took:?}"
    );
    assert!(!alive(case.log().trim()));
}

#[test]
fn a_program_may_tidy_up_on_sigterm() {
    let case = sh("trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done")
        .set("timeout", Value::Float(0.3));
    let message = case.message();
    assert!(message.ends_with("\n  bye"), "{message}");
}

#[test]
fn what_a_program_leaves_running_is_ended() {
    let case = sh(&format!("{STUBBORN} sleep 0.3; {COPY}"));
    case.run().unwrap();
    assert!(!alive(case.log().trim()));
}

/// `setsid` leaves the group, and the environment gives it away.
#[test]
fn what_leaves_the_group_is_ended_too() {
    let daemon = "setsid sh -c 'echo $$; exec sleep 30' & ";
    let case = sh(&format!("{daemon} sleep 0.3; {COPY}"));
    case.run().unwrap();
    assert!(!case.log().trim().is_empty());
    assert!(!alive(case.log().trim()), "the daemon lives on");
}

#[test]
fn a_stop_is_obeyed_and_is_not_a_fault() {
    let case = sh("sleep 30");
    let started = Instant::now();
    let failure = std::thread::scope(|scope| {
        let running = scope.spawn(|| case.run().unwrap_err());
        std::thread::sleep(Duration::from_millis(200));
        case.eyes.stop.store(true, Ordering::Relaxed);
        running.join().unwrap()
    });
    assert!(failure.stopped);
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_program_may_say_how_far_it_is() {
    let case = sh(&format!("echo 3/10 > $ABLATE_PROGRESS; sleep 0.6; {COPY}"));
    case.run().unwrap();
    assert_eq!(case.eyes.progress.lock().unwrap().last(), Some(&(3, 10)));
    // What is not a regular file, or not progress, is ignored.
    let case = sh(&format!("mkfifo $ABLATE_PROGRESS; sleep 0.6; {COPY}"));
    case.run().unwrap();
    assert!(case.eyes.progress.lock().unwrap().is_empty());
}

#[test]
fn the_log_is_out_of_the_programs_reach() {
    let secret = "root:";
    let case =
        sh("cd ..; for f in *; do [ -d $f ] || { rm -f $f; ln -s /etc/passwd $f; }; done; exit 1");
    let failure = case.run().unwrap_err();
    assert!(!failure.message.contains(secret), "{failure}");
    assert!(!case.log().contains(secret));
}
