//! The Large Movie Review Dataset as its authors pack it: a file for each review.

use std::io::BufReader;
use std::ops::Range;
use std::str;

use arrow::record_batch::RecordBatch;

use super::ahead::ahead;
use super::opened::limit;
use crate::Failure;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Texts;
use crate::kinds::dataset::text::Encoding;
use crate::kinds::dataset::{archive, text};
use crate::tables::pages::Pages;

/// `aclImdb/SPLIT/CLASS/ID_STARS.txt` to rows: train before test, negative before positive,
/// each class by its integer id.
pub fn imdb(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let opened = &mut files[0];
    let (path, encoding) = (&opened.entry.path, opened.entry.encoding);
    let limit = limit(opened);
    let mut groups = Vec::with_capacity(GROUPS.len());
    for _ in GROUPS {
        groups.push(Group {
            texts: Pages::with_large_room(limit as usize).map_err(no_memory)?,
            reviews: Vec::new(),
        });
    }
    let packed = BufReader::with_capacity(1 << 18, &mut opened.file);
    ahead(flate2::bufread::GzDecoder::new(packed), |unpacked| {
        archive::tar(
            unpacked,
            path,
            limit,
            |name| key(name).is_some(),
            |name, bytes| {
                let (group, id) = key(name).expect("only these are wanted");
                let group = &mut groups[group];
                let place = match str::from_utf8(bytes) {
                    Ok(text) if plain(text, encoding) => group.texts.push(bytes),
                    _ => {
                        let name = format!("{path}: {name}");
                        let text = text::decode(bytes.to_vec(), encoding, &name)?;
                        group.texts.push(text.as_bytes())
                    }
                };
                group.reviews.push((id, place.map_err(no_memory)?));
                Ok(())
            },
        )
    })?;
    let (count, bytes) = groups.iter().fold((0, 0), |(count, bytes), group| {
        (count + group.reviews.len(), bytes + group.texts.len())
    });
    let mut rows = Texts::with_capacity(count, bytes);
    // Each group is gone when its rows are made, so that all texts are never there twice.
    for (mut group, (split, class, label)) in groups.into_iter().zip(GROUPS) {
        group.reviews.sort_unstable_by_key(|(id, _)| *id);
        for (id, text) in group.reviews {
            let id = format!("{split}/{class}/{id}");
            let text = str::from_utf8(&group.texts.all()[text]).expect("a text was put there");
            rows.push(&id, split, Some(label), text);
        }
    }
    Ok(rows.finish())
}

/// Split, class and label, in the order of the rows.
const GROUPS: [(&str, &str, i64); 4] = [
    ("train", "neg", 0),
    ("train", "pos", 1),
    ("test", "neg", 0),
    ("test", "pos", 1),
];

/// Reviews of one split and class, in the order of the archive. Their texts are in one piece:
/// 50,000 small strings are slow to make.
struct Group {
    texts: Pages,
    reviews: Vec<(u32, Range<usize>)>,
}

fn no_memory(error: std::io::Error) -> Failure {
    Failure::new(format!("out of memory for the texts: {error}"))
}

/// Whether a text is as it should be without any decoding.
fn plain(text: &str, encoding: Encoding) -> bool {
    encoding == Encoding::Utf8 && !text.starts_with('\u{feff}')
}

/// The group and the id of a review, or nothing for other files (the unlabelled ones too).
fn key(name: &str) -> Option<(usize, u32)> {
    let mut parts = name.strip_prefix("aclImdb/")?.split('/');
    let (split, class) = (parts.next()?, parts.next()?);
    let mut groups = GROUPS.iter();
    let group = groups.position(|group| (group.0, group.1) == (split, class))?;
    let id = parts
        .next()?
        .strip_suffix(".txt")?
        .split_once('_')?
        .0
        .parse()
        .ok()?;
    Some((group, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_are_told_from_other_files() {
        assert_eq!(key("aclImdb/test/pos/127_9.txt"), Some((3, 127)));
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
