//! Sets with a row on each line: MR, Yelp's sentences, Penn Treebank, Multi30k, the Gutenberg books.

use std::collections::HashMap;

use arrow::record_batch::RecordBatch;

use super::opened::{bytes, limit, role, split, unexpected, unpacked, whole};
use crate::Failure;
use crate::kinds::dataset::archive;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::{Columns, Texts};
use crate::kinds::dataset::text::{Encoding, decode, lines};

/// Movie-review sentences: a file for each class, which is the file's role.
pub fn mr(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Texts::default();
    for file in &mut files {
        let class = role(file);
        for (n, line) in lines(&whole(file)?).enumerate() {
            rows.push(
                &format!("{class}/{n}"),
                "train",
                Some(i64::from(class == "pos")),
                line,
            );
        }
    }
    Ok(rows.finish())
}

/// Yelp's sentences: a compressed file for each split and class, which is the file's role. Texts that carry both
/// labels, in whatever file, are left out; they still count in the ids.
pub fn yelp_sentences(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut parts = Vec::new();
    for file in &mut files {
        parts.push((split(file), role(file), gunzipped(file)?));
    }
    let mut classes: HashMap<&str, [bool; 2]> = HashMap::new();
    for (_, class, text) in &parts {
        for line in lines(text) {
            classes.entry(line).or_default()[usize::from(*class == "1")] = true;
        }
    }
    let mut rows = Texts::default();
    for (split, class, text) in &parts {
        let unambiguous = |(_, line): &(usize, &str)| classes[line] != [true, true];
        for (n, line) in lines(text).enumerate().filter(unambiguous) {
            let id = format!("{split}/{class}/{n}");
            rows.push(&id, split, Some(i64::from(*class == "1")), line);
        }
    }
    Ok(rows.finish())
}

/// A vocabulary: a word a line, in the order of ids.
pub fn vocabulary(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Columns::new(&["word"]);
    for line in lines(&whole(&mut files[0])?) {
        rows.push([line]);
    }
    Ok(rows.finish())
}

/// The text of a compressed file.
fn gunzipped(file: &mut Opened<'_>) -> Result<String, Failure> {
    let packed = bytes(file)?;
    let text = unpacked(file, flate2::read::MultiGzDecoder::new(&packed[..]))?;
    decode(text, file.entry.encoding, &file.entry.path)
}

const CORPUS: &[&str] = &["id", "split", "line"];

/// The Penn Treebank as three text files.
pub fn ptb(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Columns::new(CORPUS);
    for file in &mut files {
        add_lines(&mut rows, split(file), &whole(file)?);
    }
    Ok(rows.finish())
}

/// The same in a zip.
pub fn ptb_zip(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let file = &mut files[0];
    let mut rows = Columns::new(CORPUS);
    let mut left = limit(file);
    let path = &file.entry.path;
    for (split, member) in PTB.map(|(split, part)| (split, format!("ptb.{part}.txt"))) {
        let bytes = archive::zip_member(&mut file.file, path, &member, left)?;
        left -= bytes.len() as u64;
        add_lines(&mut rows, split, &decode(bytes, Encoding::Utf8, &member)?);
    }
    Ok(rows.finish())
}

/// The same as three triple-quoted strings of a Python file, which is read and never run.
pub fn ptb_python(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let source = whole(&mut files[0])?;
    let mut rows = Columns::new(CORPUS);
    for (split, part) in PTB {
        let start = format!("penn['{part}'] = \"\"\"");
        let string = source
            .split_once(&start)
            .and_then(|(_, rest)| rest.split_once("\"\"\""));
        let (string, _) =
            string.ok_or_else(|| unexpected(&files[0].entry.path, 0, "a string is missing"))?;
        // One of the strings ends with an empty line more than the corpus has.
        add_lines(&mut rows, split, string.trim_end_matches(['\r', '\n']));
    }
    Ok(rows.finish())
}

/// Our names of the splits, and the corpus's own.
const PTB: [(&str, &str); 3] = [("train", "train"), ("dev", "valid"), ("test", "test")];

fn add_lines(rows: &mut Columns, split: &str, text: &str) {
    for (n, line) in lines(text).enumerate() {
        rows.push([&format!("{split}/{n}"), split, line]);
    }
}

/// Books: the id of a line begins with the name of its book, which is the file's role.
pub fn gutenberg(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Columns::new(CORPUS);
    for file in &mut files {
        let book = role(file);
        for (n, line) in lines(&whole(file)?).enumerate() {
            rows.push([&format!("{book}/{n}"), "train", line]);
        }
    }
    Ok(rows.finish())
}

/// Sentence pairs in two compressed files, one per language; English comes first.
pub fn multi30k(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Columns::new(&["id", "split", "source", "target"]);
    for pair in files.chunks_mut(2) {
        let [english, german] = pair else {
            return Err(Failure::new("a file in the catalogue has no translation"));
        };
        let (split, path) = (split(english), &english.entry.path);
        let [english, german] = [english, german].map(gunzipped);
        let (english, german) = (english?, german?);
        let (english, german): (Vec<_>, Vec<_>) =
            (lines(&english).collect(), lines(&german).collect());
        if english.len() != german.len() {
            return Err(unexpected(
                path,
                english.len(),
                "its translation has a different number of lines",
            ));
        }
        for (n, (source, target)) in english.iter().zip(german).enumerate() {
            rows.push([&format!("{split}/{n}"), split, source, target]);
        }
    }
    Ok(rows.finish())
}
