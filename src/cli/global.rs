//! Options that commands share, and what they name: the pipeline and the store.

use std::path::PathBuf;

use clap::Args;
use store::Store;

use super::exit::Exit;
use crate::config::{self, Pipeline, PipelineRequest};
use crate::diagnostic::{self, Diagnostic};

/// The pipeline file, unless another is named.
const FILE: &str = "pipeline.toml";

/// Options that every command takes.
#[derive(Args, Clone)]
pub struct Global {
    /// The pipeline file
    #[arg(
        short,
        long,
        global = true,
        value_name = "FILE",
        default_value = FILE
    )]
    pub file: PathBuf,
    /// Change to this folder first
    #[arg(short = 'C', long = "directory", global = true, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Where results are kept [default: .ablate beside the pipeline file]
    #[arg(long, global = true, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Apply [profile.NAME]
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Change a value for this run: stage.param=value
    #[arg(long, global = true, value_name = "STAGE.PARAM=VALUE")]
    pub set: Vec<String>,
    /// Memory limit for a query or foreign file [default: a quarter of the memory]
    #[arg(long, global = true, value_name = "SIZE")]
    pub memory: Option<stages::isolated::Budget>,
    /// Print JSON, one object per line
    #[arg(long, global = true)]
    pub json: bool,
    /// Print errors only
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

impl Global {
    pub fn pipeline(&self) -> Result<Pipeline, Exit> {
        let pipeline = config::read(&PipelineRequest {
            file: self.file.clone(),
            profile: self.profile.clone(),
            sets: self.set.clone(),
        })?;
        if !self.quiet {
            eprint!(
                "{}",
                diagnostic::render(&pipeline.sources, &pipeline.warnings)
            );
        }
        Ok(pipeline)
    }

    /// A command to type next, with the folder, file, store, profile and settings that were given: without them it
    /// would be about other results.
    pub fn command(&self, command: &str) -> String {
        let mut parts = vec![format!("ablate {command}")];
        let mut option = |name: &str, value: &str| parts.push(format!("{name} {}", quoted(value)));
        if let Some(directory) = &self.directory {
            option("-C", &directory.display().to_string());
        }
        if self.file != std::path::Path::new(FILE) {
            option("-f", &self.file.display().to_string());
        }
        if let Some(store) = &self.store {
            option("--store", &store.display().to_string());
        }
        if let Some(profile) = &self.profile {
            option("--profile", profile);
        }
        self.set.iter().for_each(|set| option("--set", set));
        parts.join(" ")
    }

    pub fn store_path(&self) -> PathBuf {
        match &self.store {
            Some(path) => path.clone(),
            None => self
                .file
                .parent()
                .unwrap_or(std::path::Path::new(""))
                .join(".ablate"),
        }
    }

    /// The store, if there is one. Never makes one.
    pub fn existing_store(&self) -> Result<Option<Store>, Exit> {
        Ok(Store::open_existing(&self.store_path())?)
    }

    /// The store, or an error that says how one comes to be.
    pub fn needed_store(&self) -> Result<Store, Exit> {
        let root = self.store_path();
        let store = Store::open_existing(&root)?;
        store.ok_or(Exit::Store(store::Error::NoStore { root }))
    }
}

/// As a shell reads it back.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:,+@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Attaches the pipeline's text to errors that point into it.
pub fn in_pipeline<T>(pipeline: &Pipeline, result: Result<T, Vec<Diagnostic>>) -> Result<T, Exit> {
    result.map_err(|list| {
        eprint!("{}", diagnostic::render(&pipeline.sources, &list));
        Exit::Code(2)
    })
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn what_a_shell_would_split_or_expand_is_quoted() {
        assert_eq!(quoted("lstm.units=64"), "lstm.units=64");
        assert_eq!(quoted("t.query=SELECT 1"), "'t.query=SELECT 1'");
        assert_eq!(quoted("a[n=1]"), "'a[n=1]'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
