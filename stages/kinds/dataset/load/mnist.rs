//! MNIST: images as 28 steps of 28 pixels, from the idx files.

use arrow::record_batch::RecordBatch;

use super::opened::{bytes, role, split, unexpected, unpacked};
use crate::Failure;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Sequences;

const SIDE: usize = 28;

/// From plain files.
pub fn mnist(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let contents = files.iter_mut().map(bytes).collect::<Result<Vec<_>, _>>()?;
    images(&files, &contents)
}

/// From the compressed files of the original.
pub fn mnist_gz(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let unzip = |file: &mut Opened<'_>| {
        let packed = bytes(file)?;
        unpacked(file, flate2::read::GzDecoder::new(&packed[..]))
    };
    let contents = files.iter_mut().map(unzip).collect::<Result<Vec<_>, _>>()?;
    images(&files, &contents)
}

/// Each split has a file of images, then one of labels. Pixels are scaled to 0..1.
fn images(files: &[Opened<'_>], contents: &[Vec<u8>]) -> Result<RecordBatch, Failure> {
    let mut rows = Sequences::new([SIDE, SIDE]);
    for (files, contents) in files.chunks(2).zip(contents.chunks(2)) {
        let ([images, labels], [pixels, classes]) = (files, contents) else {
            return Err(Failure::new("images in the catalogue have no labels"));
        };
        let (split, path) = (split(images), &images.entry.path);
        if role(images) != "images" || role(labels) != "labels" {
            return Err(unexpected(path, 0, "images come before labels"));
        }
        let pixels = idx(pixels, &[0, 0, 8, 3], 16, path)?;
        let classes = idx(classes, &[0, 0, 8, 1], 8, &labels.entry.path)?;
        if pixels.len() != classes.len() * SIDE * SIDE {
            return Err(unexpected(
                path,
                classes.len(),
                "the numbers of images and labels differ",
            ));
        }
        for (n, (image, class)) in pixels.chunks(SIDE * SIDE).zip(classes).enumerate() {
            let image: Vec<f32> = image
                .iter()
                .map(|pixel| f32::from(*pixel) / 255.0)
                .collect();
            rows.push(&format!("{split}/{n}"), split, i64::from(*class), &image);
        }
    }
    Ok(rows.finish())
}

/// The values of an idx file of bytes, after a header that begins so and is so long.
fn idx<'a>(bytes: &'a [u8], magic: &[u8], header: usize, path: &str) -> Result<&'a [u8], Failure> {
    match bytes.starts_with(magic) && bytes.len() >= header {
        true => Ok(&bytes[header..]),
        false => Err(unexpected(path, 0, "not an idx file of bytes")),
    }
}
