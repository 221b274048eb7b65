//! One measured process: what it says it took, and the memory that it had.

use std::process::{Command, Stdio};

use serde_json::Value;
use wait4::Wait4;

/// What one process took for the part that counts.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Seconds from start to end of the part.
    pub wall: f64,
    /// User and system seconds of it.
    pub cpu: f64,
    /// The most memory that the process had, in MB.
    pub peak: f64,
    /// What it made, to be compared.
    pub made: Value,
}

/// Has a process touch memory and end, before every process of every side. A virtual machine's host takes memory that
/// lies idle, and whoever touches it first waits longer for it than for the work that is measured here.
fn warm() {
    let program = std::env::current_exe().map(Command::new);
    let _ = program.map(|mut program| program.args(["--job", "warm"]).output());
}

/// Runs a process whose last line is `{"wall": …, "cpu": …, …}`. The error is a short reason.
pub fn sample(command: &mut Command) -> Result<Sample, String> {
    warm();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let (mut out, mut errors) = (String::new(), String::new());
    let pipes = child.stdout.take().zip(child.stderr.take());
    if let Some((mut stdout, mut stderr)) = pipes {
        // What is said on standard error is short, so one after the other does not block.
        let _ = std::io::Read::read_to_string(&mut stdout, &mut out);
        let _ = std::io::Read::read_to_string(&mut stderr, &mut errors);
    }
    let ended = child.wait4().map_err(|error| error.to_string())?;
    let last = |text: &str| text.lines().next_back().unwrap_or_default().to_owned();
    if !ended.status.success() {
        return Err(last(&errors));
    }
    let said: Value = serde_json::from_str(&last(&out)).map_err(|error| error.to_string())?;
    Ok(Sample {
        wall: said["wall"].as_f64().ok_or("no `wall`")?,
        cpu: said["cpu"].as_f64().ok_or("no `cpu`")?,
        peak: ended.rusage.maxrss as f64 / 1e6,
        made: said["made"].clone(),
    })
}

/// The samples of one side of a case.
#[derive(Default)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// What was measured.
    pub samples: Vec<Sample>,
    /// Why there is nothing.
    pub trouble: Option<String>,
}

impl Side {
    /// The smallest wall time, which says most on a busy machine.
    pub fn best(&self) -> Option<f64> {
        let walls = self.samples.iter().map(|sample| sample.wall);
        walls.min_by(f64::total_cmp)
    }

    /// The median of a figure.
    pub fn median(&self, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        let mut all: Vec<f64> = self.samples.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    /// The largest peak.
    pub fn peak(&self) -> Option<f64> {
        let peaks = self.samples.iter().map(|sample| sample.peak);
        peaks.max_by(f64::total_cmp)
    }
}

/// Measures all sides in turns.
pub fn measure(sides: Vec<(&str, Vec<String>)>, rounds: u32) -> Vec<Side> {
    let mut measured: Vec<Side> = sides
        .iter()
        .map(|(name, _)| Side {
            name: (*name).to_owned(),
            ..Side::default()
        })
        .collect();
    for _ in 0..rounds {
        for (side, (_, words)) in measured.iter_mut().zip(&sides) {
            if side.trouble.is_some() {
                continue;
            }
            match sample(Command::new(&words[0]).args(&words[1..])) {
                Ok(sample) => side.samples.push(sample),
                Err(trouble) => side.trouble = Some(trouble),
            }
        }
    }
    measured
}

/// Prints the sides of a case; ratios are to the first one that has a figure.
pub fn print(title: &str, sides: &[Side]) {
    println!("\n{title}");
    println!(
        "  {:<44} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "", "median s", "best s", "cpu s", "peak MB", "x first"
    );
    let first = sides.iter().find_map(|side| side.median(|s| s.wall));
    for side in sides {
        match (side.median(|s| s.wall), &side.trouble) {
            (Some(wall), _) => println!(
                "  {:<44} {wall:>8.3} {:>8.3} {:>8.3} {:>8.0} {:>8.2}",
                side.name,
                side.best().unwrap_or(wall),
                side.median(|s| s.cpu).unwrap_or_default(),
                side.peak().unwrap_or_default(),
                wall / first.unwrap_or(wall),
            ),
            (None, trouble) => println!(
                "  {:<44} skipped: {}",
                side.name,
                trouble.as_deref().unwrap_or("not measured")
            ),
        }
    }
}

/// Prints a target of the project with met or not met, by median and by the best round.
pub fn target(what: &str, figure: Option<(f64, f64)>, unit: &str, limit: f64, at_least: bool) {
    let met = |figure: f64| match (figure >= limit, at_least) {
        (true, true) => "met",
        (false, false) => "met",
        _ if figure == limit => "met",
        _ => "not met",
    };
    let sign = if at_least { ">=" } else { "<=" };
    match figure {
        None => println!("  target {what} {sign} {limit} {unit}: not measured"),
        Some((median, best)) => println!(
            "  target {what} {sign} {limit} {unit}: median {median:.3} {}, best {best:.3} {}",
            met(median),
            met(best)
        ),
    }
}
