//! Asks a remote for each job before anybody executes it: what is there is taken, the rest goes to another executor,
//! or to nobody. Look-ups run beside each other; the executor behind knows nothing of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use store::Store;

use super::Executor;
use crate::config::Resources;
use crate::engine::execute::{ExecutionError, ExecutionRecord, ExecutionReport};
use crate::engine::inputs::TablesAtHand;
use crate::engine::job::Job;
use crate::remote::Remote;
use crate::remote::keys::Trusted;
use crate::remote::lookup::{Answer, Wanted, look_up};
use crate::remote::push::CONNECTIONS;

/// A remote to be asked, and whose results count.
pub struct RemoteRequest {
    /// The remote.
    pub remote: Remote,
    /// Whose results are taken.
    pub trusted: Vec<Trusted>,
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
                    let wanted = Wanted {
                        key: question.job.key,
                        kind: &question.job.kind,
                        outputs: &question.job.outputs,
                    };
                    let answer = look_up(&request.remote, &request.trusted, store, &wanted);
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
            Answer::Found(statement, staged) => {
                let mut record = statement.execution;
                record.environment = Some(Arc::new(statement.environment));
                record.signer = Some(statement.signer);
                let outcome = Ok(staged.into_iter().map(|it| (it, None)).collect());
                let report = ExecutionReport { outcome, record };
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
