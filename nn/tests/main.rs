//! Everything that is tested from outside, in one binary: the crate is generic, so each binary would compile it anew.

mod common;

mod gradients;
mod growth;
mod minilm;
mod models;
mod reference;
mod resume;
mod speaking;
mod steps;
mod training;
mod wrong_inputs;
