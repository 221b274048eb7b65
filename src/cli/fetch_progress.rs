//! Progress of a download: a bar on a terminal, lines elsewhere, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use stages::{Usage, Watch};

use super::global::Global;
use super::print::note;

/// A bar for what is being fetched.
pub struct FetchProgress {
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
    loud: bool,
}

impl FetchProgress {
    /// For one data set.
    pub fn new(name: &str, global: &Global, stop: Arc<AtomicBool>) -> FetchProgress {
        let loud = !global.quiet && !global.json;
        let bar = match loud && std::io::stderr().is_terminal() {
            true => ProgressBar::new(0),
            false => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template(
            "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        );
        bar.set_style(style.expect("a template that parses"));
        bar.set_message(name.to_owned());
        FetchProgress { bar, stop, loud }
    }

    /// Takes the bar away.
    pub fn close(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for FetchProgress {
    fn progress(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    fn work(&self, _: &'static str, _: u64) {}

    fn log(&self, line: &str) {
        if self.loud {
            self.bar.suspend(|| note!("{line}"));
        }
    }

    fn child(&self, _: Usage) {}

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
