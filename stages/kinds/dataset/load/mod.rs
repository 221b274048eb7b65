//! From checked files to one table: a function for each form in which sets come.
//! Knows nothing of where the files lie, of samples, or of splits that a user makes.

mod ahead;
mod delimited;
mod glove;
mod glove_json;
mod hapt;
mod har;
mod imdb;
mod lexicon;
mod lines;
mod mnist;
mod opened;
mod originals;
mod rtf;
mod spelling;
mod weights;

use arrow::record_batch::RecordBatch;

use super::fetch::Opened;
use crate::Failure;

/// Reads the files of a form.
pub type Loader = fn(Vec<Opened<'_>>) -> Result<RecordBatch, Failure>;

static LOADERS: &[(&str, Loader)] = &[
    ("ag-news", delimited::ag_news),
    ("ag-news-archive", delimited::ag_news_archive),
    ("ag-news-titles", delimited::ag_news_titles),
    ("counterfit", lexicon::synonyms),
    ("glove-bz2", glove::bz2),
    ("glove-json", glove_json::json),
    ("glove-zip", glove::zip),
    ("gutenberg", lines::gutenberg),
    ("hapt", hapt::hapt),
    ("har", har::har),
    ("imdb", imdb::imdb),
    ("imdb-csv", delimited::imdb_csv),
    ("misspellings", lexicon::misspellings),
    ("mnist", mnist::mnist),
    ("mnist-gz", mnist::mnist_gz),
    ("mr", lines::mr),
    ("multi30k", lines::multi30k),
    ("multinli", originals::multinli),
    ("ppdb", lexicon::ppdb),
    ("ptb", lines::ptb),
    ("ptb-python", lines::ptb_python),
    ("ptb-zip", lines::ptb_zip),
    ("sick", delimited::sick),
    ("snli", delimited::snli),
    ("snli-original", originals::snli_original),
    ("spell-books", spelling::books),
    ("spell-test", spelling::misspelt),
    ("sst2", delimited::sst2),
    ("sst2-glue", originals::sst2_glue),
    ("sst2-sentences", delimited::sst2_sentences),
    ("wordnet", lexicon::wordnet),
    ("wordnet-lemmas", lexicon::wordnet_lemmas),
    ("vocabulary", lines::vocabulary),
    ("weights", weights::safetensors),
    ("yelp", delimited::yelp),
    ("yelp-polarity", originals::yelp_polarity),
    ("yelp-sentences", lines::yelp_sentences),
];

/// Loaders of pairs of texts.
pub const PAIRS: [&str; 4] = ["multinli", "sick", "snli", "snli-original"];

/// The loader of that name.
pub fn find(name: &str) -> Option<Loader> {
    LOADERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, loader)| *loader)
}
