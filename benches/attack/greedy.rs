//! One word of a sentence, greedily (GS-GR of P3), beside TextAttack's greedy word-importance search: SST-2, a
//! bidirectional LSTM with attention, the same 500 candidates in one place.
//!
//! Sentences are read without punctuation, as TextAttack numbers words. Its recipe tries the places in the order of their
//! importance; here it ends after the first, as ours does.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use serde_json::{Value as Json, json};
use stages::DataHome;
use store::Value;

use crate::cases::{Bench, made, ours, theirs};
use crate::data::{table, write};
use crate::kinds::{here, named, run, text, timed};
use crate::sample::{Side, measure, print, sample, target};

/// Sentences that are attacked.
const DRAWN: i64 = 200;
/// Words that are tried in a place: the most frequent ones.
const CANDIDATES: usize = 500;
/// The first words of a vocabulary, which are none.
const SPECIAL: usize = 2;
/// Sentences in each of which the whole vocabulary is tried, to see whether memory grows with the number of queries:
/// more than a million of them with the larger number.
const WHOLE: [i64; 2] = [20, 120];

/// Makes the tables and the same for TextAttack, unless they are there.
pub fn data(home: &DataHome, dir: &Path) -> Result<Json, String> {
    if dir.join("done").exists() {
        return timed(|| Ok(json!("there")));
    }
    here(home, "sst2-sentences")?;
    std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
    timed(|| {
        let kind = |kind: &str, inputs: &[(&str, &RecordBatch)], params: &[(&str, Value)]| {
            run(kind, inputs, params, BTreeMap::new(), home)
        };
        let sentences = named(home, "sst2-sentences")?;
        let words = [("scheme", text("words")), ("max_len", Value::Int(56))];
        let words = kind("tokenize", &[("rows", &sentences)], &words)?;
        let (rows, vocab) = (&words["tokens"], &words["vocab"]);
        let vectors = [("source", text("random")), ("dim", Value::Int(64))];
        let vectors = kind("embed", &[("vocab", vocab)], &vectors)?;
        let network = [
            ("model", text("lstm")),
            ("units", Value::Int(64)),
            ("bidirectional", Value::Bool(true)),
            ("attention", Value::Int(64)),
            ("vectors", text("trained")),
            ("learning_rate", Value::Float(0.002)),
            ("batch", Value::Int(32)),
            ("epochs", Value::Int(3)),
        ];
        let inputs = [("rows", rows), ("vectors", &vectors["vectors"])];
        let trained = kind("train", &inputs, &network)?;
        let frequent = vocab.slice(SPECIAL, CANDIDATES);
        for (name, table) in [
            ("rows", rows),
            ("vocab", vocab),
            ("candidates", &frequent),
            ("victim", &trained["weights"]),
        ] {
            let bytes = store::encode(table).map_err(|error| error.to_string())?;
            write(dir, &format!("{name}.parquet"), &bytes)?;
        }
        plain(dir, &attacked(dir, "none")?, vocab, &trained["weights"])?;
        write(dir, "done", b"")?;
        Ok(json!({ "rows": rows.num_rows(), "words": vocab.num_rows() }))
    })
}

/// The same for TextAttack: weights by name, sentences, words, and how many of them are candidates.
fn plain(
    dir: &Path,
    drawn: &RecordBatch,
    vocab: &RecordBatch,
    weights: &RecordBatch,
) -> Result<(), String> {
    let names = weights["name"].as_string::<i32>();
    let values = weights["values"].as_list::<i32>();
    for (name, values) in names.iter().flatten().zip(values.iter().flatten()) {
        let numbers = values.as_primitive::<Float32Type>().values();
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        write(dir, &format!("{name}.f32"), &bytes)?;
    }
    let words: Vec<&str> = vocab["token"].as_string::<i32>().iter().flatten().collect();
    let sentences = drawn["original"].as_list::<i32>().iter().flatten();
    let ids = sentences.map(|ids| ids.as_primitive::<Int32Type>().values().to_vec());
    let sentences: Vec<Vec<i32>> = ids.collect();
    let labels = drawn["label"].as_primitive::<Int64Type>().values().to_vec();
    let all = json!({
        "sentences": sentences, "labels": labels, "words": words, "stop_words": [],
        "candidates": [SPECIAL, SPECIAL + CANDIDATES],
    });
    write(dir, "words.json", all.to_string().as_bytes())
}

fn attacked(dir: &Path, attack: &str) -> Result<RecordBatch, String> {
    let ports: &[&str] = match attack {
        "none" => &["victim", "rows"],
        _ => &["victim", "rows", "vocab", "candidates"],
    };
    let params = [("attack", text(attack)), ("items", Value::Int(DRAWN))];
    examples(dir, ports, &params)
}

fn examples(dir: &Path, ports: &[&str], params: &[(&str, Value)]) -> Result<RecordBatch, String> {
    let tables: Result<Vec<RecordBatch>, String> =
        ports.iter().map(|port| table(dir, port)).collect();
    let tables = tables?;
    let inputs: Vec<(&str, &RecordBatch)> = ports.iter().copied().zip(&tables).collect();
    let home = DataHome::nowhere();
    let mut made = run("attack", &inputs, params, BTreeMap::new(), &home)?;
    Ok(made.remove("examples").expect("an output of every attack"))
}

/// What the attack takes, from tables to tables.
pub fn attack(dir: &Path) -> Result<Json, String> {
    timed(|| {
        let examples = attacked(dir, "replace-word")?;
        let success = examples["success"].as_boolean();
        Ok(json!({
            "items": examples.num_rows(), "queries": queries(&examples),
            "success": success.iter().map(|one| one == Some(true)).collect::<Vec<bool>>(),
        }))
    })
}

fn queries(examples: &RecordBatch) -> i64 {
    let forward = examples["forward"].as_primitive::<Int64Type>().values();
    forward.iter().sum()
}

/// All words of the vocabulary in one place of each sentence, in the order of what they do to the sentence's vector.
pub fn whole(dir: &Path, items: &str) -> Result<Json, String> {
    let items = items.parse().map_err(|_| format!("no number: {items}"))?;
    timed(|| {
        let params = [
            ("attack", text("replace-word")),
            ("replace", text("nearest")),
            ("items", Value::Int(items)),
        ];
        let examples = examples(dir, &["victim", "rows", "vocab"], &params)?;
        Ok(json!({ "items": examples.num_rows(), "queries": queries(&examples) }))
    })
}

/// The memory of an attack that asks a million times, beside that of one that asks a sixth as often.
fn memory(bench: &Bench, dir: &str) {
    let names = WHOLE.map(|items| format!("{items} sentences"));
    let sides = names.iter().zip(WHOLE);
    let sides = sides.map(|(name, items)| {
        let job = ours(&["greedy-whole", dir, &items.to_string()]);
        (name.as_str(), job)
    });
    let sides = measure(sides.collect(), bench.rounds);
    print("The whole vocabulary in the most important place", &sides);
    for side in &sides {
        let queries = made(side, |made| made["queries"].as_f64());
        if let Some((queries, peak)) = queries.zip(side.peak()) {
            println!("  {queries} queries: {peak:.0} MB at most");
        }
    }
}

/// Both sides, and how many texts a second they ask the victim about.
pub fn case(bench: &Bench, dir: &str, mirror: Option<&Path>) -> bool {
    let mut words = ours(&["greedy-data", dir]);
    if let Some(mirror) = mirror {
        words.splice(1..1, ["--mirror".to_owned(), mirror.display().to_string()]);
    }
    if let Err(why) = sample(std::process::Command::new(&words[0]).args(&words[1..])) {
        println!("skipped: {why}\n  SST-2 comes from a mirror: --mirror DIR or ABLATE_MIRROR");
        return true;
    }
    let sides = measure(
        vec![
            ("replace-word, greedy", ours(&["greedy", dir])),
            (
                "TextAttack, greedy by importance",
                theirs(&bench.torch, &["greedy", dir]),
            ),
        ],
        bench.rounds,
    );
    print(
        &format!(
            "One word of {CANDIDATES} in the most important place: {DRAWN} sentences of SST-2, a bidirectional LSTM with attention"
        ),
        &sides,
    );
    rates(&sides);
    if sides[1].trouble.is_some() {
        println!("  TextAttack from {}", crate::words::TEXTATTACK);
    }
    memory(bench, dir);
    agree(&sides)
}

fn rates(sides: &[Side]) {
    let rate = |side: &Side, seconds: Option<f64>| {
        let queries = made(side, |made| made["queries"].as_f64());
        Some(queries? / seconds?)
    };
    let wall = |side: &Side| rate(side, side.median(|s| s.wall));
    let cpu = |side: &Side| rate(side, side.median(|s| s.cpu));
    for side in sides {
        if let (Some(wall), Some(cpu)) = (wall(side), cpu(side)) {
            println!(
                "  {}: {wall:.0} queries/s, {cpu:.0} per CPU second",
                side.name
            );
        }
    }
    let best = |side: &Side| rate(side, side.best());
    let times = |of: &dyn Fn(&Side) -> Option<f64>| Some(of(&sides[0])? / of(&sides[1])?);
    target(
        "queries per second, ours / TextAttack",
        times(&wall).zip(times(&best)),
        "x",
        20.0,
        true,
    );
    if let Some(times) = times(&cpu) {
        println!("    by CPU time {times:.1} x");
    }
}

/// Both succeed on the same sentences, but where two places are equally important.
fn agree(sides: &[Side]) -> bool {
    let success = |side: &Side| {
        let first = side.samples.first()?;
        first.made["success"].as_array().cloned()
    };
    let Some((ours, theirs)) = success(&sides[0]).zip(success(&sides[1])) else {
        return true;
    };
    let count = |all: &[Json]| all.iter().filter(|one| **one == json!(true)).count();
    let same = ours.iter().zip(&theirs).filter(|(a, b)| a == b).count();
    println!(
        "  {} and {} successes; the same outcome in {same} of {} sentences",
        count(&ours),
        count(&theirs),
        ours.len()
    );
    same * 100 >= ours.len() * 98
}
