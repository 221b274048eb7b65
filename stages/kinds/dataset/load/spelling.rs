//! Sentences for a spell checker: 20 books in RTF, and sentences with misspellings (RNN-Test, P4).

use arrow::record_batch::RecordBatch;

use super::opened::{limit, unexpected};
use super::rtf;
use crate::Failure;
use crate::kinds::dataset::archive;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Columns;
use crate::kinds::dataset::text::{Encoding, decode, lines};

/// Characters that are deleted.
const DELETED: &str = "{}@_*>()\\#%+=[]";

/// Characters that a sentence has, at least and at most.
const LENGTHS: std::ops::RangeInclusive<usize> = 10..=92;

/// The members of the archive whose names end so, by name.
fn members(file: &mut Opened<'_>, ending: &str) -> Result<Vec<(String, String)>, Failure> {
    let (path, limit) = (&file.entry.path, limit(file));
    let unpacked = lzma_rust2::XzReader::new(std::io::BufReader::new(&mut file.file), false);
    let mut found = Vec::new();
    let wanted = |name: &str| name.ends_with(ending);
    archive::tar(unpacked, path, limit, wanted, |name, bytes| {
        found.push((
            name.to_owned(),
            decode(bytes.to_vec(), Encoding::Utf8, name)?,
        ));
        Ok(())
    })?;
    found.sort_unstable();
    Ok(found)
}

/// The sentences of all books. The id of a sentence begins with the name of its book.
pub fn books(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Columns::new(&["id", "split", "line"]);
    for (name, document) in members(&mut files[0], ".rtf")? {
        let book = name.rsplit('/').next().unwrap_or(&name);
        let book = book.trim_end_matches(".rtf");
        let text = cleaned(&rtf::text(&document));
        let long_enough = |sentence: &String| LENGTHS.contains(&sentence.chars().count());
        let sentences = text.split(". ").map(|sentence| format!("{sentence}."));
        for (n, sentence) in sentences.filter(long_enough).enumerate() {
            rows.push([&format!("{book}/{n}"), "train", &sentence]);
        }
    }
    Ok(rows.finish())
}

/// A book as one line: straight quotes, no markup, a space after each end of a sentence, single spaces.
fn cleaned(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !DELETED.contains(*c)) {
        match c {
            '\u{2018}' | '\u{2019}' => clean.push('\''),
            '\u{201c}' | '\u{201d}' => clean.push('"'),
            '\u{2014}' => clean.push_str("--"),
            '.' | '!' | '?' => {
                clean.push(c);
                clean.push(' ');
            }
            c => clean.push(c),
        }
    }
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Misspelt sentences with the right ones: `misspelt =>right` on each line.
pub fn misspelt(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Columns::new(&["id", "split", "source", "target"]);
    for (name, text) in members(&mut files[0], "test_seq_short.txt")? {
        for (n, line) in lines(&text).enumerate() {
            let pair = line.split_once("=>");
            let (misspelt, right) =
                pair.ok_or_else(|| unexpected(&name, n, "there is no `=>` in it"))?;
            rows.push([&format!("test/{n}"), "test", misspelt.trim(), right.trim()]);
        }
    }
    Ok(rows.finish())
}

#[cfg(test)]
mod tests {
    use super::cleaned;

    #[test]
    fn a_book_is_cleaned() {
        let text = "He said:\n\u{201c}It\u{2019}s [so]!\u{201d}  Then_ he\twent.Away";
        assert_eq!(cleaned(text), "He said: \"It's so! \" Then he went. Away");
    }
}
