//! Our side: workers that wait, one request to one of them, and what its end means.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use rustix::process::{Pid, Signal, kill_process};

use super::budget::{Budget, in_words};
use super::request::{ARGUMENT, Request};
use super::wire::{self, Answered, Asked};
use super::worker::OVER_BUDGET;
use crate::Failure;

/// Workers that wait for a request.
static IDLE: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(50);

struct Worker {
    child: Child,
    requests: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What it printed: the last words of one that crashed.
    said: File,
}

/// Has a worker do it, and waits. `None`: no worker can be started here.
pub fn ask(
    request: &Request,
    tables: &BTreeMap<String, RecordBatch>,
    budget: Budget,
    stopped: impl Fn() -> bool,
) -> Option<Result<RecordBatch, Failure>> {
    let mut worker = match waiting() {
        Some(worker) => worker,
        None => Worker::start(budget).ok()?,
    };
    let pid = Pid::from_child(&worker.child);
    let asked = Asked {
        request: request.clone(),
        tables: tables.keys().cloned().collect(),
    };
    let tables: Vec<RecordBatch> = tables.values().cloned().collect();
    let (done, result) = channel();
    // A separate thread waits for the pipe, so that this one can notice a request to stop. It
    // does not reap the worker, whose number stays its own until then.
    let talk = thread::Builder::new().name("ablate-worker".into());
    let started = talk.spawn(move || {
        let answer = worker.talk(&asked, &tables);
        let _ = done.send((worker, answer));
    });
    started.ok()?;
    let mut killed = false;
    let (mut worker, answer) = loop {
        match result.recv_timeout(LOOK) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Timeout) if !killed && stopped() => {
                let _ = kill_process(pid, Signal::KILL);
                killed = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let what = "the thread that waited for a worker ended";
                return Some(Err(Failure::new(what)));
            }
        }
    };
    Some(match answer {
        Ok((answer, true)) if !killed => {
            idle().push(worker);
            answer
        }
        Ok((answer, _)) if !killed => {
            let _ = worker.child.wait();
            answer
        }
        _ => {
            let _ = worker.child.kill();
            let status = worker.child.wait();
            match killed || stopped() {
                true => Err(Failure::stopped()),
                false => Err(worker.last_words(request, status, budget)),
            }
        }
    })
}

fn idle() -> MutexGuard<'static, Vec<Worker>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker that waits, and is not dead.
fn waiting() -> Option<Worker> {
    loop {
        let mut worker = idle().pop()?;
        if matches!(worker.child.try_wait(), Ok(None)) {
            return Some(worker);
        }
    }
}

impl Worker {
    fn start(budget: Budget) -> io::Result<Worker> {
        let said = tempfile::tempfile()?;
        let start = |program: &Path| {
            Command::new(program)
                .args([ARGUMENT, &budget.0.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(said.try_clone()?)
                // Ctrl-C is for us: workers are ended after the run has reported.
                .process_group(0)
                .spawn()
        };
        // The link is to this very program, even if its file was replaced meanwhile.
        let mut child =
            start(Path::new("/proc/self/exe")).or_else(|_| start(&std::env::current_exe()?))?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        Ok(Worker {
            requests: BufWriter::new(requests.ok_or(io::ErrorKind::BrokenPipe)?),
            answers: BufReader::new(answers.ok_or(io::ErrorKind::BrokenPipe)?),
            child,
            said,
        })
    }

    /// One request, its answer, and whether the worker can take another. An error means that it
    /// is gone.
    fn talk(
        &mut self,
        asked: &Asked,
        tables: &[RecordBatch],
    ) -> io::Result<(Result<RecordBatch, Failure>, bool)> {
        wire::send(&mut self.requests, asked)?;
        for table in tables {
            wire::send_table(&mut self.requests, table)?;
        }
        self.requests.flush()?;
        let answered: Option<Answered> = wire::receive(&mut self.answers)?;
        let Answered { failed, stays } = answered.ok_or(io::ErrorKind::UnexpectedEof)?;
        let answer = match failed {
            None => Ok(wire::receive_table(&mut self.answers)?),
            Some(failed) => Err(Failure {
                help: failed.help,
                param: (failed.param.as_deref() == Some("query")).then_some("query"),
                ..Failure::new(failed.message)
            }),
        };
        Ok((answer, stays))
    }

    /// Why it is gone.
    fn last_words(
        &mut self,
        request: &Request,
        status: io::Result<ExitStatus>,
        budget: Budget,
    ) -> Failure {
        let what = request.what();
        let mut said = String::new();
        let _ = self.said.seek(SeekFrom::Start(0));
        let _ = (&self.said).take(1 << 16).read_to_string(&mut said);
        let status = match status {
            Ok(status) => status,
            Err(error) => {
                return Failure::new(format!("{what} failed: lost the worker process: {error}"));
            }
        };
        let failure = if status.code() == Some(OVER_BUDGET) {
            Failure::new(format!(
                "{what} needs more memory than its limit of {}",
                in_words(budget.0)
            ))
            .help(too_much(request))
        } else if let Some(size) = refused(&said) {
            Failure::new(format!(
                "{what} ran out of memory: an allocation of {size} failed"
            ))
            .help(too_much(request))
        } else {
            let how = match (status.code(), status.signal()) {
                (_, Some(9)) => "was killed (signal 9): is the machine out of memory?".to_owned(),
                (_, Some(signal)) => format!("crashed (signal {signal})"),
                (code, _) => format!("ended with code {}", code.unwrap_or(-1)),
            };
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            let last = last.map(|line| format!("\n{line}")).unwrap_or_default();
            Failure::new(format!("the process for {what} {how}{last}"))
        };
        match request {
            Request::Query(_) => failure.at("query"),
            Request::Parquet(_) => failure,
        }
    }
}

fn too_much(request: &Request) -> &'static str {
    match request {
        Request::Query(_) => {
            "is it a cross join? add a join condition, or raise the limit: --memory 8GB"
        }
        Request::Parquet(_) => "make the table smaller, or raise the limit: --memory 8GB",
    }
}

/// How many bytes the allocator was refused, from what Rust prints when it is.
fn refused(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("memory allocation of ")?;
    let bytes = rest.split(' ').next()?.parse().ok()?;
    Some(in_words(bytes))
}
