//! How long a report takes: of a chain of 1,000 stages beside an attack with 10,000 examples.
//! `cargo bench --bench report`. Opening is measured where Chromium is installed: from the wish
//! to see the page until it is loaded and its first examples are drawn.

// The browser of the tests; not all that it can do is needed here.
#[allow(dead_code)]
#[path = "../../tests/browser/mod.rs"]
mod browser;
// The run of the tests, and the folder that it is made in.
#[allow(dead_code)]
#[path = "../../tests/lab.rs"]
mod lab;
#[path = "../../tests/report_large.rs"]
mod report_large;

use std::time::Instant;

use browser::Browser;

/// How often each is measured; the median counts.
const ROUNDS: usize = 5;
/// What is promised, in seconds.
const LIMIT: f64 = 2.0;

fn main() {
    let lab = report_large::large();
    let written = (0..ROUNDS).map(|_| {
        let since = Instant::now();
        lab.ablate(&["report"]).good();
        since.elapsed().as_secs_f64()
    });
    let written = median(written.collect());
    let size = std::fs::metadata(lab.path("report.html")).unwrap().len();
    println!(
        "report of 1,004 stages and 10,000 examples: {:.1} MB",
        size as f64 / 1e6
    );
    row("written", written);
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let opened = (0..ROUNDS).map(|_| {
        browser.open("about:blank");
        let loaded = browser.open_file(&lab.path("report.html"));
        let since = Instant::now();
        browser.until("document.querySelectorAll('#ex-list .example').length === 20");
        (loaded + since.elapsed()).as_secs_f64()
    });
    row("opened", median(opened.collect()));
}

fn row(what: &str, seconds: f64) {
    let verdict = if seconds <= LIMIT { "within" } else { "OVER" };
    println!("{what:<8} {seconds:.2} s, {verdict} {LIMIT} s");
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
