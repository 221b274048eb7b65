//! `ablate serve`: reports over HTTP, with a list of runs, comparisons and live progress.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::global::Global;
use super::report;
use crate::diagnostic::Diagnostic;
use crate::publish::report::serve::{self, Site};

/// What `serve` takes.
#[derive(Args)]
pub struct Arguments {
    /// The port; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8042)]
    port: u16,
    /// The address to listen on. Anyone who can reach it can read all results
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Maximum number of adversarial examples on a page
    #[arg(long, value_name = "N", default_value_t = report::EXAMPLES)]
    examples: usize,
}

/// Serves until it is stopped.
pub fn serve(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let site = Site {
        store: global.store_path(),
        file: global.file.clone(),
        examples: arguments.examples,
        judge: report::judged,
        ablations: report::ablations,
        worlds: report::worlds,
    };
    let at = SocketAddr::new(arguments.bind, arguments.port);
    let say = |at: SocketAddr| match (global.json, global.quiet) {
        (true, _) => println!("{}", json!({ "address": format!("http://{at}/") })),
        (false, true) => {}
        (false, false) => println!("ablate: http://{at}/ (Ctrl-C ends it)"),
    };
    serve::serve(site, at, say).map_err(|error| {
        Diagnostic::new(format!("cannot serve at {at}: {error}"))
            .help("--port names another port; 0 takes any that is free")
            .into()
    })
}
