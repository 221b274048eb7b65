//! `ablate gc`: removes results that nothing reaches.

use std::time::Duration;

use clap::Args;
use indicatif::HumanBytes;
use serde_json::json;

use super::exit::Exit;
use super::global::Global;
use super::print::{note, out};
use crate::amounts::plural;

/// What `gc` takes.
#[derive(Args)]
pub struct Arguments {
    /// Keep what this many of the last runs use; tagged runs are always kept
    #[arg(long, value_name = "N", default_value_t = 10)]
    keep: usize,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove damaged objects too, if they were set aside more than a week ago
    #[arg(long)]
    damaged: bool,
}

/// How long damaged objects are kept at least, so that the damage can be investigated.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes what recent and tagged runs do not reach.
pub fn gc(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let root = global.store_path();
    let report = store::gc(&root, arguments.keep, arguments.dry_run)?;
    let (damaged, damaged_bytes) = match arguments.damaged {
        true => store::empty_damaged(&root, WEEK, arguments.dry_run)?,
        false => (0, 0),
    };
    if global.json {
        let removed = report.removed.iter();
        let removed: Vec<_> = removed
            .map(|(digest, bytes)| json!({ "digest": digest, "bytes": bytes }))
            .collect();
        out!(
            "{}",
            json!({
                "dry_run": arguments.dry_run, "removed": removed, "removed_bytes": report.removed_bytes,
                "kept": report.kept, "kept_bytes": report.kept_bytes,
                "checkpoints": report.checkpoints, "checkpoint_bytes": report.checkpoint_bytes,
                "damaged": damaged, "damaged_bytes": damaged_bytes, "left": report.left,
            })
        );
        return Ok(());
    }
    for left in &report.left {
        note!("ablate: left alone: {left}");
    }
    let verb = if arguments.dry_run {
        "would remove"
    } else {
        "removed"
    };
    if !global.quiet {
        for (digest, bytes) in &report.removed {
            out!("{verb} {digest} ({bytes} bytes)");
        }
    }
    out!(
        "ablate: {verb} {}, {} bytes ({}); kept {}, {} bytes ({})",
        plural(report.removed.len(), "object"),
        report.removed_bytes,
        HumanBytes(report.removed_bytes),
        plural(report.kept as usize, "object"),
        report.kept_bytes,
        HumanBytes(report.kept_bytes)
    );
    if report.checkpoints > 0 {
        let (count, bytes) = (report.checkpoints, HumanBytes(report.checkpoint_bytes));
        let checkpoints = plural(count as usize, "checkpoint");
        out!("ablate: {verb} {checkpoints} of unfinished stages ({bytes})");
    }
    if arguments.damaged {
        out!("ablate: {verb} {damaged} damaged objects, {damaged_bytes} bytes");
    }
    Ok(())
}
