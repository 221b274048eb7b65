//! The text of `results.lock`: TOML with one line per stage instance, in the order of their names, so that a change
//! of one result is a change of one line. Knows nothing of stores.

use std::fmt;

use toml::Value;

use super::{Lock, LockedStage};

const HEADER: &str = "\
# What each stage of this pipeline gave, written by `ablate lock`.
# `ablate run --locked` runs it here and compares; `ablate challenge results.lock` compares without running.
";

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}format = {}", self.format)?;
        writeln!(f, "pipeline = {}", quoted(&self.pipeline))?;
        if let Some(profile) = &self.profile {
            writeln!(f, "profile = {}", quoted(profile))?;
        }
        writeln!(f, "machine = {}\n\n[stages]", quoted(&self.machine))?;
        for (label, stage) in &self.stages {
            writeln!(f, "{} = {stage}", quoted(label))?;
        }
        Ok(())
    }
}

/// What is compared comes first.
impl fmt::Display for LockedStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outputs = self.outputs.iter();
        let outputs = outputs.map(|(name, digest)| format!("{} = \"{digest}\"", quoted(name)));
        let outputs: Vec<String> = outputs.collect();
        let (promise, key) = (quoted(&self.promise), self.key);
        write!(
            f,
            "{{ outputs = {{ {} }}, promise = {promise}, key = \"{key}\"",
            outputs.join(", ")
        )?;
        if let Some(machine) = &self.machine {
            write!(f, ", machine = {}", quoted(machine))?;
        }
        f.write_str(" }")
    }
}

impl Lock {
    /// Reads it back, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Lock, String> {
        // A newer text may have other fields, and its version is what should be said of it.
        let table: toml::Table = toml::from_str(text).map_err(|error| plain(&error))?;
        match table.get("format").and_then(Value::as_integer) {
            Some(format) if format == i64::from(Lock::FORMAT) => {}
            Some(format) => {
                return Err(format!(
                    "it has format {format}, and this version of ablate knows {}",
                    Lock::FORMAT
                ));
            }
            None => return Err("it has no `format`".to_owned()),
        }
        toml::from_str(text).map_err(|error| plain(&error))
    }
}

/// The line and what is wrong with it.
fn plain(error: &toml::de::Error) -> String {
    error.to_string().trim_end().to_owned()
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    // As JSON does, and on one line: TOML's own writer breaks texts with line breaks.
    let quoted = serde_json::to_string(text).expect("a text");
    quoted.replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use store::Digest;

    use super::*;

    fn lock(label: &str) -> Lock {
        let stage = LockedStage {
            outputs: [("rows", b"a"), ("a.b", b"b")]
                .map(|(name, bytes)| (name.to_owned(), Digest::of(bytes)))
                .into(),
            promise: "bit-identical".to_owned(),
            key: Digest::of(b"key"),
            machine: Some("avx".to_owned()),
        };
        Lock {
            format: Lock::FORMAT,
            pipeline: "p \"q\"".to_owned(),
            profile: None,
            machine: "avx2; arrow 1".to_owned(),
            stages: BTreeMap::from([(label.to_owned(), stage)]),
        }
    }

    #[test]
    fn it_reads_back_as_it_was_written_with_one_line_per_stage() {
        for label in ["a", "a[b=\"c, d\"]", "a\n\t'x'", "é\u{7f}\u{1b}\"\"\"'''"] {
            let lock = lock(label);
            let text = lock.to_string();
            assert_eq!(Lock::parse(&text), Ok(lock));
            let lines = text.lines().skip_while(|line| *line != "[stages]");
            assert_eq!(lines.count(), 2, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let text = lock("a").to_string();
        let newer = text.replace("format = 1", "format = 2\nbetter = true");
        let why = Lock::parse(&newer).unwrap_err();
        assert_eq!(why, "it has format 2, and this version of ablate knows 1");
        for (from, to) in [
            ("pipeline =", "pipelines ="),
            ("format = 1", ""),
            ("promise", "promised"),
            ("[stages]", "[stages"),
        ] {
            assert!(Lock::parse(&text.replace(from, to)).is_err(), "{to}");
        }
    }
}
