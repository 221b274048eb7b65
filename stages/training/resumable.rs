//! A fit that may be stopped or killed: now and then it pauses, saves how far it has come, and goes on; the next
//! execution of the same key resumes from there. The weights are those of an undisturbed fit, to the last bit: `nn`
//! sees to that.

use nn::error::Error;
use nn::training::{Checkpoint, Event, Flow};
use serde::{Deserialize, Serialize};

use super::epochs::Epochs;
use crate::Failure;
use crate::models::failure;
use crate::tables::history::EpochRecord;

/// Where a fit may pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// After any step.
    AnyStep,
    /// Only between epochs: what was made for an epoch is not saved.
    Epochs,
}

/// What a fit gives back when it ends or pauses.
pub struct Paused<X> {
    /// Its outcome, if it came to its end.
    pub outcome: X,
    /// Whether it was stopped before.
    pub stopped: bool,
    /// Where to go on from.
    pub checkpoint: Checkpoint,
}

/// Told of every event; says whether to go on.
pub type Tell<'t> = &'t mut (dyn FnMut(&Event) -> Flow + Send);

/// Runs a fit to its end, with pauses. `fit` starts it, or goes on from a checkpoint; `record` notes an event.
pub fn run<X>(
    epochs: &mut Epochs<'_>,
    pause: Pause,
    mut record: impl FnMut(&mut Epochs<'_>, &Event) -> Flow + Send,
    mut fit: impl FnMut(Option<Checkpoint>, Tell<'_>) -> Result<Paused<X>, Error>,
) -> Result<X, Failure> {
    let watch = epochs.watch();
    let mut saved = watch.checkpoint().and_then(|bytes| Saved::read(&bytes));
    let mut times = 0;
    if let Some((header, _)) = &saved {
        times = header.resumed + 1;
        header.restore(epochs);
        let (epochs, steps) = (header.history.len(), header.step);
        watch.log(&format!(
            "resumed from a checkpoint after {epochs} epochs and {steps} steps"
        ));
        watch.resumed(times);
    }
    loop {
        let mut step = 0;
        let mut tell = |event: &Event| {
            if let Event::Step { step: now, .. } | Event::Epoch { step: now, .. } = event {
                step = *now;
            }
            let flow = record(epochs, event);
            let may = match event {
                Event::Step { .. } => pause == Pause::AnyStep,
                Event::Epoch { .. } => true,
                Event::Restart { .. } => false,
            };
            match may && watch.checkpoint_due() {
                true => Flow::Stop,
                false => flow,
            }
        };
        let from = saved.take().map(|(_, checkpoint)| checkpoint);
        let fitted = fit(from, &mut tell).map_err(failure)?;
        if !fitted.stopped {
            return Ok(fitted.outcome);
        }
        let between = fitted.checkpoint.position.batch == 0;
        if between || pause == Pause::AnyStep {
            let header = Header::of(epochs, times, step);
            watch.save_checkpoint(&Saved::bytes(&header, &fitted.checkpoint));
        }
        if watch.stopped() {
            return Err(Failure::stopped());
        }
        saved = Some((Header::of(epochs, times, step), fitted.checkpoint));
    }
}

/// What is saved beside the state of `nn`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// The type and version of this record.
    record: String,
    /// How often the fit had been resumed.
    resumed: u32,
    /// Steps taken.
    step: u64,
    /// The attempt of the history's next line.
    attempt: i64,
    history: Vec<SavedEpoch>,
}

/// A line of the history. Floats by their bits: what is read back is what was written.
#[derive(Serialize, Deserialize)]
struct SavedEpoch {
    numbers: [i64; 3],
    measured: [Option<u64>; 4],
}

/// A header with the state of `nn`.
struct Saved;

impl Saved {
    const RECORD: &str = "training-checkpoint/1";

    fn bytes(header: &Header, checkpoint: &Checkpoint) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(header).expect("plain data");
        bytes.push(b'\n');
        bytes.extend(checkpoint.to_bytes());
        bytes
    }

    /// None if it was not written by this version: then the fit starts from the beginning.
    fn read(bytes: &[u8]) -> Option<(Header, Checkpoint)> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let header: Header = serde_json::from_slice(&bytes[..end]).ok()?;
        let checkpoint = Checkpoint::from_bytes(&bytes[end + 1..]).ok()?;
        (header.record == Saved::RECORD).then_some((header, checkpoint))
    }
}

impl Header {
    fn of(epochs: &Epochs<'_>, resumed: u32, step: u64) -> Header {
        let bits = |x: Option<f64>| x.map(f64::to_bits);
        let each = epochs.history.iter().map(|one| SavedEpoch {
            numbers: [one.attempt, one.epoch, one.step],
            measured: [
                bits(one.loss),
                bits(one.train_accuracy),
                bits(one.dev_loss),
                bits(one.dev_accuracy),
            ],
        });
        Header {
            record: Saved::RECORD.to_owned(),
            resumed,
            step,
            attempt: epochs.attempt(),
            history: each.collect(),
        }
    }

    fn restore(&self, epochs: &mut Epochs<'_>) {
        let number = |bits: Option<u64>| bits.map(f64::from_bits);
        let each = self.history.iter().map(|one| EpochRecord {
            attempt: one.numbers[0],
            epoch: one.numbers[1],
            step: one.numbers[2],
            loss: number(one.measured[0]),
            train_accuracy: number(one.measured[1]),
            dev_loss: number(one.measured[2]),
            dev_accuracy: number(one.measured[3]),
        });
        epochs.restore(self.attempt, each.collect());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    use arrow::record_batch::RecordBatch;
    use store::Value;

    use crate::kinds::adversarial_retrain::AdversarialRetrain;
    use crate::kinds::attack::AttackStage;
    use crate::kinds::train::Train;
    use crate::tests::trial::{reversals, reviews, run, run_watched, text, tokens};
    use crate::{Stage, Usage, Watch};

    /// Saves a checkpoint at every chance, and stops the stage after a number of events.
    struct Restless<'a> {
        saved: &'a Mutex<Option<Vec<u8>>>,
        left: AtomicU64,
        resumed: AtomicU64,
    }

    impl Watch for Restless<'_> {
        fn progress(&self, _: u64, _: u64) {
            let _ = self
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        }
        fn log(&self, _: &str) {}
        fn work(&self, _: &'static str, _: u64) {}
        fn child(&self, _: Usage) {}
        fn stopped(&self) -> bool {
            self.left.load(Ordering::Relaxed) == 0
        }
        fn checkpoint(&self) -> Option<Vec<u8>> {
            self.saved.lock().unwrap().clone()
        }
        fn checkpoint_due(&self) -> bool {
            true
        }
        fn save_checkpoint(&self, bytes: &[u8]) {
            *self.saved.lock().unwrap() = Some(bytes.to_vec());
        }
        fn resumed(&self, times: u32) {
            self.resumed.store(u64::from(times), Ordering::Relaxed);
        }
    }

    /// Stops the stage again and again, each time somewhat later, until it comes to its end: the same outputs as if
    /// nothing had happened.
    fn same_when_stopped(
        stage: &dyn Stage,
        inputs: &[(&str, &RecordBatch)],
        given: &[(&str, Value)],
    ) {
        let whole = run(stage, inputs, given, 3).unwrap();
        let saved = Mutex::new(None);
        for patience in 1.. {
            let watch = Restless {
                saved: &saved,
                left: AtomicU64::new(patience),
                resumed: AtomicU64::new(0),
            };
            let outcome = run_watched(stage, inputs, given, 3, &watch);
            match outcome {
                Ok(outputs) => {
                    assert_eq!(outputs, whole);
                    let times = watch.resumed.into_inner();
                    assert!(times > 1, "it was resumed {times} times");
                    return;
                }
                Err(failure) => assert!(failure.stopped, "{}", failure.message),
            }
            assert!(patience < 1_000, "it never ends");
        }
    }

    fn learning(model: &str, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
        let mut given = vec![
            ("model", text(model)),
            ("units", Value::Int(4)),
            ("dim", Value::Int(4)),
            ("batch", Value::Int(8)),
            ("epochs", Value::Int(4)),
        ];
        given.extend(more.iter().cloned());
        given
    }

    #[test]
    fn a_classifier_that_is_stopped_again_and_again_ends_with_the_same_bytes() {
        let rows = tokens(&reviews());
        let more = [
            ("dropout", Value::Float(0.3)),
            ("patience", Value::Int(2)),
            ("restarts", Value::Int(1)),
            ("accept", Value::Float(1.0)),
        ];
        same_when_stopped(&Train, &[("rows", &rows)], &learning("lstm", &more));
    }

    #[test]
    fn so_does_a_language_model_whose_states_are_carried() {
        let rows = tokens(&reviews());
        let given = learning("lstm-lm", &[("bptt", Value::Int(5))]);
        same_when_stopped(&Train, &[("rows", &rows)], &given);
    }

    #[test]
    fn so_does_a_translation() {
        let rows = reversals(80);
        same_when_stopped(&Train, &[("rows", &rows)], &learning("seq2seq", &[]));
    }

    /// An attack goes on behind the groups that are finished.
    #[test]
    fn so_does_an_attack() {
        let rows = tokens(&reviews());
        let vocab = crate::tests::trial::vocab();
        let trained = run(&Train, &[("rows", &rows)], &learning("lstm", &[]), 3).unwrap();
        let inputs = [
            ("victim", &trained["weights"]),
            ("rows", &rows),
            ("vocab", &vocab),
        ];
        let given = [("attack", text("jsma")), ("split", text("train"))];
        let one = |work: &(dyn Fn() + Sync)| crate::tests::trial::on_threads(1, work);
        one(&|| same_when_stopped(&AttackStage, &inputs, &given));
    }

    #[test]
    fn so_does_a_model_that_learns_from_attacks_on_itself() {
        let rows = tokens(&reviews());
        let vocab = crate::tests::trial::vocab();
        let trained = run(&Train, &[("rows", &rows)], &learning("lstm", &[]), 3).unwrap();
        let inputs = [
            ("victim", &trained["weights"]),
            ("rows", &rows),
            ("vocab", &vocab),
        ];
        for mix in ["batch", "epoch"] {
            let given = [
                ("attack", text("jsma")),
                ("mix", text(mix)),
                ("epochs", Value::Int(3)),
                ("batch", Value::Int(8)),
                ("test", text("dev")),
            ];
            same_when_stopped(&AdversarialRetrain, &inputs, &given);
        }
    }
}
