//! Executes jobs on threads of this process.
//!
//! Each job runs in its own thread pool. If all jobs shared one pool, a thread waiting for part of one stage could
//! pick up another whole stage: an 11-second attack once took 12 minutes because its thread had started a training.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};
use stages::{Failure, Stage};

use super::Executor;
use crate::config::Resources;
use crate::engine::execute::{ExecutionContext, ExecutionReport, execute};
use crate::engine::inputs::TablesAtHand;
use crate::engine::job::Job;
use crate::environment;
use crate::huge_pages;

/// Finds a kind by its name.
pub type FindKind = fn(&str) -> Option<&'static dyn Stage>;

/// Pools for jobs, and what jobs need.
pub struct StagePools<'a> {
    /// How many threads a job may use, and how many jobs run at once.
    threads: usize,
    kinds: FindKind,
    context: ExecutionContext<'a>,
    /// Is called with a job's number and how much of its work is done.
    progress: &'a (dyn Fn(usize, u64, u64) + Sync),
    /// Pools that no job uses now.
    idle: Mutex<Vec<ThreadPool>>,
}

impl<'a> StagePools<'a> {
    /// A pools without pools: they are made when they are needed.
    pub fn new(
        threads: usize,
        kinds: FindKind,
        context: ExecutionContext<'a>,
        progress: &'a (dyn Fn(usize, u64, u64) + Sync),
    ) -> StagePools<'a> {
        StagePools {
            threads,
            kinds,
            context,
            progress,
            idle: Mutex::default(),
        }
    }

    fn execute(&self, number: usize, job: &Job, at_hand: &TablesAtHand) -> ExecutionReport {
        let Some(kind) = (self.kinds)(&job.kind) else {
            let why = format!("this version of ablate has no kind `{}`", job.kind);
            return ExecutionReport::not_started(Failure::new(why));
        };
        let tell = |done, total| (self.progress)(number, done, total);
        let pool = match self.pool() {
            Ok(pool) => pool,
            Err(why) => return ExecutionReport::not_started(Failure::new(why)),
        };
        let report = pool.install(|| execute(kind, job, at_hand, self.context, &tell));
        self.idle().push(pool);
        report
    }

    fn pool(&self) -> Result<ThreadPool, String> {
        if let Some(pool) = self.idle().pop() {
            return Ok(pool);
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .thread_name(|n| format!("stage-{n}"))
            .build();
        pool.map_err(|error| format!("cannot start {} threads: {error}", self.threads))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<ThreadPool>> {
        // Nothing is done while it is held that could leave it half changed.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs each job on a thread that waits for the job's pool.
pub struct LocalExecutor<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    pools: &'env StagePools<'env>,
    reports: Sender<(usize, ExecutionReport)>,
    inbox: Receiver<(usize, ExecutionReport)>,
}

impl<'scope, 'env> LocalExecutor<'scope, 'env> {
    /// Starts jobs within a scope.
    pub fn new(
        scope: &'scope Scope<'scope, 'env>,
        pools: &'env StagePools<'env>,
    ) -> LocalExecutor<'scope, 'env> {
        let (reports, inbox) = channel();
        LocalExecutor {
            scope,
            pools,
            reports,
            inbox,
        }
    }
}

impl Executor for LocalExecutor<'_, '_> {
    fn room(&self) -> (usize, u64) {
        (self.pools.threads, environment::machine_memory())
    }

    fn takes(&self, resources: Resources) -> Resources {
        resources
    }

    fn start(&mut self, number: usize, job: Job, _: Resources, at_hand: TablesAtHand) {
        huge_pages::allow();
        let (pools, reports) = (self.pools, self.reports.clone());
        self.scope.spawn(move || {
            let report = pools.execute(number, &job, &at_hand);
            // The scheduler may have ended early on a failure of the store.
            let _ = reports.send((number, report));
        });
    }

    fn wait(&mut self, patience: Duration) -> Option<(usize, ExecutionReport)> {
        self.inbox.recv_timeout(patience).ok()
    }
}
