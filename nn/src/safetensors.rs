//! Reads the safetensors format from bytes: an 8-byte length, a JSON header, the numbers.
//!
//! F32, F16 and BF16, all returned as `f32`. Every offset is checked; a file that lies about its size is an error.

use crate::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The tensors of a file, by name.
#[derive(Debug)]
pub struct Tensors<'a> {
    entries: BTreeMap<String, Entry>,
    data: &'a [u8],
}

#[derive(Debug, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

fn bad(why: String) -> Error {
    Error::Format {
        what: "safetensors",
        why,
    }
}

impl<'a> Tensors<'a> {
    /// Reads the header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (len, rest) = bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| bad("shorter than 8 bytes".into()))?;
        let len =
            usize::try_from(u64::from_le_bytes(*len)).map_err(|_| bad("header too long".into()))?;
        let (header, data) = rest
            .split_at_checked(len)
            .ok_or_else(|| bad(format!("a header of {len} bytes in {} bytes", rest.len())))?;
        let header: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|e| bad(format!("header: {e}")))?;
        let mut entries = BTreeMap::new();
        for (name, value) in header
            .into_iter()
            .filter(|(name, _)| name != "__metadata__")
        {
            let entry: Entry =
                serde_json::from_value(value).map_err(|e| bad(format!("{name}: {e}")))?;
            entries.insert(name, entry);
        }
        Ok(Tensors { entries, data })
    }

    /// Names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The shape of a tensor.
    pub fn shape(&self, name: &str) -> Result<&[usize]> {
        self.entries
            .get(name)
            .map(|e| e.shape.as_slice())
            .ok_or_else(|| bad(format!("no tensor named {name}")))
    }

    /// The numbers of a tensor.
    pub fn get(&self, name: &str) -> Result<Vec<f32>> {
        let entry = self
            .entries
            .get(name)
            .ok_or_else(|| bad(format!("no tensor named {name}")))?;
        let [from, to] = entry.data_offsets;
        let bytes = self
            .data
            .get(from..to)
            .ok_or_else(|| bad(format!("{name}: bytes {from}..{to} of {}", self.data.len())))?;
        let (size, convert): (usize, fn(&[u8]) -> f32) = match entry.dtype.as_str() {
            "F32" => (4, |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            "BF16" => (2, |b| {
                f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16)
            }),
            "F16" => (2, |b| half(u16::from_le_bytes([b[0], b[1]]))),
            other => {
                return Err(bad(format!(
                    "{name}: type {other}, expected F32, F16 or BF16"
                )));
            }
        };
        let count = entry
            .shape
            .iter()
            .try_fold(1usize, |n, d| n.checked_mul(*d))
            .and_then(|n| n.checked_mul(size));
        if count != Some(bytes.len()) {
            return Err(bad(format!(
                "{name}: shape {:?} of {} in {} bytes",
                entry.shape,
                entry.dtype,
                bytes.len()
            )));
        }
        Ok(bytes.chunks_exact(size).map(convert).collect())
    }
}

/// IEEE half precision to single.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (
        if bits >> 15 == 1 { -1.0 } else { 1.0 },
        i32::from(bits >> 10 & 31),
        f32::from(bits & 1023),
    );
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        e => (1.0 + fraction / 1024.0) * 2f32.powi(e - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [
            &(header.len() as u64).to_le_bytes(),
            header.as_bytes(),
            data,
        ]
        .concat()
    }

    #[test]
    fn all_three_types_are_read() {
        let header = r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]},"c":{"dtype":"F16","shape":[3],"data_offsets":[10,16]}}"#;
        let data = [
            1.5f32.to_le_bytes().as_slice(),
            &(-2.0f32).to_le_bytes(),
            &0x3fc0u16.to_le_bytes(),
            &0x3e00u16.to_le_bytes(),
            &0xc000u16.to_le_bytes(),
            &0x0001u16.to_le_bytes(),
        ]
        .concat();
        let bytes = file(header, &data);
        let t = Tensors::parse(&bytes).unwrap();
        assert_eq!(
            (
                t.get("a").unwrap(),
                t.get("b").unwrap(),
                t.get("c").unwrap()
            ),
            (vec![1.5, -2.0], vec![1.5], vec![1.5, -2.0, 2f32.powi(-24)])
        );
        assert_eq!(t.names().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn files_that_lie_are_errors() {
        let entry = |shape: &str, to: u32, dtype: &str| {
            format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{to}]}}}}"#)
        };
        for header in [
            entry("[2]", 4, "F32"),
            entry("[1]", 400, "F32"),
            entry("[1]", 4, "I64"),
            entry("[9223372036854775807,4]", 4, "F32"),
        ] {
            let bytes = file(&header, &[0; 4]);
            assert!(
                Tensors::parse(&bytes).unwrap().get("a").is_err(),
                "{header}"
            );
        }
        for bytes in [vec![], vec![1; 7], vec![255; 20], file("not json", &[])] {
            assert!(Tensors::parse(&bytes).is_err());
        }
        assert!(Tensors::parse(&file("{}", &[])).unwrap().get("b").is_err());
    }
}
