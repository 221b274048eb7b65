//! Where this runs: for provenance only, never for a key. No environment variables, no paths.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use store::{Digest, Environment};

/// Looks at the machine and at the repository that holds the pipeline file.
pub fn capture(file: &Path, threads: usize) -> Environment {
    let (git_commit, git_dirty) = git(file).unzip();
    Environment {
        git_commit,
        git_dirty,
        ..capture_machine(threads)
    }
}

/// Looks at the machine alone.
pub fn capture_machine(threads: usize) -> Environment {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Environment {
        git_commit: None,
        git_dirty: None,
        ablate: env!("CARGO_PKG_VERSION").to_owned(),
        crates: crates(),
        rustc: env!("ABLATE_RUSTC").to_owned(),
        host: text(system.nodename()),
        os: format!("{} {}", text(system.sysname()), text(system.release())),
        cpu_model: cpu_model(),
        cpu_features: cpu_features(),
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
    }
}

/// What this program computes with: its stages, the numeric crates and the compiler.
pub fn program() -> Digest {
    let parts = [
        env!("CARGO_PKG_VERSION"),
        env!("ABLATE_CRATES"),
        env!("ABLATE_RUSTC"),
        &stages::all_code().to_string(),
    ];
    Digest::of(parts.join("\n").as_bytes())
}

/// Whether what ran there has the instruction sets and the numeric crates of this program here.
pub fn computes_like(there: &Environment) -> bool {
    cpu_features() == there.cpu_features && crates() == there.crates
}

/// Processor time of the calling thread.
pub fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// CPU time of all threads of the pool that this runs in, which must have no other work; outside a pool, of this
/// thread.
pub fn pool_cpu() -> Duration {
    match rayon::current_thread_index() {
        Some(_) => rayon::broadcast(|_| thread_cpu()).into_iter().sum(),
        None => thread_cpu(),
    }
}

/// The most memory that this process has had, in bytes, where the system tells.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// Microseconds since 1970.
pub fn unix_micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A time to the second, in UTC, from microseconds since 1970.
pub fn utc(micros: i64) -> String {
    match jiff::Timestamp::from_microsecond(micros) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => "?".to_owned(),
    }
}

/// The commit beside the pipeline, and whether it lacks the pipeline file or tracked files
/// differ from it.
fn git(file: &Path) -> Option<(String, bool)> {
    // Starting a process costs more than planning a small pipeline: look before.
    let file = file.canonicalize().ok()?;
    let here = file.parent()?;
    here.ancestors()
        .find(|folder| folder.join(".git").exists())?;
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments)
            .env("GIT_OPTIONAL_LOCKS", "0")
            // The repository around the file is meant, whatever these name.
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .current_dir(here)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        git
    };
    let tracked = git(&["ls-files", "--error-unmatch", "--"])
        .arg(file.file_name()?)
        .spawn();
    let output = git(&[
        "status",
        "--porcelain=v2",
        "--branch",
        "--untracked-files=no",
    ])
    .output();
    let tracked = tracked.and_then(|child| child.wait_with_output());
    let tracked = tracked.is_ok_and(|output| output.status.success());
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let commit = text
        .lines()
        .find_map(|line| line.strip_prefix("# branch.oid "))?;
    let dirty = text.lines().any(|line| !line.starts_with('#'));
    Some((commit.to_owned(), dirty || !tracked))
}

/// The locked versions of the crates that make numbers and files, from the build script.
fn crates() -> BTreeMap<String, String> {
    env!("ABLATE_CRATES")
        .split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect()
}

fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(':'));
    model
        .map_or(std::env::consts::ARCH, |(_, name)| name.trim())
        .to_owned()
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<String> {
    let all = [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("avx", is_x86_feature_detected!("avx")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
    ];
    let has = all.iter().filter(|(_, has)| *has);
    has.map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu_features() -> Vec<String> {
    Vec::new()
}

/// The memory of this machine, or of the group of processes that we are held in, if that is less.
pub fn machine_memory() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = machine.totalram.saturating_mul(u64::from(machine.mem_unit));
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    bytes.min(group.unwrap_or(u64::MAX))
}
