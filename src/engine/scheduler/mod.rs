//! Decides what runs when. The one owner of state: workers report, the committer writes,
//! and only this changes anything.
//!
//! An instance moves through [`State`] like this:
//!
//! ```text
//! Waiting -> Ready -> Done (hit)
//!                  -> Runnable -> Running   -> Done (ran) | Failed
//!                              -> Joined    -> as the one it joined
//!                              -> Elsewhere -> Done (hit) | Running
//! ```
//!
//! Nothing here recurses: a chain of a hundred thousand stages is a loop.

mod inputs;
mod rebuild;
mod recording;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::record_batch::RecordBatch;
use stages::{DataHome, Failure};
use store::{Digest, Environment, Found, Lease, RunId, Status, Store, Use};

use crate::config::Resources;
use crate::diagnostic;
use crate::engine::checkpoint::CheckpointTimes;
use crate::engine::execute::{ExecutionContext, ExecutionError, ExecutionReport};
use crate::engine::executor::queue::{QueueContext, QueueExecutor, QueueRequest};
use crate::engine::executor::remote::{RemoteExecutor, RemoteRequest};
use crate::engine::executor::room::Room;
use crate::engine::executor::{Executor, FindKind, LocalExecutor, StagePools};
use crate::engine::inputs::TablesAtHand;
use crate::engine::job::Job;
use crate::engine::progress::{Event, Reporter, Tally, Worked};
use crate::plan::{Plan, Source};
use crate::resolve::{Resolved, Unreadable, Unresolved, resolve};
use crate::results::recall::{Fault, Recalled, recall};

use super::committer::{self, Committer};
use stages::isolated::in_words;

/// What to run and how.
pub struct RunRequest<'a> {
    /// The instances.
    pub plan: &'a Plan<'a>,
    /// Which of them are wanted.
    pub wanted: &'a [bool],
    /// The kinds that this program has.
    pub kinds: FindKind,
    /// Where results are.
    pub store: &'a Store,
    /// Where data sets are.
    pub data: &'a DataHome,
    /// The run to record under.
    pub run: RunId,
    /// Where its stages are executed.
    pub environment: Arc<Environment>,
    /// How many stages run at once, and how many threads they share.
    pub jobs: usize,
    /// Whether stages that do not need a failed one still run.
    pub keep_going: bool,
    /// Set from outside to stop.
    pub stop: &'a AtomicBool,
    /// When stages save how far they have come.
    pub checkpoints: &'a CheckpointTimes,
    /// Where stages run, if not here.
    pub queue: Option<&'a QueueRequest<'a>>,
    /// Who is asked before anything is executed.
    pub remote: Option<&'a RemoteRequest>,
    /// Whose objects must be here in the end, also those of results that were taken from a remote.
    pub objects: &'a [bool],
    /// Receives the events.
    pub reporter: &'a dyn Reporter,
}

/// How often to look for a result that another process is making, and at the stop flag.
const POLL: Duration = Duration::from_millis(20);

/// How many uses are sent to be written together.
const USES: usize = 256;

/// A damaged object is made again. One that is damaged as fast as it is made is a broken disk.
const REBUILDS: u8 = 2;

/// Runs the wanted instances. An error means that the store itself failed.
pub fn run(request: &RunRequest<'_>) -> Result<Tally, store::Error> {
    if let Some(queue) = request.queue {
        return run_in_queue(request, queue);
    }
    let context = ExecutionContext {
        inputs: request.store,
        outputs: request.store,
        data: request.data,
        stop: request.stop,
        checkpoints: Some(request.checkpoints),
    };
    let progress = |n: usize, done, total| {
        let label = &request.plan.instances[n].label;
        request.reporter.event(Event::Progress(label, done, total));
    };
    let pools = StagePools::new(request.jobs, request.kinds, context, &progress);
    let note = |n: usize, text: &str| note(request, n, text);
    std::thread::scope(|threads| {
        let (committer, writer) = committer::start(threads, request.store);
        let scheduler = Scheduler::new(request, &committer);
        let local = LocalExecutor::new(threads, &pools);
        let tally = asking_first(threads, request, local, scheduler, &note).0;
        drop(committer);
        writer.join().expect("the writer does not panic")?;
        Ok(tally)
    })
}

/// The same, on other machines.
fn run_in_queue(request: &RunRequest<'_>, queue: &QueueRequest<'_>) -> Result<Tally, store::Error> {
    let note = |n: usize, text: &str| note(request, n, text);
    let executor = QueueExecutor::new(
        queue,
        QueueContext {
            store: request.store,
            kinds: request.kinds,
            stop: request.stop,
            note: &note,
        },
    );
    let (tally, executor) = std::thread::scope(|threads| {
        let (committer, writer) = committer::start(threads, request.store);
        let scheduler = Scheduler::new(request, &committer);
        let ended = asking_first(threads, request, executor, scheduler, &note);
        drop(committer);
        writer.join().expect("the writer does not panic")?;
        Ok::<_, store::Error>(ended)
    })?;
    // Not before their results are recorded: until then they are all that is left of their jobs.
    executor.sweep();
    Ok(tally)
}

fn note(request: &RunRequest<'_>, n: usize, text: &str) {
    let note = format!("`{}` {text}", request.plan.instances[n].label);
    request.reporter.event(Event::Note(&note));
}

/// Runs with an executor, of which a remote is asked first if there is one.
fn asking_first<'scope, 'env, E: Executor>(
    threads: &'scope std::thread::Scope<'scope, 'env>,
    request: &'env RunRequest<'env>,
    mut executor: E,
    mut scheduler: Scheduler<'_>,
    note: &dyn Fn(usize, &str),
) -> (Tally, E) {
    match request.remote {
        None => (scheduler.run(&mut executor), executor),
        Some(remote) => {
            let here = (request.store, request.objects);
            let mut asking = RemoteExecutor::new(threads, executor, remote, here, note);
            let tally = scheduler.run(&mut asking);
            (tally, asking.into_inner())
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// An input is not yet made, or it is not wanted.
    Waiting,
    /// Inputs are made, so the key can be computed and looked up.
    Ready,
    /// Not in the store: runs as soon as there is room.
    Runnable,
    /// Being executed.
    Running,
    /// Another instance with the same key is being executed.
    Joined,
    /// Another process is executing it.
    Elsewhere,
    /// Found in the store, or just put there.
    Done,
    Failed,
    Skipped,
}

/// What an instance has made.
struct Made {
    outputs: Vec<Digest>,
    /// What the execution behind it counted.
    worked: Worked,
    /// Kept in memory while readers are still to come.
    tables: Vec<Option<RecordBatch>>,
}

/// An instance that is being executed.
struct InFlight {
    resolved: Resolved,
    lease: Lease,
}

struct Scheduler<'a> {
    request: &'a RunRequest<'a>,
    committer: &'a Committer,
    state: Vec<State>,
    /// How many of its sources are not made.
    missing: Vec<usize>,
    /// Who reads it, once per reading.
    readers: Vec<Vec<usize>>,
    /// How many readings of it are still to come.
    unread: Vec<usize>,
    made: Vec<Option<Made>>,
    /// What an instance had made before it was lost.
    lost: HashMap<usize, Vec<Digest>>,
    rebuilds: Vec<u8>,
    /// Results that were taken from a remote, perhaps without their objects.
    left: HashSet<usize>,
    /// Results in the store that cannot be used.
    unsound: HashMap<usize, Fault>,
    /// How many of them are made again.
    remade: usize,
    ready: BinaryHeap<Reverse<usize>>,
    runnable: BTreeMap<usize, Resolved>,
    running: HashMap<usize, InFlight>,
    room: Room,
    elsewhere: BTreeMap<usize, Resolved>,
    /// Instances that wait for the execution of a key by another instance.
    joined: HashMap<Digest, Vec<usize>>,
    /// Which instance made the result of a key in this run.
    by_key: HashMap<Digest, usize>,
    /// Executed in this run, not found in the store.
    ran: Vec<bool>,
    /// What became of instances that were not executed, still to be written.
    uses: Vec<Use>,
    halting: bool,
    started: Instant,
}

impl<'a> Scheduler<'a> {
    fn new(request: &'a RunRequest<'a>, committer: &'a Committer) -> Scheduler<'a> {
        let count = request.plan.instances.len();
        let mut scheduler = Scheduler {
            request,
            committer,
            state: vec![State::Waiting; count],
            missing: vec![0; count],
            readers: vec![Vec::new(); count],
            unread: vec![0; count],
            made: (0..count).map(|_| None).collect(),
            lost: HashMap::new(),
            rebuilds: vec![0; count],
            left: HashSet::new(),
            unsound: HashMap::new(),
            remade: 0,
            ready: BinaryHeap::new(),
            runnable: BTreeMap::new(),
            running: HashMap::new(),
            room: Room::new(0, 0),
            elsewhere: BTreeMap::new(),
            joined: HashMap::new(),
            by_key: HashMap::new(),
            ran: vec![false; count],
            uses: Vec::new(),
            halting: false,
            started: Instant::now(),
        };
        for n in scheduler.wanted() {
            for source in request.plan.instances[n].sources() {
                scheduler.readers[source.instance].push(n);
                scheduler.unread[source.instance] += 1;
                scheduler.missing[n] += 1;
            }
            if scheduler.missing[n] == 0 {
                scheduler.make_ready(n);
            }
        }
        scheduler
    }

    /// The loop: start what can start, then wait for something to happen.
    fn run(&mut self, executor: &mut impl Executor) -> Tally {
        self.request
            .reporter
            .event(Event::Begin(self.wanted().count()));
        let (places, memory) = executor.room();
        self.room = Room::new(places, memory);
        loop {
            self.halting |= self.request.stop.load(Ordering::Relaxed) || self.committer.failed();
            self.resolve_ready();
            self.start_runnable(executor);
            if !self.ready.is_empty() && !self.halting {
                continue;
            }
            let idle = self.running.is_empty();
            if idle && (self.halting || self.elsewhere.is_empty()) {
                break;
            }
            self.send_uses();
            match executor.wait(POLL) {
                Some((n, report)) => {
                    let resources = self.request.plan.decl(n).resources;
                    self.room.give_back(executor.takes(resources));
                    self.finished(n, report);
                }
                None => self.look_elsewhere(),
            }
        }
        self.wind_up()
    }

    fn wanted(&self) -> impl Iterator<Item = usize> + use<'a> {
        let wanted = self.request.wanted;
        (0..wanted.len()).filter(|n| wanted[*n])
    }

    fn label(&self, n: usize) -> &'a str {
        &self.request.plan.instances[n].label
    }

    fn make_ready(&mut self, n: usize) {
        self.state[n] = State::Ready;
        self.ready.push(Reverse(n));
    }

    /// Looks up every ready instance: a hit is done at once, the rest becomes runnable.
    fn resolve_ready(&mut self) {
        let _snapshot = (!self.ready.is_empty()).then(|| self.request.store.snapshot());
        while !self.halting
            && let Some(Reverse(n)) = self.ready.pop()
        {
            // A rebuild may have sent it back to waiting after it was queued.
            if self.state[n] != State::Ready {
                continue;
            }
            let digest = |source: Source| self.made_digest(source);
            match resolve(self.request.plan, n, digest, |source| self.read(source)) {
                Ok(resolved) => {
                    if !self.settled(n, &resolved) {
                        self.state[n] = State::Runnable;
                        self.runnable.insert(n, resolved);
                    }
                }
                Err(Unresolved::Metric(failure)) => self.fail_unrun(n, None, &failure.at("select")),
                Err(Unresolved::Unreadable(Unreadable { source, error })) => {
                    self.lost(n, source, &error);
                }
            }
        }
    }

    /// The first runnable instance that there is room for.
    fn first_that_fits(&self, executor: &impl Executor) -> Option<usize> {
        let resources = |n: usize| executor.takes(self.request.plan.decl(n).resources);
        let mut runnable = self.runnable.keys().copied();
        runnable.find(|n| self.room.has(resources(*n)))
    }

    /// Runs what is runnable while there is room: the first that fits.
    fn start_runnable(&mut self, executor: &mut impl Executor) {
        while !self.halting
            && !self.room.is_full()
            && let Some(n) = self.first_that_fits(executor)
            && let Some(resolved) = self.runnable.remove(&n)
        {
            match self.start(n, resolved) {
                Ok(Some((job, at_hand))) => {
                    self.take_room(n, executor.takes(self.request.plan.decl(n).resources));
                    executor.start(n, job, self.request.plan.decl(n).resources, at_hand);
                }
                Ok(None) => {}
                Err(error) => {
                    let failure = Failure::new(error.to_string());
                    self.fail_unrun(n, None, &failure);
                }
            }
        }
    }

    /// Notes what a stage takes of the machine.
    fn take_room(&mut self, n: usize, resources: Resources) {
        if self.room.is_too_small_for(resources) {
            let (label, asked) = (self.label(n), in_words(resources.memory));
            let note =
                format!("`{label}` asks for {asked}, more than this machine has: it runs alone");
            self.request.reporter.event(Event::Note(&note));
        }
        self.room.take(resources);
    }

    /// Takes the lease of an instance and makes its job, unless somebody else is at it.
    fn start(
        &mut self,
        n: usize,
        resolved: Resolved,
    ) -> Result<Option<(Job, TablesAtHand)>, store::Error> {
        if let Some(joined) = self.joined.get_mut(&resolved.digest) {
            joined.push(n);
            self.state[n] = State::Joined;
            return Ok(None);
        }
        if self.settled(n, &resolved) {
            return Ok(None);
        }
        let Some(lease) = self.request.store.try_lease(&resolved.digest)? else {
            if self.state[n] != State::Elsewhere {
                self.request.reporter.event(Event::Waiting(self.label(n)));
            }
            self.state[n] = State::Elsewhere;
            self.elsewhere.insert(n, resolved);
            return Ok(None);
        };
        // Whoever had the lease until now may just have stored the result.
        if self.settled(n, &resolved) {
            return Ok(None);
        }
        if let Some(fault) = self.unsound.remove(&n) {
            // A remote that does not have it says so.
            let asked = self.request.remote.is_some() && matches!(fault, Fault::Left { .. });
            if !asked {
                self.tell_remade(n, &fault);
            }
        }
        let job = (self.job(n, &resolved), self.tables_at_hand(&resolved));
        self.state[n] = State::Running;
        self.joined.insert(resolved.digest, Vec::new());
        self.running.insert(n, InFlight { resolved, lease });
        self.request.reporter.event(Event::Started(self.label(n)));
        Ok(Some(job))
    }

    /// Completes the instance if its result exists, in this run or in the store.
    fn settled(&mut self, n: usize, resolved: &Resolved) -> bool {
        let made = match self.by_key.get(&resolved.digest).copied() {
            Some(twin) => self.made[twin].as_ref().map(|made| Made {
                outputs: made.outputs.clone(),
                worked: made.worked.clone(),
                tables: Vec::new(),
            }),
            None => self.recalled(n, &resolved.digest).map(|found| Made {
                outputs: found.outputs.iter().map(|output| output.digest).collect(),
                worked: Worked {
                    work: found.work,
                    wall: found.wall,
                    taken: false,
                },
                tables: Vec::new(),
            }),
        };
        let Some(made) = made else { return false };
        self.complete(n, Status::Hit, resolved.digest, Duration::ZERO, made);
        true
    }

    /// The result in the store. One that cannot be used is remembered, to be reported if it is computed
    /// again.
    fn recalled(&mut self, n: usize, key: &Digest) -> Option<Found> {
        match recall(self.request.store, key) {
            Recalled::Never => None,
            Recalled::Sound(found) => Some(found),
            // What nobody reads may stay in the remote that it is in.
            Recalled::Unsound(found, Fault::Left { .. })
                if !self.request.objects[n] && self.rebuilds[n] == 0 =>
            {
                self.left.insert(n);
                Some(found)
            }
            Recalled::Unsound(_, fault) => {
                self.unsound.insert(n, fault);
                None
            }
        }
    }

    /// A worker has reported.
    fn finished(&mut self, n: usize, report: ExecutionReport) {
        let InFlight { resolved, lease } = self.running.remove(&n).expect("it was running");
        let key = resolved.digest;
        let joined = self.joined.remove(&key).unwrap_or_default();
        let wall = report.record.wall;
        self.note_memory(n, report.record.peak_memory);
        match report.outcome {
            Ok(outputs) => {
                let (staged, tables): (Vec<_>, Vec<_>) = outputs.into_iter().unzip();
                let taken = report.record.signer.is_some();
                if taken {
                    self.left.insert(n);
                }
                let made = Made {
                    outputs: staged.iter().map(|staged| staged.digest).collect(),
                    worked: Worked {
                        work: report.record.work.clone(),
                        wall,
                        taken,
                    },
                    tables,
                };
                self.record(n, &resolved, report.record, Ok(staged), Some(lease));
                if self.is_stale(&resolved) {
                    // Good for its key, but not for this run: an input was made anew meanwhile.
                    self.wait_again(n);
                    joined.into_iter().for_each(|twin| self.wait_again(twin));
                    return;
                }
                self.by_key.insert(key, n);
                self.complete(n, Status::Ran, key, wall, made);
                for twin in joined {
                    self.settled(twin, &resolved);
                }
            }
            // Not a failure of the stage: it runs next time.
            Err(ExecutionError::Failed(failure)) if failure.stopped => self.halting = true,
            Err(ExecutionError::Failed(failure)) => {
                let message = failure.message.clone();
                self.record(n, &resolved, report.record, Err(message), None);
                self.fail(n, Some(key), wall, &failure);
                for twin in joined {
                    self.fail_unrun(twin, Some(key), &failure);
                }
            }
            Err(ExecutionError::LeftAlone(why)) => {
                for n in joined.into_iter().chain([n]) {
                    self.skip(n, &why);
                }
            }
            Err(ExecutionError::LostInput(digest, error)) => {
                match self.source_of(&resolved, &digest) {
                    Some(source) => {
                        self.lost(n, source, &error);
                        self.lost_beside(n, &resolved);
                    }
                    // It has come out different meanwhile.
                    None => self.wait_again(n),
                }
                for twin in joined {
                    self.wait_again(twin);
                }
            }
        }
    }

    /// Says so if a job took more memory than was asked for. Of a stage in this process only the whole is known.
    fn note_memory(&self, n: usize, peak: Option<u64>) {
        let asked = self.request.plan.decl(n).resources.memory;
        let more = peak.filter(|peak| asked > 0 && *peak > asked);
        if let Some(peak) = more.filter(|_| self.request.queue.is_some()) {
            let (peak, asked) = (in_words(peak), in_words(asked));
            let text =
                format!("took {peak} of memory, and `resources` has {asked}: raise `memory`");
            note(self.request, n, &text);
        }
    }

    /// An instance is done: its readers may be ready, and what it read may be let go.
    fn complete(&mut self, n: usize, status: Status, key: Digest, wall: Duration, made: Made) {
        self.state[n] = State::Done;
        let before = self.lost.remove(&n);
        let differs = before.is_some_and(|before| before != made.outputs);
        self.ran[n] = status == Status::Ran;
        if status == Status::Hit {
            self.note_use(n, status, Some(key));
        }
        self.tell(n, status, Some(key), wall, &made.worked, None);
        let tables = match self.unread[n] {
            0 => Vec::new(),
            _ => made.tables,
        };
        self.made[n] = Some(Made { tables, ..made });
        for source in self.request.plan.instances[n].sources() {
            let unread = &mut self.unread[source.instance];
            *unread = unread.saturating_sub(1);
            if *unread == 0
                && let Some(made) = &mut self.made[source.instance]
            {
                made.tables = Vec::new();
            }
        }
        for at in 0..self.readers[n].len() {
            let reader = self.readers[n][at];
            if self.state[reader] == State::Waiting {
                self.missing[reader] = self.missing[reader].saturating_sub(1);
                if self.missing[reader] == 0 {
                    self.make_ready(reader);
                }
            }
        }
        if differs {
            self.came_out_different(n);
        }
    }

    /// An instance failed: report why, and skip all that needs it.
    fn fail(&mut self, n: usize, key: Option<Digest>, wall: Duration, failure: &Failure) {
        self.state[n] = State::Failed;
        let diagnostic = self.diagnose(n, failure);
        let sources = &self.request.plan.pipeline.sources;
        let text = diagnostic::render(sources, std::slice::from_ref(&diagnostic));
        let title = diagnostic.title().lines().next().unwrap_or_default();
        let nothing = Worked::default();
        self.tell(n, Status::Failed, key, wall, &nothing, Some((&text, title)));
        self.halting |= !self.request.keep_going;
        let why = format!("needs `{}`, which failed", self.label(n));
        let mut after = vec![n];
        while let Some(n) = after.pop() {
            for at in 0..self.readers[n].len() {
                let reader = self.readers[n][at];
                if self.state[reader] == State::Waiting {
                    self.skip(reader, &why);
                    after.push(reader);
                }
            }
        }
    }

    /// The same for an instance that was not executed, so that nothing else records it.
    fn fail_unrun(&mut self, n: usize, key: Option<Digest>, failure: &Failure) {
        self.note_use(n, Status::Failed, key);
        self.fail(n, key, Duration::ZERO, failure);
    }

    fn skip(&mut self, n: usize, why: &str) {
        self.state[n] = State::Skipped;
        self.tell_skipped(n, why);
        self.note_use(n, Status::Skipped, None);
    }

    /// Why an instance is not run when a run ends.
    fn why_left(&self, n: usize) -> String {
        let mut sources = self.request.plan.instances[n].sources();
        match sources.find(|source| self.state[source.instance] == State::Skipped) {
            _ if self.request.stop.load(Ordering::Relaxed) => "the run was interrupted".to_owned(),
            Some(source) => format!("reads `{}`, which was skipped", self.label(source.instance)),
            None => "the run ended at the first failure".to_owned(),
        }
    }

    /// Tries again what other processes were making.
    fn look_elsewhere(&mut self) {
        let waiting: Vec<usize> = self.elsewhere.keys().copied().collect();
        for n in waiting {
            let resolved = self.elsewhere.remove(&n).expect("just listed");
            if !self.settled(n, &resolved) {
                // `start` tries the lease; if it is still taken, it comes back here.
                self.runnable.insert(n, resolved);
            }
        }
    }

    /// Records the rest and adds up.
    fn wind_up(&mut self) -> Tally {
        for n in self.wanted() {
            if !matches!(self.state[n], State::Done | State::Failed | State::Skipped) {
                let why = self.why_left(n);
                self.skip(n, &why);
            }
        }
        self.send_uses();
        self.tell_remade_rest();
        let count = |state: State| self.wanted().filter(|n| self.state[*n] == state).count();
        let ran = self
            .wanted()
            .filter(|n| self.state[*n] == State::Done && self.ran[*n])
            .count();
        let taken = |n: &usize| {
            let made = self.made[*n].as_ref();
            self.ran[*n] && made.is_some_and(|made| made.worked.taken)
        };
        Tally {
            ran,
            taken: self.wanted().filter(taken).count(),
            hits: count(State::Done) - ran,
            failed: count(State::Failed),
            skipped: count(State::Skipped),
            interrupted: self.request.stop.load(Ordering::Relaxed),
            wall: self.started.elapsed(),
        }
    }
}
