//! Word vectors in other programs' files: GloVe's text, word2vec's text, safetensors.
//! Knows nothing of vocabularies.

use rayon::prelude::*;
use safetensors::{Dtype, SafeTensors};

use crate::Failure;
use crate::tables::vectors::Matrix;

/// Words and their vectors from text: a word and its numbers a line, and perhaps a first line
/// that says how many words and numbers there are (word2vec's form).
pub fn text<'a>(name: &str, bytes: &'a [u8]) -> Result<(Vec<&'a str>, Matrix), Failure> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Failure::new(format!("{name} is not UTF-8 at byte {at}")).at("file")
    })?;
    // A byte-order mark is not part of the first word.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().next().unwrap_or_default();
    let header: Vec<&str> = first.split_whitespace().collect();
    let counted = match header[..] {
        [words, dim] => words.parse::<usize>().ok().zip(dim.parse::<usize>().ok()),
        _ => None,
    };
    let body = match counted {
        Some(_) => text.split_once('\n').map_or("", |(_, rest)| rest),
        None => text,
    };
    let dim = match counted {
        Some((_, dim)) => dim,
        None => header.len().saturating_sub(1),
    };
    if dim == 0 {
        return Err(
            Failure::new(format!("{name}: line 1 is not a word followed by numbers"))
                .help("each line is a word and its vector, separated by spaces")
                .at("file"),
        );
    }
    // A header is not trusted before a line confirms it.
    let second = body.lines().next().unwrap_or_default();
    let fields = second.split_whitespace().count();
    if counted.is_some() && fields <= dim {
        return Err(Failure::new(format!(
            "{name}: line 1 says {dim} numbers per word, and line 2 has {}",
            fields.saturating_sub(1)
        ))
        .help("the file is truncated, or line 1 belongs to another file")
        .at("file"));
    }
    let before = usize::from(counted.is_some());
    let parts: Vec<&str> = pieces(body);
    // Room for one row per line, which the parts fill in parallel.
    let counts: Vec<usize> = parts.par_iter().map(|part| part.lines().count()).collect();
    let mut values = vec![0.0; counts.iter().sum::<usize>() * dim];
    let mut rooms = Vec::with_capacity(parts.len());
    let mut rest = &mut values[..];
    for count in &counts {
        let (room, more) = rest.split_at_mut(count * dim);
        rooms.push(room);
        rest = more;
    }
    let parsed: Vec<Result<Part<'_>, Wrong>> = parts
        .par_iter()
        .zip(rooms)
        .map(|(part, room)| parse(part, dim, room))
        .collect();
    let (mut words, mut lines, mut filled) = (Vec::with_capacity(counts.len()), before, 0);
    for (part, count) in parsed.into_iter().zip(&counts) {
        let part = part.map_err(|wrong| {
            let line = lines + wrong.line + 1;
            Failure::new(format!("{name}: line {line} {}", wrong.what))
                .help(format!(
                    "every line is a word and {dim} numbers, separated by spaces"
                ))
                .at("file")
        })?;
        // Empty lines leave room at the end of their part.
        let start = (lines - before) * dim;
        values.copy_within(start..start + part.words.len() * dim, filled);
        filled += part.words.len() * dim;
        lines += count;
        words.extend(part.words);
    }
    values.truncate(filled);
    if let Some((expected, _)) = counted
        && expected != words.len()
    {
        return Err(Failure::new(format!(
            "{name}: line 1 says {expected} words, and there are {}",
            words.len()
        ))
        .help(match expected > words.len() {
            true => "the file is truncated: download it again",
            false => "correct the number in line 1, or delete that line",
        })
        .at("file"));
    }
    Ok((words, Matrix { dim, values }))
}

/// Whole lines, about a megabyte at a time.
fn pieces(mut text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let bytes = text.as_bytes();
        let from = bytes.len().min(1 << 20);
        let end = bytes[from..].iter().position(|b| *b == b'\n');
        let (piece, rest) = text.split_at(end.map_or(bytes.len(), |end| from + end + 1));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

struct Part<'a> {
    words: Vec<&'a str>,
}

struct Wrong {
    line: usize,
    what: String,
}

/// Words, and their numbers into `room`, which has a row for each line.
fn parse<'a>(text: &'a str, dim: usize, room: &mut [f32]) -> Result<Part<'a>, Wrong> {
    let mut words = Vec::with_capacity(room.len() / dim);
    for (line, row) in text.lines().enumerate() {
        let row = row.trim_end_matches([' ', '\r']);
        if row.is_empty() {
            continue;
        }
        let start = words.len() * dim;
        let into = &mut room[start..start + dim];
        let word = match one_word(row, into) {
            Some(word) => word,
            None => several_words(row, into).map_err(|what| Wrong { line, what })?,
        };
        words.push(word);
    }
    Ok(Part { words })
}

/// A line in which a space is the end of the word, which nearly all are; or nothing.
fn one_word<'a>(row: &'a str, into: &mut [f32]) -> Option<&'a str> {
    let (word, mut rest) = row.split_at_checked(row.bytes().position(|byte| byte == b' ')?)?;
    for number in into {
        let field = rest.strip_prefix(' ')?;
        let end = field.bytes().position(|byte| byte == b' ');
        let (field, more) = field.split_at(end.unwrap_or(field.len()));
        *number = field
            .parse()
            .ok()
            .filter(|number: &f32| number.is_finite())?;
        rest = more;
    }
    rest.is_empty().then_some(word)
}

/// The numbers from the right, because some words of large collections have spaces inside.
fn several_words<'a>(row: &'a str, into: &mut [f32]) -> Result<&'a str, String> {
    let dim = into.len();
    let mut fields = row.rsplitn(dim + 1, ' ');
    for (number, field) in into.iter_mut().rev().zip(fields.by_ref()) {
        let parsed = field.parse();
        *number = parsed.map_err(|_| format!("has `{field}` where a number should be"))?;
        if !number.is_finite() {
            return Err(format!("has `{field}`, which is not finite"));
        }
    }
    let word = fields
        .next()
        .ok_or_else(|| format!("has fewer than {dim} numbers"))?;
    // No word of a known collection ends in a number of its own: this line is longer than the first one.
    let last = word.rsplit_once(' ').map(|(_, last)| last.parse::<f32>());
    match last {
        Some(Ok(_)) => Err(format!("has more than {dim} numbers")),
        _ => Ok(word),
    }
}

/// A matrix from a safetensors file: the tensor of that name, or the only one with rows.
pub fn safetensors(name: &str, bytes: &[u8], tensor: Option<&str>) -> Result<Matrix, Failure> {
    let wrong = |what: String| Failure::new(format!("{name}: {what}")).at("file");
    let file = SafeTensors::deserialize(bytes).map_err(|error| wrong(error.to_string()))?;
    let mut matrices: Vec<String> = file
        .iter()
        .filter(|(_, view)| view.shape().len() == 2)
        .map(|(name, _)| name.to_owned())
        .collect();
    matrices.sort_unstable();
    let chosen = match (tensor, &matrices[..]) {
        (Some(tensor), _) => tensor,
        (None, [only]) => only,
        (None, _) => {
            return Err(wrong(format!("it has {} matrices", matrices.len()))
                .help(format!("name one as `tensor`: {}", matrices.join(", "))));
        }
    };
    let view = file.tensor(chosen).map_err(|_| {
        wrong(format!("it has no tensor `{chosen}`"))
            .help(format!("matrices: {}", matrices.join(", ")))
            .at("tensor")
    })?;
    let &[_, dim] = view.shape() else {
        return Err(wrong(format!("`{chosen}` is not a matrix")).at("tensor"));
    };
    let data = view.data();
    let values: Vec<f32> = match view.dtype() {
        Dtype::F32 => data
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().expect("four bytes")))
            .collect(),
        Dtype::F64 => data
            .chunks_exact(8)
            .map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes")) as f32)
            .collect(),
        Dtype::BF16 => data
            .chunks_exact(2)
            .map(|b| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16))
            .collect(),
        Dtype::F16 => data
            .chunks_exact(2)
            .map(|b| half(u16::from_le_bytes([b[0], b[1]])))
            .collect(),
        other => {
            return Err(wrong(format!("`{chosen}` holds {other:?}"))
                .help("F32, F64, F16 and BF16 can be read: convert it")
                .at("tensor"));
        }
    };
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        let (row, column) = (at / dim, at % dim);
        let what = format!(
            "`{chosen}` holds {} in row {row}, column {column}",
            values[at]
        );
        return Err(wrong(what)
            .help("vectors must be finite 32-bit floats")
            .at("tensor"));
    }
    Ok(Matrix { dim, values })
}

/// A number of sixteen bits: one for the sign, five for the exponent, ten after the point.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 0x1f, bits & 0x3ff);
    let size = match exponent {
        // Without the leading one, in steps of 2^-24.
        0 => f32::from(fraction) / (1_u32 << 24) as f32,
        0x1f if fraction == 0 => f32::INFINITY,
        0x1f => f32::NAN,
        _ => f32::from_bits((u32::from(exponent) + 112) << 23 | u32::from(fraction) << 13),
    };
    if sign == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_text_forms_by_hand() {
        let glove = "the 0.5 -1e-3\n. . 1 2\nnew york 3 4\n";
        let (words, matrix) = text("g.txt", glove.as_bytes()).unwrap();
        assert_eq!(words, ["the", ". .", "new york"]);
        assert_eq!(matrix.values, [0.5, -0.001, 1.0, 2.0, 3.0, 4.0]);
        let word2vec = "2 3\na 1 2 3 \r\nb 4 5 6\n";
        let (words, matrix) = text("w.txt", word2vec.as_bytes()).unwrap();
        assert_eq!((words.len(), matrix.dim), (2, 3));
        assert_eq!(matrix.row(1), [4.0, 5.0, 6.0]);
        // Empty lines leave no row behind, in whichever part they are.
        let mut long = "a 1 2\n\n".repeat(200_000);
        long.push_str("b 3 4\n");
        let (words, matrix) = text("l.txt", long.as_bytes()).unwrap();
        assert_eq!((words.len(), matrix.values.len()), (200_001, 400_002));
        assert_eq!(
            (matrix.row(199_999), matrix.row(200_000)),
            (&[1.0, 2.0][..], &[3.0, 4.0][..])
        );
    }

    #[test]
    fn every_number_of_sixteen_bits_by_its_formula() {
        for bits in 0..=u16::MAX {
            let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
            let size = match exponent {
                0 => fraction / 1024.0 * 2_f64.powi(-14),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
            };
            let expected = if bits >> 15 == 1 { -size } else { size } as f32;
            let found = half(bits);
            let same = found.to_bits() == expected.to_bits();
            assert!(same || found.is_nan() && expected.is_nan(), "{bits:#06x}");
        }
    }

    #[test]
    fn matrices_of_every_kind_of_float() {
        use safetensors::tensor::{TensorView, serialize};
        let numbers = [1.5_f32, -0.25, 0.0, 2.0];
        let bytes = |one: &dyn Fn(f32) -> Vec<u8>| numbers.iter().flat_map(|x| one(*x)).collect();
        let halves = [0x3e00_u16, 0xb400, 0x0000, 0x4000];
        let cases: [(Dtype, Vec<u8>); 4] = [
            (Dtype::F32, bytes(&|x| x.to_le_bytes().to_vec())),
            (Dtype::F64, bytes(&|x| f64::from(x).to_le_bytes().to_vec())),
            (
                Dtype::BF16,
                bytes(&|x| x.to_bits().to_le_bytes()[2..].to_vec()),
            ),
            (
                Dtype::F16,
                halves.iter().flat_map(|h| h.to_le_bytes()).collect(),
            ),
        ];
        for (dtype, data) in &cases {
            let view = TensorView::new(*dtype, vec![2, 2], data).unwrap();
            let file = serialize([("v", view)], None).unwrap();
            let matrix = safetensors("v.safetensors", &file, None).unwrap();
            assert_eq!(
                (matrix.dim, &matrix.values[..]),
                (2, &numbers[..]),
                "{dtype:?}"
            );
        }
    }

    #[test]
    fn mistakes_name_their_line() {
        let message = |bytes: &[u8]| text("v.txt", bytes).unwrap_err().message;
        assert_eq!(
            message(b"a 1 2\nb 1 x\n"),
            "v.txt: line 2 has `x` where a number should be"
        );
        assert_eq!(
            message(b"a 1 2\n\nb 1\n"),
            "v.txt: line 3 has `b` where a number should be"
        );
        assert_eq!(
            message(b"3 2\na 1 2\n"),
            "v.txt: line 1 says 3 words, and there are 1"
        );
        assert_eq!(message(b"a 1\n\xff"), "v.txt is not UTF-8 at byte 4");
        assert!(message(b"").contains("line 1"));
        assert!(safetensors("s", b"nonsense", None).is_err());
        // A mistake far into a long file is counted across the pieces.
        let mut long = "word 1 2 3 4 5 6 7 8\n".repeat(150_000);
        long.push_str("bad 1 2\n");
        assert!(message(long.as_bytes()).starts_with("v.txt: line 150001 "));
    }
}
