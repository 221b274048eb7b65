//! What both sides read: IMDb as token ids, GloVe, an LSTM after one epoch, and the order of batches.
//!
//! Tables for us; plain little-endian numbers for whoever else.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use nn::batch::{Example, Sequence, Target};
use serde_json::{Value as Json, json};
use stages::{DataHome, Outputs};
use store::Value;

use crate::kinds::{here, named, run, text, timed};
use crate::projection::directions;

/// Tokens of a review that are read.
pub const LENGTH: i64 = 250;
/// Reviews in a step of training.
pub const BATCH: usize = 24;
/// Hidden units.
pub const UNITS: i64 = 64;
/// Steps that are timed, after a tenth of them that are not.
pub const STEPS: usize = 100;
/// Reviews that are drawn to be attacked.
pub const DRAWN: i64 = 512;

/// Makes all files, unless they are there.
pub fn make(home: &DataHome, dir: &Path) -> Result<Json, String> {
    // Written last, so that half a folder is never taken for a whole one.
    let done = dir.join("done");
    if done.exists() {
        return timed(|| Ok(json!("there")));
    }
    here(home, "imdb")?;
    here(home, "glove-6b-50d")?;
    std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
    timed(|| {
        let (imdb, glove) = (named(home, "imdb")?, named(home, "glove-6b-50d")?);
        let kind = |kind: &str, inputs: &[(&str, &RecordBatch)], params: &[(&str, Value)]| {
            run(kind, inputs, params, BTreeMap::new(), home)
        };
        let params = [("scheme", text("words")), ("max_len", Value::Int(LENGTH))];
        let tokens = kind("tokenize", &[("rows", &imdb), ("vocab", &glove)], &params)?;
        let (rows, vocab) = (&tokens["tokens"], &tokens["vocab"]);
        let params = ["source", "unknown", "missing"].into_iter();
        let params: Vec<_> = params
            .zip(["vectors", "unk", "unknown"].map(text))
            .collect();
        let made = kind("embed", &[("vocab", vocab), ("vectors", &glove)], &params)?;
        let vectors = &made["vectors"];
        let params = [
            ("model", text("lstm")),
            ("units", Value::Int(UNITS)),
            ("dropout", Value::Float(0.25)),
            ("batch", Value::Int(BATCH as i64)),
            ("balanced", Value::Bool(true)),
            ("epochs", Value::Int(1)),
        ];
        let lstm = kind("train", &[("rows", rows), ("vectors", vectors)], &params)?;
        let sway = kind(
            "train",
            &[("rows", rows)],
            &[("model", text("naive-bayes"))],
        )?;
        let tables = [
            ("rows", rows),
            ("vocab", vocab),
            ("vectors", vectors),
            ("victim", &lstm["weights"]),
            ("bayes", &sway["weights"]),
        ];
        for (name, table) in tables {
            let bytes = store::encode(table).map_err(|error| error.to_string())?;
            write(dir, &format!("{name}.parquet"), &bytes)?;
        }
        let params = [("attack", text("none")), ("items", Value::Int(DRAWN))];
        let inputs = [
            ("victim", &lstm["weights"]),
            ("rows", rows),
            ("vectors", vectors),
        ];
        plain(
            dir,
            rows,
            vectors,
            &lstm,
            &kind("attack", &inputs, &params)?,
        )?;
        write(dir, "done", b"")?;
        Ok(json!({ "rows": rows.num_rows(), "words": vectors.num_rows() }))
    })
}

/// The same for other languages.
fn plain(
    dir: &Path,
    rows: &RecordBatch,
    vectors: &RecordBatch,
    lstm: &Outputs,
    drawn: &Outputs,
) -> Result<(), String> {
    let lists = rows["ids"].as_list::<i32>();
    let ids = lists.values().as_primitive::<Int32Type>().values();
    let labels = rows["label"].as_primitive::<Int64Type>().values();
    let splits = rows["split"].as_string::<i32>();
    let names = rows["id"].as_string::<i32>();
    let whole = |name: &str, numbers: &mut dyn Iterator<Item = u32>| {
        let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
        write(dir, name, &bytes)
    };
    whole("ids.u32", &mut ids.iter().map(|id| *id as u32))?;
    whole(
        "ends.u32",
        &mut lists.value_offsets().iter().map(|end| *end as u32),
    )?;
    whole("labels.u32", &mut labels.iter().map(|label| *label as u32))?;
    let train = |split: Option<&str>| u32::from(split == Some("train"));
    whole("train.u32", &mut splits.iter().map(train))?;
    let places: BTreeMap<&str, u32> = names.iter().flatten().zip(0..).collect();
    let attacked = drawn["examples"]["id"].as_string::<i32>();
    whole(
        "drawn.u32",
        &mut attacked.iter().flatten().map(|id| places[id]),
    )?;
    let floats = |name: &str, numbers: &[f32]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        write(dir, name, &bytes)
    };
    let v = vectors["v"].as_fixed_size_list().values();
    floats("vectors.f32", v.as_primitive::<Float32Type>().values())?;
    floats("directions.f32", &directions())?;
    let weights = &lstm["weights"];
    let (names, values) = (
        weights["name"].as_string::<i32>(),
        weights["values"].as_list::<i32>(),
    );
    for (name, values) in names.iter().flatten().zip(values.iter().flatten()) {
        floats(
            &format!("{name}.f32"),
            values.as_primitive::<Float32Type>().values(),
        )?;
    }
    let texts = Texts::open(dir)?;
    let train = texts.examples(true);
    let classes: Vec<u32> = train.iter().map(class).collect();
    let lengths: Vec<usize> = train.iter().map(|e| e.input.len()).collect();
    let order = nn::training::Classes::new(&classes, BATCH).map_err(|error| error.to_string())?;
    let order = order.batches(&lengths, 20, 1, 0);
    let steps = order.iter().take(STEPS + STEPS / 10).flatten();
    whole("batches.u32", &mut steps.map(|row| *row as u32))
}

/// Writes a file.
pub fn write(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(dir.join(name), bytes).map_err(|error| format!("{name}: {error}"))
}

/// The class of an example.
pub fn class(example: &Example) -> u32 {
    match example.target {
        Target::Class(class) => class,
        _ => unreachable!("all reviews have a label"),
    }
}

/// A table that [`make`] wrote.
pub fn table(dir: &Path, name: &str) -> Result<RecordBatch, String> {
    let bytes = std::fs::read(dir.join(format!("{name}.parquet")));
    let bytes = bytes.map_err(|error| error.to_string())?;
    store::decode(bytes.into()).map_err(|error| error.to_string())
}

/// Whole numbers that [`make`] wrote.
pub fn whole(dir: &Path, name: &str) -> Result<Vec<u32>, String> {
    let bytes = std::fs::read(dir.join(name)).map_err(|error| format!("{name}: {error}"))?;
    let (numbers, _) = bytes.as_chunks::<4>();
    Ok(numbers.iter().map(|n| u32::from_le_bytes(*n)).collect())
}

/// Floats that [`make`] wrote.
pub fn floats(dir: &Path, name: &str) -> Result<Vec<f32>, String> {
    let numbers = whole(dir, name)?;
    Ok(numbers.into_iter().map(f32::from_bits).collect())
}

/// All reviews.
pub struct Texts {
    ids: Vec<u32>,
    ends: Vec<u32>,
    labels: Vec<u32>,
    train: Vec<u32>,
}

impl Texts {
    /// From the files.
    pub fn open(dir: &Path) -> Result<Texts, String> {
        Ok(Texts {
            ids: whole(dir, "ids.u32")?,
            ends: whole(dir, "ends.u32")?,
            labels: whole(dir, "labels.u32")?,
            train: whole(dir, "train.u32")?,
        })
    }

    /// Those of one split, in their order.
    pub fn examples(&self, train: bool) -> Vec<Example> {
        let rows = (0..self.labels.len()).filter(|row| self.train[*row] == u32::from(train));
        let example = |row: usize| Example {
            input: Sequence::Tokens(
                self.ids[self.ends[row] as usize..self.ends[row + 1] as usize].to_vec(),
            ),
            target: Target::Class(self.labels[row]),
        };
        rows.map(example).collect()
    }
}
