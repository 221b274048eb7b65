//! The Large Movie Review Dataset as its authors pack it: a file for each review.

use std::io::BufReader;
use std::ops::Range;
use std::str;

use arrow::record_batch::RecordBatch;

use super::ahead::ahead;
use super::{Opened, limit};
use crate::Failure;
use crate::dataset::table::Texts;
use crate::dataset::text::Encoding;
use crate::dataset::{archive, text};

/// `aclImdb/SPLIT/CLASS/ID_STARS.txt` to rows: train before test, negative before positive,
/// each class by its integer id.
pub fn imdb(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let opened = &mut files[0];
    let (path, encoding) = (&opened.entry.path, opened.entry.encoding);
    let limit = limit(opened);
    // All texts in one piece, in the order of the archive: 50,000 small strings are slow to make.
    let mut all = String::with_capacity(limit as usize);
    let mut reviews: Vec<(Key, Range<usize>)> = Vec::with_capacity(50_000);
    let packed = BufReader::with_capacity(1 << 18, &mut opened.file);
    ahead(flate2::bufread::GzDecoder::new(packed), |unpacked| {
        archive::tar(
            unpacked,
            path,
            limit,
            |name| key(name).is_some(),
            |name, bytes| {
                let key = key(name).expect("only these are wanted");
                let start = all.len();
                match str::from_utf8(bytes) {
                    Ok(text) if plain(text, encoding) => all.push_str(text),
                    _ => {
                        let name = format!("{path}: {name}");
                        all.push_str(&text::decode(bytes.to_vec(), encoding, &name)?);
                    }
                }
                reviews.push((key, start..all.len()));
                Ok(())
            },
        )
    })?;
    reviews.sort_unstable_by_key(|(key, _)| *key);
    let mut rows = Texts::with_capacity(reviews.len(), all.len());
    for ((split, label, id), text) in reviews {
        let split = if split == 0 { "train" } else { "test" };
        let class = if label == 0 { "neg" } else { "pos" };
        let id = format!("{split}/{class}/{id}");
        rows.push(&id, split, Some(label), &all[text]);
    }
    Ok(rows.finish())
}

/// Whether a text is as it should be without any decoding.
fn plain(text: &str, encoding: Encoding) -> bool {
    encoding == Encoding::Utf8 && !text.starts_with('\u{feff}')
}

/// The place of a review in the order: split, class, id.
type Key = (u8, i64, u32);

/// The key of a review, or nothing for other files (the unlabelled ones too).
fn key(name: &str) -> Option<Key> {
    let mut parts = name.strip_prefix("aclImdb/")?.split('/');
    let split = match parts.next()? {
        "train" => 0,
        "test" => 1,
        _ => return None,
    };
    let label = match parts.next()? {
        "neg" => 0,
        "pos" => 1,
        _ => return None,
    };
    let id = parts
        .next()?
        .strip_suffix(".txt")?
        .split_once('_')?
        .0
        .parse()
        .ok()?;
    Some((split, label, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_are_told_from_other_files() {
        assert_eq!(key("aclImdb/test/pos/127_9.txt"), Some((1, 1, 127)));
        for other in [
            "aclImdb/train/unsup/0_0.txt",
            "aclImdb/README",
            "aclImdb/train/pos/x_1.txt",
            "x/train/pos/1_1.txt",
        ] {
            assert_eq!(key(other), None, "{other}");
        }
    }
}
