//! Asks for the result of each job elsewhere before anybody executes it: what is there is taken, the rest goes to
//! another executor, or to nobody. Objects are fetched if the user asked for them or once somebody reads them: what
//! is only on the way to a result that is there stays where it is. Look-ups run beside each other; the executor behind
//! knows nothing of them, and this nothing of where results are.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use store::{Digest, Staged, Store};

use super::Executor;
use super::room::Room;
use crate::config::Resources;
use crate::engine::execute::{ExecutionError, ExecutionRecord, ExecutionReport};
use crate::engine::inputs::TablesAtHand;
use crate::engine::job::Job;

/// How many questions are asked at once.
const CONNECTIONS: usize = 16;

/// Where results may be.
pub trait ResultSource: Send + Sync {
    /// Looks for the result of a job; `whole` also puts its objects into the store.
    fn look_up(&self, job: &Job, whole: bool, store: &Store) -> Answer;

    /// Puts objects into the store that results name which were taken without them: what is missing, in words.
    fn fetch(&self, digests: &[Digest], store: &Store) -> Result<(), String>;

    /// Of how many jobs it could not be found out what is there, or what is there could not be taken.
    fn failures(&self) -> usize;
}

/// What somebody has of a job.
pub enum Answer {
    /// Nothing that counts; with words for the user, if something is wrong.
    Miss(Option<String>),
    /// Its outputs, in the store and not yet committed or left where they are, and what it took.
    Found(Vec<Staged>, Box<ExecutionRecord>),
}

/// Who is asked first.
pub struct RemoteRequest {
    /// Where results may be.
    pub source: Box<dyn ResultSource>,
    /// Whether what is not there is left alone, in place of being executed.
    pub only: bool,
}

/// What a thread finds out about a job.
struct Reply {
    answer: Answer,
    /// What was wrong with inputs that had to be fetched first.
    unfetched: Option<String>,
}

/// A job on its way to a remote.
struct Asked {
    number: usize,
    job: Job,
    resources: Resources,
    at_hand: TablesAtHand,
    whole: bool,
}

/// Asks a remote first.
pub struct RemoteExecutor<'a, E> {
    inner: E,
    request: &'a RemoteRequest,
    questions: Sender<Asked>,
    answers: Receiver<(Asked, Reply)>,
    asking: usize,
    /// By number, whose objects the user asked for.
    objects: &'a [bool],
    /// Who has been asked about before: if the scheduler asks again, it needs the objects.
    known: HashSet<usize>,
    /// What the executor behind has, what it executes of ours, and what waits for room there.
    room: Room,
    inside: HashMap<usize, Resources>,
    missed: VecDeque<Asked>,
    /// What has been told: that a server does not answer is told once, and not of every job.
    told: HashSet<String>,
    store: &'a Store,
    note: &'a dyn Fn(usize, &str),
    reports: VecDeque<(usize, ExecutionReport)>,
}

impl<'a, E: Executor> RemoteExecutor<'a, E> {
    /// Starts the threads that ask.
    pub fn new<'scope, 'env>(
        threads: &'scope Scope<'scope, 'env>,
        inner: E,
        request: &'env RemoteRequest,
        (store, objects): (&'env Store, &'env [bool]),
        note: &'a dyn Fn(usize, &str),
    ) -> RemoteExecutor<'a, E>
    where
        'env: 'a,
    {
        let (questions, asked) = channel::<Asked>();
        let (answered, answers) = channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..CONNECTIONS {
            let (asked, answered) = (asked.clone(), answered.clone());
            threads.spawn(move || {
                loop {
                    let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(question) = next else { return };
                    let reply = reply(request, &question, store);
                    // The run may have ended.
                    if answered.send((question, reply)).is_err() {
                        return;
                    }
                }
            });
        }
        let (places, memory) = inner.room();
        RemoteExecutor {
            room: Room::new(places, memory),
            inside: HashMap::new(),
            missed: VecDeque::new(),
            inner,
            request,
            questions,
            answers,
            asking: 0,
            objects,
            known: HashSet::new(),
            told: HashSet::new(),
            store,
            note,
            reports: VecDeque::new(),
        }
    }

    /// The executor behind.
    pub fn into_inner(self) -> E {
        self.inner
    }

    /// Hands on what nobody had, as far as there is room.
    fn start_missed(&mut self) {
        let fits = |this: &Self, asked: &Asked| this.room.has(this.inner.takes(asked.resources));
        while let Some(at) = self.missed.iter().position(|asked| fits(self, asked)) {
            let asked = self.missed.remove(at).expect("just found");
            let takes = self.inner.takes(asked.resources);
            self.room.take(takes);
            self.inside.insert(asked.number, takes);
            self.inner
                .start(asked.number, asked.job, asked.resources, asked.at_hand);
        }
    }

    fn tell(&mut self, number: usize, why: String) {
        if !self.told.contains(&why) {
            (self.note)(number, &why);
            self.told.insert(why);
        }
    }

    fn take(&mut self, asked: Asked, reply: Reply) {
        self.asking -= 1;
        let number = asked.number;
        if let Some(why) = reply.unfetched {
            self.tell(number, why);
        }
        match reply.answer {
            Answer::Found(staged, record) => {
                let outcome = Ok(staged.into_iter().map(|it| (it, None)).collect());
                let report = ExecutionReport {
                    outcome,
                    record: *record,
                };
                self.reports.push_back((number, report));
            }
            Answer::Miss(why) => {
                let left_alone = match &why {
                    Some(_) => "it could not be taken from the remote",
                    None if asked.job.kind == "command" => {
                        "nobody whose results of commands you take has pushed it (`ablate key trust --commands`)"
                    }
                    None => "nobody you trust has pushed it",
                };
                if let Some(why) = why {
                    self.tell(number, why);
                }
                if self.request.only {
                    let report = ExecutionReport {
                        outcome: Err(ExecutionError::LeftAlone(left_alone.to_owned())),
                        record: ExecutionRecord::default(),
                    };
                    self.reports.push_back((number, report));
                } else {
                    self.missed.push_back(asked);
                }
            }
        }
    }
}

impl<E: Executor> Executor for RemoteExecutor<'_, E> {
    /// More may be asked about than can be executed, and some wait for a connection, so that none of those waits for us.
    fn room(&self) -> (usize, u64) {
        (self.inner.room().0.max(4 * CONNECTIONS), u64::MAX)
    }

    /// A question takes a place, whatever the stage takes that nobody may have to execute.
    fn takes(&self, _: Resources) -> Resources {
        Resources::default()
    }

    fn start(&mut self, number: usize, job: Job, resources: Resources, at_hand: TablesAtHand) {
        self.asking += 1;
        // What is recorded and asked for all the same is a result whose objects are not here.
        let recorded = !self.known.insert(number)
            || matches!(self.store.lookup(&job.key), Ok(Some(found)) if found.taken);
        let asked = Asked {
            number,
            job,
            resources,
            at_hand,
            whole: recorded || self.objects[number],
        };
        if let Err(unsent) = self.questions.send(asked) {
            let answer = Answer::Miss(None);
            let reply = Reply {
                answer,
                unfetched: None,
            };
            self.take(unsent.0, reply);
        }
    }

    fn wait(&mut self, patience: Duration) -> Option<(usize, ExecutionReport)> {
        /// How long the executor behind is listened to while questions are open.
        const TURN: Duration = Duration::from_millis(2);
        let until = Instant::now() + patience;
        loop {
            while let Ok((asked, reply)) = self.answers.try_recv() {
                self.take(asked, reply);
            }
            self.start_missed();
            if let Some(report) = self.reports.pop_front() {
                return Some(report);
            }
            let left = until.checked_duration_since(Instant::now())?;
            let turn = if self.asking > 0 {
                TURN.min(left)
            } else {
                left
            };
            if let Some((number, report)) = self.inner.wait(turn) {
                if let Some(taken) = self.inside.remove(&number) {
                    self.room.give_back(taken);
                }
                return Some((number, report));
            }
        }
    }
}

/// Looks a job up and, if somebody has to execute it, fetches those of its inputs that are not here.
fn reply(request: &RemoteRequest, asked: &Asked, store: &Store) -> Reply {
    let answer = request.source.look_up(&asked.job, asked.whole, store);
    let mut unfetched = None;
    if matches!(answer, Answer::Miss(_)) && !request.only {
        let inputs = asked.job.digests();
        let absent = |digest: &Digest| !asked.at_hand.contains_key(digest) && !store.has(digest);
        let absent: Vec<Digest> = inputs.into_iter().filter(absent).collect();
        if !absent.is_empty() {
            // Whoever made it makes it again.
            unfetched = request.source.fetch(&absent, store).err();
        }
    }
    Reply { answer, unfetched }
}
