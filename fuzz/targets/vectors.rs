//! Files of vectors never panic, and every word has a whole vector.
#![no_main]
#![allow(dead_code)]

mod failure;
#[path = "../../stages/kinds/embed/formats.rs"]
mod formats;

/// As much of the tables as the readers use.
mod tables {
    pub mod vectors {
        #[derive(Clone, Debug, PartialEq)]
        pub struct Matrix {
            pub dim: usize,
            pub values: Vec<f32>,
        }
    }
}

pub use failure::Failure;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else {
        return;
    };
    if kind % 2 == 0 {
        if let Ok((words, matrix)) = formats::text("v.txt", bytes) {
            assert_eq!(words.len() * matrix.dim, matrix.values.len());
        }
    } else if let Ok(matrix) = formats::safetensors("v.safetensors", bytes, None) {
        assert!(matrix.dim == 0 || matrix.values.len() % matrix.dim == 0);
    }
});
