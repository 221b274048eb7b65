//! Users' own files never panic, and every row has all of its cells.
#![no_main]
#![allow(dead_code)]

#[path = "../../stages/kinds/dataset/own/cells.rs"]
mod cells;
mod failure;
#[path = "../../stages/kinds/dataset/text.rs"]
mod text;

/// The readers name each other by their places in the crate.
mod kinds {
    pub(crate) mod dataset {
        pub(crate) use crate::text;
    }
}

pub use failure::Failure;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else {
        return;
    };
    let (_, encoding) = text::NAMES[usize::from(kind / 4) % text::NAMES.len()];
    let Ok(decoded) = text::decode(bytes.to_vec(), encoding, "f") else {
        return assert_eq!(encoding, text::Encoding::Utf8);
    };
    let columns = ["a", "b"];
    let read = match kind % 4 {
        0 => cells::delimited("f", &decoded, b',', &columns),
        1 => cells::delimited("f", &decoded, b'\t', &columns),
        _ => cells::jsonl("f", &decoded, &columns),
    };
    for row in read.iter().flatten() {
        assert_eq!(row.len(), columns.len());
    }
});
