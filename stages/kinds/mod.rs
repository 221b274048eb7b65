//! The stage kinds: one folder each, listed in [`STAGES`].
//!
//! A kind is a pure function of its inputs, parameters, declared files and seed: no clock,
//! no environment, no path of its own. It describes itself, and help, checks, docs and keys
//! come from the description. Kinds do not import each other, but for `adversarial_retrain`,
//! which attacks by the code of `attack`.

pub mod adversarial_retrain;
pub mod attack;
pub mod command;
pub mod dataset;
pub mod embed;
pub mod evaluate;
pub mod external_model;
pub mod keyword_detector;
pub mod misspell;
pub mod ngrams;
pub mod rnn_test;
pub mod sql;
pub mod table;
pub mod tokenize;
pub mod train;

use crate::contract::stage::Stage;

/// Every stage kind. To add one: a folder, a `pub mod` line above and an entry here.
pub static STAGES: &[&dyn Stage] = &[
    &table::Table,
    &sql::Sql,
    &command::Command,
    &dataset::Dataset,
    &misspell::Misspell,
    &tokenize::Tokenize,
    &embed::Embed,
    &ngrams::Ngrams,
    &train::Train,
    &external_model::ExternalModel,
    &keyword_detector::KeywordDetector,
    &attack::AttackStage,
    &adversarial_retrain::AdversarialRetrain,
    &rnn_test::RnnTest,
    &evaluate::Evaluate,
];

/// The kind of that name.
pub fn find(kind: &str) -> Option<&'static dyn Stage> {
    STAGES
        .iter()
        .copied()
        .find(|stage| stage.describe().kind == kind)
}
