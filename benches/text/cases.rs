//! The cases: which processes stand beside each other, and the project's targets.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sample::{Side, measure, print, sample, target};

/// What all cases need.
pub struct Bench {
    /// The Python that has the peers.
    pub python: PathBuf,
    /// A folder of copies of the data sets' files.
    pub mirror: Option<PathBuf>,
    /// How often to measure.
    pub rounds: u32,
}

/// A case says whether what the sides made is right.
type Case = fn(&Bench) -> bool;

/// All cases, in the order in which they are run.
pub const CASES: [(&str, Case); 3] = [("imdb", imdb), ("glove", glove), ("skip-gram", skip_gram)];

/// The words of the training split of Penn Treebank, line ends not counted.
const PTB_WORDS: f64 = 887_521.0;

impl Bench {
    /// This program with a job.
    fn ours(&self, job: &[&str]) -> Vec<String> {
        let program = std::env::current_exe().expect("this program has a path");
        let mut words = vec![program.display().to_string()];
        if let Some(mirror) = &self.mirror {
            words.extend(["--mirror".to_owned(), mirror.display().to_string()]);
        }
        words.push("--job".to_owned());
        words.extend(job.iter().map(|word| (*word).to_owned()));
        words
    }

    /// The peers' program with a job.
    fn theirs(&self, job: &[&str]) -> Vec<String> {
        let side = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/text/side.py");
        let mut words = vec![self.python.display().to_string(), side.to_owned()];
        words.extend(job.iter().map(|word| (*word).to_owned()));
        words
    }

    /// One job of ours whose figures do not count.
    fn prepare(&self, job: &[&str]) -> Result<Value, String> {
        let words = self.ours(job);
        sample(Command::new(&words[0]).args(&words[1..])).map(|sample| sample.made)
    }

    /// Whether a set is here; if not, says how to get it.
    fn has(&self, title: &str, set: &str) -> bool {
        match self.prepare(&["here", set]) {
            Ok(_) => true,
            Err(why) => {
                println!("\n{title}\n  skipped: {why}");
                false
            }
        }
    }
}

fn figure(side: &Side, of: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
    Some((of(side.median(|s| s.wall)?), of(side.best()?)))
}

fn made<'a>(side: &'a Side, key: &str) -> Option<&'a Value> {
    side.samples.first().map(|sample| &sample.made[key])
}

fn expect(side: &Side, key: &str, expected: u64) -> bool {
    let found = made(side, key).and_then(Value::as_u64);
    let right = found.is_none_or(|found| found == expected);
    if !right {
        println!(
            "  WRONG: {} made {found:?} {key}, not {expected}",
            side.name
        );
    }
    right
}

fn imdb(bench: &Bench) -> bool {
    let title = "IMDb: 50,000 reviews in a tar.gz to a table of token ids";
    if !bench.has(title, "imdb") {
        return true;
    }
    let mirror = bench.mirror.as_deref().unwrap_or(Path::new("."));
    let archive = mirror.join("imdb/aclImdb_labelled.tar.gz");
    let archive = archive.display().to_string();
    let program = env!("CARGO_BIN_EXE_ablate");
    let sides = measure(
        vec![
            ("tar.gz to token table", bench.ours(&["tokens"])),
            ("  of which tar.gz to rows", bench.ours(&["rows"])),
            ("  of which rows to tokens", bench.ours(&["tokenize"])),
            (
                "  gzip alone (zlib-rs), one thread",
                bench.ours(&["inflate"]),
            ),
            (
                "Python tarfile to strings",
                bench.theirs(&["tar", &archive]),
            ),
            (
                "HF tokenizers, strings to ids",
                bench.theirs(&["tokenizers", &archive]),
            ),
            (
                "scikit-learn CountVectorizer, strings to counts",
                bench.theirs(&["count-vectorizer", &archive]),
            ),
        ],
        bench.rounds,
    );
    print(title, &sides);
    let bytes = made(&sides[1], "bytes")
        .and_then(Value::as_f64)
        .unwrap_or_default();
    let rate = |seconds: f64| bytes / 1e6 / seconds;
    target(
        "tar.gz to token table",
        figure(&sides[0], rate),
        "MB of text/s",
        150.0,
        true,
    );
    let peak = sides[0].peak().map(|peak| (peak, peak));
    target(
        "peak memory",
        peak,
        "MB",
        (3.0 * bytes / 1e6).round(),
        false,
    );
    for (side, name) in [(&sides[5], "HF tokenizers"), (&sides[6], "CountVectorizer")] {
        let theirs = figure(side, |s| s).zip(figure(&sides[2], |s| s));
        let ratio = theirs.map(|(theirs, ours)| (theirs.0 / ours.0, theirs.1 / ours.1));
        target(
            &format!("{name} / ours, strings to ids"),
            ratio,
            "x",
            1.0,
            true,
        );
    }
    whole_program(program, bench, bytes);
    expect(&sides[1], "rows", 50_000) & expect(&sides[4], "rows", 50_000)
}

/// The same through `ablate run`, with both tables in the store.
fn whole_program(program: &str, bench: &Bench, bytes: f64) {
    let mut walls = Vec::new();
    for _ in 0..bench.rounds {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let pipeline = "[stage.rows]\nkind = \"dataset\"\nname = \"imdb\"\n[stage.tokens]\nkind = \"tokenize\"\ninputs = { rows = \"rows\" }\nscheme = \"words\"\n";
        if std::fs::write(dir.path().join("pipeline.toml"), pipeline).is_err() {
            return;
        }
        let mut command = Command::new(program);
        command.args(["run", "--quiet"]).current_dir(dir.path());
        if let Some(mirror) = &bench.mirror {
            command.env("ABLATE_MIRROR", mirror);
        }
        let start = std::time::Instant::now();
        match command.output() {
            Ok(output) if output.status.success() => walls.push(start.elapsed().as_secs_f64()),
            _ => return println!("  ablate run: failed"),
        }
    }
    walls.sort_by(f64::total_cmp);
    let (median, best) = (walls[walls.len() / 2], walls[0]);
    println!(
        "  ablate run, rows and tokens stored and synced: median {median:.3} s ({:.0} MB/s), best {best:.3} s ({:.0} MB/s)",
        bytes / 1e6 / median,
        bytes / 1e6 / best
    );
}

fn glove(bench: &Bench) -> bool {
    let title = "GloVe: 400,000 words x 50 numbers to Parquet, and back";
    if !bench.has(title, "glove-6b-50d") {
        return true;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (text, store) = (path("glove.txt"), path("store"));
    let put = bench
        .prepare(&["text", &text])
        .and_then(|_| bench.prepare(&["glove-text", &text, &store]));
    let put = match put {
        Ok(put) => put,
        Err(why) => {
            println!("\n{title}\n  failed: {why}");
            return false;
        }
    };
    let digest = put["digest"].as_str().unwrap_or_default();
    let sides = measure(
        vec![
            (
                "text to Parquet",
                bench.ours(&["glove-text", &text, &store]),
            ),
            ("bz2 to Parquet", bench.ours(&["glove-bz2", &store])),
            (
                "bz2 alone (one thread), to a file",
                bench.ours(&["text", &path("again.txt")]),
            ),
            (
                "load again from the store",
                bench.ours(&["glove-load", &store, digest]),
            ),
            (
                "pandas read_csv of the text",
                bench.theirs(&["read-csv", &text]),
            ),
        ],
        bench.rounds,
    );
    print(title, &sides);
    target("text to Parquet", figure(&sides[0], |s| s), "s", 1.5, false);
    target("load again", figure(&sides[3], |s| s), "s", 0.15, false);
    let all = [0, 1, 3, 4];
    all.iter().all(|n| expect(&sides[*n], "rows", 400_000))
}

fn skip_gram(bench: &Bench) -> bool {
    let title = "Skip-gram: Penn Treebank, 100 numbers, window 5, 5 negatives, 5 epochs";
    if !bench.has(title, "ptb") {
        return true;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let corpus = dir.path().join("ptb.txt").display().to_string();
    if let Err(why) = bench.prepare(&["corpus", &corpus]) {
        println!("\n{title}\n  failed: {why}");
        return false;
    }
    let sides = measure(
        vec![
            (
                "ours, the same on any number of threads",
                bench.ours(&["skip-gram", "100", "5"]),
            ),
            (
                "gensim Word2Vec, two workers",
                bench.theirs(&["word2vec", &corpus, "100", "5"]),
            ),
        ],
        bench.rounds,
    );
    print(title, &sides);
    for side in &sides {
        if let Some((median, best)) = figure(side, |s| PTB_WORDS * 5.0 / s / 1e3) {
            println!(
                "  {}: {median:.0} thousand words/s, best {best:.0}",
                side.name
            );
        }
    }
    let times = figure(&sides[0], |s| s).zip(figure(&sides[1], |s| s));
    let ratio = times.map(|(ours, theirs)| (ours.0 / theirs.0, ours.1 / theirs.1));
    target("ours / gensim", ratio, "x", 1.5, false);
    // Wall time on a busy machine is mostly waiting; CPU time is not.
    let cpu = sides[0].median(|s| s.cpu).zip(sides[1].median(|s| s.cpu));
    let cpu = cpu.map(|(ours, theirs)| (ours / theirs, ours / theirs));
    target("ours / gensim, CPU time", cpu, "x", 1.5, false);
    let hits = |side| made(side, "hits").and_then(Value::as_u64);
    for side in &sides {
        if let Some(hits) = hits(side) {
            println!(
                "  {}: {hits} of 50 words have one of their group near",
                side.name
            );
        }
    }
    // By chance it would be none or one.
    hits(&sides[0]).is_none_or(|hits| hits >= 25)
}
