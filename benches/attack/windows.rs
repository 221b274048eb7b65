//! RNN-Test on windows of the Penn Treebank beside the same algorithm in PyTorch: state and CS, a window at a time.
//!
//! The model has the paper's size (2 x 200 units, 10,000 words) and one epoch of the dev text: what it has learnt does
//! not change what a search costs. The published time for a window is 4.6 s.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use serde_json::{Value as Json, json};
use stages::DataHome;
use store::Value;

use nn::batch::Side as Part;
use nn::coverage::{Coverage, CoverageSpec, GateSource};
use nn::layers::Direction;
use nn::victim::LayerStates;

use crate::cases::{Bench, absent, made, ours, theirs};
use crate::data::{table, write};
use crate::kinds::{run, text, timed};
use crate::sample::{Sample, Side, measure, print, sample, target};

/// Windows that are changed.
const DRAWN: i64 = 200;

/// Windows that are changed to see whether memory grows with their number.
const MANY: i64 = 2_000;

/// Makes the tables, and the same for PyTorch.
pub fn data(home: &DataHome, dir: &Path) -> Result<Json, String> {
    std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
    timed(|| {
        let kind = |kind: &str, inputs: &[(&str, &RecordBatch)], params: &[(&str, Value)]| {
            run(kind, inputs, params, BTreeMap::new(), home)
        };
        let rows = kind("dataset", &[], &[("name", text("ptb"))])?;
        let words = [
            ("scheme", text("whitespace")),
            ("eos", Value::Bool(true)),
            ("text", text("line")),
        ];
        let words = kind("tokenize", &[("rows", &rows["rows"])], &words)?;
        let network = [
            ("model", text("lstm-lm")),
            ("dim", Value::Int(200)),
            ("units", Value::Int(200)),
            ("layers", Value::Int(2)),
            ("train", text("dev")),
            ("dev", text("test")),
            ("optimiser", text("sgd")),
            ("learning_rate", Value::Float(1.0)),
            ("clip_norm", Value::Float(5.0)),
            ("bptt", Value::Int(20)),
            ("batch", Value::Int(20)),
            ("epochs", Value::Int(1)),
        ];
        let trained = kind("train", &[("rows", &words["tokens"])], &network)?;
        for (name, table) in [("rows", &words["tokens"]), ("victim", &trained["weights"])] {
            let bytes = store::encode(table).map_err(|error| error.to_string())?;
            write(dir, &format!("{name}.parquet"), &bytes)?;
        }
        plain(dir, &tested(dir, "none")?, &trained["weights"])?;
        Ok(json!({ "rows": rows["rows"].num_rows() }))
    })
}

/// The same for PyTorch: weights by name, windows, targets and positions.
fn plain(dir: &Path, drawn: &RecordBatch, weights: &RecordBatch) -> Result<(), String> {
    let names = weights["name"].as_string::<i32>();
    let values = weights["values"].as_list::<i32>();
    for (name, values) in names.iter().flatten().zip(values.iter().flatten()) {
        let numbers = values.as_primitive::<Float32Type>().values();
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        write(dir, &format!("{name}.f32"), &bytes)?;
    }
    let lists = |name: &str| -> Vec<Vec<i32>> {
        let lists = drawn[name].as_list::<i32>().iter().flatten();
        let ids = lists.map(|ids| ids.as_primitive::<Int32Type>().values().to_vec());
        ids.collect()
    };
    let positions = drawn["position"].as_primitive::<Int64Type>().values();
    let all = json!({
        "windows": lists("original"), "targets": lists("target"), "positions": positions.to_vec(),
    });
    write(dir, "windows.json", all.to_string().as_bytes())
}

/// The changed windows; `none`: by a random word; `many`: ten times as many.
fn tested(dir: &Path, name: &str) -> Result<RecordBatch, String> {
    let (victim, rows) = (table(dir, "victim")?, table(dir, "rows")?);
    let items = if name == "many" { MANY } else { DRAWN };
    let mut params = vec![("items", Value::Int(items))];
    match name {
        "none" => params.push(("orientation", text("random"))),
        _ => params.extend([("orientation", text("state")), ("coverage", text("CS"))]),
    }
    let home = DataHome::nowhere();
    let inputs = [("victim", &victim), ("rows", &rows)];
    let mut made = run("rnn-test", &inputs, &params, BTreeMap::new(), &home)?;
    Ok(made.remove("generated").expect("its first output"))
}

/// What the search takes, from tables to tables.
pub fn test(dir: &Path, name: &str) -> Result<Json, String> {
    timed(|| {
        let rows = tested(dir, name)?;
        let positions = rows["position"].as_primitive::<Int64Type>().values();
        let changed = rows["adversarial"].as_list::<i32>().iter().flatten();
        let tokens = changed.zip(positions).map(|(ids, at)| {
            let ids = ids.as_primitive::<Int32Type>().values();
            ids[*at as usize]
        });
        let tokens: Vec<i32> = tokens.collect();
        Ok(json!({ "items": rows.num_rows(), "tokens": tokens }))
    })
}

/// What keeping account of as many windows takes: all metrics of two layers of 200 units, and their values after each.
pub fn coverage() -> Result<Json, String> {
    const UNITS: usize = 200;
    let numbers = |shift: usize, units: usize| {
        ndarray::Array2::from_shape_fn((10, units), |(step, unit)| {
            ((step * units + unit + shift) as f32 * 0.37).sin()
        })
    };
    let layer = |shift: usize| LayerStates {
        side: Part::Source,
        direction: Direction::Forward,
        h: numbers(shift, UNITS),
        c: Some(numbers(shift + 1, UNITS)),
        gates: "igfo"
            .chars()
            .map(|gate| (gate, numbers(shift + 2, UNITS)))
            .collect(),
    };
    let windows: Vec<[LayerStates; 2]> = (0..DRAWN as usize)
        .map(|window| [layer(window * 31), layer(window * 57)])
        .collect();
    let input = numbers(3, UNITS);
    timed(|| {
        let mut covered = Coverage::new(CoverageSpec {
            steps: 10,
            top_fraction: 0.0,
            threshold: 0.5,
            gate_source: GateSource::Real,
        });
        let mut values = 0;
        for layers in &windows {
            covered
                .record(layers, &input)
                .map_err(|error| error.to_string())?;
            values += covered.values().len();
        }
        Ok(json!({ "items": DRAWN, "values": values }))
    })
}

/// Ours beside PyTorch's search.
pub fn case(bench: &Bench, dir: &str, mirror: Option<&Path>) -> bool {
    let mut words = ours(&["window-data", dir]);
    if let Some(mirror) = mirror {
        words.splice(1..1, ["--mirror".to_owned(), mirror.display().to_string()]);
    }
    if let Err(why) = sample(std::process::Command::new(&words[0]).args(&words[1..])) {
        println!("skipped: {why}\n  `ablate data fetch ptb`, or a mirror with it: --mirror DIR");
        return true;
    }
    let sides = measure(
        vec![
            (
                "a random word, no gradient",
                ours(&["windows", dir, "none"]),
            ),
            ("state and CS", ours(&["windows", dir, "state"])),
            ("PyTorch, autograd", theirs(&bench.torch, &["windows", dir])),
            (
                "state and CS, ten times the windows",
                ours(&["windows", dir, "many"]),
            ),
            (
                "coverage of as many windows alone",
                ours(&["coverage", dir]),
            ),
        ],
        bench.rounds,
    );
    print(
        &format!("RNN-Test: {DRAWN} windows of ten words, ours from tables to tables"),
        &sides,
    );
    let rate = |side: &Side| {
        let per_second = made(side, |made| made["items"].as_f64())? / side.median(|s| s.wall)?;
        let name = &side.name;
        println!("  {name}: {per_second:.1} windows/s (published: 4.6 s for one, 0.2/s)");
        Some(per_second)
    };
    memory(&sides[1], &sides[3]);
    let share = |of: fn(&Sample) -> f64| Some(100.0 * sides[4].median(of)? / sides[1].median(of)?);
    let share = share(|s| s.cpu).zip(share(|s| s.wall));
    target(
        "coverage, of the search's CPU time and wall time",
        share,
        "%",
        10.0,
        false,
    );
    let rates = rate(&sides[1]).zip(rate(&sides[2]));
    let times = rates.map(|(ours, theirs)| ours / theirs);
    let what = "state and CS, ours / PyTorch, windows/s";
    target(what, times.map(|x| (x, x)), "x", 5.0, true);
    absent(&sides);
    same_words(&sides[1], &sides[2])
}

/// What a further window takes: coverage is of one size, tables of what was generated are not.
fn memory(few: &Side, many: &Side) {
    if let Some((few, many)) = few.peak().zip(many.peak()) {
        let each = (many - few) * 1e3 / (MANY - DRAWN) as f64;
        println!(
            "  memory: {few:.0} MB for {DRAWN} windows, {many:.0} MB for {MANY}: {each:.1} kB for each further one"
        );
    }
}

/// Whether a peer with other sums chose the same words, but for a few.
fn same_words(ours: &Side, theirs: &Side) -> bool {
    let tokens = |side: &Side| {
        let first = side.samples.first()?;
        first.made["tokens"].as_array().cloned()
    };
    let Some((ours, theirs)) = tokens(ours).zip(tokens(theirs)) else {
        return true;
    };
    let same = ours.iter().zip(&theirs).filter(|(a, b)| a == b).count();
    println!("  the same word in {same} of {} windows", ours.len());
    same * 10 >= ours.len() * 9
}
