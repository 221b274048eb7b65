//! Data sets, for the command line: the catalogue, and fetching them.

pub use crate::kinds::dataset::{Form, SYNTHETIC, Set, all, check_file, fetch, find, place};
