//! What a program printed, cut to a size that provenance can keep for ever.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use super::secrets::Secrets;
use crate::contract::notice::NOTICE;
use crate::{Failure, Watch};

/// How much is kept of the beginning, and again of the end.
const HALF: u64 = 32 * 1024;

/// How many lines a failure quotes.
const TAIL: usize = 20;

/// What is said of a program that printed nothing.
pub const NOTHING: &str = "it printed nothing";

/// The kept text.
pub struct Log(String);

impl Log {
    /// Reads a log file: all of it, or its beginning and end and how much was cut between. Secrets are masked, also
    /// where the cut goes through one.
    pub fn read(mut file: &File, secrets: &Secrets) -> Result<Log, Failure> {
        let failed =
            |e: std::io::Error| Failure::new(format!("cannot read the program's log: {e}"));
        let length = file.metadata().map_err(failed)?.len();
        let around = secrets.longest() as u64;
        let mut part = |from: u64, length: u64| -> Result<String, Failure> {
            let mut bytes = Vec::new();
            // As much before and behind as a secret may reach over.
            let start = from.saturating_sub(around);
            file.seek(SeekFrom::Start(start)).map_err(failed)?;
            file.by_ref()
                .take((from - start) + length + around)
                .read_to_end(&mut bytes)
                .map_err(failed)?;
            let first = (from - start) as usize;
            let last = (first + length as usize).min(bytes.len());
            let kept = secrets.masked(&bytes, first.min(last)..last);
            Ok(String::from_utf8_lossy(&kept).into_owned())
        };
        if length <= 2 * HALF {
            return Ok(Log(part(0, length)?));
        }
        let (head, tail) = (part(0, HALF)?, part(length - HALF, HALF)?);
        let cut = length - 2 * HALF;
        Ok(Log(format!("{head}\n[{cut} bytes omitted]\n{tail}")))
    }

    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.lines()
    }

    /// Logs the lines. One that looks like a notice of ours is indented: a program must not speak for `ablate`.
    pub fn tell(&self, watch: &dyn Watch) {
        for line in self.lines() {
            match line.starts_with(NOTICE) {
                true => watch.log(&format!(" {line}")),
                false => watch.log(line),
            }
        }
    }

    /// The last lines, for a failure's message.
    pub fn tail(&self) -> String {
        let lines: Vec<&str> = self.lines().collect();
        if lines.iter().all(|line| line.trim().is_empty()) {
            return NOTHING.to_owned();
        }
        let last = &lines[lines.len().saturating_sub(TAIL)..];
        let title = match lines.len() > TAIL {
            true => format!("the last {TAIL} lines of its output:"),
            false => "its output:".to_owned(),
        };
        let quoted = last.iter().map(|line| format!("\n  {line}"));
        std::iter::once(title).chain(quoted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(bytes: &[u8]) -> Log {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        Log::read(&file, &Secrets::default()).unwrap()
    }

    #[test]
    fn secrets_are_masked_on_both_sides_of_the_cut() {
        let secret = "swordfish";
        for shift in 0..=secret.len() {
            let half = HALF as usize;
            let start = "a".repeat(half - shift);
            let end = "b".repeat(half - (secret.len() - shift));
            let all = format!("{start}{secret}{}{secret}{end}", "x".repeat(1_000));
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, all.as_bytes()).unwrap();
            let log = Log::read(&file, &Secrets::of_value("TOKEN", secret))
                .unwrap()
                .0;
            let (head, rest) = log.split_once("\n[").unwrap();
            let tail = rest.split_once("]\n").unwrap().1;
            let left = |part: &str| part.trim_matches(['a', 'b']).to_owned();
            assert_eq!(left(head), if shift == 0 { "" } else { "***" }, "{shift}");
            assert_eq!(
                left(tail),
                if shift == secret.len() { "" } else { "***" },
                "{shift}"
            );
        }
    }

    #[test]
    fn short_logs_are_whole_and_long_ones_say_what_is_missing() {
        assert_eq!(log(b"a\nb\xff\n").0, "a\nb\u{fffd}\n");
        let long = log(&[b"start".as_slice(), &[b'x'; 100_000], b"end"].concat()).0;
        assert!(long.starts_with("start") && long.ends_with("end"));
        assert!(long.contains("\n[34472 bytes omitted]\n"));
        assert!(long.len() < 66_000);
    }

    #[test]
    fn the_tail_is_twenty_lines() {
        assert_eq!(log(b"").tail(), "it printed nothing");
        assert_eq!(log(b"one\ntwo\n").tail(), "its output:\n  one\n  two");
        let many: String = (1..=50).map(|n| format!("{n}\n")).collect();
        let tail = log(many.as_bytes()).tail();
        assert!(tail.starts_with("the last 20 lines of its output:\n  31\n"));
        assert!(tail.ends_with("\n  50"));
    }
}
