//! From completed parameters to the settings of a fit in `nn`.

use nn::training::{Clip, FitSpec, Keep, Metric, Optimiser};
use store::Params;

use super::schedule::schedule;
use crate::ParamError;
use crate::params::settings::{self, Settings};

/// The settings of a fit. `metric`: what selects the best epoch unless `best` says otherwise.
/// `rows`: how many there are to train on, if that is known.
pub fn fit_spec(
    params: &Params,
    seed: u64,
    metric: Metric,
    rows: Option<usize>,
) -> Result<FitSpec, ParamError> {
    let s = Settings(params);
    let mut spec = FitSpec::new(s.int("epochs")?, s.int("batch")?, s.float("learning_rate")?);
    spec.optimiser = optimiser(s)?;
    spec.schedule = schedule(s, spec.epochs, rows.map(|rows| rows.div_ceil(spec.batch)))?;
    spec.weight_decay = s.maybe_float("weight_decay").unwrap_or_default();
    spec.clip = clip(s)?;
    spec.metric = match s.text("best") {
        Some("accuracy") => Metric::Accuracy,
        Some("loss") => Metric::Loss,
        _ => metric,
    };
    spec.patience = s.int("patience")? as u32;
    spec.dev_checks = s.maybe_int("dev_checks").unwrap_or(1) as u32;
    spec.keep = match s.text("keep") {
        Some("last") => Keep::Last,
        _ => Keep::Best,
    };
    (spec.restarts, spec.accept) = restarts(params, spec.keep)?;
    // With the last epoch kept, the metric decides only when to stop and when to lower the rate.
    let decides = spec.keep == Keep::Best || spec.patience > 0;
    if params.contains_key("best") && !decides && s.text("schedule") != Some("plateau") {
        let message = "`best` would have no effect with keep = \"last\"".to_owned();
        return Err(settings::wrong("best", message, "leave one out"));
    }
    if spec.dev_checks > 1 && !decides && s.text("schedule") != Some("plateau") {
        let message = "`dev_checks` would have no effect with keep = \"last\"".to_owned();
        return Err(settings::wrong("dev_checks", message, "leave one out"));
    }
    spec.balanced = s.flag("balanced")?;
    spec.probe = s.int("probe")?;
    spec.seed = seed;
    Ok(spec)
}

fn optimiser(s: Settings<'_>) -> Result<Optimiser, ParamError> {
    Ok(match s.text("optimiser") {
        Some("sgd") => Optimiser::Sgd {
            momentum: s.float("momentum")?,
        },
        Some("adadelta") => Optimiser::Adadelta {
            rho: s.float("adadelta_rho")?,
            eps: s.float("adadelta_epsilon")?,
        },
        _ => Optimiser::Adam {
            b1: s.float("adam_beta1")?,
            b2: s.float("adam_beta2")?,
            eps: s.float("adam_epsilon")?,
        },
    })
}

fn clip(s: Settings<'_>) -> Result<Clip, ParamError> {
    let (norm, value) = (s.float("clip_norm")?, s.float("clip_value")?);
    match (norm > 0.0, value > 0.0) {
        (true, true) => {
            let message = "`clip_norm` and `clip_value` are both given".to_owned();
            Err(settings::wrong("clip_value", message, "leave one out"))
        }
        (true, false) => Ok(Clip::Norm(norm)),
        (false, true) => Ok(Clip::Value(value)),
        (false, false) => Ok(Clip::No),
    }
}

fn restarts(params: &Params, keep: Keep) -> Result<(u32, f64), ParamError> {
    let s = Settings(params);
    let restarts = s.int("restarts")? as u32;
    let accept = s.maybe_float("accept");
    if restarts > 0 && accept.is_none() {
        let message = "`restarts` needs `accept`".to_owned();
        let help = "write the dev accuracy that makes a restart unnecessary: accept = 0.9";
        return Err(settings::wrong("restarts", message, help));
    }
    if restarts == 0 && accept.is_some() {
        let message = "`accept` would have no effect without `restarts`".to_owned();
        let help = "leave it out, or say how often training may start again: restarts = 5";
        return Err(settings::wrong("accept", message, help));
    }
    if restarts > 0 && keep == Keep::Last {
        let message = "`restarts` and keep = \"last\" are both given".to_owned();
        let help = "leave one out: attempts are compared by their best epochs";
        return Err(settings::wrong("keep", message, help));
    }
    Ok((restarts, accept.unwrap_or_default()))
}
