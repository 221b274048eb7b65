//! `resources = { cpus = 2, memory = "16GB", time = "2h", gpus = 1 }`: what a stage takes of the machine while it runs.
//! Decides when and where it starts, and no result: it is in no key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stages::isolated::Budget;
use store::Value;

use super::entries::{unknown_key, wrong_type};
use super::tree::{Entry, Raw, Table};
use crate::diagnostic::Diagnostic;

/// What a stage takes while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Places among the stages that run at once.
    pub cpus: usize,
    /// Bytes of memory; 0 if nothing is said of it.
    pub memory: u64,
    /// Seconds after which a queue may end it; 0 if nothing is said of it. For queues only.
    pub time: u64,
    /// Graphics processors: reserved by queues, open to its program anywhere.
    pub gpus: usize,
}

impl Default for Resources {
    fn default() -> Resources {
        Resources {
            cpus: 1,
            memory: 0,
            time: 0,
            gpus: 0,
        }
    }
}

/// `[resources.KIND]`: those of stages of a kind that say nothing themselves.
pub(super) fn per_kind(
    table: Table,
    problems: &mut Vec<Diagnostic>,
) -> BTreeMap<&'static str, Resources> {
    let mut all = BTreeMap::new();
    for entry in table.entries {
        match stages::find(&entry.key) {
            Some(kind) => drop(all.insert(kind.describe().kind, read(entry, problems))),
            None => {
                let known = stages::STAGES.iter().map(|kind| kind.describe().kind);
                problems.push(unknown_key(&entry, "in [resources]", known));
            }
        }
    }
    all
}

/// The resources of a stage.
pub(super) fn read(entry: Entry, problems: &mut Vec<Diagnostic>) -> Resources {
    let mut resources = Resources::default();
    let Raw::Table(table) = entry.node.raw else {
        let form = "a table: { cpus = 2, memory = \"16GB\", time = \"2h\", gpus = 1 }";
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
            ("time", Raw::Scalar(Value::Text(text))) => match seconds(text) {
                Ok(time) => resources.time = time,
                Err(why) => problems.push(Diagnostic::new(why).at(entry.node.span, "")),
            },
            ("time", _) => problems.push(wrong_type(&entry, "a time: \"2h\"")),
            ("gpus", Raw::Scalar(Value::Int(gpus))) if *gpus >= 0 => {
                resources.gpus = usize::try_from(*gpus).unwrap_or(usize::MAX);
            }
            ("gpus", _) => problems.push(wrong_type(&entry, "a non-negative integer")),
            _ => {
                let known = ["cpus", "memory", "time", "gpus"];
                problems.push(unknown_key(&entry, "in `resources`", known));
            }
        }
    }
    resources
}

/// `90s`, `30m`, `2h` or `1d`, as seconds.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let found = units.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        count.checked_mul(*seconds).filter(|time| *time > 0)
    });
    found.ok_or_else(|| format!("`{text}` is not a time such as 90s, 30m, 2h or 1d"))
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("2 h"), Ok(7_200));
        assert_eq!(seconds("1d"), Ok(86_400));
        for wrong in ["", "90", "0s", "-1m", "h", "1.5h", "99999999999999999999d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
