//! The attacks: one file each, listed in [`ATTACKS`].

mod deepwordbug;
pub mod dynamic;
mod external;
mod fixed_point;
mod genetic;
mod gradient_sign;
mod hotflip;
mod hotflip_words;
mod jsma;
mod key_star;
mod none;
mod optimal_control;
mod pwws;
mod replace_word;
mod replace_words;
mod swap;
mod tack_on;
mod textfooler;
pub mod transfer;
mod word_mapping;

use store::Params;

use super::entry::{Attack, AttackEntry};
use crate::ParamError;
use crate::contract::description::Choice;
use crate::params::settings::Settings;

/// Every attack. To add one: a file, a `mod` line above and an entry here.
pub static ATTACKS: &[&dyn Attack] = &[
    &none::None,
    &tack_on::TackOn,
    &swap::Swap,
    &jsma::Jsma,
    &hotflip_words::HotflipWords,
    &gradient_sign::GradientSign,
    &fixed_point::FixedPoint,
    &dynamic::Dynamic,
    &optimal_control::OptimalControl,
    &word_mapping::WordMapping,
    &hotflip::Hotflip,
    &key_star::KeyStar,
    &replace_word::ReplaceWord,
    &replace_words::ReplaceWords,
    &textfooler::TextFooler,
    &pwws::Pwws,
    &genetic::Genetic,
    &deepwordbug::DeepWordBug,
    &transfer::Transfer,
    &external::External,
];

/// The attack of that name.
pub fn find(name: &str) -> Option<&'static dyn Attack> {
    let all = ATTACKS.iter().copied();
    all.into_iter().find(|attack| attack.entry().name == name)
}

/// The source of the attack of that name, for the code of those who run it.
pub fn file(name: &str) -> Option<&'static str> {
    find(name).map(|attack| attack.entry().file)
}

/// All attacks, for a kind that takes one: `attack = "jsma"`.
pub fn choices() -> Vec<Choice> {
    let choice = |entry: AttackEntry| Choice {
        selector: "attack",
        name: entry.name,
        summary: entry.summary,
        params: entry.params,
    };
    ATTACKS
        .iter()
        .map(|attack| choice(attack.entry()))
        .collect()
}

/// The names of all attacks, for the help of the parameter `attack`.
pub fn names() -> String {
    let names: Vec<&str> = ATTACKS.iter().map(|attack| attack.entry().name).collect();
    names.join(", ")
}

/// Those attacks in words: "tack-on or swap".
pub fn listed(which: impl Fn(&AttackEntry) -> bool) -> String {
    let entries = ATTACKS.iter().map(|attack| attack.entry());
    let names: Vec<&str> = entries.filter(which).map(|entry| entry.name).collect();
    match names.as_slice() {
        [] => "another attack".to_owned(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// Looks at the parameters of the attack that is chosen.
pub fn check(params: &Params) -> Result<(), ParamError> {
    let name = Settings(params).text("attack").unwrap_or_default();
    find(name).map_or(Ok(()), |attack| attack.check(Settings(params)))
}
