//! Refuses settings of training that would have no effect: on a model, without a dev split, or where nothing is
//! trained.

use store::{Params, Value};

use super::params::PARAMS;
use crate::ParamError;
use crate::contract::description::Param;
use crate::contract::expected::{ExpectedInputs, Mismatch};
use crate::models::entry::ModelKind;
use crate::params::settings::{self, Settings};

/// Refuses settings of training that have no effect on the model.
pub fn idle(params: &Params, model: &dyn ModelKind) -> Result<(), ParamError> {
    let s = Settings(params);
    let idle = |param: &&Param| !model.trains_with(s, param.name);
    for param in PARAMS.iter().filter(idle) {
        settings::idle(params, Some(param), || match param.name {
            "learning_rate" if model.trains_with(s, "epochs") => {
                "it only applies to steps = \"constant\"".to_owned()
            }
            // Who wrote only what implies it must find that here.
            "schedule" => format!(
                "`{}` does not use it, and without `decay`, `final_rate` and `warmup`",
                model.entry().name
            ),
            _ => format!("`{}` does not use it", model.entry().name),
        })?;
    }
    Ok(())
}

/// Refuses all settings of training but the splits.
pub fn idle_all(params: &Params, why: &str) -> Result<(), ParamError> {
    let learns = |param: &&Param| !["train", "dev", "epochs"].contains(&param.name);
    for param in PARAMS.iter().filter(learns) {
        settings::idle(params, Some(param), || why.to_owned())?;
    }
    Ok(())
}

/// Refuses settings that go by dev, where rows have no dev split.
pub fn needs_dev(params: &Params, dev: bool, split: &str) -> Result<(), ParamError> {
    let asked = |name: &&str| match (*name, params.get(*name)) {
        ("best", Some(_)) => true,
        ("keep", Some(Value::Text(keep))) => keep == "best",
        ("schedule", Some(Value::Text(schedule))) => schedule == "plateau",
        ("dev_checks", Some(Value::Int(number))) => *number > 1,
        (_, Some(Value::Int(number))) => *number > 0,
        _ => false,
    };
    let names: [&'static str; 6] = [
        "patience",
        "dev_checks",
        "restarts",
        "keep",
        "schedule",
        "best",
    ];
    match names.into_iter().find(asked) {
        Some(name) if !dev => {
            let message = format!("`{name}` needs dev rows, and no row has the split `{split}`");
            let help = "leave it out, or make a dev split in the dataset stage: split = [{ of = \"train\", into = \"dev\", share = 0.1 }]";
            Err(settings::wrong(name, message, help))
        }
        _ => Ok(()),
    }
}

/// Refuses splits that the rows cannot have.
pub fn expect_splits(params: &Params, inputs: &ExpectedInputs<'_>) -> Result<(), Mismatch> {
    let split = |param: &'static str| Settings(params).text(param).unwrap_or(param);
    inputs.has_split("rows", "train", split("train"))?;
    let known = inputs.has_split("rows", "dev", split("dev"));
    if split("dev") != "dev" {
        known?;
    } else if known.is_err() {
        needs_dev(params, false, "dev")?;
    }
    Ok(())
}
