//! A program that is asked again and again: requests go to its standard input, answers come from its standard output,
//! each a frame. What it prints to standard error is its log. Knows nothing of what is asked.
//!
//! ```text
//! frame: length of the header (u32), length of the body (u64), both little-endian; the header (JSON); the body
//! ```
//! A program that ends, hangs, or answers with something else is a failure with its last words; when this is dropped,
//! no process of it is left.

use std::io::{self, BufReader, Read, Write};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::advice::advice;
use super::child::{self, Channels, Group};
use super::log::{Log, NOTHING};
use super::program::{self, Program};
use super::sandbox::Sandbox;
use crate::{Failure, Task, Watch};

/// Whether the user has asked to stop.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// No answer is waited for any more: the user has asked to stop.
pub fn stop_asking() {
    STOPPING.store(true, Ordering::Relaxed);
}

/// A request or an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// What it is.
    pub header: Value,
    /// Bytes that belong to it.
    pub body: Vec<u8>,
}

/// The largest header and the largest body: more than that is not an answer.
const LARGEST: (u32, u64) = (16 << 20, 4 << 30);

impl Frame {
    /// As it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let header = self.header.to_string();
        let lengths = (header.len() as u32, self.body.len() as u64);
        let mut bytes = lengths.0.to_le_bytes().to_vec();
        bytes.extend(lengths.1.to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(&self.body);
        bytes
    }

    /// The next frame; none at the end.
    fn read(from: &mut BufReader<impl Read>) -> io::Result<Option<Frame>> {
        let mut lengths = Vec::new();
        from.by_ref().take(12).read_to_end(&mut lengths)?;
        if lengths.is_empty() {
            return Ok(None);
        }
        let Ok(all) = <[u8; 12]>::try_from(lengths.as_slice()) else {
            return Err(stray(lengths, from));
        };
        let (header, body) = all.split_at(4);
        let header = u32::from_le_bytes(header.try_into().expect("four bytes"));
        let body = u64::from_le_bytes(body.try_into().expect("eight bytes"));
        if header > LARGEST.0 || body > LARGEST.1 {
            return Err(stray(lengths, from));
        }
        let text = exactly(from, u64::from(header))?;
        if !text.starts_with(b"{") {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Some(Frame {
            header: serde_json::from_slice(&text)?,
            body: exactly(from, body)?,
        }))
    }
}

/// So many bytes. They are not asked for in advance: the length may be a lie.
fn exactly(from: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// What came in the place of a frame, as far as it has come.
#[derive(Debug)]
struct Stray(Vec<u8>);

impl std::fmt::Display for Stray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 200;
        let text = String::from_utf8_lossy(&self.0);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        let plain = line.unwrap_or_default().chars().filter(|c| !c.is_control());
        write!(f, "{}", plain.take(SHOWN).collect::<String>())
    }
}

impl std::error::Error for Stray {}

/// More is not waited for: a program that prints may go on computing.
fn stray(mut begun: Vec<u8>, from: &BufReader<impl Read>) -> io::Error {
    begun.extend_from_slice(from.buffer());
    io::Error::new(io::ErrorKind::InvalidData, Stray(begun))
}

/// A program that waits for requests.
pub struct Serving {
    group: Group,
    sandbox: Sandbox,
    /// As it was started, for messages.
    name: String,
    found: Program,
    timeout: Duration,
    requests: Sender<Vec<u8>>,
    answers: Receiver<io::Result<Option<Frame>>>,
}

impl Serving {
    /// Starts the program of a task's files and environments, and waits for its first frame.
    pub fn start(
        task: &Task<'_>,
        argv: &[String],
        timeout: Duration,
    ) -> Result<(Serving, Frame), Failure> {
        let sandbox = Sandbox::new(task)?;
        let found = program::find(&sandbox, &argv[0])?;
        let mut group = Group::spawn(&sandbox, &found, argv, Channels::Pipes, task.watch)?;
        let (to, from) = group.pipes().expect("both are pipes");
        let mut serving = Serving {
            group,
            sandbox,
            name: argv.join(" "),
            found,
            timeout,
            requests: writer(to),
            answers: reader(from),
        };
        let first = serving.answer()?;
        Ok((serving, first))
    }

    /// The answer to a request.
    pub fn ask(&mut self, request: &Frame) -> Result<Frame, Failure> {
        // A program that has ended is found by its missing answer.
        let _ = self.requests.send(request.bytes());
        self.answer()
    }

    /// Where requests go that are sent before the answer to the last one has come.
    pub fn requests(&self) -> Sender<Vec<u8>> {
        self.requests.clone()
    }

    /// The answer to the first request that has none yet.
    pub fn answer(&mut self) -> Result<Frame, Failure> {
        let asked = Instant::now();
        loop {
            let (problem, status) = match self.answers.recv_timeout(Duration::from_millis(100)) {
                Ok(Ok(Some(frame))) => return Ok(frame),
                Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => self.ended(),
                Ok(Err(error)) => (not_a_frame(&error), None),
                Err(RecvTimeoutError::Timeout) if STOPPING.load(Ordering::Relaxed) => {
                    return Err(Failure::stopped());
                }
                // Processes that it left behind may hold its pipe open.
                Err(RecvTimeoutError::Timeout) if self.group.has_exited()? => self.ended(),
                Err(RecvTimeoutError::Timeout) if asked.elapsed() < self.timeout => continue,
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = self.timeout.as_secs_f64();
                    let problem = format!("did not answer within {seconds} s (`timeout`)");
                    (problem, None)
                }
            };
            let failure = self.failure(&problem);
            let limits = &self.sandbox.limits;
            let next = status.and_then(|it| advice(it, &failure.message, &self.found, limits));
            return Err(match next {
                Some(next) => failure.help(next),
                None => failure,
            });
        }
    }

    /// How a program that closed its output has ended.
    fn ended(&mut self) -> (String, Option<ExitStatus>) {
        let closed = Instant::now();
        while closed.elapsed() < Duration::from_secs(1) {
            if self.group.has_exited().unwrap_or(true) {
                let status = self.group.finish().map(|(status, _)| status).ok();
                let said = status.map(child::describe).unwrap_or_default();
                return (format!("ended: {said}"), status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        ("closed its standard output".to_owned(), None)
    }

    /// What it did, with the last that it printed.
    pub fn failure(&self, problem: &str) -> Failure {
        let secrets = &self.sandbox.secrets;
        let printed = Log::read(&self.sandbox.log, secrets).map(|log| log.tail());
        let printed = printed.unwrap_or_default();
        // What it answered may be in the problem.
        let problem = secrets.masked_text(problem);
        if problem.contains(PRINTED) && printed == NOTHING {
            return Failure::new(format!("`{}` {problem}", self.name)).at("run");
        }
        Failure::new(format!("`{}` {problem}\n{printed}", self.name)).at("run")
    }

    /// Ends it: what it used, and what it printed.
    pub fn finish(mut self, watch: &dyn Watch) -> Result<(), Failure> {
        self.group.terminate()?;
        let (_, usage) = self.group.finish()?;
        watch.child(usage);
        Log::read(&self.sandbox.log, &self.sandbox.secrets)?.tell(watch);
        Ok(())
    }
}

/// What is said of a program that prints where answers are read.
const PRINTED: &str = "to standard output, which is for answers";

/// What is wrong with an answer that cannot be read.
fn not_a_frame(error: &io::Error) -> String {
    let inner = error.get_ref();
    if let Some(stray) = inner.and_then(|inner| inner.downcast_ref::<Stray>()) {
        return format!("printed \"{stray}\" {PRINTED}");
    }
    match inner.and_then(|inner| inner.downcast_ref::<serde_json::Error>()) {
        // What does not even begin as JSON is something else.
        Some(error) if error.column() > 1 => {
            format!("answered with a header that is not JSON, which has no NaN: {error}")
        }
        _ => "answered with something that is not a frame".to_owned(),
    }
}

/// Writes requests beside us: a program that does not read must not stop us.
fn writer(mut to: impl Write + Send + 'static) -> Sender<Vec<u8>> {
    let (send, requests) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for request in requests {
            if to.write_all(&request).and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    });
    send
}

/// Reads answers beside us, one ahead.
fn reader(from: impl Read + Send + 'static) -> Receiver<io::Result<Option<Frame>>> {
    let (send, answers) = sync_channel(1);
    let mut from = BufReader::new(from);
    std::thread::spawn(move || {
        loop {
            let frame = Frame::read(&mut from);
            let last = !matches!(frame, Ok(Some(_)));
            if send.send(frame).is_err() || last {
                return;
            }
        }
    });
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written_and_nothing_else_is_one() {
        let frame = Frame {
            header: serde_json::json!({ "ask": "probabilities" }),
            body: vec![1, 2, 3],
        };
        let bytes = frame.bytes();
        let mut two = [bytes.clone(), bytes.clone()].concat();
        let mut from = BufReader::new(two.as_slice());
        assert_eq!(Frame::read(&mut from).unwrap(), Some(frame.clone()));
        assert_eq!(Frame::read(&mut from).unwrap(), Some(frame));
        assert_eq!(Frame::read(&mut from).unwrap(), None);
        two.truncate(bytes.len() + 20);
        let mut from = BufReader::new(&two[bytes.len()..]);
        assert!(Frame::read(&mut from).is_err(), "cut off");
        for words in ["Loading the model, please wait\nDone", "ready"] {
            let error = Frame::read(&mut BufReader::new(words.as_bytes())).unwrap_err();
            let first = words.lines().next().unwrap();
            let expected = format!("printed \"{first}\" to standard output, which is for answers");
            assert_eq!(not_a_frame(&error), expected);
        }
    }
}
