//! The Large Movie Review Dataset as its authors pack it: a file for each review.

use arrow::record_batch::RecordBatch;

use super::{Opened, limit};
use crate::Failure;
use crate::dataset::table::Texts;
use crate::dataset::{archive, text};

/// `aclImdb/SPLIT/CLASS/ID_STARS.txt` to rows: train before test, negative before positive,
/// each class by its integer id.
pub fn imdb(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let opened = &mut files[0];
    let (path, encoding) = (&opened.entry.path, opened.entry.encoding);
    let mut reviews: Vec<((u8, i64, u32), String)> = Vec::with_capacity(50_000);
    let limit = limit(opened);
    let unzipped = flate2::read::GzDecoder::new(&mut opened.file);
    let unzipped = std::io::BufReader::with_capacity(1 << 17, unzipped);
    archive::tar(
        unzipped,
        path,
        limit,
        |name| key(name).is_some(),
        |name, bytes| {
            let key = key(name).expect("only these are wanted");
            reviews.push((
                key,
                text::decode(bytes, encoding, &format!("{path}: {name}"))?,
            ));
            Ok(())
        },
    )?;
    reviews.sort_unstable_by_key(|(key, _)| *key);
    let bytes = reviews.iter().map(|(_, text)| text.len()).sum();
    let mut rows = Texts::with_capacity(reviews.len(), bytes);
    for ((split, label, id), text) in reviews {
        let split = if split == 0 { "train" } else { "test" };
        let class = if label == 0 { "neg" } else { "pos" };
        rows.push(&format!("{split}/{class}/{id}"), split, Some(label), &text);
    }
    Ok(rows.finish())
}

/// The place of a review in the order, or nothing for other files (the unlabelled ones too).
fn key(name: &str) -> Option<(u8, i64, u32)> {
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
