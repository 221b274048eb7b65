//! HotFlip on characters beside the same beam search in PyTorch: flips, a beam of 10, a tenth of the characters.
//!
//! Reads embedded reviews, so it needs no data. The network has the size of P2's `cpu` profile.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use serde_json::{Value as Json, json};
use stages::DataHome;
use store::Value;

use crate::cases::{Bench, absent, alike, made, ours, theirs};
use crate::data::{table, write};
use crate::kinds::{run, text, timed};
use crate::sample::{Side, measure, print, sample, target};

/// Documents that are attacked.
const DRAWN: i64 = 100;
/// Characters of a word, padding included.
const WIDTH: i64 = 20;

/// Makes the tables, and the same for PyTorch.
pub fn data(dir: &Path) -> Result<Json, String> {
    std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
    timed(|| {
        let home = DataHome::nowhere();
        let kind = |kind: &str, inputs: &[(&str, &RecordBatch)], params: &[(&str, Value)]| {
            run(kind, inputs, params, BTreeMap::new(), &home)
        };
        let sample = [("train", 1600), ("dev", 150), ("test", DRAWN)];
        let sample = sample.map(|(split, rows)| (split.to_owned(), Value::Int(rows)));
        let news = [
            ("name", text("reviews-grammar")),
            ("sample", Value::Table(sample.into())),
        ];
        let rows = kind("dataset", &[], &news)?;
        let rows = &rows["rows"];
        let grid = [
            ("scheme", text("char-grid")),
            ("word_width", Value::Int(WIDTH)),
            ("max_len", Value::Int(80)),
        ];
        let grid = kind("tokenize", &[("rows", rows)], &grid)?;
        let words = [
            ("scheme", text("words-punctuation")),
            ("lowercase", Value::Bool(false)),
        ];
        let words = kind("tokenize", &[("rows", rows)], &words)?;
        let network = [
            ("model", text("char-cnn")),
            ("dim", Value::Int(25)),
            ("kernels", Value::Int(100)),
            ("width", Value::Int(6)),
            ("highways", Value::Int(2)),
            ("units", Value::Int(64)),
            ("layers", Value::Int(2)),
            ("dropout", Value::Float(0.5)),
            ("init", Value::Float(0.15)),
            ("learning_rate", Value::Float(0.005)),
            ("batch", Value::Int(16)),
            ("epochs", Value::Int(10)),
        ];
        let trained = kind("train", &[("rows", &grid["tokens"])], &network)?;
        for (name, table) in [
            ("rows", &grid["tokens"]),
            ("vocab", &grid["vocab"]),
            ("known_words", &words["vocab"]),
            ("victim", &trained["weights"]),
        ] {
            let bytes = store::encode(table).map_err(|error| error.to_string())?;
            write(dir, &format!("{name}.parquet"), &bytes)?;
        }
        let none = attacked(dir, "none")?;
        plain(
            dir,
            &none,
            &grid["vocab"],
            &words["vocab"],
            &trained["weights"],
        )?;
        Ok(json!({ "rows": rows.num_rows() }))
    })
}

/// The same for PyTorch: documents as padded grids, weights by name, and what may be put in.
fn plain(
    dir: &Path,
    drawn: &RecordBatch,
    characters: &RecordBatch,
    words: &RecordBatch,
    weights: &RecordBatch,
) -> Result<(), String> {
    let names = weights["name"].as_string::<i32>();
    let values = weights["values"].as_list::<i32>();
    for (name, values) in names.iter().flatten().zip(values.iter().flatten()) {
        let numbers = values.as_primitive::<Float32Type>().values();
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        write(dir, &format!("{name}.f32"), &bytes)?;
    }
    let texts = |table: &RecordBatch| -> Vec<String> {
        let tokens = table["token"].as_string::<i32>();
        tokens.iter().flatten().map(str::to_owned).collect()
    };
    let documents: Vec<Vec<i32>> = drawn["original"]
        .as_list::<i32>()
        .iter()
        .flatten()
        .map(|ids| ids.as_primitive::<Int32Type>().values().to_vec())
        .collect();
    let labels = drawn["label"].as_primitive::<Int64Type>().values().to_vec();
    let all = json!({
        "documents": documents, "labels": labels, "width": WIDTH,
        "characters": texts(characters), "known": texts(words),
    });
    write(dir, "characters.json", all.to_string().as_bytes())
}

/// The examples of an attack.
fn attacked(dir: &Path, name: &str) -> Result<RecordBatch, String> {
    let ports: &[&str] = match name {
        "none" => &["victim", "rows"],
        _ => &["victim", "rows", "vocab", "known_words"],
    };
    let tables: Result<Vec<RecordBatch>, String> =
        ports.iter().map(|port| table(dir, port)).collect();
    let tables = tables?;
    let inputs: Vec<(&str, &RecordBatch)> = ports.iter().copied().zip(&tables).collect();
    let mut params = vec![("attack", text(name)), ("items", Value::Int(DRAWN))];
    if name == "hotflip" {
        params.extend([
            ("edits", Value::List(vec![text("flip")])),
            ("beam", Value::Int(10)),
            ("budget", Value::Float(0.1)),
        ]);
    }
    let home = DataHome::nowhere();
    let mut made = run("attack", &inputs, &params, BTreeMap::new(), &home)?;
    Ok(made.remove("examples").expect("an output of every attack"))
}

/// What one attack takes, from tables to tables.
pub fn attack(dir: &Path, name: &str) -> Result<Json, String> {
    timed(|| {
        let examples = attacked(dir, name)?;
        let flips = examples["positions"].as_list::<i32>();
        let flips: Vec<usize> = flips.iter().flatten().map(|list| list.len()).collect();
        let successes = examples["success"].as_boolean().true_count();
        Ok(json!({ "items": examples.num_rows(), "successes": successes, "words": flips }))
    })
}

/// Ours less what `none` takes, beside PyTorch's search.
pub fn case(bench: &Bench, dir: &str) -> bool {
    let words = ours(&["char-data", dir]);
    if let Err(why) = sample(std::process::Command::new(&words[0]).args(&words[1..])) {
        println!("skipped: {why}");
        return false;
    }
    let sides = measure(
        vec![
            (
                "none: asked before and after",
                ours(&["characters", dir, "none"]),
            ),
            (
                "HotFlip, a beam of 10",
                ours(&["characters", dir, "hotflip"]),
            ),
            ("PyTorch, batched", theirs(&bench.torch, &["hotflip", dir])),
        ],
        bench.rounds,
    );
    print(
        &format!("HotFlip on a CharCNN-LSTM: flips, {DRAWN} documents, ours from tables to tables"),
        &sides,
    );
    let none = sides[0].median(|s| s.wall).unwrap_or_default();
    let rate = |side: &Side, less: f64| {
        let seconds = side.median(|s| s.wall)? - less;
        let successes = made(side, |made| made["successes"].as_f64())?;
        let per_second = DRAWN as f64 / seconds;
        println!(
            "  {}: {per_second:.1} documents/s; {successes} successes",
            side.name
        );
        Some(per_second)
    };
    let rates = rate(&sides[1], none).zip(rate(&sides[2], 0.0));
    let times = rates.map(|(ours, theirs)| ours / theirs);
    target(
        "beam of 10, ours / PyTorch, documents/s",
        times.map(|x| (x, x)),
        "x",
        4.0,
        true,
    );
    absent(&sides);
    alike(&sides[1], &sides[2])
}
