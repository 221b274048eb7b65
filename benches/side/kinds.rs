//! Our side of a bench: the kinds called as the engine calls them, and the part of a job that counts.
//!
//! A job is a process of its own that prints one line of JSON; `sample.rs` reads it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use arrow::array::RecordBatch;
use serde_json::{Value as Json, json};
use stages::{DataHome, Outputs, SourceFile, Task, Usage, Watch};
use store::{Params, Value};

/// Prints what a job took, or the first line of why it could not be done.
pub fn report(done: Result<Json, String>) -> ExitCode {
    match done {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{}", why.lines().next().unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

/// Touches a gigabyte.
pub fn warm() -> Result<Json, String> {
    std::hint::black_box(vec![1_u8; 1 << 30]);
    Ok(Json::Null)
}

/// Where data lies for somebody who uses the program.
pub fn home(mirror: Option<PathBuf>) -> DataHome {
    DataHome {
        cache: dirs::cache_dir()
            .unwrap_or_else(std::env::temp_dir)
            .join("ablate/data"),
        mirror,
        offline: true,
    }
}

/// Times a part, and says what it made.
pub fn timed(part: impl FnOnce() -> Result<Json, String>) -> Result<Json, String> {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let made = part()?;
    Ok(json!({
        "wall": start.elapsed().as_secs_f64(), "cpu": cpu_seconds() - cpu, "made": made,
    }))
}

/// User and system time of this process so far, all of its threads included.
pub fn cpu_seconds() -> f64 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    clock.tv_sec as f64 + clock.tv_nsec as f64 / 1e9
}

struct Silent;

impl Watch for Silent {
    fn work(&self, _: &'static str, _: u64) {}
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, _: &str) {}
    fn child(&self, _: Usage) {}
    fn stopped(&self) -> bool {
        false
    }
}

/// Runs a kind with seed 1 and the defaults of what is not written.
pub fn run(
    kind: &str,
    inputs: &[(&str, &RecordBatch)],
    written: &[(&str, Value)],
    files: BTreeMap<String, SourceFile<'_>>,
    home: &DataHome,
) -> Result<Outputs, String> {
    let kind = stages::find(kind).expect("a kind of ours");
    let written: Params = written
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let params = stages::complete(kind, &written).map_err(|error| error.message)?;
    let inputs = inputs.iter();
    let task = Task {
        inputs: inputs
            .map(|(port, table)| ((*port).to_owned(), (*table).clone()))
            .collect(),
        params: &params,
        seed: 1,
        files,
        data: home,
        place: &stages::Place::default(),
        watch: &Silent,
    };
    kind.run(&task).map_err(|failure| failure.message)
}

/// A parameter.
pub fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// A data set by its name.
pub fn named(home: &DataHome, name: &str) -> Result<RecordBatch, String> {
    let mut made = run(
        "dataset",
        &[],
        &[("name", text(name))],
        BTreeMap::new(),
        home,
    )?;
    Ok(made.remove("rows").expect("the first output"))
}

/// Whether a set is here: its files are looked for, not read.
pub fn here(home: &DataHome, name: &str) -> Result<Json, String> {
    let set = stages::kinds::dataset::find(name).ok_or("no such set")?;
    let whole = set.form.iter().any(|form| {
        let mut files = form.files.iter();
        files.all(|file| stages::kinds::dataset::place(home, file).is_some())
    });
    match whole {
        true => Ok(json!({ "wall": 0.0, "cpu": 0.0, "made": null })),
        false => Err(format!("`ablate data fetch {name}` first")),
    }
}
