//! The tables that stages hand to each other: one file per artifact, with its columns, how it is
//! written and how it is read. Nobody else spells a column of these.

pub mod examples;
pub mod foreign;
pub mod model_card;
pub mod ngrams;
pub(crate) mod pages;
pub mod schema;
pub mod sequences;
pub mod summary;
pub mod vocabulary;
pub mod weights;

use schema::TableSchema;

/// The tables whose columns are listed here, by the kind that makes them.
pub static TABLES: &[&TableSchema] = &[&examples::SCHEMA, &summary::SCHEMA];
