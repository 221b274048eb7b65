//! The learning rate's schedule, from completed parameters. One that would change nothing is refused.

use nn::training::Schedule;

use crate::ParamError;
use crate::params::settings::{self, Settings};

/// The schedule of a fit of `epochs` epochs, each of so many steps, if that is known.
pub fn schedule(
    s: Settings<'_>,
    epochs: usize,
    steps: Option<usize>,
) -> Result<Schedule, ParamError> {
    let chosen = s.text("schedule").unwrap_or("constant");
    if chosen == "linear" {
        return linear(s, epochs, steps);
    }
    // The rate changes from one epoch to the next.
    if epochs == 1 && chosen != "constant" {
        let name = if chosen == "exponential" {
            "final_rate"
        } else {
            "schedule"
        };
        let message = format!("`{name}` would have no effect in one epoch");
        let help = "leave it out, or train for more epochs";
        return Err(settings::wrong(name, message, help));
    }
    Ok(match chosen {
        "step" => Schedule::Step {
            epochs: full_rate(s, epochs)?,
            factor: s.float("decay")?,
        },
        "plateau" => Schedule::Plateau {
            factor: s.float("decay")?,
        },
        "exponential" => Schedule::Step {
            epochs: 1,
            factor: towards_final_rate(s, epochs)?,
        },
        _ => Schedule::Constant,
    })
}

/// Up over a share of all steps, then down to 0.
fn linear(s: Settings<'_>, epochs: usize, steps: Option<usize>) -> Result<Schedule, ParamError> {
    if s.flag("balanced")? {
        let message = "schedule = \"linear\" and `balanced` are both given".to_owned();
        let help = "leave one out: balanced batches have steps of their own number";
        return Err(settings::wrong("schedule", message, help));
    }
    let steps = (epochs * steps.unwrap_or(1000)).max(1) as u64;
    let warmup = (s.float("warmup")? * steps as f64) as u64;
    Ok(Schedule::Linear { warmup, steps })
}

/// Epochs before the first decay.
fn full_rate(s: Settings<'_>, epochs: usize) -> Result<usize, ParamError> {
    let after = s.int("decay_after")?;
    if epochs > 0 && after >= epochs {
        let message = format!("`decay_after` is {after}, and there are {epochs} epochs");
        let help = "lower it, or train for more epochs";
        return Err(settings::wrong("decay_after", message, help));
    }
    Ok(after)
}

/// The factor per epoch that ends at `final_rate`.
fn towards_final_rate(s: Settings<'_>, epochs: usize) -> Result<f64, ParamError> {
    let rate = s.float("learning_rate")?;
    let Some(last) = s.maybe_float("final_rate") else {
        let message = "schedule = \"exponential\" needs `final_rate`".to_owned();
        let help = "write the learning rate of the last epoch: final_rate = 1e-4";
        return Err(settings::wrong("schedule", message, help));
    };
    if last > rate {
        let message = format!("`final_rate` is {last}");
        let help = format!("it must be at most the learning rate, {rate}");
        return Err(settings::wrong("final_rate", message, help));
    }
    let falls = epochs.saturating_sub(1).max(1) as f64;
    Ok(libm::pow(last / rate, 1.0 / falls))
}
