//! HotFlip on words beside TextAttack's gradient-based word swap: SST-2, a Kim CNN, at most two words.
//!
//! Sentences are read without punctuation (`scheme = "words"`), because TextAttack numbers the words of a text and takes
//! the gradient of the token with that number: only then are they the same. The Kim CNN has the size of P2's `cpu`
//! profile and three epochs.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use serde_json::{Value as Json, json};
use stages::DataHome;
use store::Value;

use crate::cases::{Bench, alike, made, ours, theirs};
use crate::data::{table, write};
use crate::kinds::{here, named, run, text, timed};
use crate::sample::{Sample, Side, measure, print, sample, target};

/// Sentences that are attacked.
const DRAWN: i64 = 500;
/// All of the test set, over which what an attack prepares is spread further.
const ALL: i64 = 1821;
/// What the victim and the rules are made from.
const SETS: [&str; 3] = ["sst2-sentences", "glove-6b-100d", "wordnet-lemmas"];
/// Where to get the peer.
pub const TEXTATTACK: &str = "PyPI: python3 -m venv peers && peers/bin/pip install -c benches/attack/constraints.txt textattack==0.3.11, then --torch peers/bin/python";

/// Makes the tables and the same for TextAttack, unless they are there.
pub fn data(home: &DataHome, dir: &Path) -> Result<Json, String> {
    let done = dir.join("done");
    if done.exists() {
        return timed(|| Ok(json!("there")));
    }
    for name in SETS {
        here(home, name)?;
    }
    std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
    timed(|| {
        let kind = |kind: &str, inputs: &[(&str, &RecordBatch)], params: &[(&str, Value)]| {
            run(kind, inputs, params, BTreeMap::new(), home)
        };
        let [sentences, glove, lemmas] = SETS.map(|name| named(home, name));
        let (sentences, glove, lemmas) = (sentences?, glove?, lemmas?);
        let words = [("scheme", text("words")), ("max_len", Value::Int(56))];
        let words = kind("tokenize", &[("rows", &sentences)], &words)?;
        let (rows, vocab) = (&words["tokens"], &words["vocab"]);
        let vectors = [("source", text("vectors")), ("scale", Value::Float(0.25))];
        let inputs = [("vocab", vocab), ("vectors", &glove)];
        let vectors = kind("embed", &inputs, &vectors)?;
        let network = [
            ("model", text("kim-cnn")),
            ("kernels", Value::Int(100)),
            ("dropout", Value::Float(0.5)),
            ("vectors", text("trained")),
            ("optimiser", text("adadelta")),
            ("learning_rate", Value::Float(1.0)),
            ("adadelta_rho", Value::Float(0.95)),
            ("batch", Value::Int(50)),
            ("epochs", Value::Int(3)),
        ];
        let inputs = [("rows", rows), ("vectors", &vectors["vectors"])];
        let trained = kind("train", &inputs, &network)?;
        for (name, table) in [
            ("rows", rows),
            ("vocab", vocab),
            ("lemmas", &lemmas),
            ("victim", &trained["weights"]),
        ] {
            let bytes = store::encode(table).map_err(|error| error.to_string())?;
            write(dir, &format!("{name}.parquet"), &bytes)?;
        }
        let drawn = attacked(dir, "none", DRAWN)?;
        plain(dir, &drawn, vocab, &trained["weights"])?;
        write(dir, "done", b"")?;
        Ok(json!({ "rows": rows.num_rows(), "words": vocab.num_rows() }))
    })
}

/// The same for TextAttack: weights by name, sentences and words, and the words that stay.
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
    let sentences: Vec<Vec<i32>> = drawn["original"]
        .as_list::<i32>()
        .iter()
        .flatten()
        .map(|ids| ids.as_primitive::<Int32Type>().values().to_vec())
        .collect();
    let labels = drawn["label"].as_primitive::<Int64Type>().values().to_vec();
    let all = json!({
        "sentences": sentences, "labels": labels, "words": words, "stop_words": stop_words::get("en"),
    });
    write(dir, "words.json", all.to_string().as_bytes())
}

/// The examples of `none`, or of `hotflip-words` with these rules: `any`, `cosine` or `all`.
fn attacked(dir: &Path, rules: &str, items: i64) -> Result<RecordBatch, String> {
    let (ports, name): (&[&str], _) = match rules {
        "none" => (&["victim", "rows"], "none"),
        "all" => (&["victim", "rows", "vocab", "lemmas"], "hotflip-words"),
        _ => (&["victim", "rows", "vocab"], "hotflip-words"),
    };
    let tables: Result<Vec<RecordBatch>, String> =
        ports.iter().map(|port| table(dir, port)).collect();
    let tables = tables?;
    let inputs: Vec<(&str, &RecordBatch)> = ports.iter().copied().zip(&tables).collect();
    let mut params = vec![("attack", text(name)), ("items", Value::Int(items))];
    if matches!(rules, "any" | "cosine") {
        params.extend([
            ("same_part_of_speech", Value::Bool(false)),
            ("other_lexeme", Value::Bool(false)),
        ]);
    }
    if rules == "any" {
        params.push(("similarity", Value::Float(-1.0)));
    }
    let home = DataHome::nowhere();
    let mut made = run("attack", &inputs, &params, BTreeMap::new(), &home)?;
    Ok(made.remove("examples").expect("an output of every attack"))
}

/// What one attack takes, from tables to tables.
pub fn attack(dir: &Path, rules: &str, items: &str) -> Result<Json, String> {
    let items = items.parse().map_err(|_| format!("`{items}` items"))?;
    timed(|| {
        let examples = attacked(dir, rules, items)?;
        let flips = examples["positions"].as_list::<i32>();
        let flips: Vec<usize> = flips.iter().flatten().map(|list| list.len()).collect();
        let successes = examples["success"].as_boolean().true_count();
        let looks = examples["backward"].as_primitive::<Int64Type>().values();
        Ok(json!({
            "items": examples.num_rows(), "successes": successes, "words": flips,
            "backward": looks.iter().sum::<i64>(),
        }))
    })
}

/// Ours less what `none` takes, beside TextAttack's search.
pub fn case(bench: &Bench, dir: &str, mirror: Option<&Path>) -> bool {
    let mut words = ours(&["word-data", dir]);
    if let Some(mirror) = mirror {
        words.splice(1..1, ["--mirror".to_owned(), mirror.display().to_string()]);
    }
    if let Err(why) = sample(std::process::Command::new(&words[0]).args(&words[1..])) {
        println!("skipped: {why}\n  `ablate data fetch {}`", SETS.join(" "));
        println!("  SST-2 comes from a mirror: --mirror DIR or ABLATE_MIRROR");
        return true;
    }
    let one = |rules: &str, items: i64| ours(&["words", dir, rules, &items.to_string()]);
    let peer = |rules: &str| theirs(&bench.torch, &["words", dir, rules]);
    let sides = measure(
        vec![
            ("none: asked before and after", one("none", DRAWN)),
            ("none, all 1,821 sentences", one("none", ALL)),
            ("hotflip-words, cosine above 0.8", one("cosine", DRAWN)),
            ("hotflip-words, any word", one("any", DRAWN)),
            ("hotflip-words, all rules", one("all", DRAWN)),
            ("the same, all 1,821 sentences", one("all", ALL)),
            ("TextAttack, cosine above 0.8", peer("cosine")),
            ("TextAttack, any word", peer("any")),
        ],
        bench.rounds,
    );
    print(
        &format!(
            "HotFlip on words of a Kim CNN: {DRAWN} sentences of SST-2, at most two words, ours from tables to tables"
        ),
        &sides,
    );
    rates(&sides);
    if sides.iter().any(|side| side.trouble.is_some()) {
        println!("  TextAttack from {TEXTATTACK}");
    }
    alike(&sides[3], &sides[7])
}

/// Sentences per second, and ours beside TextAttack's with what differs.
fn rates(sides: &[Side]) {
    println!("  alone, less what `none` takes, what it prepares included:");
    let number = |n: usize, name: &str| made(&sides[n], |made| made[name].as_f64());
    let rate = |n: usize, less: Option<usize>, of: fn(&Sample) -> f64| {
        let none = less.map_or(Some(0.0), |less| sides[less].median(of))?;
        Some(number(n, "items")? / (sides[n].median(of)? - none))
    };
    let told = |n: usize, less: Option<usize>| {
        let (wall, cpu) = (rate(n, less, |s| s.wall)?, rate(n, less, |s| s.cpu)?);
        println!(
            "  {}: {wall:.1} sentences/s, {cpu:.1} per CPU second; {} successes, {} gradients",
            sides[n].name,
            number(n, "successes")?,
            number(n, "backward")?
        );
        Some((wall, cpu))
    };
    let [cosine, any, all] = [2, 3, 4].map(|n| told(n, Some(0)));
    let whole = told(5, Some(1));
    let [peer_cosine, peer_any] = [6, 7].map(|n| told(n, None));
    for (what, ours, theirs) in [
        ("cosine above 0.8, ours / TextAttack", cosine, peer_cosine),
        ("all rules / TextAttack's cosine", all, peer_cosine),
        ("the same, all 1,821 sentences", whole, peer_cosine),
        ("any word, ours / TextAttack", any, peer_any),
    ] {
        let times = ours.zip(theirs);
        let wall = times.map(|(ours, theirs)| ours.0 / theirs.0);
        target(
            &format!("{what}, sentences/s"),
            wall.map(|x| (x, x)),
            "x",
            100.0,
            true,
        );
        if let Some((ours, theirs)) = times {
            println!("    by CPU time {:.1} x", ours.1 / theirs.1);
        }
    }
    println!(
        "  with any word both sides choose from the same flips; with a cosine TextAttack gives up if the best flip of all"
    );
    println!(
        "  words breaks the rule, and we take the best that keeps it; it checks neither parts of speech nor base forms here"
    );
}
