//! What is saved of a search that may be stopped or killed: the rows so far. What they cover follows from them, input by
//! input, so that the next execution of the same key goes on after them and ends with the same bytes.

use serde::{Deserialize, Serialize};

use crate::Watch;
use crate::tables::generated::GeneratedRow;

/// The rows that an earlier execution left, and how often the search has been resumed with this time.
#[derive(Default)]
pub struct Resumed {
    pub times: u32,
    pub rows: Vec<GeneratedRow>,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    /// The type and version of this record.
    record: String,
    /// How often the search had been resumed.
    resumed: u32,
    rows: Vec<GeneratedRow>,
}

const RECORD: &str = "rnn-test-checkpoint/1";

impl Resumed {
    /// What was saved, if each row is of the input in its place; the search starts from the beginning otherwise.
    pub fn read(watch: &dyn Watch, is_of: impl Fn(usize, &GeneratedRow) -> bool) -> Resumed {
        let saved = watch.checkpoint();
        let saved = saved.and_then(|bytes| rmp_serde::from_slice::<Saved>(&bytes).ok());
        let of_these = |saved: &Saved| {
            let mut rows = saved.rows.iter().enumerate();
            saved.record == RECORD && rows.all(|(n, row)| is_of(n, row))
        };
        let Some(saved) = saved.filter(of_these) else {
            return Resumed::default();
        };
        let (times, count) = (saved.resumed + 1, saved.rows.len());
        watch.log(&format!("resumed from a checkpoint after {count} inputs"));
        watch.resumed(times);
        Resumed {
            times,
            rows: saved.rows,
        }
    }
}

/// Saves the rows so far.
pub fn save(watch: &dyn Watch, resumed: u32, rows: &[GeneratedRow]) {
    let saved = Saved {
        record: RECORD.to_owned(),
        resumed,
        rows: rows.to_vec(),
    };
    watch.save_checkpoint(&rmp_serde::to_vec(&saved).expect("plain data"));
}
