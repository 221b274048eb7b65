//! GloVe vectors: a word and its numbers on each line, in the order of frequency.

use std::io::{BufReader, Read};

use arrow::record_batch::RecordBatch;
use rayon::prelude::*;

use super::{Opened, limit, unexpected, unpacked};
use crate::Failure;
use crate::dataset::archive;
use crate::dataset::table::Vectors;
use crate::dataset::text::{decode, lines};

/// From a bz2-compressed text.
pub fn bz2(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut packed = Vec::new();
    let file = &mut files[0];
    file.file
        .read_to_end(&mut packed)
        .map_err(|error| unexpected(&file.entry.path, 0, &error.to_string()))?;
    let bytes = unpacked(file, bzip2::read::MultiBzDecoder::new(&packed[..]))?;
    parse(bytes, file)
}

/// From the member for 50 numbers of the original zip.
pub fn zip(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let file = &mut files[0];
    let limit = limit(file);
    let bytes = archive::zip_member(
        BufReader::new(&mut file.file),
        &file.entry.path,
        "glove.6B.50d.txt",
        limit,
    )?;
    parse(bytes, file)
}

fn parse(bytes: Vec<u8>, file: &Opened<'_>) -> Result<RecordBatch, Failure> {
    const DIMENSION: usize = 50;
    let path = &file.entry.path;
    let text = decode(bytes, file.entry.encoding, path)?;
    let lines: Vec<&str> = lines(&text).collect();
    // Lines are parsed side by side, and put together in their order.
    let parsed: Vec<(&str, [f32; DIMENSION])> = lines
        .par_iter()
        .enumerate()
        .map(|(n, line)| {
            let mut parts = line.split(' ');
            let word = parts.next().unwrap_or_default();
            let mut v = [0.0; DIMENSION];
            let mut filled = 0;
            for part in parts {
                let number = part
                    .parse()
                    .map_err(|_| unexpected(path, n, &format!("`{part}` is no number")))?;
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
    let mut rows = Vectors::new(DIMENSION);
    parsed.iter().for_each(|(word, v)| rows.push(word, v));
    Ok(rows.finish())
}
