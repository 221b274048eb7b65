//! What people and programs see of a run. Reads events, decides nothing.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::json;
use store::{Digest, Status, Work};

use crate::visible::{in_json, on_terminal as shown, one_line};

/// Something that happened during a run.
pub enum Event<'a> {
    /// The run begins with this many stage instances.
    Begin(usize),
    /// An instance was started.
    Started(&'a str),
    /// An instance has done some of its work.
    Progress(&'a str, u64, u64),
    /// Another process is making this instance's result: waiting for it.
    Waiting(&'a str),
    /// An instance is done, one way or another.
    Stage {
        /// The instance.
        label: &'a str,
        /// What became of it.
        status: Status,
        /// Its key, if its inputs were known.
        key: Option<Digest>,
        /// The time that this run spent on it.
        wall: Duration,
        /// What the execution behind its result counted.
        worked: &'a Worked,
        /// The error as a person should see it, and its first line.
        error: Option<(&'a str, &'a str)>,
    },
    /// Something that a person should know.
    Note(&'a str),
    /// The run is over.
    Done(&'a Tally),
    /// What became of the pipeline's claims: how many of each verdict.
    Claims(&'a BTreeMap<&'static str, usize>),
}

/// What an execution counted, and in what time: this run's, or the one found in the store.
#[derive(Clone, Debug, Default)]
pub struct Worked {
    /// Amounts by unit.
    pub work: Work,
    /// How long it took.
    pub wall: Duration,
}

impl Worked {
    /// How much of each unit was done in a second. Nothing for an execution too short to tell.
    pub fn rates(&self) -> BTreeMap<&str, f64> {
        let seconds = self.wall.as_secs_f64();
        let told = self.work.iter().filter(|_| seconds > 0.0);
        told.map(|(unit, amount)| (unit.as_str(), *amount as f64 / seconds))
            .collect()
    }
}

/// `291 items, 23.6/s; 8123 forward, 659/s`, or nothing.
impl fmt::Display for Worked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rates = self.rates();
        for (n, (unit, amount)) in self.work.iter().enumerate() {
            let separator = if n == 0 { "" } else { "; " };
            write!(f, "{separator}{amount} {unit}")?;
            match rates.get(unit.as_str()) {
                Some(rate) if *rate < 99.95 => write!(f, ", {rate:.1}/s")?,
                Some(rate) => write!(f, ", {rate:.0}/s")?,
                None => {}
            }
        }
        Ok(())
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Executed in this run.
    pub ran: usize,
    /// Found in the store.
    pub hits: usize,
    /// Failed.
    pub failed: usize,
    /// Not tried, because something before it failed or the run was stopped.
    pub skipped: usize,
    /// The user stopped it.
    pub interrupted: bool,
    /// From beginning to end.
    pub wall: Duration,
}

/// Where events go.
pub trait Reporter: Sync {
    /// Takes note of an event. May be called from any thread.
    fn event(&self, event: Event<'_>);
}

/// One line for each stage that ran, and a summary.
pub struct Lines;

impl Reporter for Lines {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Stage {
                label,
                status,
                wall,
                worked,
                error,
                ..
            } => match (status, error) {
                (Status::Hit, _) => {}
                (_, Some((text, _))) => eprint!("{text}"),
                _ => println!("{}", shown(&stage_line(label, status, wall, worked))),
            },
            Event::Waiting(label) => {
                println!("wait {}: another process is making it", shown(label));
            }
            Event::Note(note) => eprintln!("ablate: {}", shown(note)),
            Event::Done(tally) => println!("{}", summary(tally)),
            Event::Claims(counts) => println!("{}", claims(counts)),
            _ => {}
        }
    }
}

/// Nothing but errors.
pub struct Quiet;

impl Reporter for Quiet {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Stage {
                error: Some((text, _)),
                ..
            } => eprint!("{text}"),
            Event::Note(note) => eprintln!("ablate: {}", shown(note)),
            _ => {}
        }
    }
}

/// One JSON object a line, for programs.
pub struct Json;

impl Reporter for Json {
    fn event(&self, event: Event<'_>) {
        let line = match event {
            Event::Stage {
                label,
                status,
                key,
                wall,
                worked,
                error,
            } => {
                let mut object = json!({
                    "event": "stage", "stage": label, "status": status,
                    "key": key, "ms": millis(wall),
                });
                if !worked.work.is_empty() {
                    object["work"] = json!(worked.work);
                    object["rates"] = json!(worked.rates());
                }
                if let Some((text, title)) = error {
                    object["error"] = json!(title);
                    object["detail"] = json!(text);
                }
                object
            }
            Event::Note(note) => json!({ "event": "note", "note": note }),
            Event::Done(tally) => json!({
                "event": "done", "ran": tally.ran, "hits": tally.hits, "failed": tally.failed,
                "skipped": tally.skipped, "interrupted": tally.interrupted, "ms": millis(tally.wall),
            }),
            Event::Claims(counts) => {
                let mut object = json!({ "event": "claims" });
                for (verdict, count) in counts {
                    object[verdict.replace(' ', "_")] = json!(count);
                }
                object
            }
            _ => return,
        };
        // A reader that has gone away must not take the run down with it.
        let line = line.to_string();
        let _ = writeln!(std::io::stdout(), "{}", in_json(&line));
    }
}

/// Bars for a terminal: one for the run, one for each stage that takes a while.
pub struct Bars(Arc<Screen>);

struct Screen {
    bars: MultiProgress,
    total: ProgressBar,
    running: Mutex<HashMap<String, Running>>,
}

struct Running {
    since: Instant,
    progress: Option<(u64, u64)>,
    bar: Option<ProgressBar>,
}

/// How often bars are drawn. Stages that are done before the second drawing never get one.
const TICK: Duration = Duration::from_millis(150);

impl Bars {
    /// A screen that draws itself until it is dropped.
    pub fn new() -> Bars {
        let bars = MultiProgress::new();
        let total = bars.add(ProgressBar::new(0));
        total.set_style(style_of("{bar:30.green} {pos}/{len} stages  {elapsed}"));
        let running = Mutex::default();
        let screen = Arc::new(Screen {
            bars,
            total,
            running,
        });
        let drawn = Arc::downgrade(&screen);
        std::thread::spawn(move || {
            while let Some(screen) = drawn.upgrade() {
                screen.draw();
                drop(screen);
                std::thread::sleep(TICK);
            }
        });
        Bars(screen)
    }
}

impl Screen {
    fn draw(&self) {
        let Ok(mut running) = self.running.lock() else {
            return;
        };
        self.total.tick();
        for (label, stage) in running.iter_mut() {
            if stage.since.elapsed() < 2 * TICK {
                continue;
            }
            let bar = stage.bar.get_or_insert_with(|| {
                let bar = self
                    .bars
                    .add(ProgressBar::no_length().with_elapsed(stage.since.elapsed()));
                bar.set_style(style_of("  {msg}  {elapsed}"));
                bar.with_message(one_line(label).into_owned())
            });
            if let Some((done, total)) = stage.progress {
                if bar.length() != Some(total) {
                    bar.set_length(total);
                    bar.set_style(style_of("  {bar:28} {msg}  {pos}/{len}  {eta} left"));
                }
                bar.set_position(done);
            }
            bar.tick();
        }
    }

    fn say(&self, text: &str) {
        self.bars.suspend(|| eprintln!("{}", text.trim_end()));
    }
}

impl Reporter for Bars {
    fn event(&self, event: Event<'_>) {
        let screen = &self.0;
        let Ok(mut running) = screen.running.lock() else {
            return;
        };
        match event {
            Event::Begin(total) => screen.total.set_length(total as u64),
            Event::Started(label) => {
                let since = Instant::now();
                running.insert(
                    label.to_owned(),
                    Running {
                        since,
                        progress: None,
                        bar: None,
                    },
                );
            }
            Event::Progress(label, done, total) => {
                if let Some(stage) = running.get_mut(label) {
                    stage.progress = Some((done, total));
                }
            }
            Event::Waiting(label) => screen.say(&format!(
                "wait {}: another process is making it",
                shown(label)
            )),
            Event::Stage {
                label,
                status,
                wall,
                worked,
                error,
                ..
            } => {
                if let Some(bar) = running.remove(label).and_then(|stage| stage.bar) {
                    bar.finish_and_clear();
                    screen.bars.remove(&bar);
                }
                screen.total.inc(1);
                match (status, error) {
                    (Status::Hit, _) => {}
                    (_, Some((text, _))) => screen.say(text),
                    _ => screen.say(&shown(&stage_line(label, status, wall, worked))),
                }
            }
            Event::Note(note) => screen.say(&format!("ablate: {}", shown(note))),
            Event::Done(tally) => {
                screen.total.finish_and_clear();
                println!("{}", summary(tally));
            }
            Event::Claims(counts) => println!("{}", claims(counts)),
        }
    }
}

fn style_of(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("templates are written here")
}

fn stage_line(label: &str, status: Status, wall: Duration, worked: &Worked) -> String {
    match status {
        Status::Ran if worked.work.is_empty() => format!("ran  {label}  {}", seconds(wall)),
        Status::Ran => format!("ran  {label}  {}  {worked}", seconds(wall)),
        Status::Hit => format!("hit  {label}"),
        Status::Failed => format!("FAIL {label}"),
        Status::Skipped => format!("skip {label}"),
    }
}

/// `ablate: 3 ran, 6 cached in 0.21 s`, or that there was nothing to do.
fn summary(tally: &Tally) -> String {
    let total = tally.ran + tally.hits + tally.failed + tally.skipped;
    if tally.hits == total {
        return format!("ablate: all {total} stages cached");
    }
    let counts = [
        (tally.ran, "ran"),
        (tally.hits, "cached"),
        (tally.failed, "failed"),
        (tally.skipped, "skipped"),
    ];
    let parts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let end = if tally.interrupted {
        ", interrupted"
    } else {
        ""
    };
    format!(
        "ablate: {}{end} in {}",
        parts.join(", "),
        seconds(tally.wall)
    )
}

/// `claims: 6 reproduced, 1 not reproduced, 2 not run (ablate claims)`.
fn claims(counts: &BTreeMap<&'static str, usize>) -> String {
    format!("claims: {} (ablate claims)", crate::claims::counted(counts))
}

/// A duration that a person can read at a glance.
pub fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 0.0995 => format!("{:.1} ms", s * 1000.0),
        s if s < 9.95 => format!("{s:.2} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s => format!("{} min {:02} s", s as u64 / 60, s as u64 % 60),
    }
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_their_rates() {
        let worked = |seconds: f64, work: &[(&str, u64)]| Worked {
            work: work.iter().map(|(u, n)| ((*u).to_owned(), *n)).collect(),
            wall: Duration::from_secs_f64(seconds),
        };
        let attack = worked(12.33, &[("items", 291), ("forward", 8123)]);
        assert_eq!(
            stage_line("attack", Status::Ran, attack.wall, &attack),
            "ran  attack  12 s  8123 forward, 659/s; 291 items, 23.6/s"
        );
        let none = worked(0.5, &[]);
        let line = stage_line("mix", Status::Ran, none.wall, &none);
        assert_eq!(line, "ran  mix  0.50 s");
        assert_eq!(worked(0.0, &[("items", 3)]).to_string(), "3 items");
    }
}
