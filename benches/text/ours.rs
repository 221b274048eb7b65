//! Our side: one job a process, called as the engine calls its kinds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Float32Type;
use serde_json::{Value as Json, json};
use stages::{DataHome, Outputs, SourceFile};
use store::{Digest, Store, Value};

use crate::kinds::{here, home, named, report, run, text, timed, warm};

/// Does a job and prints what it took.
pub fn job(job: &str, rest: &[String], mirror: Option<PathBuf>) -> ExitCode {
    let home = home(mirror);
    let done = match (job, rest) {
        ("warm", []) => warm(),
        ("here", [name]) => here(&home, name),
        ("inflate", []) => inflate(&home),
        ("rows", []) => timed(|| Ok(rows_made(&imdb(&home)?))),
        ("tokens", []) => timed(|| Ok(tokens_made(&words(&imdb(&home)?)?))),
        ("tokenize", []) => imdb(&home).and_then(|rows| timed(|| Ok(tokens_made(&words(&rows)?)))),
        ("text", [file]) => glove_text(&home, Path::new(file)),
        ("glove-bz2", [dir]) => timed(|| put(&glove(&home)?, Path::new(dir))),
        ("glove-text", [file, dir]) => timed(|| put(&vectors(Path::new(file))?, Path::new(dir))),
        ("glove-load", [dir, digest]) => load(Path::new(dir), digest),
        ("corpus", [file]) => corpus(&home, Path::new(file)),
        ("skip-gram", [dim, epochs]) => skip_gram(&home, dim, epochs),
        _ => Err(format!("no job `{job}`")),
    };
    report(done)
}

fn imdb(home: &DataHome) -> Result<RecordBatch, String> {
    named(home, "imdb")
}

/// The tar out of its gzip, and nothing else: what no reader of it can be faster than.
fn inflate(home: &DataHome) -> Result<Json, String> {
    let set = stages::kinds::dataset::find("imdb").ok_or("no such set")?;
    let path = stages::kinds::dataset::place(home, &set.form[0].files[0]).ok_or("not here")?;
    timed(|| {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let packed = io::BufReader::with_capacity(1 << 18, file);
        let mut decoder = flate2::bufread::GzDecoder::new(packed);
        let (mut block, mut total) = (vec![0; 1 << 18], 0);
        loop {
            match decoder
                .read(&mut block)
                .map_err(|error| error.to_string())?
            {
                0 => return Ok(json!({ "unpacked": total })),
                read => total += read,
            }
        }
    })
}

fn rows_made(rows: &RecordBatch) -> Json {
    let texts = rows["text"].as_string::<i32>();
    json!({ "rows": rows.num_rows(), "bytes": texts.values().len() })
}

fn words(rows: &RecordBatch) -> Result<Outputs, String> {
    let scheme = [("scheme", text("words"))];
    run(
        "tokenize",
        &[("rows", rows)],
        &scheme,
        BTreeMap::new(),
        &DataHome::nowhere(),
    )
}

fn tokens_made(made: &Outputs) -> Json {
    let ids = made["tokens"]["ids"].as_list::<i32>();
    json!({ "tokens": ids.values().len(), "vocabulary": made["vocab"].num_rows() })
}

fn glove(home: &DataHome) -> Result<RecordBatch, String> {
    named(home, "glove-6b-50d")
}

/// Writes GloVe as text, for whoever reads it.
fn glove_text(home: &DataHome, to: &Path) -> Result<Json, String> {
    let set = stages::kinds::dataset::find("glove-6b-50d").ok_or("no such set")?;
    let from = stages::kinds::dataset::place(home, &set.form[0].files[0]).ok_or("not here")?;
    timed(|| {
        let copied = File::open(from).and_then(|from| {
            let mut decoder = bzip2::read::MultiBzDecoder::new(io::BufReader::new(from));
            io::copy(&mut decoder, &mut File::create(to)?)
        });
        copied
            .map(|bytes| json!(bytes))
            .map_err(|error| error.to_string())
    })
}

/// The vectors of a file, whole.
fn vectors(file: &Path) -> Result<RecordBatch, String> {
    let digest = Digest::of_file(file).map_err(|error| error.to_string())?;
    let files = BTreeMap::from([(
        "v.txt".to_owned(),
        SourceFile {
            path: file,
            digest,
            executable: false,
        },
    )]);
    let params = [("source", text("vectors")), ("file", text("v.txt"))];
    let mut made = run("embed", &[], &params, files, &DataHome::nowhere())?;
    Ok(made.remove("vectors").expect("the output"))
}

/// What the store does with a table, but for the row in its database.
fn put(table: &RecordBatch, dir: &Path) -> Result<Json, String> {
    let store = Store::open(dir).map_err(|error| error.to_string())?;
    let bytes = store::encode(table).map_err(|error| error.to_string())?;
    let digest = Digest::of(&bytes);
    let path = store.object_path(&digest);
    let folder = path.parent().expect("an object has a folder");
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, bytes))
        .map_err(|error| error.to_string())?;
    Ok(json!({ "rows": table.num_rows(), "digest": digest }))
}

/// Reads a table of the store again, its bytes checked.
fn load(dir: &Path, digest: &str) -> Result<Json, String> {
    let store = Store::open(dir).map_err(|error| error.to_string())?;
    let digest = digest
        .parse::<Digest>()
        .map_err(|error| error.to_string())?;
    timed(|| {
        let table = store.read(&digest).map_err(|error| error.to_string())?;
        Ok(json!({ "rows": table.num_rows() }))
    })
}

/// The training split of Penn Treebank, a sentence a line, for whoever reads it.
fn corpus(home: &DataHome, to: &Path) -> Result<Json, String> {
    let rows = named(home, "ptb")?;
    timed(|| {
        let (splits, lines) = (
            rows["split"].as_string::<i32>(),
            rows["line"].as_string::<i32>(),
        );
        let lines = splits.iter().zip(lines.iter().flatten());
        let lines: Vec<&str> = lines
            .filter(|(split, _)| *split == Some("train"))
            .map(|(_, line)| line.trim())
            .collect();
        std::fs::write(to, lines.join("\n")).map_err(|error| error.to_string())?;
        Ok(json!({ "lines": lines.len() }))
    })
}

fn skip_gram(home: &DataHome, dim: &str, epochs: &str) -> Result<Json, String> {
    let number = |text: &str| text.parse().map(Value::Int).map_err(|_| "no number");
    let rows = named(home, "ptb")?;
    let params = [("scheme", text("whitespace")), ("text", text("line"))];
    let made = run(
        "tokenize",
        &[("rows", &rows)],
        &params,
        BTreeMap::new(),
        home,
    )?;
    let params = [
        ("source", text("skip-gram")),
        ("dim", number(dim)?),
        ("epochs", number(epochs)?),
    ];
    let inputs = [("tokens", &made["tokens"]), ("vocab", &made["vocab"])];
    let mut vectors = None;
    let mut figures = timed(|| {
        let mut made = run("embed", &inputs, &params, BTreeMap::new(), home)?;
        vectors = made.remove("vectors");
        Ok(Json::Null)
    })?;
    figures["made"] = json!({ "hits": hits(&vectors.ok_or("no vectors")?) });
    Ok(figures)
}

/// How many words of the groups have another of their group among their ten nearest.
fn hits(table: &RecordBatch) -> usize {
    let tokens = table["token"].as_string::<i32>();
    let v = table["v"].as_fixed_size_list();
    let (dim, values) = (
        v.value_length() as usize,
        v.values().as_primitive::<Float32Type>(),
    );
    let row = |n: usize| &values.values()[n * dim..(n + 1) * dim];
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let norm = |n: usize| dot(row(n), row(n)).sqrt().max(f32::MIN_POSITIVE);
    let mut hits = 0;
    for group in GROUPS
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
    {
        for word in &group {
            let Some(place) = tokens.iter().position(|token| token == Some(*word)) else {
                continue;
            };
            let others = (0..tokens.len()).filter(|n| *n != place);
            let mut near: Vec<(f32, usize)> = others
                .map(|n| (dot(row(n), row(place)) / norm(n), n))
                .collect();
            near.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut near = near.iter().take(10);
            hits += usize::from(near.any(|(_, n)| group.contains(&tokens.value(*n))));
        }
    }
    hits
}

/// Words that belong together, chosen before any vectors were looked at.
const GROUPS: &str = include_str!("groups.txt");
