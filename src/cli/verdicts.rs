//! `verdicts.json` and `worlds.json`: the verdicts of all claims, and what they are with each choice, to be committed
//! beside a paper. A file names the pipeline and the claims that it was judged by, so that anybody can tell whether it
//! is still about them.

use std::path::Path;

use serde_json::{Map, Value, json};
use store::Digest;

use super::exit::Exit;
use crate::diagnostic::Diagnostic;
use crate::publish::multiverse::ClaimAcross;

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

/// Writes `verdicts`, as `ablate claims --json` prints them.
pub fn write(path: &Path, by: &JudgedBy<'_>, verdicts: &[Value]) -> Result<(), Exit> {
    record(
        path,
        by,
        json!({ "record": "verdicts/1", "verdicts": verdicts }),
    )
}

/// Writes what claims say in all worlds.
pub fn write_worlds(path: &Path, by: &JudgedBy<'_>, claims: &[ClaimAcross]) -> Result<(), Exit> {
    let names = claims.first().map(|claim| claim.names.clone());
    let of = |claim: &ClaimAcross| {
        let worlds = claim.worlds.iter().map(|one| {
            let numbers = one.numbers.iter().map(|(name, value, ends)| {
                let number = json!({ "value": value, "interval": ends });
                (name.clone(), number)
            });
            let numbers: Map<String, Value> = numbers.collect();
            json!({ "verdict": one.verdict, "run": one.run, "numbers": numbers })
        });
        json!({
            "claim": claim.claim, "same": claim.same, "run": claim.run,
            "turns_with": claim.turns_with, "worlds": worlds.collect::<Vec<_>>(),
        })
    };
    let across: Vec<Value> = claims.iter().map(of).collect();
    let file = json!({
        "record": "worlds/1", "worlds": names.unwrap_or_default(), "across": across,
    });
    record(path, by, file)
}

/// Writes a file with what it was judged by.
fn record(path: &Path, by: &JudgedBy<'_>, mut file: Value) -> Result<(), Exit> {
    let failed = |what: &str, path: &Path, error: std::io::Error| {
        let message = format!("cannot {what} `{}`: {error}", path.display());
        Exit::from(Diagnostic::new(message))
    };
    let claims = std::fs::read(by.claims).map_err(|error| failed("read", by.claims, error))?;
    let digest = |bytes: &[u8]| Digest::of(bytes).to_string();
    file["pipeline"] = json!(digest(by.pipeline.as_bytes()));
    file["claims"] = json!(digest(&claims));
    file["profile"] = json!(by.profile);
    file["draws"] = json!(by.draws);
    file["set"] = json!(by.set);
    let text = serde_json::to_string_pretty(&file).expect("plain data") + "\n";
    std::fs::write(path, text).map_err(|error| failed("write", path, error))
}
