//! The tables that stages hand to each other: one file per artifact, with its columns, how it is
//! written and how it is read. Nobody else spells a column of these.

pub mod by_confidence;
pub mod changes;
pub mod checkpoint;
pub mod comparison;
pub mod coverage;
pub mod estimates;
pub mod examples;
pub mod foreign;
pub mod generated;
pub mod history;
pub mod inherit;
pub mod lemmas;
pub mod model;
pub mod model_card;
pub mod ngrams;
pub(crate) mod pages;
pub mod pairs;
pub mod positions;
pub mod rates;
pub mod results;
pub mod schema;
pub mod sequences;
pub mod summary;
pub mod synonyms;
pub mod traces;
pub mod vectors;
pub mod vocabulary;
pub mod weights;

use schema::TableSchema;

/// The tables, by the kind that makes them.
pub static TABLES: &[&TableSchema] = &[
    &sequences::SCHEMA,
    &vocabulary::SCHEMA,
    &vectors::SCHEMA,
    &ngrams::SCHEMA,
    &weights::SCHEMA,
    &history::SCHEMA,
    &model::SCHEMA,
    &examples::SCHEMA,
    &by_confidence::SCHEMA,
    &estimates::SCHEMA,
    &summary::SCHEMA,
    &traces::SCHEMA,
    &comparison::SCHEMA,
    &generated::SCHEMA,
    &coverage::SCHEMA,
    &rates::SCHEMA,
    &results::SCHEMA,
    &changes::SCHEMA,
    &positions::SCHEMA,
];
