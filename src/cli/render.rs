//! `ablate render`: resolves the references of a manuscript.

use std::path::PathBuf;

use clap::Args;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::manuscript::{ManuscriptResults, read};
use super::run_selection::{self, RunOption};
use crate::diagnostic::{Diagnostic, Problems, Sources, Span};
use crate::plan::{self};
use crate::publish::manuscript::render;

/// What `render` takes.
#[derive(Args)]
pub struct Arguments {
    /// The manuscript, with references such as {{ablate:results[row=lstm,col=clean]}}
    manuscript: PathBuf,
    #[command(flatten)]
    which: RunOption,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Of more references that cannot be resolved the rest is counted.
const MOST: usize = 20;

/// Resolves the references of a manuscript.
pub fn render(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let text = read(&arguments.manuscript)?;
    let store = global.needed_store()?;
    let (run, pipeline) = run_selection::past_pipeline(global, &store, &arguments.which)?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let results = ManuscriptResults::read_from(&plan, &store, run.as_ref())?;
    let tex = arguments
        .manuscript
        .extension()
        .is_some_and(|ending| ending == "tex");
    let cell = |name: &str| {
        let value = results.cell(name)?;
        // Texts may have what TeX would obey; numbers have nothing of it.
        Ok(if tex { render::tex(&value) } else { value })
    };
    let filled = match render::render(&text, cell) {
        Ok(filled) => filled,
        Err(unfilled) => {
            let mut sources = Sources::default();
            let source = sources.add(arguments.manuscript.display().to_string(), text);
            let count = unfilled.len();
            let list = unfilled.into_iter().take(MOST).map(|one| {
                Diagnostic::new("this reference cannot be resolved")
                    .at(Span::new(source, one.place), one.why)
            });
            let mut list: Vec<Diagnostic> = list.collect();
            if count > MOST {
                let more = format!("{} more references cannot be resolved", count - MOST);
                list.push(Diagnostic::new(more));
            }
            return Err(Problems { sources, list }.into());
        }
    };
    match &arguments.output {
        None => super::print::print_bytes(filled.as_bytes()),
        Some(file) => std::fs::write(file, filled).map_err(|error| {
            Diagnostic::new(format!("cannot write `{}`: {error}", file.display())).into()
        }),
    }
}
