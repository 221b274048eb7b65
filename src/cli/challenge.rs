//! `ablate challenge`: what two stores made for the same keys, or a store beside a lock.

use std::path::{Path, PathBuf};

use clap::Args;
use store::Store;

use super::exit::Exit;
use super::global::Global;
use super::print::{note, out};
use crate::diagnostic::Diagnostic;
use crate::inspect::challenge::{self, Challenge};

/// What `challenge` takes.
#[derive(Args)]
pub struct Arguments {
    /// The other store, the folder that its `.ablate` is in, or a file that `ablate lock` wrote
    other: PathBuf,
}

/// Compares two stores, or a store with a lock.
pub fn challenge(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    if arguments.other.is_file() {
        return super::locked::challenge(global, &arguments.other);
    }
    let here = global.needed_store()?;
    let beside = arguments.other.join(".ablate");
    let root = match beside.is_dir() {
        true => beside,
        false => arguments.other.clone(),
    };
    let there = Store::open_existing(&root)?;
    let there = there.ok_or_else(|| no_store(&arguments.other))?;
    let real = |store: &Store| std::fs::canonicalize(store.root()).ok();
    if real(&here) == real(&there) {
        let name = there.root().display();
        return Err(Diagnostic::new(format!("`{name}` is the same store"))
            .help("a store cannot confirm itself: name one that was filled independently")
            .into());
    }
    let found = challenge::challenge(&here, &there)?;
    if global.json {
        out!("{}", serde_json::to_value(&found).expect("plain values"));
    } else {
        print_challenge(&found)?;
    }
    // Two stores that have nothing in common have confirmed nothing.
    if found.agree + found.disagree.len() == 0 {
        note!(
            "nothing was compared: no key was executed by both. Keys have parameters, files, inputs \
             and code: run the same pipeline with the same `ablate` there"
        );
    }
    match found.agree > 0 && found.disagree.is_empty() && found.twice.is_empty() {
        true => Ok(()),
        false => Err(Exit::Code(1)),
    }
}

fn print_challenge(found: &Challenge) -> Result<(), Exit> {
    for one in &found.disagree {
        let short = |digest: Option<store::Digest>| digest.map_or("-".to_owned(), |d| d.short());
        out!(
            "disagree  {}.{}: {} here, {} there (key {})",
            one.stage,
            one.output,
            short(one.here),
            short(one.there),
            one.key.short()
        );
        if let Some(first) = &one.first {
            out!("          first at {}", first.described());
        }
        if let Some((here, there)) = &one.machines {
            out!("          made on {here} here, on {there} there");
        }
    }
    for one in &found.twice {
        let (stage, store, key) = (&one.stage, one.store, one.key.short());
        out!("conflict  {stage}: the store {store} has two different results for key {key}");
    }
    out!(
        "ablate: {} keys agree, {} disagree, {} only here, {} only there",
        found.agree,
        found.disagree.len(),
        found.only_here,
        found.only_there
    );
    Ok(())
}

/// The error for a folder that is not a store.
fn no_store(other: &Path) -> Exit {
    let name = other.display();
    let what = match other.exists() {
        true => format!("`{name}` is not a store, and has no folder `.ablate`"),
        false => format!("`{name}` does not exist"),
    };
    let help = "name the other store, the folder of the pipeline that filled it, or a results.lock";
    Exit::Failed(Diagnostic::new(what).help(help))
}
