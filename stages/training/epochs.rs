//! Follows a fit while it runs: progress and a line per epoch for the user, records for the history. Stops the
//! fit when the user says so.

use nn::training::{Event, Flow};

use crate::Watch;
use crate::tables::history::EpochRecord;

/// The progress of a fit.
pub struct Epochs<'a> {
    watch: &'a dyn Watch,
    /// Steps in all, as far as that is known.
    steps: u64,
    attempt: i64,
    /// The epochs so far.
    pub history: Vec<EpochRecord>,
}

impl<'a> Epochs<'a> {
    /// Before the first step of `steps`.
    pub fn new(watch: &'a dyn Watch, steps: usize) -> Epochs<'a> {
        Epochs {
            watch,
            steps: steps as u64,
            attempt: 1,
            history: Vec::new(),
        }
    }

    /// Who watches.
    pub fn watch(&self) -> &'a dyn Watch {
        self.watch
    }

    /// Which attempt it is, from 1.
    pub fn attempt(&self) -> i64 {
        self.attempt
    }

    /// Goes on after the epochs of an earlier execution.
    pub fn restore(&mut self, attempt: i64, history: Vec<EpochRecord>) {
        (self.attempt, self.history) = (attempt, history);
    }

    /// Records an event; `shown` is what the log says of an epoch after its loss.
    pub fn record(&mut self, event: &Event, shown: fn(&EpochRecord) -> String) -> Flow {
        match event {
            Event::Step { step, .. } => self.watch.progress(*step, self.steps.max(*step)),
            Event::Epoch {
                epoch,
                step,
                loss,
                train,
                dev,
            } => {
                let record = EpochRecord {
                    attempt: self.attempt,
                    epoch: *epoch as i64 + 1,
                    step: *step as i64,
                    loss: Some(*loss),
                    train_accuracy: train.map(|e| e.accuracy),
                    dev_loss: dev.map(|e| e.loss),
                    dev_accuracy: dev.map(|e| e.accuracy),
                };
                let (epoch, shown) = (record.epoch, shown(&record));
                self.watch
                    .log(&format!("epoch {epoch}: loss {loss:.4}, {shown}"));
                self.history.push(record);
            }
            Event::Restart { attempt } => {
                self.attempt = i64::from(*attempt) + 1;
                self.watch.log(&format!("restart {attempt}"));
            }
        }
        match self.watch.stopped() {
            true => Flow::Stop,
            false => Flow::Continue,
        }
    }
}

/// Accuracies, for a line of the log.
pub fn accuracies(epoch: &EpochRecord) -> String {
    let percent = |x: Option<f64>| x.map_or("-".into(), |x| format!("{:.2}%", x * 100.0));
    let (train, dev) = (epoch.train_accuracy, epoch.dev_accuracy);
    format!("train {}, dev {}", percent(train), percent(dev))
}

/// The perplexity on dev, for a line of the log.
pub fn perplexity(epoch: &EpochRecord) -> String {
    let perplexity = epoch.dev_loss.map(f64::exp);
    let shown = perplexity.map_or("-".into(), |x| format!("{x:.2}"));
    format!("dev perplexity {shown}")
}
