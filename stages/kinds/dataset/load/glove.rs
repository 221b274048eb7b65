//! GloVe vectors: a word and its numbers on each line, in the order of frequency.

use std::io::{BufReader, Read};

use arrow::record_batch::RecordBatch;
use rayon::prelude::*;

use super::ahead::ahead;
use super::opened::{limit, unexpected};
use crate::Failure;
use crate::kinds::dataset::archive;
use crate::kinds::dataset::catalogue::File;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Vectors;
use crate::kinds::dataset::text::{decode_at, lines};

const DIMENSION: usize = 50;
/// Bytes of text that are parsed together: much less than all of it, which need not be in memory at once.
const PIECE: usize = 2 << 20;

/// From a bz2-compressed text.
pub fn bz2(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let opened = &mut files[0];
    let packed = BufReader::with_capacity(1 << 18, &mut opened.file);
    let decoder = bzip2::bufread::MultiBzDecoder::new(packed);
    ahead(decoder, |text| parse(text, opened.entry))
}

/// From the 50-dimensional member of the original zip.
pub fn zip(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let file = &mut files[0];
    let limit = limit(file);
    let bytes = archive::zip_member(
        BufReader::new(&mut file.file),
        &file.entry.path,
        "glove.6B.50d.txt",
        limit,
    )?;
    parse(&mut &bytes[..], file.entry)
}

/// Reads text a piece of whole lines at a time. More than the catalogue says is refused.
fn parse(text: &mut impl Read, file: &File) -> Result<RecordBatch, Failure> {
    let path = &file.path;
    let mut rows = Vectors::new(DIMENSION);
    let mut left = file.unpacked.unwrap_or(file.size);
    let (mut piece, mut offset, mut line) = (Vec::with_capacity(PIECE), 0, 0);
    loop {
        let want = (PIECE - piece.len().min(PIECE)).max(1) as u64;
        let more = archive::read(&mut text.by_ref().take(want), &mut left, path, path)?;
        let last = more.is_empty();
        piece.extend_from_slice(&more);
        let whole = match piece.iter().rposition(|byte| *byte == b'\n') {
            _ if last => piece.len(),
            Some(end) => end + 1,
            None => 0,
        };
        let rest = piece.split_off(whole);
        let text = decode_at(
            std::mem::replace(&mut piece, rest),
            file.encoding,
            path,
            offset,
        )?;
        offset += whole as u64;
        line += add(&text, path, line, &mut rows)?;
        if last {
            return Ok(rows.finish());
        }
    }
}

/// Adds the lines of a text; `before` of them came earlier. Says how many there were.
fn add(text: &str, path: &str, before: usize, rows: &mut Vectors) -> Result<usize, Failure> {
    let lines: Vec<&str> = lines(text).collect();
    // Lines are parsed in parallel, and put together in their order.
    let parsed: Vec<(&str, [f32; DIMENSION])> = lines
        .par_iter()
        .enumerate()
        .map(|(n, line)| {
            let n = before + n;
            let mut parts = line.split(' ');
            let word = parts.next().unwrap_or_default();
            let mut v = [0.0; DIMENSION];
            let mut filled = 0;
            for part in parts {
                let number = part
                    .parse()
                    .map_err(|_| unexpected(path, n, &format!("`{part}` is not a number")))?;
                *v.get_mut(filled)
                    .ok_or_else(|| unexpected(path, n, "too many numbers"))? = number;
                filled += 1;
            }
            match filled {
                DIMENSION => Ok((word, v)),
                _ => Err(unexpected(path, n, "too few numbers")),
            }
        })
        .collect::<Result<_, Failure>>()?;
    parsed.iter().for_each(|(word, v)| rows.push(word, v));
    Ok(lines.len())
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;

    use super::*;

    fn file(unpacked: usize) -> File {
        File {
            path: "v.txt".to_owned(),
            sha256: String::new(),
            size: 1,
            unpacked: Some(unpacked as u64),
            https: None,
            member: None,
            split: None,
            role: None,
            encoding: Default::default(),
        }
    }

    /// Gives a few bytes at a time, as decoders may.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(buffer.len()).min(4_999);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn lines_across_pieces_are_whole_and_mistakes_have_their_number() {
        let numbers = " 0.25".repeat(DIMENSION);
        let text: String = (0..20_000).map(|n| format!("wörd{n}{numbers}\n")).collect();
        assert!(text.len() > 2 * PIECE);
        let read = |text: &str| parse(&mut Slow(text.as_bytes()), &file(text.len()));
        let table = read(&text).unwrap();
        assert_eq!(table.num_rows(), 20_000);
        assert_eq!(table["word"].as_string::<i32>().value(19_999), "wörd19999");
        let same = read(text.trim_end()).unwrap();
        assert_eq!(table, same, "a last line need not be ended");
        let wrong = read(&format!("{text}bad 1 2\n")).unwrap_err().message;
        assert_eq!(wrong, "v.txt, row 20000: too few numbers");
        let more = parse(&mut text.as_bytes(), &file(text.len() - 1)).unwrap_err();
        assert_eq!(
            more.message,
            "v.txt contains `v.txt`, which is larger than expected"
        );
    }
}
