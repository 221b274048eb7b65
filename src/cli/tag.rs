//! `ablate tag`: a name for a run, which keeps its results from gc.

use clap::Args;

use super::exit::Exit;
use super::global::Global;
use super::print::out;
use super::run_selection;
use crate::diagnostic::Diagnostic;

/// What `tag` takes.
#[derive(Args)]
pub struct Arguments {
    /// The name
    name: String,
    /// The run: number, tag, `last` or `prev` (of this pipeline)
    #[arg(default_value = "last")]
    run: String,
}

/// Refuses tags that would be mistaken for something else.
pub fn check_tag(name: &str) -> Result<(), Exit> {
    if name.trim().is_empty() {
        return Err(Diagnostic::new("a tag needs a name").into());
    }
    if name.parse::<i64>().is_ok() || name == "last" || name == "prev" {
        return Err(Diagnostic::new(format!("`{name}` would be mistaken for a run")).into());
    }
    Ok(())
}

/// Names a run.
pub fn tag(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let run = run_selection::named(global, &store, &arguments.run)?;
    let name = &arguments.name;
    check_tag(name)?;
    match store.tag(run.id, name)? {
        Some(before) if before != run.id => out!("{name}: run {} (before: run {before})", run.id),
        _ => out!("{name}: run {}", run.id),
    }
    Ok(())
}
