//! Runs one command and says what it took. Knows nothing of tools or DAGs.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::usage;

/// What a command took.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// From start to end.
    pub wall: Duration,
    /// User and system time, with its children.
    pub cpu: Duration,
    /// The most memory that one process had, in bytes.
    pub peak: u64,
}

/// Runs the command in a folder, with what it says in the file `log`.
/// The error is a short reason.
pub fn measure(
    mut command: Command,
    dir: &Path,
    log: &Path,
    timeout: Duration,
) -> Result<Sample, String> {
    let said = File::create(log).and_then(|file| Ok((file.try_clone()?, file)));
    let (out, err) = said.map_err(plain)?;
    command
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        // A group of its own, so that its children end with it.
        .process_group(0);
    let start = Instant::now();
    let child = command.spawn().map_err(plain)?;
    let group = format!("-{}", child.id());
    let (done, is_done) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = is_done.recv_timeout(timeout).is_err();
        if late {
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        }
        late
    });
    let ended = usage::wait(child);
    let wall = start.elapsed();
    // A watch that has given up no longer listens.
    let _ = done.send(());
    let late = watch.join().expect("watching does not panic");
    let ended = ended.map_err(plain)?;
    if late {
        return Err(format!("no end after {} s", timeout.as_secs()));
    }
    if !ended.status.success() {
        return Err(format!("{}: {}", ended.status, reason(log)));
    }
    Ok(Sample {
        wall,
        cpu: ended.cpu,
        peak: ended.peak,
    })
}

fn plain(error: io::Error) -> String {
    error.to_string()
}

/// The line that most likely says why, cut to fit a table.
fn reason(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    // A line that ends with a colon only announces the error.
    let tells = |line: &&str| line.to_lowercase().contains("error") && !line.ends_with(':');
    let telling = lines().find(tells);
    let line = telling.or(lines().next_back()).unwrap_or("it said nothing");
    line.chars().take(60).collect()
}
