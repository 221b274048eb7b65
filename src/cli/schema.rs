//! `ablate schema`: the JSON Schema of a file that people write, for editors.

use clap::Args;

use super::exit::Exit;
use super::print::out;
use crate::schema::{SchemaOf, schema as schema_of};

/// What `schema` takes.
#[derive(Args)]
pub struct Arguments {
    /// Which file
    #[arg(value_enum)]
    of: SchemaOf,
}

/// Prints the schema.
pub fn schema(arguments: &Arguments) -> Result<(), Exit> {
    out!("{:#}", schema_of(arguments.of));
    Ok(())
}
