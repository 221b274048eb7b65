//! The worker's side: requests from standard input, answers to standard output, and a watch on
//! its own memory.

use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::process::parent_id;
use std::time::Duration;
use std::{fs, process, thread};

use arrow::record_batch::RecordBatch;

use super::wire::{self, Answered, Asked, Failed};
use super::{Budget, Request};
use crate::Failure;

/// How a worker ends that needed more memory than it may have.
pub const OVER_BUDGET: i32 = 77;

/// A worker that has grown this much is not used again: the allocator keeps what it was given, and
/// the next request would be charged for it.
const LARGE: u64 = 256 << 20;

/// How often it looks at its memory. Pages are filled at one or two gigabytes a second, so it is
/// a few megabytes over the budget when it is noticed.
const LOOK: Duration = Duration::from_millis(5);

/// Answers requests until there are no more. For a program that was started as a worker.
pub fn serve(
    budget: Budget,
    work: impl Fn(Request, BTreeMap<String, RecordBatch>) -> Result<RecordBatch, Failure>,
) -> io::Result<()> {
    let parent = parent_id();
    thread::spawn(move || {
        loop {
            if memory().is_some_and(|bytes| bytes > budget.0) {
                process::exit(OVER_BUDGET);
            }
            // Whoever asked is gone, and so is the need for an answer.
            if parent_id() != parent {
                process::exit(1);
            }
            thread::sleep(LOOK);
        }
    });
    let mut requests = BufReader::new(io::stdin());
    while let Some(asked) = wire::receive::<Asked>(&mut requests)? {
        let mut tables = BTreeMap::new();
        for name in asked.tables {
            tables.insert(name, wire::receive_table(&mut requests)?);
        }
        let answer = work(asked.request, tables);
        let answered = Answered {
            failed: answer.as_ref().err().map(Failed::from),
            stays: memory().is_none_or(|bytes| bytes < LARGE),
        };
        let mut answers = BufWriter::new(io::stdout().lock());
        wire::send(&mut answers, &answered)?;
        if let Ok(table) = answer {
            wire::send_table(&mut answers, &table)?;
        }
        answers.flush()?;
        if !answered.stays {
            break;
        }
    }
    Ok(())
}

/// The memory that is this process's own, in bytes.
fn memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
