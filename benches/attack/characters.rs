//! HotFlip on characters: a beam of 10, a tenth of the characters. Flips beside the same search in PyTorch; flips beside
//! flips, inserts and deletes; and the memory of few and many documents.
//!
//! Reads embedded reviews, so it needs no data. The network has the size of P2's `cpu` profile.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use serde_json::{Value as Json, json};
use stages::{DataHome, Outputs};
use store::Value;

use crate::cases::{Bench, absent, alike, made, ours, theirs};
use crate::data::{table, write};
use crate::kinds::{run, text, timed};
use crate::sample::{Side, measure, print, sample, target};

/// Documents that are attacked.
const DRAWN: i64 = 100;
/// Documents that are attacked to see whether memory grows.
const MANY: i64 = 10 * DRAWN;
/// Characters of a word, padding included.
const WIDTH: i64 = 20;

/// Makes the tables and the same for PyTorch, unless they are there.
pub fn data(dir: &Path) -> Result<Json, String> {
    if dir.join("done").exists() {
        return timed(|| Ok(json!("there")));
    }
    std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
    timed(|| {
        let home = DataHome::nowhere();
        let kind = |kind: &str, inputs: &[(&str, &RecordBatch)], params: &[(&str, Value)]| {
            run(kind, inputs, params, BTreeMap::new(), &home)
        };
        let sample = [("train", 1600), ("dev", 150), ("test", MANY)];
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
        let none = attacked(dir, "none", DRAWN)?;
        plain(
            dir,
            &none["examples"],
            &grid["vocab"],
            &words["vocab"],
            &trained["weights"],
        )?;
        write(dir, "done", b"")?;
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

/// What comes of `none`, or of `hotflip` with `flips` alone, with all `edits`, or with all edits until the model is
/// `sure` of a wrong class, which stores most.
fn attacked(dir: &Path, name: &str, items: i64) -> Result<Outputs, String> {
    let (attack, ports): (_, &[&str]) = match name {
        "none" => ("none", &["victim", "rows"]),
        _ => ("hotflip", &["victim", "rows", "vocab", "known_words"]),
    };
    let tables: Result<Vec<RecordBatch>, String> =
        ports.iter().map(|port| table(dir, port)).collect();
    let tables = tables?;
    let inputs: Vec<(&str, &RecordBatch)> = ports.iter().copied().zip(&tables).collect();
    let mut params = vec![("attack", text(attack)), ("items", Value::Int(items))];
    if attack == "hotflip" {
        params.extend([("beam", Value::Int(10)), ("budget", Value::Float(0.1))]);
    }
    match name {
        "flips" => params.push(("edits", Value::List(vec![text("flip")]))),
        "sure" => params.push(("confidence", Value::Float(0.9))),
        _ => {}
    }
    let home = DataHome::nowhere();
    run("attack", &inputs, &params, BTreeMap::new(), &home)
}

/// What one attack takes, from tables to tables.
pub fn attack(dir: &Path, name: &str, items: &str) -> Result<Json, String> {
    let items = items.parse().map_err(|_| format!("`{items}` items"))?;
    timed(|| {
        let outputs = attacked(dir, name, items)?;
        let stored = outputs.values().map(RecordBatch::get_array_memory_size);
        let examples = &outputs["examples"];
        let flips = examples["positions"].as_list::<i32>();
        let flips: Vec<usize> = flips.iter().flatten().map(|list| list.len()).collect();
        let successes = examples["success"].as_boolean().true_count();
        let looks = examples["backward"].as_primitive::<Int64Type>().values();
        Ok(json!({
            "items": examples.num_rows(), "successes": successes, "words": flips,
            "backward": looks.iter().sum::<i64>(), "stored": stored.sum::<usize>(),
        }))
    })
}

/// Makes the data, unless they are there.
fn prepared(dir: &str) -> bool {
    let words = ours(&["char-data", dir]);
    match sample(std::process::Command::new(&words[0]).args(&words[1..])) {
        Ok(_) => true,
        Err(why) => {
            println!("skipped: {why}");
            false
        }
    }
}

fn job(dir: &str, name: &str, items: i64) -> Vec<String> {
    ours(&["characters", dir, name, &items.to_string()])
}

/// Ours less what `none` takes, beside PyTorch's search, and what inserts and deletes cost.
pub fn case(bench: &Bench, dir: &str) -> bool {
    if !prepared(dir) {
        return false;
    }
    let sides = measure(
        vec![
            ("none: asked before and after", job(dir, "none", DRAWN)),
            ("HotFlip, flips", job(dir, "flips", DRAWN)),
            (
                "PyTorch, flips, batched",
                theirs(&bench.torch, &["hotflip", dir]),
            ),
            ("HotFlip, flips, inserts, deletes", job(dir, "edits", DRAWN)),
        ],
        bench.rounds,
    );
    print(
        &format!(
            "HotFlip on a CharCNN-LSTM: a beam of 10, {DRAWN} documents, ours from tables to tables"
        ),
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
        "flips, ours / PyTorch, documents/s",
        times.map(|x| (x, x)),
        "x",
        4.0,
        true,
    );
    inserts_and_deletes(&sides[0], &sides[1], &sides[3]);
    absent(&sides);
    alike(&sides[1], &sides[2])
}

/// What it costs to have inserts and deletes too, for the whole search and for each text that is looked at: with more
/// edits a search needs fewer of them.
fn inserts_and_deletes(none: &Side, flips: &Side, edits: &Side) {
    let looks = |side: &Side| made(side, |made| made["backward"].as_f64());
    let successes = |side: &Side| made(side, |made| made["successes"].as_f64());
    let ratios = |of: fn(&crate::sample::Sample) -> f64| {
        let less = none.median(of)?;
        let ratio = (edits.median(of)? - less) / (flips.median(of)? - less);
        Some((ratio, ratio * looks(flips)? / looks(edits)?))
    };
    let (Some(wall), Some(cpu)) = (ratios(|s| s.wall), ratios(|s| s.cpu)) else {
        return;
    };
    println!(
        "  flips, inserts and deletes / flips, less what `none` takes: wall {:.2} x, CPU {:.2} x; for each text that is looked at {:.2} x, {:.2} x",
        wall.0, cpu.0, wall.1, cpu.1
    );
    for side in [flips, edits] {
        let (looks, successes) = (looks(side), successes(side));
        println!(
            "  {}: {} texts looked at, {} successes",
            side.name,
            looks.unwrap_or_default(),
            successes.unwrap_or_default()
        );
    }
}

/// Whether the memory of an attack grows with the number of documents.
pub fn memory(bench: &Bench, dir: &str) -> bool {
    if !prepared(dir) {
        return false;
    }
    let names = [DRAWN, MANY].map(|items| format!("{items} documents"));
    let sides = measure(
        vec![
            ("none, all documents", job(dir, "none", MANY)),
            (&names[0], job(dir, "sure", DRAWN)),
            (&names[1], job(dir, "sure", MANY)),
        ],
        bench.rounds,
    );
    print(
        "Memory of HotFlip: all edits to confidence 0.9, a beam of 10, from tables to tables",
        &sides,
    );
    let stored = |side: &Side| Some(made(side, |made| made["stored"].as_f64())? / 1e6);
    let grown = |of: &dyn Fn(&Side) -> Option<f64>| {
        let more = of(&sides[2])? - of(&sides[1])?;
        Some(more * 1e3 / (MANY - DRAWN) as f64)
    };
    if let Some((peak, tables)) = grown(&Side::peak).zip(grown(&stored)) {
        println!(
            "  for each further document {peak:.1} kB; its rows in the tables have {tables:.1} kB"
        );
    }
    true
}
