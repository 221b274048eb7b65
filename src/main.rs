//! `ablate`: experiment pipelines whose results can be trusted.
//!
//! ```text
//! pipeline.toml -> config -> plan -> schedule -> run one stage -> store -> provenance
//! ```

mod cli;
mod compare;
mod config;
mod diagnostic;
mod environment;
mod explain;
mod panics;
mod plan;
mod progress;
mod resolve;
mod run;
mod schedule;
mod survey;

fn main() -> std::process::ExitCode {
    panics::install();
    cli::main()
}
