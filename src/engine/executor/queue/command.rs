//! Any queue that has programs to submit, look at and cancel a job: `[executor.command]`. One task per submission.

use std::collections::HashMap;

use super::flight::Ending;
use super::program::run;
use super::{Queue, QueueState, Submission};
use crate::config::CommandQueueSettings;
use crate::engine::handover::Submitted;

/// A queue behind three commands.
pub struct CommandQueue {
    settings: CommandQueueSettings,
    /// This program.
    ablate: String,
}

impl CommandQueue {
    /// The queue that the pipeline describes.
    /// An error if one of its programs cannot be started: nobody would hear of jobs that end.
    pub fn new(settings: CommandQueueSettings, ablate: String) -> Result<CommandQueue, String> {
        for (name, arguments) in [
            ("submit", &settings.submit),
            ("poll", &settings.poll),
            ("cancel", &settings.cancel),
        ] {
            let program = arguments.first().map_or("", String::as_str);
            if !program.starts_with('{') && !is_there(program) {
                return Err(format!("`{name}` runs `{program}`, which was not found"));
            }
        }
        Ok(CommandQueue { settings, ablate })
    }

    fn submit_one(&self, task: &Submission<'_>) -> Result<String, String> {
        let resources = task.resources;
        let values = [
            ("{ablate}", self.ablate.clone()),
            ("{task}", task.handover.folder().display().to_string()),
            ("{cpus}", resources.cpus.to_string()),
            ("{gpus}", resources.gpus.to_string()),
            // Of 2^20 bytes, as `resources` and schedulers count them.
            (
                "{memory_mb}",
                resources.memory.div_ceil(1 << 20).to_string(),
            ),
            ("{seconds}", resources.time.to_string()),
        ];
        let arguments = filled(&self.settings.submit, &values);
        let printed = run(&arguments)?.good(&arguments[0])?;
        let last = printed.lines().rev().find(|line| !line.trim().is_empty());
        let id = last.map(str::trim).unwrap_or_default();
        match id.is_empty() {
            true => Err(format!("`{}` printed no job id", arguments[0])),
            false => Ok(id.to_owned()),
        }
    }
}

impl Queue for CommandQueue {
    fn batch(&self) -> usize {
        1
    }

    fn submit(&mut self, tasks: &[Submission<'_>], _: &str) -> Result<Vec<String>, String> {
        tasks.iter().map(|task| self.submit_one(task)).collect()
    }

    /// The commands have no name for it. Another attempt is made, and this one, should it be there, finds that nobody
    /// waits for it.
    fn find(&mut self, _: &Submitted) -> Result<Option<String>, String> {
        Err("the queue cannot be searched".to_owned())
    }

    fn poll(&mut self, ids: &[&str]) -> Result<HashMap<String, QueueState>, String> {
        let mut states = HashMap::new();
        for id in ids {
            let arguments = filled(&self.settings.poll, &[("{id}", (*id).to_owned())]);
            let state = match run(&arguments)?.code {
                Some(0) => QueueState::Alive,
                Some(_) => QueueState::Ended(Ending::Ended),
                None => return Err(format!("`{}` was ended by a signal", arguments[0])),
            };
            states.insert((*id).to_owned(), state);
        }
        Ok(states)
    }

    fn cancel(&mut self, ids: &[&str]) {
        for id in ids {
            let arguments = filled(&self.settings.cancel, &[("{id}", (*id).to_owned())]);
            // It may have ended by itself.
            let _ = run(&arguments);
        }
    }
}

/// Whether a program can be found, by its path or in PATH.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match program.contains('/') {
        true => std::path::Path::new(program).is_file(),
        false => std::env::split_paths(&path).any(|folder| folder.join(program).is_file()),
    }
}

/// An argument list with its placeholders replaced. What replaces them is not looked at again.
fn filled(arguments: &[String], values: &[(&str, String)]) -> Vec<String> {
    let fill = |argument: &String| {
        let mut filled = String::new();
        let mut rest = argument.as_str();
        while !rest.is_empty() {
            match values.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    filled.push_str(value);
                    rest = &rest[name.len()..];
                }
                None => {
                    let next = rest.chars().next().map_or(1, char::len_utf8);
                    filled.push_str(&rest[..next]);
                    rest = &rest[next..];
                }
            }
        }
        filled
    };
    arguments.iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_once_and_arguments_stay_apart() {
        let arguments = ["q", "--cpus={cpus}", "{task}", "é{other}"].map(str::to_owned);
        let values = [
            ("{cpus}", "2".to_owned()),
            ("{task}", "a b; {cpus}".to_owned()),
        ];
        assert_eq!(
            filled(&arguments, &values),
            ["q", "--cpus=2", "a b; {cpus}", "é{other}"]
        );
    }
}
