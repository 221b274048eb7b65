//! What the scheduler reports: to the provenance, and to the progress display.
//! Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use stages::Failure;
use store::{Digest, Environment, Facts, Finished, Lease, Staged, Status, Use};

use super::{Scheduler, USES};
use crate::diagnostic::Diagnostic;
use crate::engine::execute::ExecutionRecord;
use crate::engine::progress::{Event, Worked};
use crate::resolve::Resolved;
use crate::results::recall::Fault;

/// How many stages that are made again are named: after a gc it may be thousands.
const REMADE: usize = 20;

impl Scheduler<'_> {
    /// Hands an execution to the committer. The lease goes along, to be given back when the
    /// result is on disk: sooner, and another process would execute it again.
    pub(super) fn record(
        &self,
        n: usize,
        resolved: &Resolved,
        execution: ExecutionRecord,
        outcome: Result<Vec<Staged>, String>,
        lease: Option<Lease>,
    ) {
        let (plan, run) = (self.request.plan, self.request.run);
        let instance = &plan.instances[n];
        let used = Use {
            run,
            instance: instance.label.clone(),
            status: match outcome {
                Ok(_) => Status::Ran,
                Err(_) => Status::Failed,
            },
            key: Some(resolved.digest),
            wall: execution.wall,
        };
        let names = instance.outputs.iter().cloned();
        let finished = Finished {
            run,
            instance: instance.label.clone(),
            key: resolved.key.clone(),
            key_digest: resolved.digest,
            code: plan.code(n).files,
            started: execution.started,
            wall: execution.wall,
            cpu: execution.cpu,
            peak_memory: execution.peak_memory,
            work: execution.work,
            outcome: outcome.map(|staged| names.zip(staged).collect()),
            log: execution.log,
            inputs: resolved.inputs.clone(),
            environment: Some(match execution.environment {
                Some(there) => self.machine(&there),
                None => self.request.environment.clone(),
            }),
            facts: Facts {
                defaults: Some(self.defaults(n)),
                determinism: Some(
                    plan.decl(n)
                        .kind
                        .determinism(&instance.params)
                        .name()
                        .into(),
                ),
                raw: execution.raw,
                sandbox: execution.sandbox,
                resumed: execution.resumed,
                signer: execution.signer,
                ..Facts::default()
            },
            lease,
        };
        self.committer.send(finished, used);
    }

    /// A machine that executes for this one: the repository is the driver's.
    fn machine(&self, there: &Environment) -> Arc<Environment> {
        let here = &self.request.environment;
        Arc::new(Environment {
            git_commit: here.git_commit.clone(),
            git_dirty: here.git_dirty,
            ..there.clone()
        })
    }

    /// The parameters in an instance's key that are defaults: neither written, nor set by a point, a variant or a
    /// choice.
    fn defaults(&self, n: usize) -> Vec<String> {
        let plan = self.request.plan;
        let (decl, instance) = (plan.decl(n), &plan.instances[n]);
        let value = |axis: &usize| instance.point.iter().find(|(known, _)| known == axis);
        let own = decl.axes.iter().filter_map(value).map(|(_, at)| *at);
        let written = decl
            .at(&plan.pipeline.axes, &own.collect::<Vec<_>>())
            .params;
        let params = instance.params.keys();
        params
            .filter(|name| written.iter().all(|entry| entry.key != **name))
            .filter(|name| !decl.kind.limits().contains(&name.as_str()))
            .cloned()
            .collect()
    }

    pub(super) fn note_use(&mut self, n: usize, status: Status, key: Option<Digest>) {
        let instance = self.label(n).to_owned();
        self.uses.push(Use {
            run: self.request.run,
            instance,
            status,
            key,
            wall: Duration::ZERO,
        });
        // Written while the loop goes on.
        if self.uses.len() >= USES {
            self.send_uses();
        }
    }

    /// Hands over what became of instances so far. Also before the loop waits, so that whoever
    /// watches the provenance sees what was cached while the first long stage runs.
    pub(super) fn send_uses(&mut self) {
        if !self.uses.is_empty() {
            self.committer.send_uses(std::mem::take(&mut self.uses));
        }
    }

    /// Says that a stored result is made again, and why.
    pub(super) fn tell_remade(&mut self, n: usize, fault: &Fault) {
        self.remade += 1;
        if self.remade <= REMADE {
            let label = self.label(n);
            let what = format!("`{label}` is recomputed: its stored result is {fault}");
            self.request.reporter.event(Event::Note(&what));
        }
    }

    /// Counts those that were not named.
    pub(super) fn tell_remade_rest(&self) {
        if let more @ 1.. = self.remade.saturating_sub(REMADE) {
            let what = format!("{more} more stages were recomputed: their results were not usable");
            self.request.reporter.event(Event::Note(&what));
        }
    }

    pub(super) fn tell(
        &self,
        n: usize,
        status: Status,
        key: Option<Digest>,
        wall: Duration,
        worked: &Worked,
        error: Option<(&str, &str)>,
    ) {
        let label = self.label(n);
        self.request.reporter.event(Event::Stage {
            label,
            status,
            key,
            wall,
            worked,
            error,
            why: None,
        });
    }

    pub(super) fn tell_skipped(&self, n: usize, why: &str) {
        self.request.reporter.event(Event::Stage {
            label: self.label(n),
            status: Status::Skipped,
            key: None,
            wall: Duration::ZERO,
            worked: &Worked::default(),
            error: None,
            why: Some(why),
        });
    }

    pub(super) fn diagnose(&self, n: usize, failure: &Failure) -> Diagnostic {
        let decl = self.request.plan.decl(n);
        let entry = failure
            .param
            .and_then(|param| decl.params.iter().find(|entry| entry.key == param));
        let span = match (failure.param, entry) {
            (_, Some(entry)) => entry.node.span,
            (Some("select"), None) => decl.select.as_ref().map_or(decl.span, |s| s.span),
            (Some("over"), None) => decl
                .over_listed()
                .first()
                .map_or(decl.span, |(_, span)| *span),
            _ => decl.span,
        };
        Diagnostic::new(format!("`{}` failed: {}", self.label(n), failure.message))
            .at(span, "")
            .maybe_help(failure.help.as_deref())
    }
}
