//! `ablate pull`: a run that takes what a remote has, and executes nothing.

use clap::{Args, Parser};

use super::exit::Exit;
use super::global::Global;
use super::remote::opened;
use super::run;

/// `ablate pull …`.
#[derive(Args)]
pub struct Arguments {
    /// Stages to pull, with all that they read [default: all]
    targets: Vec<String>,
    /// The remote [default: the only one]
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,
    /// Fetch every object, also those that only other stages would read
    #[arg(long)]
    all: bool,
}

/// Takes what trusted people have pushed, and executes nothing.
pub fn pull(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        run: run::Arguments,
    }
    let remote = opened(global, arguments.remote.as_deref())?.name;
    let words = ["run", "--only-remote", "--remote", &remote];
    let whole = arguments.all.then_some("--whole");
    let words = words
        .into_iter()
        .chain(whole)
        .chain(["--"])
        .chain(arguments.targets.iter().map(String::as_str));
    run::run(global, &Alone::parse_from(words).run)
}
