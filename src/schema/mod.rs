//! JSON Schemas of the files that people write, for editors: made from what kinds say of themselves, so that they
//! are never older than the program. Draft 7, which taplo and VS Code read.
//! Decides nothing: what a schema cannot say, such as whether a stage exists, is found by `ablate plan`.

mod claims;
mod figures;
mod kind;
mod pipeline;
mod value;

use serde_json::Value;

/// A file that people write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SchemaOf {
    /// pipeline.toml: stages, axes, profiles
    Pipeline,
    /// claims.toml: the claims of a paper
    Claims,
    /// figures.toml: the figures of a report
    Figures,
}

/// Its schema.
pub fn schema(of: SchemaOf) -> Value {
    match of {
        SchemaOf::Pipeline => pipeline::schema(),
        SchemaOf::Claims => claims::schema(),
        SchemaOf::Figures => figures::schema(),
    }
}
