//! Everything that is tested from outside, in one binary: the crate is generic, so each binary would compile it anew.

mod common;

mod contraction;
mod coverage;
mod generating;
mod gradients;
mod minilm;
mod models;
mod pairs;
mod perplexity;
mod queries;
mod reference;
mod resume;
mod steps;
mod training;
mod victim;
mod wrong_inputs;
