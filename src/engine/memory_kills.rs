//! How often the kernel has killed a process of this one's control group because its memory was used up. A queue that
//! limits memory so may kill a process that the worker has started, and let the worker live, which must not call that the
//! stage's failure. Programs of the user have groups of their own, which tell whether their own limit killed or that of the
//! job around them. Knows nothing of queues.

use std::fs;
use std::path::Path;

use stages::programs::{UsedUp, used_up};

/// Whether a process that worked for the stage was killed because the memory of the job was used up, where `before` is the
/// count from before the stage began.
pub fn job_ran_out(before: Option<u64>) -> bool {
    match used_up() {
        Some(UsedUp::LimitAround) => true,
        // Version 2 of control groups counts it here, too; more memory for the job would not help.
        Some(UsedUp::OwnLimit) => false,
        None => memory_kills() > before,
    }
}

/// The count so far; none where nobody counts.
pub fn memory_kills() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            // Version 2 has one tree for all.
            "" => ("/sys/fs/cgroup", "memory.events"),
            it if it.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.oom_control")
            }
            _ => return None,
        };
        let path = Path::new(root).join(group.trim_start_matches('/'));
        count(&fs::read_to_string(path.join(file)).ok()?)
    })
}

fn count(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn both_versions_of_control_groups_count() {
        assert_eq!(
            count("oom_kill_disable 0\nunder_oom 1\noom_kill 3\n"),
            Some(3)
        );
        assert_eq!(count("low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\n"), Some(1));
        // Before Linux 4.13.
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\n"), None);
    }
}
