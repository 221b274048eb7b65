//! `verdicts.json`: the verdicts of all claims in one file, to be committed beside a paper. It names the files that they
//! were judged by, so that anybody can tell whether it is still about them.

use std::path::Path;

use serde_json::{Value, json};
use store::Digest;

use super::exit::Exit;
use crate::diagnostic::Diagnostic;

/// The type and version of the file.
const RECORD: &str = "verdicts/1";

/// What the verdicts were judged by.
pub struct JudgedBy<'a> {
    /// The text of the pipeline file.
    pub pipeline: &'a str,
    /// The file of claims.
    pub claims: &'a Path,
    /// The profile, if one was applied.
    pub profile: Option<&'a str>,
    /// How many draws.
    pub draws: u64,
    /// What `--set` changed.
    pub set: &'a [String],
}

/// Writes the file. `verdicts` are as `ablate claims --json` prints them.
pub fn write(path: &Path, by: &JudgedBy<'_>, verdicts: &[Value]) -> Result<(), Exit> {
    let failed = |what: &str, path: &Path, error: std::io::Error| {
        let message = format!("cannot {what} `{}`: {error}", path.display());
        Exit::from(Diagnostic::new(message))
    };
    let claims = std::fs::read(by.claims).map_err(|error| failed("read", by.claims, error))?;
    let digest = |bytes: &[u8]| Digest::of(bytes).to_string();
    let file = json!({
        "record": RECORD,
        "pipeline": digest(by.pipeline.as_bytes()), "claims": digest(&claims),
        "profile": by.profile, "draws": by.draws, "set": by.set, "verdicts": verdicts,
    });
    let text = serde_json::to_string_pretty(&file).expect("plain data") + "\n";
    std::fs::write(path, text).map_err(|error| failed("write", path, error))
}
