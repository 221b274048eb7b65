//! A run as progress bars on a terminal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use store::Status;

use super::event::{Event, Reporter};
use super::summary::{claims, stage_line, summary};
use crate::visible::{on_terminal as shown, one_line};

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
                "wait {}: running in another process",
                shown(label)
            )),
            Event::Stage {
                label,
                status,
                wall,
                worked,
                error,
                why,
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
                    _ => screen.say(&shown(&stage_line(label, status, wall, worked, why))),
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

    fn pause(&self, ask: &mut dyn FnMut()) {
        self.0.bars.suspend(ask);
    }
}

fn style_of(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("templates are written here")
}
