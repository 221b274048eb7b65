//! Executes jobs through a queue of other machines, over a shared file system: writes tasks, submits them, and takes
//! what workers say. Only a `done.json` with the attempt's own nonce, whose objects were hashed here, is a result; the
//! queue's word only says when to stop waiting for one.
//!
//! ```text
//! new -> submitted -> done                      -> report
//!                  -> gone (ended, forgotten)   -> after a grace period: another attempt, or a failure
//! ```
//!
//! A driver that was killed and is started again adopts the attempts that it finds.

pub mod command;
mod flight;
mod program;
pub mod slurm;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use stages::Failure;
use store::{Digest, Inspected, Output, Staged, Store};

use super::{Executor, FindKind};
use crate::config::{QueuePatience, Resources};
use crate::engine::execute::{ExecutionError, ExecutionRecord, ExecutionReport};
use crate::engine::handover::{self, Done, Handover, Outcome, QueueTask, Submitted, TaskSettings};
use crate::engine::inputs::TablesAtHand;
use crate::engine::job::Job;
use crate::environment;
pub use flight::Submission;
use flight::{Ending, Flight};

/// A queue of other machines.
pub trait Queue {
    /// How many tasks may be submitted together.
    fn batch(&self) -> usize;

    /// Submits tasks that want the same: what the queue calls each. `tag` finds them again.
    fn submit(&mut self, tasks: &[Submission<'_>], tag: &str) -> Result<Vec<String>, String>;

    /// What the queue calls a task that was submitted under this tag, if it knows it; an error if it cannot tell.
    fn find(&mut self, submitted: &Submitted) -> Result<Option<String>, String>;

    /// What became of tasks. Those that are left out are not known.
    fn poll(&mut self, ids: &[&str]) -> Result<HashMap<String, QueueState>, String>;

    /// Ends tasks. What is not known any more has ended.
    fn cancel(&mut self, ids: &[&str]);

    /// Whether the same submission would be refused again for this reason.
    fn is_final(&self, _why: &str) -> bool {
        false
    }

    /// Removes the files that it has written for tasks that no longer exist.
    fn sweep(&mut self, _jobs: &Path) {}
}

/// What a queue says of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// It waits or runs.
    Alive,
    /// It has ended.
    Ended(Ending),
}

/// What is asked of those who wait when the user stops a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStop {
    /// Jobs go on, and the next run adopts them.
    Detach,
    /// Jobs are cancelled.
    Cancel,
}

/// A queue, and how it is to be used.
pub struct QueueRequest<'a> {
    /// The queue. One run takes it.
    pub queue: Mutex<Option<Box<dyn Queue + Send>>>,
    /// The folder of all attempts.
    pub jobs: PathBuf,
    /// Goes into every task.
    pub settings: TaskSettings,
    /// How patient a driver is.
    pub patience: QueuePatience,
    /// Asked once when the user stops the run.
    pub on_stop: &'a (dyn Fn() -> OnStop + Sync),
}

/// What an executor of a queue needs of its run.
pub struct QueueContext<'a> {
    /// Holds objects.
    pub store: &'a Store,
    /// The kinds that this program has.
    pub kinds: FindKind,
    /// Set from outside to stop.
    pub stop: &'a AtomicBool,
    /// Tells people about a job, by its number.
    pub note: &'a dyn Fn(usize, &str),
}

/// Runs jobs on other machines.
pub struct QueueExecutor<'a> {
    queue: Box<dyn Queue + Send>,
    request: &'a QueueRequest<'a>,
    context: QueueContext<'a>,
    program: Digest,
    /// Attempts of earlier drivers, newest last.
    earlier: HashMap<Digest, Vec<(u32, Handover)>>,
    flights: BTreeMap<usize, Flight>,
    reports: VecDeque<(usize, ExecutionReport)>,
    looked: Option<Instant>,
    polled: Option<Instant>,
    /// When to try again after a submission was refused, and how often it was.
    refused: Option<(Instant, u32)>,
    stopped: bool,
}

/// How often a submission is tried.
const SUBMISSIONS: u32 = 5;

impl<'a> QueueExecutor<'a> {
    /// An executor that takes up what an earlier driver of this store has left.
    pub fn new(request: &'a QueueRequest<'a>, context: QueueContext<'a>) -> QueueExecutor<'a> {
        let mut queue = request.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queue.take().expect("one run takes it");
        let mut earlier: HashMap<Digest, Vec<(u32, Handover)>> = HashMap::new();
        for (key, attempt, handover) in handover::attempts(&request.jobs) {
            earlier.entry(key).or_default().push((attempt, handover));
        }
        earlier
            .values_mut()
            .for_each(|all| all.sort_by_key(|(attempt, _)| *attempt));
        QueueExecutor {
            queue,
            request,
            context,
            program: environment::program(),
            earlier,
            flights: BTreeMap::new(),
            reports: VecDeque::new(),
            looked: None,
            polled: None,
            refused: None,
            stopped: false,
        }
    }

    /// The newest attempt of an earlier driver that can still be waited for.
    fn adopted(&mut self, number: usize, job: &Job, resources: Resources) -> Option<Flight> {
        self.look_for_newer(&job.key);
        let (attempt, handover) = self.earlier.get(&job.key)?.last()?.clone();
        let task = handover.task().ok()?;
        if task.program != self.program || handover.is_abandoned() {
            return None;
        }
        // Whoever corrects `resources` does so because the job cannot start.
        if task.resources != resources && handover.started().is_none() {
            if let Some(id) = handover.submitted().and_then(|it| it.id) {
                self.queue.cancel(&[&id]);
            }
            let what = "waited in the queue with other `resources`: it is submitted again";
            (self.context.note)(number, what);
            return None;
        }
        let id = match handover.submitted() {
            Some(Submitted { id: Some(id), .. }) => Some(id),
            // The driver died before it was told: the queue may have it all the same.
            Some(submitted) => self.queue.find(&submitted).ok()?,
            None => None,
        };
        (self.context.note)(number, "is taken over from an earlier run");
        Some(Flight {
            job: job.clone(),
            resources,
            attempt,
            retries: 0,
            nonce: task.nonce,
            handover,
            id,
            gone: None,
            avoid: Vec::new(),
        })
    }

    /// Another driver may have made attempts since this one began, and died.
    fn look_for_newer(&mut self, key: &Digest) {
        let known = self.earlier.get(key).and_then(|all| all.last());
        let mut next = known.map_or(0, |(attempt, _)| *attempt) + 1;
        while let Some(newer) = Handover::existing(&self.request.jobs, key, next) {
            self.earlier.entry(*key).or_default().push((next, newer));
            next += 1;
        }
    }

    /// What an earlier driver has left and this one cannot wait for.
    fn abandon_earlier(&self, key: &Digest) {
        for (_, handover) in self.earlier.get(key).into_iter().flatten() {
            // Gone already, or it makes nothing that is heard: its nonce is not ours.
            let _ = handover.abandon();
        }
    }

    /// Another attempt, to be submitted.
    fn attempt(
        &mut self,
        job: Job,
        resources: Resources,
        before: Option<&Flight>,
    ) -> Result<Flight, String> {
        self.look_for_newer(&job.key);
        let earlier = self.earlier.get(&job.key).and_then(|all| all.last());
        let earlier = earlier.map_or(0, |(attempt, _)| *attempt);
        let attempt = before.map_or(0, |before| before.attempt).max(earlier) + 1;
        let nonce = handover::nonce();
        let made = nonce.and_then(|nonce| {
            let task = QueueTask {
                nonce,
                program: self.program,
                job,
                resources,
                settings: self.request.settings.clone(),
            };
            Ok((Handover::create(&self.request.jobs, attempt, &task)?, task))
        });
        let (handover, task) = made.map_err(|error| format!("cannot write a task: {error}"))?;
        Ok(Flight {
            job: task.job,
            resources,
            attempt,
            retries: before.map_or(0, |before| before.retries + 1),
            nonce: task.nonce,
            handover,
            id: None,
            gone: None,
            avoid: before.map_or_else(Vec::new, |before| before.avoid.clone()),
        })
    }

    /// Submits what is not in the queue yet: together what wants the same.
    fn submit(&mut self) {
        if self.refused.is_some_and(|(at, _)| Instant::now() < at) {
            return;
        }
        let mut groups: BTreeMap<(Resources, Vec<String>), Vec<usize>> = BTreeMap::new();
        for (number, flight) in &self.flights {
            if flight.id.is_none() && flight.gone.is_none() {
                let group = (flight.resources, flight.avoid.clone());
                groups.entry(group).or_default().push(*number);
            }
        }
        for numbers in groups.into_values() {
            for batch in numbers.chunks(self.queue.batch().max(1)) {
                match self.submit_batch(batch) {
                    Ok(()) => self.refused = None,
                    Err(why) => return self.submission_refused(batch, &why),
                }
            }
        }
    }

    fn submit_batch(&mut self, numbers: &[usize]) -> Result<(), String> {
        let tag = handover::nonce().map_err(|error| error.to_string())?;
        let unwritten = |error: std::io::Error| format!("cannot write to `jobs`: {error}");
        let mut submitted = Vec::new();
        for (index, number) in numbers.iter().enumerate() {
            let note = Submitted {
                tag: tag.clone(),
                index,
                id: None,
            };
            let flight = &self.flights[number];
            flight.handover.note_submitted(&note).map_err(unwritten)?;
            submitted.push(note);
        }
        let tasks: Vec<Submission<'_>> = numbers
            .iter()
            .map(|number| self.flights[number].submission())
            .collect();
        let ids = match self.queue.submit(&tasks, &tag) {
            Ok(ids) => ids,
            // A client that gave up may have been heard.
            Err(why) => match self.queue.find(&submitted[0]) {
                Ok(Some(_)) => submitted
                    .iter()
                    .filter_map(|note| self.queue.find(note).ok().flatten())
                    .collect(),
                _ => return Err(why),
            },
        };
        for ((number, id), mut note) in numbers.iter().zip(ids).zip(submitted) {
            note.id = Some(id.clone());
            let flight = self.flights.get_mut(number).expect("it is in flight");
            flight.handover.note_submitted(&note).map_err(unwritten)?;
            flight.id = Some(id);
        }
        Ok(())
    }

    /// A queue may be full or restarting: later again, and in the end a failure.
    fn submission_refused(&mut self, numbers: &[usize], why: &str) {
        let times = self.refused.map_or(0, |(_, times)| times) + 1;
        if times >= SUBMISSIONS || self.queue.is_final(why) {
            for number in numbers {
                let failure = Failure::new(format!("it cannot be submitted: {why}"));
                self.give_up(*number, failure);
            }
            self.refused = None;
            return;
        }
        if times == 1 {
            (self.context.note)(numbers[0], &format!("cannot be submitted yet: {why}"));
        }
        let pause = Duration::from_secs(1 << times);
        self.refused = Some((Instant::now() + pause, times));
    }

    /// Takes what workers have said.
    fn look(&mut self) {
        // Listing costs a round trip per attempt on a network file system.
        let pause = Duration::from_millis((self.flights.len() as u64).clamp(5, 2_000));
        if self.looked.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        let found: Vec<(usize, Done)> = self
            .flights
            .iter()
            .filter_map(|(number, flight)| {
                let done = flight.handover.done(&flight.nonce)?;
                (done.key == flight.job.key).then_some((*number, done))
            })
            .collect();
        for (number, done) in found {
            self.take(number, done);
        }
        self.looked = Some(Instant::now());
    }

    fn take(&mut self, number: usize, done: Done) {
        let record = ExecutionRecord {
            environment: Some(Arc::new(done.environment)),
            ..done.execution
        };
        match done.outcome {
            Outcome::Made(outputs) => match self.hashed(&outputs) {
                Ok(staged) => self.report(number, Ok(staged), record),
                Err(Inspected::Damaged(why)) => {
                    self.again(
                        number,
                        &format!("wrote a result that is damaged ({why})"),
                        None,
                    );
                }
                // It may be seen later: the grace period begins.
                Err(_) => self.flight(number).note_gone(Ending::Ended),
            },
            Outcome::Failed {
                message,
                help,
                param,
            } => {
                let failure = Failure {
                    help,
                    param: param.and_then(|name| self.param(&self.flights[&number].job, &name)),
                    ..Failure::new(message)
                };
                let _ = self.flights[&number].handover.abandon();
                self.report(number, Err(ExecutionError::Failed(failure)), record);
            }
            Outcome::LostInput(digest) => match self.context.store.read(&digest) {
                Err(error) => {
                    let _ = self.flights[&number].handover.abandon();
                    let lost = ExecutionError::LostInput(digest, Box::new(error));
                    self.report(number, Err(lost), record);
                }
                Ok(_) => self.again(number, "did not find an input that is there", None),
            },
            // The queue says why, if it knows.
            Outcome::Stopped => self.flight(number).note_gone(Ending::Ended),
            Outcome::OutOfMemory => self.flight(number).note_gone(Ending::OutOfMemory),
        }
    }

    fn flight(&mut self, number: usize) -> &mut Flight {
        self.flights.get_mut(&number).expect("it is in flight")
    }

    /// The outputs, if their bytes are what the worker says; else what is wrong with the first that is not.
    fn hashed(&self, outputs: &[Output]) -> Result<Vec<Staged>, Inspected> {
        let each = outputs
            .iter()
            .map(|output| match self.context.store.inspect(&output.digest) {
                Inspected::Whole(_) => Ok(Staged {
                    digest: output.digest,
                    rows: output.rows,
                    bytes: output.bytes,
                    schema: output.schema.clone(),
                }),
                other => Err(other),
            });
        each.collect()
    }

    /// A parameter's name as its kind has it.
    fn param(&self, job: &Job, name: &str) -> Option<&'static str> {
        let kind = (self.context.kinds)(&job.kind)?;
        let params = kind.describe().params.iter().map(|param| param.name);
        params
            .chain(["select", "over"])
            .find(|known| *known == name)
    }

    /// Asks the queue what became of the rest.
    fn poll(&mut self) {
        let pause = Duration::from_secs(self.request.patience.poll_every);
        let due = self.polled.is_none_or(|at| at.elapsed() >= pause);
        let ids = self.flights.values().filter_map(|flight| flight.id.clone());
        let ids: Vec<String> = ids.collect();
        if !due || ids.is_empty() {
            return;
        }
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        // A queue that does not answer has said nothing of its tasks.
        if let Ok(states) = self.queue.poll(&ids) {
            for flight in self.flights.values_mut() {
                let state = flight.id.as_ref().map(|id| states.get(id));
                match state {
                    None => {}
                    Some(Some(QueueState::Alive)) => flight.gone = None,
                    Some(Some(QueueState::Ended(ending))) => flight.note_gone(*ending),
                    Some(None) => flight.note_gone(Ending::Forgotten),
                }
            }
        }
        self.polled = Some(Instant::now());
    }

    /// What has ended without a result in time is tried again, or has failed.
    fn sort_out(&mut self) {
        let grace = Duration::from_secs(self.request.patience.grace);
        let lost: Vec<(usize, Ending)> = self
            .flights
            .iter()
            .filter_map(|(number, flight)| Some((*number, flight.lost(grace)?)))
            .collect();
        for (number, ending) in lost {
            let flight = self.flight(number);
            flight.avoid_where_it_ran(ending);
            match ending {
                // A job that has not begun may have been cancelled by the queue itself: Slurm does so after its
                // controller was killed, if a number was given twice.
                Ending::Cancelled if flight.handover.started().is_some() => {
                    let failure = Failure::new("its job was cancelled in the queue");
                    self.give_up(number, failure.help("run again to submit it again"));
                }
                _ => {
                    let resources = ending.wants(flight.resources);
                    let what = flight.described(ending, resources);
                    match ending {
                        // The same again would end the same.
                        Ending::OutOfMemory | Ending::TimeLimit if resources.is_none() => {
                            self.give_up(number, Failure::new(format!("its job {what}")));
                        }
                        _ => self.again(number, &what, resources),
                    }
                }
            }
        }
    }

    /// Another attempt, if there may be one.
    fn again(&mut self, number: usize, what: &str, resources: Option<Resources>) {
        let Some(flight) = self.flights.remove(&number) else {
            return;
        };
        // What ran may still do so: whatever it says is not heard.
        let _ = flight.handover.abandon();
        if let Some(id) = &flight.id {
            self.queue.cancel(&[id]);
        }
        if flight.retries >= self.request.patience.retries {
            let failure =
                Failure::new(format!("its job {what}, in attempt {}", flight.retries + 1));
            self.flights.insert(number, flight);
            return self.give_up(number, failure);
        }
        (self.context.note)(number, &format!("{what}: it is submitted again"));
        let resources = resources.unwrap_or(flight.resources);
        match self.attempt(flight.job.clone(), resources, Some(&flight)) {
            Ok(next) => drop(self.flights.insert(number, next)),
            Err(why) => {
                self.flights.insert(number, flight);
                self.give_up(number, Failure::new(why));
            }
        }
    }

    fn give_up(&mut self, number: usize, failure: Failure) {
        if let Some(flight) = self.flights.get(&number) {
            let _ = flight.handover.abandon();
        }
        let ExecutionReport { outcome, record } = ExecutionReport::not_started(failure);
        self.flights.remove(&number);
        self.reports
            .push_back((number, ExecutionReport { outcome, record }));
    }

    fn report(
        &mut self,
        number: usize,
        outcome: Result<Vec<Staged>, ExecutionError>,
        record: ExecutionRecord,
    ) {
        self.flights.remove(&number);
        // Their tables stay on the disk: those of thousands of jobs would fill this process.
        let outcome = outcome.map(|all| all.into_iter().map(|staged| (staged, None)).collect());
        self.reports
            .push_back((number, ExecutionReport { outcome, record }));
    }

    /// Removes what is left of attempts whose results are recorded, or that nobody waits for. Those of other drivers
    /// and those that were detached stay.
    pub fn sweep(mut self) {
        for (key, _, handover) in handover::attempts(&self.request.jobs) {
            let recorded = matches!(self.context.store.lookup(&key), Ok(Some(_)));
            if recorded || handover.is_abandoned() {
                // Litter is not a reason to fail.
                let _ = handover.remove();
            }
        }
        self.queue.sweep(&self.request.jobs);
        // Only if it is empty.
        let _ = std::fs::remove_dir(&self.request.jobs);
    }

    /// The user has stopped the run.
    fn stop(&mut self) {
        self.stopped = true;
        // What has been said until now is kept.
        self.looked = None;
        self.look();
        let choice = (self.request.on_stop)();
        let flights = std::mem::take(&mut self.flights);
        let ids: Vec<&str> = flights.values().filter_map(|it| it.id.as_deref()).collect();
        if choice == OnStop::Cancel {
            self.queue.cancel(&ids);
        }
        for (number, flight) in &flights {
            if choice == OnStop::Cancel || flight.id.is_none() {
                let _ = flight.handover.abandon();
            }
            let stopped = ExecutionReport::not_started(Failure::stopped());
            self.reports.push_back((*number, stopped));
        }
    }
}

impl Executor for QueueExecutor<'_> {
    fn room(&self) -> (usize, u64) {
        (self.request.patience.in_flight, u64::MAX)
    }

    /// The queue sees to the rest.
    fn takes(&self, _: Resources) -> Resources {
        Resources::default()
    }

    fn start(&mut self, number: usize, job: Job, resources: Resources, _: TablesAtHand) {
        let job = match job.anywhere() {
            Ok(job) => job,
            Err(error) => {
                let failure = Failure::new(format!("cannot find the pipeline's folder: {error}"));
                let report = ExecutionReport::not_started(failure);
                return self.reports.push_back((number, report));
            }
        };
        let flight = match self.adopted(number, &job, resources) {
            Some(flight) => Ok(flight),
            None => {
                self.abandon_earlier(&job.key);
                self.attempt(job, resources, None)
            }
        };
        match flight {
            Ok(flight) => drop(self.flights.insert(number, flight)),
            Err(why) => {
                let report = ExecutionReport::not_started(Failure::new(why));
                self.reports.push_back((number, report));
            }
        }
    }

    fn wait(&mut self, patience: Duration) -> Option<(usize, ExecutionReport)> {
        let until = Instant::now() + patience;
        loop {
            if self.context.stop.load(Ordering::Relaxed) && !self.stopped {
                self.stop();
            }
            if self.reports.is_empty() {
                self.submit();
                self.look();
                self.poll();
                self.sort_out();
            }
            if let Some(report) = self.reports.pop_front() {
                return Some(report);
            }
            let left = until.checked_duration_since(Instant::now())?;
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
    }
}
