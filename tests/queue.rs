//! Stages on other machines: tasks go through a queue, workers write what came of them, and the driver believes only
//! what it has hashed. The queue of these tests is a script that starts processes.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::daemons::wait_until;
use crate::lab::{CommandOutput, Lab};
use crate::schedule::signal;

/// Starts a worker, looks whether it lives, ends it.
const QUEUE: &str = r#"#!/bin/sh
case "$1" in
submit) setsid "$2" worker "$3" > "$3/log" 2>&1 < /dev/null & echo "submitted as"; echo $! ;;
poll) [ -d "/proc/$2" ] && ! grep -q '^State:.*Z' "/proc/$2/status" ;;
cancel) kill "$2" ;;
esac
"#;

/// A lab with a queue.
fn lab(pipeline: &str) -> Lab {
    let lab = Lab::loose();
    lab.write("queue.sh", QUEUE);
    let queue = lab.path("queue.sh").display().to_string();
    let executor = format!(
        "[executor.command]\n\
         submit = [\"sh\", \"{queue}\", \"submit\", \"{{ablate}}\", \"{{task}}\"]\n\
         poll = [\"sh\", \"{queue}\", \"poll\", \"{{id}}\"]\n\
         cancel = [\"sh\", \"{queue}\", \"cancel\", \"{{id}}\"]\n\
         grace = \"1s\"\npoll_every = \"1s\"\nretries = 1\n"
    );
    lab.write("pipeline.toml", &format!("{pipeline}\n{executor}"));
    lab
}

const QUEUED: [&str; 2] = ["--executor", "command"];

/// A stage that says that it was executed, and then takes its time.
fn slow(lab: &Lab, seconds: u32) {
    let log = lab.path("executed").display().to_string();
    let text = std::fs::read_to_string(lab.path("pipeline.toml")).unwrap();
    let stage = format!(
        "[stage.slow]\nkind = \"command\"\ninputs = {{ t = \"a\" }}\noutputs = [\"o\"]\n\
         run = [\"sh\", \"-c\", \"echo $$ >> {log}; sleep {seconds}; cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]\n"
    );
    lab.write("pipeline.toml", &format!("{stage}\n{text}"));
}

const TABLE: &str = "[stage.a]\nkind = \"table\"\nrows = [{ x = 1 }]\n";

/// How often the slow stage was executed.
fn executed(lab: &Lab) -> usize {
    let log = std::fs::read_to_string(lab.path("executed"));
    log.unwrap_or_default().lines().count()
}

/// Starts a run and waits until its slow stage is being executed.
fn started(lab: &Lab, more: &[&str]) -> Child {
    let child = lab.start(&[&QUEUED, more].concat());
    wait_until(|| executed(lab) > 0);
    child
}

/// The folder and the process of the worker that executes the slow stage.
fn worker(lab: &Lab) -> (PathBuf, u32) {
    let read =
        |path: PathBuf| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let files = lab.files("jobs").into_iter();
    let mut files = files.filter(|path| path.ends_with("started.json"));
    let found = files.find_map(|path| {
        let folder = path.parent().unwrap().to_owned();
        let task = read(folder.join("task.json"));
        let process = read(path)["process"].as_u64().unwrap();
        (task["job"]["kind"] == "command").then_some((folder, process as u32))
    });
    found.expect("a worker has started")
}

#[test]
fn a_queue_gives_the_same_as_this_machine() {
    let lab = lab(crate::lab::DEMO);
    lab.run();
    let here = lab.digests();
    std::fs::rename(lab.path(".ablate"), lab.path("here")).unwrap();
    let run = lab.run_with(&QUEUED);
    assert_eq!(run.with("ran").len(), 5, "{}", run.printed.stderr);
    assert_eq!(lab.digests(), here);
    assert!(
        !lab.path(".ablate/jobs").exists(),
        "nothing is left of the jobs"
    );
    lab.run_with(&QUEUED).ran([]);
    lab.ablate(&["fsck"]).good();
    lab.ablate(&["challenge", "here"]).good();
    lab.ablate(&["verify"]).good();
}

#[test]
fn a_driver_that_was_killed_adopts_its_jobs() {
    let lab = lab(TABLE);
    slow(&lab, 4);
    let mut child = started(&lab, &[]);
    signal(child.id(), "KILL");
    child.wait().unwrap();
    let run = lab.run_with(&QUEUED);
    assert!(run.with("ran").contains(&"slow".to_owned()), "{run:?}");
    let taken_over = "`slow` is taken over from an earlier run";
    assert!(
        run.events.iter().any(|event| event["note"] == taken_over),
        "{:?}",
        run.events
    );
    assert_eq!(executed(&lab), 1, "nothing ran twice");
    // And if it has ended meanwhile.
    lab.edit("sleep 4", "sleep 1");
    std::fs::remove_file(lab.path("executed")).unwrap();
    let mut child = started(&lab, &[]);
    signal(child.id(), "KILL");
    child.wait().unwrap();
    let done = worker(&lab).0.join("done.json");
    wait_until(|| done.exists());
    assert_eq!(lab.run_with(&QUEUED).printed.code, 0);
    assert_eq!(executed(&lab), 1);
    lab.ablate(&["fsck"]).good();
}

#[test]
fn a_worker_that_dies_is_tried_again_and_a_stage_that_fails_is_not() {
    let lab = lab(TABLE);
    slow(&lab, 3);
    let child = started(&lab, &[]);
    let (folder, process) = worker(&lab);
    signal(process, "KILL");
    let ran = crate::lab::Ran::of(crate::lab::CommandOutput::of(
        child.wait_with_output().unwrap(),
    ));
    ran.ran(["a", "slow"]);
    let notes: Vec<&str> = ran
        .events
        .iter()
        .filter_map(|event| event["note"].as_str())
        .collect();
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("`slow` ended without a result on ")
                && note.ends_with(": it is submitted again")),
        "{notes:?}"
    );
    assert_eq!(executed(&lab), 2);
    assert!(!folder.exists());
    // By itself.
    lab.edit("sleep 3;", "exit 7;");
    std::fs::remove_file(lab.path("executed")).unwrap();
    let failed = lab.run_with(&QUEUED);
    assert_eq!((failed.printed.code, executed(&lab)), (1, 1));
    let error = failed
        .events
        .iter()
        .find_map(|event| event["error"].as_str())
        .unwrap();
    assert!(
        error.contains("`slow` failed") && error.contains('7'),
        "{error}"
    );
}

#[test]
fn an_answer_with_another_nonce_is_not_heard() {
    let lab = lab(TABLE);
    slow(&lab, 3);
    let child = started(&lab, &[]);
    let (folder, _) = worker(&lab);
    let text = std::fs::read_to_string(folder.join("task.json")).unwrap();
    let task: Value = serde_json::from_str(&text).unwrap();
    let forged = serde_json::json!({
        "nonce": "0".repeat(32), "key": task["job"]["key"], "outcome": { "made": [] },
        "execution": {
            "started": 0, "wall": { "secs": 0, "nanos": 0 }, "cpu": null, "peak_memory": null, "work": {}, "log": "",
            "raw": [], "sandbox": null, "resumed": null,
        },
        "environment": {
            "git_commit": null, "git_dirty": null, "ablate": "", "crates": {}, "rustc": "", "host": "", "os": "",
            "cpu_model": "", "cpu_features": [], "threads": 1,
        },
    });
    std::fs::write(folder.join("done.json"), forged.to_string()).unwrap();
    let ran = crate::lab::Ran::of(crate::lab::CommandOutput::of(
        child.wait_with_output().unwrap(),
    ));
    ran.ran(["a", "slow"]);
    assert_eq!(lab.rows("slow"), lab.rows("a"));
}

/// `plan` and the live page say where a queued stage is.
#[test]
fn what_is_queued_is_shown() {
    let Some(mut browser) = crate::browser::Browser::start() else {
        return;
    };
    let lab = lab(TABLE);
    slow(&lab, 4);
    let child = started(&lab, &[]);
    let (folder, _) = worker(&lab);
    let started: Value =
        serde_json::from_slice(&std::fs::read(folder.join("started.json")).unwrap()).unwrap();
    let on = format!("slow on {} since ", started["node"].as_str().unwrap());
    let server = crate::serve::Server::start(&lab);
    browser.open(&format!("http://{}/", server.host));
    browser.until("document.getElementById('live-jobs').childElementCount === 1");
    let jobs = browser.text("document.getElementById('live-jobs').textContent");
    assert!(jobs.starts_with(&on), "{jobs}");
    let counts = browser.text("document.getElementById('live-queued').textContent");
    assert!(
        counts.starts_with("In the queue: 0 waiting, 1 running, "),
        "{counts}"
    );
    let printed = lab.ablate(&["plan"]).good().stdout;
    assert!(
        printed.contains(&format!("running   slow: {}", &on[5..])),
        "{printed}"
    );
    assert!(child.wait_with_output().unwrap().status.success());
    browser.until("document.getElementById('live-queue').hidden");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn an_interrupted_run_detaches_or_cancels() {
    let lab = lab(TABLE);
    slow(&lab, 4);
    let child = started(&lab, &[]);
    let (_, process) = worker(&lab);
    signal(child.id(), "INT");
    let printed = child.wait_with_output().unwrap();
    assert_eq!(printed.status.code(), Some(130));
    assert!(
        PathBuf::from(format!("/proc/{process}")).exists(),
        "it goes on"
    );
    lab.run_with(&QUEUED).ran(["slow"]);
    assert_eq!(executed(&lab), 1);
    lab.edit("sleep 4", "sleep 30");
    std::fs::remove_file(lab.path("executed")).unwrap();
    let child = started(&lab, &["--on-interrupt", "cancel"]);
    let (_, process) = worker(&lab);
    signal(child.id(), "INT");
    child.wait_with_output().unwrap();
    wait_until(|| crate::schedule::running_children(process) == 0);
}

#[test]
fn a_queue_that_is_described_wrongly_is_refused_before_anything_runs() {
    let lab = Lab::demo();
    let none = lab.ablate(&["run", "--executor", "command"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr
            .contains("the pipeline has no [executor.command]"),
        "{}",
        none.stderr
    );
    assert!(!lab.path(".ablate").exists());
    for (wrong, why) in [
        ("[executor.pbs]\n", "unknown key `pbs` in [executor]"),
        (
            "[executor.command]\nsubmit = \"qsub {task}\"\n",
            "`submit` must be a list of strings",
        ),
        (
            "[executor.command]\nsubmit = [\"qsub\"]\n",
            "`submit` of [executor.command] must be a list with {task}",
        ),
        (
            "[executor.command]\nsubmit = [\"qsub\", \"{task}\", \"{memory}\"]\n",
            "`submit` of [executor.command] has the unknown {memory}",
        ),
        ("[executor.slurm]\ngrace = 3\n", "`grace` must be a time"),
        (
            "[executor.slurm]\nqueue = \"x\"\n",
            "unknown key `queue` in [executor.slurm]",
        ),
    ] {
        lab.write("pipeline.toml", &format!("{}\n{wrong}", crate::lab::DEMO));
        let printed = lab.ablate(&["plan"]);
        assert_eq!(printed.code, 2, "{wrong}");
        assert!(printed.stderr.contains(why), "{wrong}: {}", printed.stderr);
    }
    // A run that waits for a program that is not there would wait for ever.
    let queue = "[executor.command]\nsubmit = [\"echo\", \"{task}\"]\npoll = [\"no-such-program\", \"{id}\"]\n\
                 cancel = [\"awk\", \"{print $1}\", \"{id}\"]\n";
    lab.write("pipeline.toml", &format!("{}\n{queue}", crate::lab::DEMO));
    let printed = lab.ablate(&["run", "--executor", "command"]);
    assert_eq!(printed.code, 1);
    assert_eq!(
        printed.stderr,
        "error: [executor.command]: `poll` runs `no-such-program`, which was not found\n |\n \
         = help: docs/scale.md has examples\n"
    );
    lab.write("pipeline.toml", crate::lab::DEMO);
    lab.edit(
        "kind = \"table\"",
        "kind = \"table\"\nresources = { time = \"2h\", gpus = 1 }",
    );
    let printed = lab.ablate(&["run"]).good();
    assert!(
        printed
            .stderr
            .contains("nothing limits or reserves them here, which"),
        "{}",
        printed.stderr
    );
    lab.edit("\"2h\"", "\"2\"");
    let printed = lab.ablate(&["plan"]);
    assert!(
        printed
            .stderr
            .contains("`2` is not a time such as 90s, 30m, 2h or 1d"),
        "{}",
        printed.stderr
    );
}

#[test]
fn a_worker_refuses_what_is_not_meant_for_it() {
    let lab = lab(TABLE);
    slow(&lab, 2);
    let child = started(&lab, &[]);
    let (folder, _) = worker(&lab);
    // Started once already.
    let again = lab.ablate(&["worker", folder.to_str().unwrap()]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("cannot work at"), "{}", again.stderr);
    let ran = crate::lab::Ran::of(crate::lab::CommandOutput::of(
        child.wait_with_output().unwrap(),
    ));
    ran.ran(["a", "slow"]);
    assert_eq!(executed(&lab), 1);
}

/// A stage's own resources, those of its kind, and what a job took of memory beside what it had asked for.
#[test]
fn resources_are_of_a_stage_or_of_its_kind_and_too_little_memory_is_told_of() {
    let lab = lab(TABLE);
    let command = "kind = \"command\"\ninputs = { t = \"a\" }\noutputs = [\"o\"]\n\
         run = [\"sh\", \"-c\", \"head -c 300000000 /dev/zero | tail > /dev/null; cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]\n";
    let text = std::fs::read_to_string(lab.path("pipeline.toml")).unwrap();
    lab.write(
        "pipeline.toml",
        &format!(
            "[resources.command]\nmemory = \"100MB\"\n\n[stage.small]\n{command}\n\
             [stage.large]\nresources = {{ memory = \"2GB\" }}\n{}\n{text}",
            command.replace("300000000", "300000001")
        ),
    );
    let run = lab.run_with(&QUEUED);
    let notes = run.notes();
    let told: Vec<&&str> = notes.iter().filter(|it| it.contains("of memory")).collect();
    assert_eq!(told.len(), 1, "{notes:?}");
    assert!(
        told[0].starts_with("`small` took ")
            && told[0].ends_with("and `resources` has 100.0 MiB: raise `memory`"),
        "{told:?}"
    );
    lab.edit("[resources.command]", "[resources.comand]");
    let printed = lab.ablate(&["plan"]);
    assert_eq!(printed.code, 2);
    assert!(
        printed
            .stderr
            .contains("unknown key `comand` in [resources]"),
        "{}",
        printed.stderr
    );
}

/// A queue that says that a job has ended while it still runs: its result is late, and taken all the same.
#[test]
fn a_result_that_appears_late_is_taken() {
    let lab = lab(TABLE);
    slow(&lab, 3);
    lab.edit("grace = \"1s\"", "grace = \"30s\"");
    let script = QUEUE.replace("poll) ", "poll) exit 1; ");
    lab.write("queue.sh", &script);
    let run = lab.run_with(&QUEUED);
    run.ran(["a", "slow"]);
    assert_eq!(executed(&lab), 1, "it did not run twice");
}

/// One that appears after the driver has given the attempt up is not heard: another attempt has another nonce.
#[test]
fn a_result_that_appears_too_late_is_not_heard() {
    let lab = lab(TABLE);
    slow(&lab, 2);
    // The first worker of the slow stage writes into a folder that the driver does not see, and its files come late.
    let late = r#"submit)
    if grep -q '"kind":"command"' "$3/task.json" && mkdir "$0.first" 2> /dev/null; then
        jobs=$(dirname "$3"); cp -r "$3" "$jobs/hidden"
        (setsid "$2" worker "$jobs/hidden" > "$0.log" 2>&1
         while [ $(wc -l < "$(dirname "$0")/executed") -lt 2 ]; do sleep 0.1; done
         mv "$jobs/hidden/done.json" "$3/done.json"; rm -r "$jobs/hidden") < /dev/null > /dev/null 2>&1 &
        echo late; exit
    fi
    "#;
    // The late one is said to have ended at once.
    let script = QUEUE
        .replace("submit)", late)
        .replace("poll) ", "poll) [ $2 != late ] && ");
    lab.write("queue.sh", &script);
    let run = lab.run_with(&QUEUED);
    assert_eq!(run.printed.code, 0, "{run:?}");
    run.ran(["a", "slow"]);
    let notes = run.notes().join("\n");
    assert!(notes.contains("`slow` ended without a result"), "{notes}");
    assert_eq!(executed(&lab), 2);
    assert_eq!(lab.rows("slow"), lab.rows("a"));
    wait_until(|| !lab.path(".ablate/jobs/hidden").exists());
    lab.ablate(&["fsck"]).good();
    lab.run_with(&QUEUED).ran([]);
}

/// The question after Ctrl-C was painted over by the bars of progress, which go on in another thread.
#[test]
fn nothing_is_drawn_over_the_question_after_ctrl_c() {
    let lab = lab(TABLE);
    slow(&lab, 60);
    let run = format!(
        "'{}' run --no-sandbox --executor command",
        env!("CARGO_BIN_EXE_ablate")
    );
    // Something that makes a terminal for a program.
    let terminal = Command::new("script")
        .args(["-qefc", &run, "/dev/null"])
        .current_dir(lab.dir())
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut terminal) = terminal else {
        return println!("skipped: there is no `script` here");
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (shared, mut stdout) = (seen.clone(), terminal.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut some = [0; 4096];
        while let Ok(n @ 1..) = stdout.read(&mut some) {
            shared.lock().unwrap().extend_from_slice(&some[..n]);
        }
    });
    let text = || String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
    wait_until(|| executed(&lab) > 0 && text().contains("stages"));
    let mut keys = terminal.stdin.take().unwrap();
    keys.write_all(b"\x03").unwrap();
    let question = "Let them go on, or cancel them? [detach/cancel]";
    wait_until(|| text().contains(question));
    // Several times as long as bars need to be drawn again.
    std::thread::sleep(Duration::from_millis(700));
    let shown = text();
    let (_, behind) = shown.rsplit_once(question).unwrap();
    assert_eq!(behind.trim(), "", "something is drawn behind the question");
    keys.write_all(b"cancel\n").unwrap();
    assert_eq!(terminal.wait().unwrap().code(), Some(130), "{}", text());
    reader.join().unwrap();
    assert!(
        text().contains("ablate: queued jobs are cancelled"),
        "{}",
        text()
    );
}

/// What the first driver had handed over after the second began was in the way of the second.
#[test]
fn a_second_driver_goes_on_when_the_first_dies() {
    let lab = lab(TABLE);
    slow(&lab, 2);
    let text = std::fs::read_to_string(lab.path("pipeline.toml")).unwrap();
    let last = "[stage.last]\nkind = \"command\"\ninputs = { t = \"slow\" }\noutputs = [\"o\"]\n\
                run = [\"sh\", \"-c\", \"sleep 2; cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]\n";
    lab.write("pipeline.toml", &format!("{last}{text}"));
    let mut first = started(&lab, &[]);
    let second = lab.start(&QUEUED);
    let handed_over = || {
        let mut files = lab.files("jobs").into_iter();
        let mut tasks = files.by_ref().filter(|path| path.ends_with("task.json"));
        tasks.any(|task| {
            let text = std::fs::read_to_string(task).unwrap_or_default();
            text.contains("\"label\":\"last\"")
        })
    };
    wait_until(handed_over);
    signal(first.id(), "KILL");
    first.wait().unwrap();
    let printed = CommandOutput::of(second.wait_with_output().unwrap());
    assert_eq!(printed.code, 0, "{printed:?}");
    assert_eq!(executed(&lab), 1, "nothing ran twice");
    lab.run_with(&QUEUED).ran([]);
}

/// A job that waits with the resources of before would wait with them for ever.
#[test]
fn corrected_resources_reach_a_job_that_has_not_started() {
    let lab = lab(TABLE);
    // While there is a file `hold`, nothing starts.
    let hold = lab.path("hold").display().to_string();
    let script = QUEUE
        .replace(
            "submit) ",
            &format!("submit) if [ -e {hold} ]; then echo held; exit; fi; "),
        )
        .replace(
            "poll) ",
            &format!("poll) [ \"$2\" = held ] && [ -e {hold} ] || "),
        )
        .replace(
            "cancel) ",
            &format!("cancel) echo $2 >> {hold}-cancelled; "),
        );
    lab.write("queue.sh", &script);
    lab.write("hold", "");
    let driver = lab.start(&QUEUED);
    wait_until(|| {
        let mut files = lab.files("jobs").into_iter();
        let submitted = files.find(|path| path.ends_with("submitted.json"));
        let text = submitted.and_then(|path| std::fs::read_to_string(path).ok());
        text.is_some_and(|text| text.contains("held"))
    });
    signal(driver.id(), "INT");
    assert_eq!(driver.wait_with_output().unwrap().status.code(), Some(130));

    lab.edit(
        "kind = \"table\"",
        "kind = \"table\"\nresources = { cpus = 2 }",
    );
    std::fs::remove_file(lab.path("hold")).unwrap();
    let run = lab.run_with(&QUEUED);
    assert_eq!(run.with("ran"), ["a"]);
    let corrected = "`a` waited in the queue with other `resources`: it is submitted again";
    assert!(run.notes().contains(&corrected), "{run:?}");
    let cancelled = std::fs::read_to_string(lab.path("hold-cancelled")).unwrap();
    assert!(cancelled.contains("held"), "{cancelled}");
}

/// A run without the queue executed what a job was at, and said nothing of it.
#[test]
fn a_run_on_this_machine_says_what_is_in_a_queue() {
    let lab = lab(TABLE);
    slow(&lab, 3);
    let mut driver = started(&lab, &[]);
    signal(driver.id(), "KILL");
    driver.wait().unwrap();
    let run = lab.run_with(&["a"]);
    assert_eq!(run.notes(), Vec::<&str>::new());
    let run = lab.run_with(&[]);
    let queued = "1 job of an earlier run may still be in a queue (`slow`): this run does not wait for them; with \
                  `--executor` it takes them over";
    assert!(run.notes().contains(&queued), "{run:?}");
}
