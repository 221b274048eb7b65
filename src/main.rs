//! `ablate`: experiment pipelines whose results can be trusted.
//!
//! ```text
//! pipeline.toml -> config -> plan -> resolve -> engine -> store -> inspect -> publish
//! ```

mod amounts;
mod cli;
mod config;
mod diagnostic;
mod engine;
mod environment;
mod exactly;
#[cfg(test)]
mod fuzz;
mod huge_pages;
mod inspect;
mod plan;
mod publish;
mod remote;
mod resolve;
mod results;
mod schema;
mod starter;
mod visible;

use stages::Failure;
use stages::isolated::Request;

/// Planning a large pipeline is mostly small allocations: with the system's allocator a chain
/// of 100,000 stages spends 40% of its time in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    engine::panics::install();
    match worker() {
        Some(code) => code,
        None => cli::main(),
    }
}

/// Works for another process of this program, if it was started for that.
fn worker() -> Option<std::process::ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != stages::isolated::ARGUMENT {
        return None;
    }
    let budget = arguments.next()?.to_str()?.parse().ok()?;
    let ended = stages::isolated::serve(budget, |request, tables| match request {
        Request::Query(text) => stages::sql::query_here(tables, &text, || false),
        Request::Parquet(path) => {
            store::read_foreign(&path).map_err(|error| Failure::new(error.to_string()))
        }
    });
    Some(std::process::ExitCode::from(u8::from(ended.is_err())))
}
