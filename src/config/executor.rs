//! `[executor.slurm]` and `[executor.command]`: how stages are handed to a queue of other machines. In no key.

use store::Value;

use super::entries::{as_table, unknown_key, wrong_type};
use super::resources::seconds;
use super::tree::{Entry, Raw, Table};
use crate::diagnostic::Diagnostic;

/// The queues that a pipeline describes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Executors {
    /// A Slurm cluster. There need be no table for it.
    pub slurm: SlurmSettings,
    /// Another queue, by its commands.
    pub command: Option<CommandQueueSettings>,
}

/// `[executor.slurm]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlurmSettings {
    /// The partition.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// Further flags of `sbatch`.
    pub flags: Vec<String>,
    /// How patient the driver is.
    pub patience: QueuePatience,
}

/// `[executor.command]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandQueueSettings {
    /// Submits a task and prints what the queue calls it.
    pub submit: Vec<String>,
    /// Ends with 0 while a task waits or runs.
    pub poll: Vec<String>,
    /// Ends a task.
    pub cancel: Vec<String>,
    /// How patient the driver is.
    pub patience: QueuePatience,
}

/// How patient a driver is with any queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePatience {
    /// Tasks in the queue at once.
    pub in_flight: usize,
    /// Further attempts after the first, of jobs that a machine or a limit has ended.
    pub retries: u32,
    /// Seconds for which a result may be late after its task has ended.
    pub grace: u64,
    /// Seconds between questions to the queue.
    pub poll_every: u64,
}

impl Default for QueuePatience {
    fn default() -> QueuePatience {
        QueuePatience {
            in_flight: 100,
            retries: 2,
            grace: 60,
            poll_every: 2,
        }
    }
}

/// The keys that every queue has.
const PATIENCE: [&str; 4] = ["in_flight", "retries", "grace", "poll_every"];

/// The table `[executor]`.
pub(super) fn read(table: Table, problems: &mut Vec<Diagnostic>) -> Executors {
    let mut executors = Executors::default();
    for entry in table.entries {
        match entry.key.as_str() {
            "slurm" => executors.slurm = slurm(as_table(entry, problems), problems),
            "command" => executors.command = command(entry, problems),
            _ => problems.push(unknown_key(&entry, "in [executor]", ["slurm", "command"])),
        }
    }
    executors
}

fn slurm(table: Table, problems: &mut Vec<Diagnostic>) -> SlurmSettings {
    let mut settings = SlurmSettings::default();
    for entry in table.entries {
        match entry.key.as_str() {
            "partition" => settings.partition = text(&entry, problems),
            "account" => settings.account = text(&entry, problems),
            "flags" => settings.flags = arguments(&entry, problems),
            _ if patience(&mut settings.patience, &entry, problems) => {}
            _ => {
                let known = ["partition", "account", "flags"]
                    .into_iter()
                    .chain(PATIENCE);
                problems.push(unknown_key(&entry, "in [executor.slurm]", known));
            }
        }
    }
    settings
}

fn command(entry: Entry, problems: &mut Vec<Diagnostic>) -> Option<CommandQueueSettings> {
    let span = entry.key_span;
    let mut settings = CommandQueueSettings::default();
    for entry in as_table(entry, problems).entries {
        match entry.key.as_str() {
            "submit" => settings.submit = arguments(&entry, problems),
            "poll" => settings.poll = arguments(&entry, problems),
            "cancel" => settings.cancel = arguments(&entry, problems),
            _ if patience(&mut settings.patience, &entry, problems) => {}
            _ => {
                let known = ["submit", "poll", "cancel"].into_iter().chain(PATIENCE);
                problems.push(unknown_key(&entry, "in [executor.command]", known));
            }
        }
    }
    const SUBMIT: &[&str] = &["task", "ablate", "cpus", "memory_mb", "seconds", "gpus"];
    let needed = [
        ("submit", &settings.submit, "{task}", SUBMIT),
        ("poll", &settings.poll, "{id}", &["id"]),
        ("cancel", &settings.cancel, "{id}", &["id"]),
    ];
    for (name, list, placeholder, known) in needed {
        let mut named = list.iter().flat_map(|argument| placeholders(argument));
        if let Some(unknown) = named.find(|name| !known.contains(name)) {
            let what = format!("`{name}` of [executor.command] has the unknown {{{unknown}}}");
            let known: Vec<String> = known.iter().map(|name| format!("{{{name}}}")).collect();
            let help = format!("it knows {}", known.join(", "));
            problems.push(Diagnostic::new(what).at(span, "").help(help));
        }
        if !list.iter().any(|argument| argument.contains(placeholder)) {
            let what = format!("`{name}` of [executor.command] must be a list with {placeholder}");
            problems.push(
                Diagnostic::new(what)
                    .at(span, "")
                    .help("docs/scale.md has one for PBS and one for HyperQueue"),
            );
        }
    }
    Some(settings)
}

/// The words in braces of an argument. Braces around anything else, as in programs of awk, are left alone.
fn placeholders(argument: &str) -> Vec<&str> {
    let is_word = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        !text.is_empty() && text.chars().all(plain)
    };
    let after = argument.split('{').skip(1);
    let words = after.filter_map(|rest| Some(rest.split_once('}')?.0));
    words.filter(|word| is_word(word)).collect()
}

/// Whether the key is one of those that every queue has.
fn patience(into: &mut QueuePatience, entry: &Entry, problems: &mut Vec<Diagnostic>) -> bool {
    match (entry.key.as_str(), &entry.node.raw) {
        ("in_flight", Raw::Scalar(Value::Int(n))) if *n > 0 => {
            into.in_flight = usize::try_from(*n).unwrap_or(usize::MAX);
        }
        ("in_flight", _) => problems.push(wrong_type(entry, "a positive integer")),
        ("retries", Raw::Scalar(Value::Int(n))) if (0..=100).contains(n) => {
            into.retries = n.unsigned_abs() as u32;
        }
        ("retries", _) => problems.push(wrong_type(entry, "an integer from 0 to 100")),
        ("grace" | "poll_every", Raw::Scalar(Value::Text(text))) => match seconds(text) {
            Ok(time) if entry.key == "grace" => into.grace = time,
            Ok(time) => into.poll_every = time,
            Err(why) => problems.push(Diagnostic::new(why).at(entry.node.span, "")),
        },
        ("grace" | "poll_every", _) => problems.push(wrong_type(entry, "a time: \"90s\"")),
        _ => return false,
    }
    true
}

fn text(entry: &Entry, problems: &mut Vec<Diagnostic>) -> Option<String> {
    match &entry.node.raw {
        Raw::Scalar(Value::Text(text)) => Some(text.clone()),
        _ => {
            problems.push(wrong_type(entry, "a string"));
            None
        }
    }
}

/// An argument list: nothing here is read by a shell.
fn arguments(entry: &Entry, problems: &mut Vec<Diagnostic>) -> Vec<String> {
    let Raw::List(list) = &entry.node.raw else {
        problems.push(wrong_type(entry, "a list of strings, one per argument"));
        return Vec::new();
    };
    let texts = list.iter().map(|node| match &node.raw {
        Raw::Scalar(Value::Text(text)) => Some(text.clone()),
        _ => None,
    });
    texts.collect::<Option<Vec<String>>>().unwrap_or_else(|| {
        problems.push(wrong_type(entry, "a list of strings, one per argument"));
        Vec::new()
    })
}
