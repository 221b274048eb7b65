//! `resources = { cpus = 2, memory = "16GB" }`: what a stage takes of the machine while it runs. Decides when it
//! starts, and no result: it is in no key.

use stages::isolated::Budget;
use store::Value;

use super::entries::{unknown_key, wrong_type};
use super::tree::{Entry, Raw};
use crate::diagnostic::Diagnostic;

/// What a stage takes while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Places among the stages that run at once.
    pub cpus: usize,
    /// Bytes of memory; 0 if nothing is said of it.
    pub memory: u64,
}

impl Default for Resources {
    fn default() -> Resources {
        Resources { cpus: 1, memory: 0 }
    }
}

/// The resources of a stage.
pub(super) fn read(entry: Entry, problems: &mut Vec<Diagnostic>) -> Resources {
    let mut resources = Resources::default();
    let Raw::Table(table) = entry.node.raw else {
        let form = "a table: { cpus = 2, memory = \"16GB\" }";
        problems.push(wrong_type(&entry, form));
        return resources;
    };
    for entry in table.entries {
        match (entry.key.as_str(), &entry.node.raw) {
            ("cpus", Raw::Scalar(Value::Int(cpus))) if *cpus > 0 => {
                resources.cpus = usize::try_from(*cpus).unwrap_or(usize::MAX);
            }
            ("cpus", _) => problems.push(wrong_type(&entry, "a positive integer")),
            ("memory", Raw::Scalar(Value::Text(text))) => match text.parse::<Budget>() {
                Ok(Budget(bytes)) => resources.memory = bytes,
                Err(why) => problems.push(Diagnostic::new(why).at(entry.node.span, "")),
            },
            ("memory", _) => problems.push(wrong_type(&entry, "a size: \"16GB\"")),
            _ => problems.push(unknown_key(&entry, "in `resources`", ["cpus", "memory"])),
        }
    }
    resources
}
