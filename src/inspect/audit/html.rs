//! A derivation as one page: no script, nothing from elsewhere, every text escaped.

use std::fmt::Write;

use store::Link;

use super::{Audit, machine_line, params};
use crate::amounts::seconds;
use crate::environment::utc;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;\
padding:0 1em;color:#222;background:#fff}code,td,pre{font:13px/1.45 ui-monospace,monospace}\
details{border:1px solid #ccc;border-radius:6px;margin:.6em 0;padding:.4em .8em}\
summary{cursor:pointer;font-weight:600}table{border-collapse:collapse}\
td{padding:.1em 1em .1em 0;vertical-align:top;overflow-wrap:anywhere}td:first-child{color:#666;\
white-space:nowrap}.doubt{color:#a00}.default{color:#777}pre{white-space:pre-wrap;margin:0}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}.doubt{color:#f77}}";

/// The page.
pub fn page(audit: &Audit) -> String {
    let asked = escape(&audit.asked);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\"><title>audit of {asked}</title><style>{STYLE}</style></head>\
         <body><h1>Audit of <code>{asked}</code></h1>\n"
    );
    if let Some((_, cell)) = &audit.cell {
        let _ = writeln!(
            page,
            "<p><code>{}</code> = <strong>{}</strong>, row {}</p>",
            escape(&cell.column),
            escape(&cell.value),
            cell.row
        );
    }
    let doubts = audit.doubts();
    for doubt in &doubts {
        let _ = writeln!(page, "<p class=\"doubt\">{}</p>", escape(doubt));
    }
    if doubts.is_empty() {
        page.push_str("<p>No faults were found.</p>\n");
    }
    machines(audit, &mut page);
    // Newest first: readers start from the result.
    page.push_str("</table><h2>Steps, from the result to the raw data</h2>\n");
    for (n, link) in audit.lineage.links.iter().enumerate().rev() {
        step(audit, n, link, &mut page);
    }
    page.push_str("</body></html>\n");
    page
}

fn machines(audit: &Audit, page: &mut String) {
    page.push_str("<h2>Machines</h2><table>\n");
    for (n, machine) in audit.machines.iter().enumerate() {
        let line = escape(&machine_line(machine));
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{line}</td></tr>",
            super::letters(n)
        );
    }
}

fn step(audit: &Audit, n: usize, link: &Link, page: &mut String) {
    let step = &link.execution;
    let open = if audit.lineage.roots.contains(&n) {
        " open"
    } else {
        ""
    };
    let _ = writeln!(
        page,
        "<details id=\"s{n}\"{open}><summary>{} ({})</summary><table>",
        escape(&step.instance),
        escape(&step.key.kind)
    );
    // `html` is markup already; `text` is not.
    let mut html = |name: &str, cell: &str| {
        let _ = writeln!(page, "<tr><td>{name}</td><td>{cell}</td></tr>");
    };
    let when = format!(
        "run {}, {}, {}",
        step.run,
        utc(step.started),
        seconds(step.wall)
    );
    html(
        "when",
        &format!("{} on machine {}", escape(&when), audit.machine(step)),
    );
    for (name, value, default) in params(step) {
        let mark = if default {
            " <span class=\"default\">(default)</span>"
        } else {
            ""
        };
        html(
            "parameter",
            &format!("{} = {}{mark}", escape(name), escape(&value)),
        );
    }
    if let Some(seed) = step.key.seed {
        html("seed", &seed.to_string());
    }
    html("key", &step.key_digest.to_string());
    let promise = step.facts.determinism.as_deref();
    html("promise", &escape(promise.unwrap_or("not recorded")));
    for (name, digest) in &step.key.files {
        html("file", &format!("{} blake3:{digest}", escape(name)));
    }
    for (name, digest) in &step.key.installed.programs {
        html("program", &format!("{} blake3:{digest}", escape(name)));
    }
    for (name, package) in &step.key.installed.packages {
        let what = format!("{name} {}", package.version);
        html("package", &escape(&what));
    }
    for raw in &step.facts.raw {
        let what = format!("{} {} ({} bytes)", raw.name, raw.checksum, raw.bytes);
        html("raw data", &escape(&what));
    }
    for (input, maker) in step.inputs.iter().zip(&link.makers) {
        let what = escape(&format!("{} = {}", input.port, input.producer));
        let what = match maker {
            Some(maker) => format!("<a href=\"#s{maker}\">{what}</a>"),
            None => what,
        };
        html("input", &format!("{what} {}", input.digest));
    }
    for output in &step.outputs {
        let state = audit.object(step, &output.digest).unwrap_or("not checked");
        let what = format!(
            "{} {} ({} rows, {} bytes, {state}): {}",
            output.name, output.digest, output.rows, output.bytes, output.schema
        );
        html("output", &escape(&what));
    }
    let files = audit.lineage.codes.get(&step.key.code);
    let each = files.into_iter().flatten();
    let each = each.map(|(name, digest)| format!("{} {digest}\n", escape(name)));
    let list: String = each.collect();
    html(
        "code",
        &format!(
            "{}<details><summary>{} sources</summary><pre>{list}</pre></details>",
            step.key.code,
            files.map_or(0, |files| files.len())
        ),
    );
    if !step.log.is_empty() {
        html("log", &format!("<pre>{}</pre>", escape(&step.log)));
    }
    page.push_str("</table></details>\n");
}

/// Text that is safe inside elements and quoted attributes.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_is_text() {
        let text = "<script>alert('1' & \"2\")</script>";
        let safe = "&lt;script&gt;alert(&#39;1&#39; &amp; &quot;2&quot;)&lt;/script&gt;";
        assert_eq!(escape(text), safe);
    }
}
