//! Runs a program of the queue by an argument list, never through a shell, and not for ever.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program of a queue may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a program printed.
pub(super) struct Printed {
    /// None if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Printed {
    /// What it printed, if all went well; else its complaint.
    pub fn good(self, program: &str) -> Result<String, String> {
        match self.code {
            Some(0) => Ok(self.stdout),
            code => {
                let code = code.map_or("a signal".to_owned(), |code| format!("code {code}"));
                let said = self.stderr.trim();
                let said = if said.is_empty() {
                    self.stdout.trim()
                } else {
                    said
                };
                Err(format!("`{program}` ended with {code}: {said}"))
            }
        }
    }
}

/// Runs it to its end.
pub(super) fn run<S: AsRef<str>>(arguments: &[S]) -> Result<Printed, String> {
    let Some((program, rest)) = arguments.split_first() else {
        return Err("a command without a program".to_owned());
    };
    let program = program.as_ref();
    let mut child = Command::new(program)
        .args(rest.iter().map(AsRef::as_ref))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run `{program}`: {error}"))?;
    let stdout = read(child.stdout.take());
    let stderr = read(child.stderr.take());
    let until = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => std::thread::sleep(pause),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("`{program}` did not end within a minute"));
            }
            Err(error) => return Err(format!("cannot wait for `{program}`: {error}")),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    Ok(Printed {
        code: status.code(),
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
    })
}

/// On a thread of its own: a program that prints a lot waits for its reader.
fn read(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
