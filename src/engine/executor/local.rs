//! Executes jobs on threads of this process.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use stages::{Failure, Stage};

use super::Executor;
use crate::engine::execute::{ExecutionContext, ExecutionReport, execute};
use crate::engine::inputs::TablesAtHand;
use crate::engine::job::Job;
use crate::huge_pages;

/// Finds a kind by its name.
pub type FindKind = fn(&str) -> Option<&'static dyn Stage>;

/// Runs each job as a task of a rayon scope, so that stages share one pool with what they do in parallel.
pub struct LocalExecutor<'a, 'scope> {
    scope: &'a rayon::Scope<'scope>,
    slots: usize,
    kinds: FindKind,
    context: ExecutionContext<'scope>,
    progress: &'scope (dyn Fn(usize, u64, u64) + Sync),
    reports: Sender<(usize, ExecutionReport)>,
    inbox: Receiver<(usize, ExecutionReport)>,
}

impl<'a, 'scope> LocalExecutor<'a, 'scope> {
    /// `progress` is called with a job's number and how much of its work is done.
    pub fn new(
        scope: &'a rayon::Scope<'scope>,
        slots: usize,
        kinds: FindKind,
        context: ExecutionContext<'scope>,
        progress: &'scope (dyn Fn(usize, u64, u64) + Sync),
    ) -> LocalExecutor<'a, 'scope> {
        let (reports, inbox) = channel();
        LocalExecutor {
            scope,
            slots,
            kinds,
            context,
            progress,
            reports,
            inbox,
        }
    }
}

impl Executor for LocalExecutor<'_, '_> {
    fn slots(&self) -> usize {
        self.slots
    }

    fn start(&mut self, number: usize, job: Job, at_hand: TablesAtHand) {
        huge_pages::allow();
        let (kinds, context, progress) = (self.kinds, self.context, self.progress);
        let reports = self.reports.clone();
        self.scope.spawn(move |_| {
            let report = match kinds(&job.kind) {
                Some(kind) => {
                    let tell = |done, total| progress(number, done, total);
                    execute(kind, &job, &at_hand, context, &tell)
                }
                None => {
                    let why = format!("this version of ablate has no kind `{}`", job.kind);
                    ExecutionReport::not_started(Failure::new(why))
                }
            };
            // The scheduler may have ended early on a failure of the store.
            let _ = reports.send((number, report));
        });
    }

    fn wait(&mut self, patience: Duration) -> Option<(usize, ExecutionReport)> {
        self.inbox.recv_timeout(patience).ok()
    }
}
