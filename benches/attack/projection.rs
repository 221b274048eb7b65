//! Our side of the projection: the best of 400,000 words for batches of directions, and what
//! reading the table once takes.

use std::path::Path;
use std::time::Instant;

use ndarray::ArrayView2;
use nn::Stream;
use nn::numeric::Dictionary;
use rayon::prelude::*;
use serde_json::{Map, Value as Json, json};

use crate::data::floats;
use crate::kinds::timed;

/// Numbers in a vector.
pub const DIM: usize = 50;
/// Directions in a batch.
pub const BATCHES: [usize; 5] = [1, 4, 8, 16, 32];
/// How often each is done in a process.
const REPEATS: usize = 15;

/// Directions of signs, as the attack has them. The peers read the same.
pub fn directions() -> Vec<f32> {
    let stream = Stream::new(1, "directions");
    let sign = |i: usize| {
        if stream.below(i as u64, 2) == 0 {
            1.0
        } else {
            -1.0
        }
    };
    (0..BATCHES[BATCHES.len() - 1] * DIM).map(sign).collect()
}

/// Milliseconds, median and best, of each batch and of reading the table once.
pub fn best(dir: &Path) -> Result<Json, String> {
    let table = floats(dir, "vectors.f32")?;
    let directions = floats(dir, "directions.f32")?;
    let start = Instant::now();
    let dictionary = Dictionary::new(view(&table)?).map_err(|error| error.to_string())?;
    let packed = start.elapsed().as_secs_f64() * 1e3;
    let mut times: Vec<(String, Vec<f64>)> = vec![("read".to_owned(), Vec::new())];
    times.extend(BATCHES.map(|batch| (batch.to_string(), Vec::new())));
    let mut rows: Vec<u32> = Vec::new();
    timed(|| {
        for _ in 0..REPEATS {
            let start = Instant::now();
            std::hint::black_box(read(&table));
            times[0].1.push(start.elapsed().as_secs_f64() * 1e3);
            for (batch, (_, times)) in BATCHES.into_iter().zip(&mut times[1..]) {
                let skip = vec![&[][..]; batch];
                let start = Instant::now();
                let found = dictionary.best(view(&directions[..batch * DIM])?, &skip);
                times.push(start.elapsed().as_secs_f64() * 1e3);
                let found = found.map_err(|error| error.to_string())?;
                rows = found.into_iter().flatten().map(|best| best.row).collect();
            }
        }
        let mut made = Map::new();
        for (name, times) in &mut times {
            times.sort_by(f64::total_cmp);
            made.insert(name.clone(), json!([times[REPEATS / 2], times[0]]));
        }
        made.insert("packed".to_owned(), json!([packed, packed]));
        made.insert("rows".to_owned(), json!(rows));
        Ok(Json::Object(made))
    })
}

/// The sum of all numbers by all threads: as little work as reading can be.
fn read(table: &[f32]) -> f32 {
    let part = |part: &[f32]| {
        let mut lanes = [0.0f32; 64];
        let (chunks, rest) = part.as_chunks::<64>();
        for chunk in chunks {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane += x;
            }
        }
        lanes.iter().chain(rest).sum::<f32>()
    };
    table.par_chunks(1 << 16).map(part).sum()
}

fn view(rows: &[f32]) -> Result<ArrayView2<'_, f32>, String> {
    ArrayView2::from_shape((rows.len() / DIM, DIM), rows).map_err(|error| error.to_string())
}
