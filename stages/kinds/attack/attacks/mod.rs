//! The attacks: one file each, listed in [`ATTACKS`].

pub mod dynamic;
mod fixed_point;
mod gradient_sign;
mod jsma;
mod none;
mod optimal_control;
mod swap;
mod tack_on;
mod word_mapping;

use std::collections::BTreeMap;

use store::Params;

use super::entry::Attack;
use crate::ParamError;
use crate::contract::description::{Param, Type};
use crate::params::settings::{self, Settings};

/// Every attack. To add one: a file, a `mod` line above and an entry here.
pub static ATTACKS: &[&dyn Attack] = &[
    &none::None,
    &tack_on::TackOn,
    &swap::Swap,
    &jsma::Jsma,
    &gradient_sign::GradientSign,
    &fixed_point::FixedPoint,
    &dynamic::Dynamic,
    &optimal_control::OptimalControl,
    &word_mapping::WordMapping,
];

/// Whole numbers that may be 0: a class, and steps that need not be taken.
const FROM_0: [&str; 2] = ["target", "substeps"];

/// The attack of that name.
pub fn find(name: &str) -> Option<&'static dyn Attack> {
    let all = ATTACKS.iter().copied();
    all.into_iter().find(|attack| attack.entry().name == name)
}

/// The source of the attack of that name, for the code of those who run it.
pub fn file(name: &str) -> Option<&'static str> {
    find(name).map(|attack| attack.entry().file)
}

/// The parameters of all attacks, for a kind that takes one.
pub fn params() -> Vec<&'static [Param]> {
    ATTACKS.iter().map(|attack| attack.entry().params).collect()
}

/// Checks that the attack exists and that the parameters given are its own.
pub fn check(params: &Params) -> Result<(), ParamError> {
    let name = Settings(params).text("attack").unwrap_or_default();
    let Some(attack) = find(name) else {
        let known = ATTACKS.iter().map(|attack| attack.entry().name);
        return Err(settings::unknown("attack", name, known));
    };
    let entries = ATTACKS.iter().map(|attack| attack.entry());
    let owners: BTreeMap<_, Vec<_>> = entries
        .map(|entry| (entry.name, entry.params.iter().map(|p| p.name).collect()))
        .collect();
    settings::belongs(params, "attack", name, &owners)?;
    for param in attack.entry().params {
        if param.ty == Type::Int {
            let least = i64::from(!FROM_0.contains(&param.name));
            Settings(params).whole(param.name, least, least)?;
        }
    }
    attack.check(Settings(params))
}
