//! From checked files to one table: a function for each form in which sets come.
//! Knows nothing of where the files lie, of samples, or of splits that a user makes.

mod ahead;
mod delimited;
mod glove;
mod har;
mod imdb;
mod lexicon;
mod lines;
mod mnist;

use std::io::Read;

use arrow::record_batch::RecordBatch;

use super::fetch::Opened;
use super::{archive, text};
use crate::Failure;

/// Reads the files of a form.
pub type Loader = fn(Vec<Opened<'_>>) -> Result<RecordBatch, Failure>;

static LOADERS: &[(&str, Loader)] = &[
    ("ag-news", delimited::ag_news),
    ("glove-bz2", glove::bz2),
    ("glove-zip", glove::zip),
    ("gutenberg", lines::gutenberg),
    ("har", har::har),
    ("imdb", imdb::imdb),
    ("imdb-csv", delimited::imdb_csv),
    ("misspellings", lexicon::misspellings),
    ("mnist", mnist::mnist),
    ("mnist-gz", mnist::mnist_gz),
    ("mr", lines::mr),
    ("multi30k", lines::multi30k),
    ("ppdb", lexicon::ppdb),
    ("ptb", lines::ptb),
    ("ptb-python", lines::ptb_python),
    ("ptb-zip", lines::ptb_zip),
    ("sick", delimited::sick),
    ("snli", delimited::snli),
    ("sst2", delimited::sst2),
    ("wordnet", lexicon::wordnet),
    ("yelp", delimited::yelp),
];

/// Loaders of pairs of texts.
pub const PAIRS: [&str; 2] = ["sick", "snli"];

/// The loader of that name.
pub fn find(name: &str) -> Option<Loader> {
    LOADERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, loader)| *loader)
}

/// How many bytes may come out of a file.
fn limit(opened: &Opened<'_>) -> u64 {
    opened.entry.unpacked.unwrap_or(opened.entry.size)
}

/// All bytes of a file.
fn bytes(opened: &mut Opened<'_>) -> Result<Vec<u8>, Failure> {
    let path = &opened.entry.path;
    let mut left = opened.entry.size;
    archive::read(&mut opened.file, &mut left, path, path)
}

/// All bytes that come out of a decoder.
fn unpacked(opened: &Opened<'_>, mut decoder: impl Read) -> Result<Vec<u8>, Failure> {
    let path = &opened.entry.path;
    archive::read(&mut decoder, &mut limit(opened), path, path)
}

/// All text of a file.
fn whole(opened: &mut Opened<'_>) -> Result<String, Failure> {
    let bytes = bytes(opened)?;
    text::decode(bytes, opened.entry.encoding, &opened.entry.path)
}

/// The one split of a file; the catalogue's test sees that it has one where it must.
fn split<'a>(opened: &Opened<'a>) -> &'a str {
    opened.entry.split.as_deref().unwrap_or("train")
}

/// The word that the catalogue gives a file.
fn role<'a>(opened: &Opened<'a>) -> &'a str {
    opened.entry.role.as_deref().unwrap_or_default()
}

/// A file that is the right one and still does not read as it should: a defect of a loader.
fn unexpected(file: &str, row: usize, what: &str) -> Failure {
    Failure::new(format!("{file}, row {row}: {what}"))
        .help("the file is the one that the catalogue names, so its loader is wrong")
}
