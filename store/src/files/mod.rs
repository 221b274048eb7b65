//! Files and folders of a store: operations that tests can make fail, temporary files, and what lies where.
//! Knows nothing of tables and rows.

pub(crate) mod disk;
pub(crate) mod file_system;
pub(crate) mod listing;
pub(crate) mod scratch;
pub(crate) mod spool;

pub use scratch::Scratch;
