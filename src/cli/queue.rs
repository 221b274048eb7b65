//! `ablate run --executor`: the queue that a run hands its stages to, and what Ctrl-C means for it.

use std::io::IsTerminal;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use stages::DataHome;
use store::Store;

use super::exit::Exit;
use super::print::note;
use crate::config::{Executors, QueuePatience};
use crate::diagnostic::Diagnostic;
use crate::engine::executor::queue::command::CommandQueue;
use crate::engine::executor::queue::slurm::Slurm;
use crate::engine::executor::queue::{OnStop, Queue, QueueRequest};
use crate::engine::handover::{self, TaskSettings};
use crate::engine::progress::Reporter;

/// Where stages run.
#[derive(Args)]
pub struct ExecutorOptions {
    /// Where stages run: here, on a Slurm cluster, or through the commands of [executor.command]
    #[arg(long, value_enum, value_name = "WHERE", default_value = "local")]
    executor: Where,
    /// What becomes of queued jobs when the run is interrupted: `ask` asks on a terminal, and detaches elsewhere
    #[arg(long, value_enum, value_name = "WHAT", default_value = "ask")]
    on_interrupt: OnInterrupt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Where {
    Local,
    Slurm,
    Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnInterrupt {
    Ask,
    Detach,
    Cancel,
}

impl ExecutorOptions {
    /// The queue that was asked for, with how patient to be; none for this machine. Asked before a run begins.
    pub fn queue(&self, executors: &Executors) -> Result<Option<ChosenQueue>, Exit> {
        let ablate = || -> Result<String, Exit> {
            let program = std::env::current_exe();
            let program = program.map_err(|error| {
                Exit::Failed(Diagnostic::new(format!(
                    "cannot find this program: {error}"
                )))
            })?;
            Ok(program.display().to_string())
        };
        let (queue, patience): (Box<dyn Queue + Send>, _) = match self.executor {
            Where::Local => return Ok(None),
            Where::Slurm => {
                let settings = executors.slurm.clone();
                let patience = settings.patience;
                let slurm = Slurm::new(settings, ablate()?).map_err(|why| {
                    let problem = Diagnostic::new(format!("Slurm does not answer: {why}"));
                    Exit::Failed(problem.help("run on a login node of the cluster"))
                })?;
                (Box::new(slurm), patience)
            }
            Where::Command => {
                let Some(settings) = executors.command.clone() else {
                    let problem = Diagnostic::new("the pipeline has no [executor.command]");
                    let help = "add one with `submit`, `poll` and `cancel`: docs/scale.md";
                    return Err(problem.help(help).into());
                };
                let patience = settings.patience;
                let queue = CommandQueue::new(settings, ablate()?).map_err(|why| {
                    let problem = Diagnostic::new(format!("[executor.command]: {why}"));
                    Exit::Failed(problem.help("docs/scale.md has examples"))
                })?;
                (Box::new(queue), patience)
            }
        };
        Ok(Some(ChosenQueue { queue, patience }))
    }

    /// Asks what becomes of the jobs, or does as was said before.
    pub fn on_stop(&self, reporter: &dyn Reporter) -> OnStop {
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let mut choice = match self.on_interrupt {
            OnInterrupt::Cancel => OnStop::Cancel,
            OnInterrupt::Detach | OnInterrupt::Ask => OnStop::Detach,
        };
        if self.on_interrupt == OnInterrupt::Ask && terminal {
            reporter.pause(&mut || choice = asked());
        }
        match choice {
            OnStop::Detach => note!("ablate: queued jobs go on; run again to take their results"),
            OnStop::Cancel => note!("ablate: queued jobs are cancelled"),
        }
        choice
    }
}

/// A queue, and how patient to be with it.
pub struct ChosenQueue {
    queue: Box<dyn Queue + Send>,
    patience: QueuePatience,
}

impl ChosenQueue {
    /// For a run in this store.
    pub fn request<'a>(
        self,
        store: &Store,
        data: &DataHome,
        (sandbox, checkpoint_every): (bool, u64),
        jobs: Option<u16>,
        on_stop: &'a (dyn Fn() -> OnStop + Sync),
    ) -> Result<QueueRequest<'a>, Exit> {
        let folder = handover::open_jobs(store.root()).map_err(|error| {
            let name = store.root().join("jobs");
            let name = name.display();
            Exit::Failed(Diagnostic::new(format!("cannot use `{name}`: {error}")))
        })?;
        let absolute = |path: &std::path::PathBuf| std::path::absolute(path).ok();
        let in_flight = jobs.map_or(self.patience.in_flight, usize::from);
        Ok(QueueRequest {
            queue: Mutex::new(Some(self.queue)),
            jobs: folder,
            settings: TaskSettings {
                cache: data.cache.clone(),
                mirror: data.mirror.as_ref().and_then(absolute),
                offline: data.offline,
                sandbox,
                checkpoint_every,
            },
            patience: QueuePatience {
                in_flight,
                ..self.patience
            },
            on_stop,
        })
    }
}

fn asked() -> OnStop {
    note!("ablate: jobs are queued or running. Let them go on, or cancel them? [detach/cancel]");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    match line.trim_start().starts_with(['c', 'C']) {
        true => OnStop::Cancel,
        false => OnStop::Detach,
    }
}
