//! Asks for the result of each job elsewhere before anybody executes it: what is there is taken, the rest goes to
//! another executor, or to nobody. Look-ups run beside each other; the executor behind knows nothing of them, and this
//! nothing of where results are.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use store::{Staged, Store};

use super::Executor;
use crate::config::Resources;
use crate::engine::execute::{ExecutionError, ExecutionRecord, ExecutionReport};
use crate::engine::inputs::TablesAtHand;
use crate::engine::job::Job;

/// How many questions are asked at once.
const CONNECTIONS: usize = 16;

/// Where results may be.
pub trait ResultSource: Send + Sync {
    /// Looks for the result of a job, and puts its objects into the store.
    fn look_up(&self, job: &Job, store: &Store) -> Answer;
}

/// What somebody has of a job.
pub enum Answer {
    /// Nothing that counts; with words for the user, if something is wrong.
    Miss(Option<String>),
    /// Its outputs, in the store and not yet committed, and what it took.
    Found(Vec<Staged>, Box<ExecutionRecord>),
}

/// Who is asked first.
pub struct RemoteRequest {
    /// Where results may be.
    pub source: Box<dyn ResultSource>,
    /// Whether what is not there is left alone, in place of being executed.
    pub only: bool,
}

/// A job on its way to a remote.
struct Asked {
    number: usize,
    job: Job,
    resources: Resources,
    at_hand: TablesAtHand,
}

/// Asks a remote first.
pub struct RemoteExecutor<'a, E> {
    inner: E,
    request: &'a RemoteRequest,
    questions: Sender<Asked>,
    answers: Receiver<(Asked, Answer)>,
    asking: usize,
    note: &'a dyn Fn(usize, &str),
    reports: VecDeque<(usize, ExecutionReport)>,
}

impl<'a, E: Executor> RemoteExecutor<'a, E> {
    /// Starts the threads that ask.
    pub fn new<'scope, 'env>(
        threads: &'scope Scope<'scope, 'env>,
        inner: E,
        request: &'env RemoteRequest,
        store: &'env Store,
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
                    let answer = request.source.look_up(&question.job, store);
                    // The run may have ended.
                    if answered.send((question, answer)).is_err() {
                        return;
                    }
                }
            });
        }
        RemoteExecutor {
            inner,
            request,
            questions,
            answers,
            asking: 0,
            note,
            reports: VecDeque::new(),
        }
    }

    /// The executor behind.
    pub fn into_inner(self) -> E {
        self.inner
    }

    fn take(&mut self, asked: Asked, answer: Answer) {
        self.asking -= 1;
        let number = asked.number;
        match answer {
            Answer::Found(staged, record) => {
                let outcome = Ok(staged.into_iter().map(|it| (it, None)).collect());
                let report = ExecutionReport {
                    outcome,
                    record: *record,
                };
                self.reports.push_back((number, report));
            }
            Answer::Miss(why) => {
                if let Some(why) = why {
                    (self.note)(number, &why);
                }
                if self.request.only {
                    let report = ExecutionReport {
                        outcome: Err(ExecutionError::LeftAlone),
                        record: ExecutionRecord::default(),
                    };
                    self.reports.push_back((number, report));
                } else {
                    self.inner
                        .start(number, asked.job, asked.resources, asked.at_hand);
                }
            }
        }
    }
}

impl<E: Executor> Executor for RemoteExecutor<'_, E> {
    fn room(&self) -> (usize, u64) {
        self.inner.room()
    }

    fn takes(&self, resources: Resources) -> Resources {
        self.inner.takes(resources)
    }

    fn start(&mut self, number: usize, job: Job, resources: Resources, at_hand: TablesAtHand) {
        self.asking += 1;
        let asked = Asked {
            number,
            job,
            resources,
            at_hand,
        };
        if let Err(unsent) = self.questions.send(asked) {
            self.take(unsent.0, Answer::Miss(None));
        }
    }

    fn wait(&mut self, patience: Duration) -> Option<(usize, ExecutionReport)> {
        /// How long the executor behind is listened to while questions are open.
        const TURN: Duration = Duration::from_millis(2);
        let until = Instant::now() + patience;
        loop {
            while let Ok((asked, answer)) = self.answers.try_recv() {
                self.take(asked, answer);
            }
            if let Some(report) = self.reports.pop_front() {
                return Some(report);
            }
            let left = until.checked_duration_since(Instant::now())?;
            let turn = if self.asking > 0 {
                TURN.min(left)
            } else {
                left
            };
            if let Some(report) = self.inner.wait(turn) {
                return Some(report);
            }
        }
    }
}
