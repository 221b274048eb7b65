//! Lists of numbers as grey pictures: PNG, in the page itself.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use crate::results::columns::short;

/// A picture with its name.
#[derive(Debug, Serialize)]
pub struct Picture {
    /// What it shows.
    pub name: String,
    /// `data:image/png;base64,…`
    pub source: String,
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
}

/// Draws numbers row by row, `width` in each, black where they are `low`, white where `high`.
/// Nothing if they do not fill rows.
pub fn picture(name: &str, numbers: &[f64], width: usize, low: f64, high: f64) -> Option<Picture> {
    if width == 0 || numbers.is_empty() || !numbers.len().is_multiple_of(width) {
        return None;
    }
    let height = numbers.len() / width;
    let range = if high > low { high - low } else { 1.0 };
    // Not a number is black, and so is what is too small.
    let grey = |number: &f64| ((number - low) / range * 255.0).clamp(0.0, 255.0).round() as u8;
    let pixels: Vec<u8> = numbers.iter().map(grey).collect();
    let mut bytes = Vec::new();
    let (columns, rows) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    let mut encoder = png::Encoder::new(&mut bytes, columns, rows);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(&pixels).ok()?;
    writer.finish().ok()?;
    Some(Picture {
        name: name.to_owned(),
        source: format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&bytes)),
        width,
        height,
    })
}

/// What a picture of a change is called: grey is none, black and white are this much.
pub fn change(most: f64) -> String {
    format!("change (±{})", short(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_reads_back_as_its_numbers() {
        let made = picture("x", &[0.0, 1.0, 0.5, f64::NAN, 2.0, -1.0], 3, 0.0, 1.0).unwrap();
        assert_eq!((made.width, made.height), (3, 2));
        let bytes = made.source.strip_prefix("data:image/png;base64,").unwrap();
        let bytes = BASE64_STANDARD.decode(bytes).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, [0, 255, 128, 0, 255, 0]);
        assert!(
            picture("x", &[1.0; 5], 3, 0.0, 1.0).is_none(),
            "5 do not fill rows of 3"
        );
    }
}
