//! What an object's bytes are: the canonical form of a table, and Parquet files in one pinned layout.
//! Knows nothing of digests, places and records.

mod canonical;
mod codec;
mod content_size;
mod fixed_lists;
mod foreign;

pub use canonical::{METADATA_PREFIX, canonical, schema_text};
pub use codec::{decode, encode};
pub(crate) use codec::{decode_columns, write};
pub use foreign::{decode_foreign, read_foreign};
