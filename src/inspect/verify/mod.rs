//! Executes stages again, each from the inputs that are stored, and compares what comes out.
//! Nothing is written to the store: a scratch store takes the outputs, and goes away.

pub mod grade;
pub mod sample;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use stages::{DataHome, Determinism};
use store::{Environment, Execution, Inspected, Output, Store};

use crate::engine::execute::{ExecutionContext, ExecutionError, execute};
use crate::engine::inputs::TablesAtHand;
use crate::engine::job::Job;
use crate::inspect::status::InstanceStatus;
use crate::plan::{Plan, Source};
use crate::resolve::{Unreadable, Unresolved, resolve};
use grade::Grade;

/// What is executed again, and where.
pub struct VerifyContext<'a> {
    /// The pipeline's instances.
    pub plan: &'a Plan<'a>,
    /// Whether each is cached.
    pub statuses: &'a [InstanceStatus],
    /// Where the results are.
    pub store: &'a Store,
    /// Where new outputs go.
    pub scratch: &'a Store,
    /// Where data sets are.
    pub data: &'a DataHome,
    /// Where this runs.
    pub here: &'a Environment,
    /// Set from outside to stop.
    pub stop: &'a AtomicBool,
}

/// How one instance on one number of threads compares with its stored result.
#[derive(Debug, Serialize)]
pub struct VerifyResult {
    /// The instance.
    pub stage: String,
    /// How many threads it had.
    pub threads: usize,
    /// What its kind promises.
    pub promise: &'static str,
    /// Whether rounding may differ, because the result was made elsewhere or by other code.
    pub tolerant: bool,
    /// Each output's grade, or why it could not be executed.
    pub outputs: Result<Vec<(String, Grade)>, String>,
    /// How long it took.
    #[serde(skip)]
    pub wall: Duration,
}

impl VerifyResult {
    /// The worst output and its grade.
    pub fn worst(&self) -> Option<(&str, &Grade)> {
        let outputs = self.outputs.as_ref().ok()?;
        let worst = outputs.iter().max_by_key(|(_, grade)| grade.rank())?;
        // Of equals the first.
        let first = outputs.iter().find(|(_, g)| g.rank() == worst.1.rank())?;
        Some((&first.0, &first.1))
    }

    /// Whether it is as it should be.
    pub fn is_good(&self) -> bool {
        self.worst().is_some_and(|(_, grade)| grade.rank() < 2)
    }
}

/// Executes an instance whose result is stored once more. `None`: somebody stopped it.
pub fn re_execute(
    context: &VerifyContext<'_>,
    n: usize,
    threads: usize,
) -> Result<Option<VerifyResult>, store::Error> {
    let (plan, store) = (context.plan, context.store);
    let instance = &plan.instances[n];
    let kind = plan.decl(n).kind;
    let promise = kind.determinism(&instance.params);
    let InstanceStatus::Cached { execution, .. } = &context.statuses[n] else {
        unreachable!("only stored results are verified");
    };
    let execution = store.execution(*execution)?;
    let execution = execution.expect("what is cached was executed");
    let result = |outputs, wall| VerifyResult {
        stage: instance.label.clone(),
        threads,
        promise: promise.name(),
        tolerant: may_round(&promise, &execution, context, n),
        outputs,
        wall,
    };
    let job = match job(plan, context.statuses, store, n) {
        Ok(job) => job,
        Err(why) => return Ok(Some(result(Err(why), Duration::ZERO))),
    };
    let scratch = ExecutionContext {
        inputs: store,
        outputs: context.scratch,
        data: context.data,
        stop: context.stop,
        checkpoints: None,
    };
    let none = TablesAtHand::new();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.expect("a thread pool can be made");
    let report = pool.install(|| execute(kind, &job, &none, scratch, &|_, _| ()));
    if context.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let wall = report.record.wall;
    let outputs = match report.outcome {
        Err(ExecutionError::Failed(failure)) => Err(failure.message),
        Err(ExecutionError::LostInput(_, error)) => Err(error.to_string()),
        Err(ExecutionError::LeftAlone(why)) => Err(why),
        Ok(tables) => {
            let tolerant = may_round(&promise, &execution, context, n);
            let pairs = execution.outputs.iter().zip(&tables);
            let graded = pairs.map(|(old, (staged, table))| {
                // The stored bytes must be the recorded ones, or others would be verified than are read.
                let grade = match (store.inspect(&old.digest), old.digest == staged.digest) {
                    (Inspected::Damaged(why), _) => Grade::Different {
                        row: None,
                        column: None,
                        detail: format!("the stored result is damaged: {why}"),
                    },
                    (_, true) => Grade::BitIdentical,
                    (_, false) => {
                        let table = table.as_ref().expect("it was executed here");
                        compare(store, old, table, &promise, tolerant)
                    }
                };
                (old.name.clone(), grade)
            });
            Ok(graded.collect())
        }
    };
    Ok(Some(result(outputs, wall)))
}

/// The job of an instance all of whose inputs are stored, or why there is none.
pub fn job(
    plan: &Plan<'_>,
    statuses: &[InstanceStatus],
    store: &Store,
    n: usize,
) -> Result<Job, String> {
    let made = |source: Source| {
        let outputs = statuses[source.instance].outputs();
        outputs.expect("what it reads was made")[source.output]
    };
    let read = |source: Source| {
        let read = store.read(&made(source));
        read.map_err(|error| Unreadable { source, error })
    };
    let resolved = resolve(plan, n, made, read);
    let resolved = resolved.map_err(|unresolved| match unresolved {
        Unresolved::Metric(failure) => failure.message,
        Unresolved::Unreadable(lost) => lost.error.to_string(),
    })?;
    Ok(Job::of(plan, n, &resolved, made))
}

fn compare(
    store: &Store,
    old: &Output,
    new: &arrow::record_batch::RecordBatch,
    promise: &Determinism,
    tolerant: bool,
) -> Grade {
    match store.read(&old.digest) {
        Err(error) => Grade::Different {
            row: None,
            column: None,
            detail: format!("the stored table cannot be compared: {error}"),
        },
        Ok(was) => grade::tables(&was, new, |column| match tolerant {
            true => promise.tolerance(&old.name, column),
            false => 0.0,
        }),
    }
}

/// Whether a result may differ by rounding: only where its kind says so, and only if it was made
/// on other instruction sets, by other numeric crates or by other code.
fn may_round(
    promise: &Determinism,
    execution: &Execution,
    context: &VerifyContext<'_>,
    n: usize,
) -> bool {
    let (then, now) = (&execution.environment, context.here);
    let elsewhere = then.cpu_features != now.cpu_features || then.crates != now.crates;
    let other_code = execution.key.code != context.plan.code(n).digest;
    matches!(promise, Determinism::Rounding(_)) && (elsewhere || other_code)
}
