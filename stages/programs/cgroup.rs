//! Control groups: limits for all processes of a program together, where the kernel lets us make a
//! group. Elsewhere there is none, and the limits of single processes remain.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};

/// Whether the kernel has killed a process of some program because memory was used up, and whose: the program's by its
/// own limit, or that of a group around it, such as a job's of a queue.
static OWN_LIMIT: AtomicBool = AtomicBool::new(false);
static LIMIT_AROUND: AtomicBool = AtomicBool::new(false);

/// Which memory was used up when the kernel killed a process of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedUp {
    /// The program's own, as its stage sets it.
    OwnLimit,
    /// That of a group around the program's.
    LimitAround,
}

/// Whether the kernel has killed a program of this process so far for memory.
pub fn used_up() -> Option<UsedUp> {
    match (
        LIMIT_AROUND.load(Ordering::Relaxed),
        OWN_LIMIT.load(Ordering::Relaxed),
    ) {
        (true, _) => Some(UsedUp::LimitAround),
        (_, true) => Some(UsedUp::OwnLimit),
        _ => None,
    }
}

/// The groups of one program: one, or one for each limit. Removed when dropped.
#[derive(Default)]
pub struct Groups(Vec<PathBuf>);

/// The limits, each by the files that set it: in the unified hierarchy, and in the older ones.
const MEMORY: [&str; 2] = ["memory.max", "memory.limit_in_bytes"];
const PROCESSES: [&str; 1] = ["pids.max"];

impl Groups {
    /// Makes groups with these limits, as far as that is allowed.
    pub fn new(memory: u64, processes: u64) -> Groups {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let here = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut groups = Groups::default();
        for (line, limits) in here.lines().filter_map(|line| Some((line, limits(line)?))) {
            let Some(ours) = folder(line) else { continue };
            // Inside our own group, or beside it where only the folder above is divided.
            let places = [Some(ours.as_path()), ours.parent()];
            let made = places.into_iter().flatten().find_map(|place| {
                sweep(place);
                let group = place.join(&name);
                fs::create_dir(&group).ok()?;
                // The folder above a hierarchy is none, and would keep what is written to it.
                if !group.join("cgroup.procs").exists() {
                    let _ = fs::remove_dir(&group);
                    return None;
                }
                let amount = |file: &str| match PROCESSES.contains(&file) {
                    true => processes,
                    false => memory,
                };
                let set = limits
                    .iter()
                    .filter(|file| fs::write(group.join(file), amount(file).to_string()).is_ok());
                let useful = set.count() > 0;
                if !useful {
                    let _ = fs::remove_dir(&group);
                }
                useful.then_some(group)
            });
            groups.0.extend(made);
        }
        groups
    }

    /// The files by which a process enters.
    pub fn entries(&self) -> Vec<File> {
        let files = self.0.iter().map(|group| group.join("cgroup.procs"));
        files
            .filter_map(|file| OpenOptions::new().write(true).open(file).ok())
            .collect()
    }

    /// Notes whether the kernel killed one of its processes for memory. The groups must still be there.
    pub fn note_kills(&self) {
        for used_up in self.0.iter().filter_map(|group| kills_of(group)) {
            let noted = match used_up {
                UsedUp::OwnLimit => &OWN_LIMIT,
                UsedUp::LimitAround => &LIMIT_AROUND,
            };
            noted.store(true, Ordering::Relaxed);
        }
    }

    /// Kills whatever is left in the groups, again and again, because a process may start another
    /// before it dies.
    pub fn kill(&self) {
        for _ in 0..64 {
            let left: Vec<Pid> = self.0.iter().flat_map(|it| processes(it)).collect();
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.kill();
        for group in &self.0 {
            let _ = fs::remove_dir(group);
        }
    }
}

/// What our groups are called, before the number of the process that made them.
const PREFIX: &str = "ablate-";

/// Removes the groups of processes that were killed. One that is in use cannot be removed.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let maker = maker.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// What was used up when the kernel killed a process of this group. A group counts the times that its own limit was
/// reached; if it never was, the limit of one around it killed.
fn kills_of(group: &Path) -> Option<UsedUp> {
    let read = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
    let named = |text: &str, name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    // Version 2, then version 1.
    let (killed, reached) = match group.join("memory.events").exists() {
        true => (
            named(&read("memory.events"), "oom_kill "),
            named(&read("memory.events.local"), "max "),
        ),
        false => (
            named(&read("memory.oom_control"), "oom_kill "),
            read("memory.failcnt").trim().parse().ok(),
        ),
    };
    killed.filter(|times| *times > 0)?;
    Some(match reached {
        Some(0) => UsedUp::LimitAround,
        _ => UsedUp::OwnLimit,
    })
}

fn processes(group: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let numbers = text.lines().filter_map(|line| line.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

/// The files of limits that the hierarchy of a line of `/proc/self/cgroup` may have.
fn limits(line: &str) -> Option<Vec<&'static str>> {
    let mut parts = line.splitn(3, ':');
    let controllers = parts.nth(1)?;
    let named = |name: &str| controllers.split(',').any(|one| one == name);
    let files = match () {
        () if controllers.is_empty() => vec![MEMORY[0], PROCESSES[0]],
        () if named("memory") => vec![MEMORY[1]],
        () if named("pids") => vec![PROCESSES[0]],
        () => return None,
    };
    Some(files)
}

/// Our own group in the hierarchy of a line.
fn folder(line: &str) -> Option<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let root = Path::new("/sys/fs/cgroup");
    let mount = match controllers {
        "" if root.join("cgroup.controllers").exists() => root.to_owned(),
        "" => root.join("unified"),
        named => root.join(named),
    };
    let folder = mount.join(path.trim_start_matches('/'));
    // In a container the path may be that of the machine outside.
    let ours = folder.is_dir() && !path.contains("..");
    ours.then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It made plain folders beside the hierarchies, one for every program, and left them there.
    #[test]
    fn groups_are_groups_and_go_away() {
        let groups = Groups::new(1 << 40, 4096);
        let made = groups.0.clone();
        assert!(made.iter().all(|group| group.join("cgroup.procs").exists()));
        drop(groups);
        assert!(made.iter().all(|group| !group.exists()));
    }

    #[test]
    fn a_kill_by_its_own_limit_is_told_from_one_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path();
        let write = |file: &str, text: &str| fs::write(group.join(file), text).unwrap();
        assert_eq!(kills_of(group), None, "a group that counts nothing");
        let version_1 = "oom_kill_disable 0\nunder_oom 0\noom_kill ";
        write("memory.oom_control", &format!("{version_1}0\n"));
        write("memory.failcnt", "7\n");
        assert_eq!(kills_of(group), None, "reached, and something was freed");
        write("memory.oom_control", &format!("{version_1}1\n"));
        assert_eq!(kills_of(group), Some(UsedUp::OwnLimit));
        write("memory.failcnt", "0\n");
        assert_eq!(kills_of(group), Some(UsedUp::LimitAround));
        write("memory.events", "low 0\nmax 3\noom 1\noom_kill 1\n");
        write("memory.events.local", "low 0\nmax 3\noom 1\noom_kill 1\n");
        assert_eq!(kills_of(group), Some(UsedUp::OwnLimit));
        write("memory.events.local", "low 0\nmax 0\noom 0\noom_kill 1\n");
        assert_eq!(kills_of(group), Some(UsedUp::LimitAround));
    }

    #[test]
    fn the_limits_of_a_hierarchy_are_known() {
        assert_eq!(
            limits("0::/user.slice").unwrap(),
            ["memory.max", "pids.max"]
        );
        assert_eq!(limits("8:pids:/").unwrap(), ["pids.max"]);
        let memory = limits("4:memory:/a").unwrap();
        assert_eq!(memory, ["memory.limit_in_bytes"]);
        assert!(limits("3:cpuset:/").is_none() && limits("").is_none());
        assert!(folder("0::/../x").is_none());
    }
}
