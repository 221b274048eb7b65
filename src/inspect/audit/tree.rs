//! A derivation on the terminal: a tree with a line for each step, then each step in full.

use std::fmt::Write;

use store::{Execution, Link};

use super::{Audit, machine_line, params};
use crate::amounts::{plural, seconds};
use crate::environment::utc;
use crate::remote::keys::Keys;

/// Deeper than this the tree grows no wider: a chain may have thousands of links.
const WIDEST: usize = 20;

/// How many source files of a step are listed, and how many lines of its log.
const FILES: usize = 6;
const LINES: usize = 8;

/// All of it.
pub fn render(audit: &Audit) -> String {
    let mut text = format!("audit of {}\n", audit.asked);
    if let Some((_, cell)) = &audit.cell {
        let _ = writeln!(
            text,
            "cell     {} = {} (row {})",
            cell.column, cell.value, cell.row
        );
    }
    text.push('\n');
    branches(audit, &mut text);
    for (n, link) in audit.lineage.links.iter().enumerate() {
        step(audit, n, link, &mut text);
    }
    text.push('\n');
    for machine in &audit.machines {
        let at = audit.machines.iter().position(|known| known == machine);
        let name = super::letters(at.unwrap_or_default());
        let _ = writeln!(text, "machine {name}: {}", machine_line(machine));
    }
    let doubts = audit.doubts();
    for doubt in &doubts {
        let _ = writeln!(text, "doubt: {doubt}");
    }
    let _ = writeln!(
        text,
        "ablate: {}, {}, {}",
        plural(audit.lineage.links.len(), "step"),
        plural(audit.machines.len(), "machine"),
        plural(doubts.len(), "doubt")
    );
    text
}

/// The tree. What was drawn before is not drawn again.
fn branches(audit: &Audit, text: &mut String) {
    let links = &audit.lineage.links;
    let mut drawn = vec![false; links.len()];
    // What is still to be drawn: the step, what stands before it, and its own mark.
    let mut open: Vec<(Option<usize>, String, String, usize)> = Vec::new();
    for root in audit.lineage.roots.iter().rev() {
        open.push((Some(*root), String::new(), String::new(), 0));
    }
    while let Some((at, before, mark, depth)) = open.pop() {
        let Some(n) = at else {
            let _ = writeln!(text, "{before}{mark}unknown");
            continue;
        };
        let step = &links[n].execution;
        let again = if drawn[n] && !step.inputs.is_empty() {
            " (*)"
        } else {
            ""
        };
        let name = format!("[{n}] {} ({})", step.instance, step.key.kind);
        let _ = writeln!(text, "{before}{mark}{name}{again}");
        if std::mem::replace(&mut drawn[n], true) {
            continue;
        }
        let below = match mark.as_str() {
            "" => before.clone(),
            _ if depth >= WIDEST => before.clone(),
            mark if mark.starts_with('└') => format!("{before}   "),
            _ => format!("{before}│  "),
        };
        let count = step.inputs.len();
        let children = step.inputs.iter().zip(&links[n].makers).enumerate();
        for (k, (input, maker)) in children.rev() {
            let corner = if k + 1 == count { "└─" } else { "├─" };
            let mark = format!("{corner} {}: ", input.port);
            open.push((*maker, below.clone(), mark, depth + 1));
        }
    }
}

fn step(audit: &Audit, n: usize, link: &Link, text: &mut String) {
    let step = &link.execution;
    let _ = writeln!(
        text,
        "\n[{n}] {} ({}): run {}, {}, {} on machine {}",
        step.instance,
        step.key.kind,
        step.run,
        utc(step.started),
        seconds(step.wall),
        audit.machine(step)
    );
    let mut line = |name: &str, what: &str| {
        let _ = writeln!(text, "    {name:<8} {what}");
    };
    for (k, (name, value, default)) in params(step).enumerate() {
        let mark = if default { "  (default)" } else { "" };
        let value = shorten(&value);
        line(
            if k == 0 { "params" } else { "" },
            &format!("{name} = {value}{mark}"),
        );
    }
    match step.key.seed {
        Some(seed) => line("seed", &seed.to_string()),
        None => line("seed", "none: it draws no random numbers"),
    }
    line("key", &step.key_digest.to_string());
    sources(audit, step, &mut line);
    for (k, (name, digest)) in step.key.files.iter().enumerate() {
        line(
            if k == 0 { "files" } else { "" },
            &format!("{name} blake3:{digest}"),
        );
    }
    for (k, (name, digest)) in step.key.installed.programs.iter().enumerate() {
        line(
            if k == 0 { "programs" } else { "" },
            &format!("{name} blake3:{digest}"),
        );
    }
    for (k, (name, package)) in step.key.installed.packages.iter().enumerate() {
        line(
            if k == 0 { "packages" } else { "" },
            &format!("{name} {}", package.version),
        );
    }
    for (k, raw) in step.facts.raw.iter().enumerate() {
        let what = format!("{} {} ({} bytes)", raw.name, raw.checksum, raw.bytes);
        line(if k == 0 { "raw" } else { "" }, &what);
    }
    if step.inputs.is_empty() && step.facts.raw.is_empty() && step.key.files.is_empty() {
        line("raw", "none: made from its parameters, seed and code alone");
    }
    for (k, (input, maker)) in step.inputs.iter().zip(&link.makers).enumerate() {
        let from = maker.map_or("[?]".to_owned(), |maker| format!("[{maker}]"));
        let what = format!(
            "{} = {from} {} {}",
            input.port, input.producer, input.digest
        );
        line(if k == 0 { "inputs" } else { "" }, &what);
    }
    for (k, output) in step.outputs.iter().enumerate() {
        let state = audit.object(step, &output.digest).unwrap_or("not checked");
        let what = format!(
            "{} {} ({} rows, {} bytes, {state})",
            output.name, output.digest, output.rows, output.bytes
        );
        line(if k == 0 { "outputs" } else { "" }, &what);
    }
    let promise = step.facts.determinism.as_deref();
    line("promise", promise.unwrap_or("not recorded"));
    if let Some(times) = step.facts.resumed {
        line("resumed", &format!("{times} times from a checkpoint"));
    }
    if let Some(signer) = &step.facts.signer {
        let keys = Keys::open().ok();
        let name = keys.as_ref().and_then(|keys| keys.name_of(signer));
        let name = name.unwrap_or_else(|| "somebody unknown".to_owned());
        let revoked = keys.is_some_and(|keys| keys.is_revoked(signer));
        let revoked = if revoked {
            ", which you have revoked"
        } else {
            ""
        };
        line(
            "signed by",
            &format!("{name}, {signer}{revoked}: taken from a remote"),
        );
    }
    if let Some(sandbox) = &step.facts.sandbox {
        line("sandbox", sandbox);
    }
    let log: Vec<&str> = step.log.lines().collect();
    for (k, printed) in log.iter().take(LINES).enumerate() {
        line(if k == 0 { "log" } else { "" }, &shorten(printed));
    }
    if log.len() > LINES {
        line("", &format!("… {} more lines", log.len() - LINES));
    }
}

/// The fingerprint, then the kind's own files, then how many there are besides.
fn sources(audit: &Audit, step: &Execution, line: &mut impl FnMut(&str, &str)) {
    let Some(files) = audit.lineage.codes.get(&step.key.code) else {
        line("code", &step.key.code.to_string());
        return;
    };
    line(
        "code",
        &format!("{} ({} sources)", step.key.code, files.len()),
    );
    let own = format!("stages/kinds/{}/", step.key.kind.replace('-', "_"));
    let mut shown = 0;
    let mut sources: Vec<_> = (files.iter())
        .filter(|(name, _)| name.starts_with(&own))
        .collect();
    // The kind's own file first, then what is in folders below it.
    sources.sort_by_key(|(name, _)| name.matches('/').count());
    for (name, digest) in sources.into_iter().take(FILES) {
        line("", &format!("{name} {}", digest.short()));
        shown += 1;
    }
    if files.len() > shown {
        line(
            "",
            &format!("… {} more: --json and --html list all", files.len() - shown),
        );
    }
}

/// A value that fits on a line.
fn shorten(text: &str) -> String {
    const MOST: usize = 160;
    let text = text.replace('\n', "\\n");
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
