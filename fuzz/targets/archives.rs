//! Archives never panic, never climb out of their folder, and never give more than they may.
#![no_main]
#![allow(dead_code)]

#[path = "../../stages/kinds/dataset/archive.rs"]
mod archive;
mod failure;

use std::io::{Cursor, Read};

pub use failure::Failure;
use libfuzzer_sys::fuzz_target;

const LIMIT: u64 = 1 << 16;

fn tar(reader: impl Read) {
    let mut total = 0;
    let _ = archive::tar(
        reader,
        "a.tar",
        LIMIT,
        |name| !name.ends_with('-'),
        |name, bytes| {
            assert!(archive::is_plain(name), "{name:?}");
            total += bytes.len() as u64;
            assert!(total <= LIMIT);
            Ok(())
        },
    );
}

fn whole(mut reader: impl Read) {
    let mut left = LIMIT;
    if let Ok(bytes) = archive::read(&mut reader, &mut left, "a", "a") {
        assert_eq!(bytes.len() as u64 + left, LIMIT);
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else {
        return;
    };
    match kind % 8 {
        0 => tar(bytes),
        1 => tar(flate2::bufread::GzDecoder::new(bytes)),
        2 => tar(lzma_rust2::XzReader::new(bytes, false)),
        3 => whole(flate2::bufread::GzDecoder::new(bytes)),
        4 => whole(bzip2::bufread::MultiBzDecoder::new(bytes)),
        5 => whole(lzma_rust2::XzReader::new(bytes, false)),
        _ => {
            if let Ok(member) = archive::zip_member(Cursor::new(bytes), "a.zip", "a", LIMIT) {
                assert!(member.len() as u64 <= LIMIT);
            }
        }
    }
});
