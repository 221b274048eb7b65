//! The clients of public registries: which command downloads a package, and watching it do so.
//! None of them installs or runs what it downloads. Knows nothing of data sets.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::http::Rules;
use super::registry::{Package, Registry};
use crate::Watch;

/// Downloads a package into a folder that is there for that alone. `size` is what its archive
/// has, if that is known.
pub fn download(
    package: &Package<'_>,
    folder: &Path,
    size: Option<u64>,
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<(), String> {
    prepare(package, folder).map_err(|error| format!("cannot make a folder: {error}"))?;
    let log = folder.join(".log");
    for mut command in clients(package, folder) {
        let program = command.get_program().to_owned();
        let cannot = |error: io::Error| format!("cannot run {program:?}: {error}");
        let printed = fs::File::create(&log).map_err(cannot)?;
        let errors = printed.try_clone().map_err(cannot)?;
        let spawned = command
            .envs(rules.client_environment.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::null())
            .stdout(printed)
            .stderr(errors)
            // A client may be a script that starts others: all of them are ended together.
            .process_group(0)
            .spawn();
        let child = match spawned {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(cannot(error)),
        };
        if wait(child, folder, size, rules, watch)? {
            return Ok(());
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        return Err(format!("{program:?} failed: {}", last.unwrap_or_default()));
    }
    let name = match package.registry {
        Registry::Pypi => "pip",
        Registry::Npm => "npm",
        Registry::Crates => "cargo",
    };
    Err(format!("{name} is not installed"))
}

/// Waits for a client, with progress by the size of its folder. True if it succeeded.
fn wait(
    mut child: Child,
    folder: &Path,
    size: Option<u64>,
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<bool, String> {
    // A client's own time limits are per read; this one is for all of it.
    let end = Instant::now() + rules.silence * 40;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if watch.stopped() || Instant::now() > end => {
                if let Some(group) = Pid::from_raw(child.id() as i32) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.kill();
                let _ = child.wait();
                let late = "it timed out";
                return Err(if watch.stopped() { "stopped" } else { late }.to_owned());
            }
            Ok(None) => {
                if let Some(size) = size {
                    watch.progress(bytes_below(folder).min(size), size);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// The size of a folder in bytes. Files that come and go meanwhile do not matter.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

/// What a client must find in its folder before it starts.
fn prepare(package: &Package<'_>, folder: &Path) -> io::Result<()> {
    // Clients download here first; in this folder, so that progress is seen and nothing stays.
    fs::create_dir(folder.join(".tmp"))?;
    if package.registry != Registry::Crates {
        return Ok(());
    }
    // A crate is downloaded as a dependency of a package that is never built.
    let Package { name, version, .. } = package;
    fs::write(folder.join("lib.rs"), "")?;
    fs::write(
        folder.join("Cargo.toml"),
        format!(
            "[package]\nname = \"ablate-download\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
             [lib]\npath = \"lib.rs\"\n[workspace]\n\
             [dependencies]\n{name} = {{ version = \"={version}\", default-features = false }}\n"
        ),
    )
}

/// The clients of a registry, the likeliest first.
fn clients(package: &Package<'_>, folder: &Path) -> Vec<Command> {
    let Package {
        registry,
        name,
        version,
    } = package;
    let with = |program: &[&str], arguments: &[&str]| {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(arguments);
        command.current_dir(folder);
        command.env("TMPDIR", folder.join(".tmp"));
        command
    };
    match registry {
        Registry::Pypi => {
            let spec = format!("{name}=={version}");
            // A wheel is only unpacked; building from source would run the package's code.
            let arguments = [
                "download",
                "--no-deps",
                "--ignore-requires-python",
                "--only-binary=:all:",
                "--disable-pip-version-check",
                "--no-input",
                "--dest",
                ".",
                &spec,
            ];
            [&["pip"][..], &["pip3"], &["python3", "-m", "pip"]]
                .map(|program| with(program, &arguments))
                .into()
        }
        Registry::Npm => {
            let spec = format!("{name}@{version}");
            let arguments = ["pack", "--ignore-scripts", "--silent", &spec];
            let mut command = with(&["npm"], &arguments);
            command.env("npm_config_cache", folder.join(".tmp"));
            vec![command]
        }
        // It copies the sources of the crate, and of what it depends on, and compiles nothing.
        Registry::Crates => vec![with(
            &["cargo"],
            &[
                "vendor",
                "--quiet",
                "--respect-source-config",
                "--versioned-dirs",
                "vendor",
            ],
        )],
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::test_kill_process;

    use super::*;

    /// Stops as soon as a file is there.
    struct Until<'a>(&'a Path);

    impl Watch for Until<'_> {
        fn work(&self, _: &'static str, _: u64) {}
        fn progress(&self, _: u64, _: u64) {}
        fn log(&self, _: &str) {}
        fn child(&self, _: crate::Usage) {}
        fn stopped(&self) -> bool {
            fs::read_to_string(self.0).is_ok_and(|text| text.ends_with('\n'))
        }
    }

    /// Installers are scripts that start other programs.
    #[test]
    fn what_a_client_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("pid");
        let script = "sleep 60 & echo $! > pid; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder.path());
        let child = command.process_group(0).spawn().unwrap();
        let said = wait(child, folder.path(), None, &Rules::default(), &Until(&told));
        assert_eq!(said, Err("stopped".to_owned()));
        let pid: i32 = fs::read_to_string(&told).unwrap().trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        // Its new parent may take a moment to reap it.
        let gone = || test_kill_process(pid).is_err() || is_dead(pid);
        assert!((0..200).any(|_| gone() || {
            std::thread::sleep(Duration::from_millis(20));
            false
        }));
    }

    /// Dead, and not yet reaped.
    fn is_dead(pid: Pid) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| stat.contains(") Z "))
    }
}
