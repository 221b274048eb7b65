//! The cases: which processes stand beside each other, and the project's targets.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::characters;
use crate::data::DRAWN;
use crate::greedy;
use crate::projection::BATCHES;
use crate::sample::{Side, measure, print, sample, target};
use crate::windows;
use crate::words;

/// What all cases need.
pub struct Bench {
    /// The Python that has scikit-learn.
    pub python: PathBuf,
    /// The Python that has PyTorch.
    pub torch: PathBuf,
    /// How often to measure.
    pub rounds: u32,
}

/// A case says whether what the sides made is right.
type Case = fn(&Bench, &str) -> bool;

/// The cases that read IMDb and GloVe, in the order in which they are run.
const CASES: [(&str, Case); 4] = [
    ("projection", projection),
    ("linear", linear),
    ("lstm", lstm),
    ("attack", attack),
];

/// Where to get the peers.
const PEERS: &str = "PyPI: python3 -m venv peers && peers/bin/pip install scikit-learn torch, then --python peers/bin/python";

/// Makes the data, then runs the cases that are wanted.
pub fn run(bench: &Bench, dir: &Path, mirror: Option<&Path>, wanted: &[String]) -> bool {
    println!(
        "{} cores, {:?}; load {}",
        threads(),
        nn::numeric::simd::isa(),
        load()
    );
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let mut good = true;
    if is_wanted("characters") {
        let dir = dir.join("characters").display().to_string();
        good &= characters::case(bench, &dir);
    }
    if is_wanted("memory") {
        let dir = dir.join("characters").display().to_string();
        good &= characters::memory(bench, &dir);
    }
    if is_wanted("words") {
        let dir = dir.join("words").display().to_string();
        good &= words::case(bench, &dir, mirror);
    }
    if is_wanted("greedy") {
        let dir = dir.join("greedy").display().to_string();
        good &= greedy::case(bench, &dir, mirror);
    }
    if is_wanted("windows") {
        let dir = dir.join("windows").display().to_string();
        good &= windows::case(bench, &dir, mirror);
    }
    if !CASES.iter().any(|(name, _)| is_wanted(name)) {
        return good;
    }
    let dir = dir.display().to_string();
    let mut words = ours(&["data", &dir]);
    if let Some(mirror) = mirror {
        words.splice(1..1, ["--mirror".to_owned(), mirror.display().to_string()]);
    }
    match sample(Command::new(&words[0]).args(&words[1..])) {
        Ok(made) => println!("IMDb, GloVe and an LSTM of one epoch: {:.1} s", made.wall),
        Err(why) => {
            println!("skipped: {why}");
            println!(
                "  `ablate data fetch glove-6b-50d`, and a mirror with `imdb`: --mirror DIR or ABLATE_MIRROR"
            );
            return good;
        }
    }
    for (name, case) in CASES {
        if is_wanted(name) {
            good &= case(bench, &dir);
        }
    }
    println!("\nload at the end {}", load());
    good
}

pub fn ours(job: &[&str]) -> Vec<String> {
    let program = std::env::current_exe().expect("this program has a path");
    let mut words = vec![program.display().to_string(), "--job".to_owned()];
    words.extend(job.iter().map(|word| (*word).to_owned()));
    words
}

pub fn theirs(python: &Path, job: &[&str]) -> Vec<String> {
    let side = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/attack/side.py");
    let mut words = vec![python.display().to_string(), side.to_owned()];
    words.extend(job.iter().map(|word| (*word).to_owned()));
    words
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How busy the machine is: the kernel's averages over 1, 5 and 15 minutes.
fn load() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first: Vec<&str> = all.split(' ').take(3).collect();
    first.join(" ")
}

/// Says where to get a peer that is not there.
pub fn absent(sides: &[Side]) {
    if sides.iter().any(|side| side.trouble.is_some()) {
        println!("  peers from {PEERS}");
    }
}

/// A number that a side made: the median over rounds.
pub fn made(side: &Side, get: impl Fn(&Value) -> Option<f64>) -> Option<f64> {
    let all = side.samples.iter().map(|sample| get(&sample.made));
    let mut all = all.collect::<Option<Vec<f64>>>()?;
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// First over second, by medians and by best rounds.
fn ratio(over: &Side, under: &Side) -> Option<(f64, f64)> {
    let median = |side: &Side| side.median(|s| s.wall);
    Some((median(over)? / median(under)?, over.best()? / under.best()?))
}

fn projection(bench: &Bench, dir: &str) -> bool {
    let sides = measure(
        vec![
            ("ours", ours(&["best", dir])),
            ("PyTorch", theirs(&bench.torch, &["torch-best", dir])),
            ("NumPy", theirs(&bench.python, &["numpy-best", dir])),
        ],
        bench.rounds,
    );
    println!("\nProjection: the best of 400,000 words x 50 numbers for a batch of directions, ms");
    println!(
        "  (medians of {} rounds; best in brackets; x the limit by best)",
        bench.rounds
    );
    let figure =
        |side: &Side, name: &str, best: usize| made(side, |made| made[name][best].as_f64());
    let least = |side: &Side, name: &str| {
        let all = side.samples.iter().filter_map(|s| s.made[name][1].as_f64());
        all.min_by(f64::total_cmp)
    };
    let (limit, read) = (least(&sides[0], "read"), figure(&sides[0], "read", 0));
    if let Some((limit, read)) = limit.zip(read) {
        println!(
            "  reading the 80 MB once, all cores: {read:.2} ({limit:.2}), {:.1} GB/s",
            80.0 / limit
        );
    }
    if let Some(packed) = figure(&sides[0], "packed", 0) {
        println!("  our table, put in order of size and packed once: {packed:.0}");
    }
    for batch in BATCHES {
        let mut line = format!("  {batch:>3} directions");
        for side in &sides {
            if let Some((median, best)) =
                figure(side, &batch.to_string(), 0).zip(least(side, &batch.to_string()))
            {
                line += &format!("  {} {median:7.2} ({best:6.2})", side.name);
            }
        }
        if let Some((best, limit)) = least(&sides[0], &batch.to_string()).zip(limit) {
            line += &format!("  ours {:.2} x the limit", best / limit);
        }
        println!("{line}");
    }
    let of = |batch: &str| {
        let median = figure(&sides[0], batch, 0)? / read?;
        Some((median, least(&sides[0], batch)? / limit?))
    };
    target("16 directions / reading once", of("16"), "x", 2.0, false);
    absent(&sides);
    same_rows(&sides)
}

/// Whether all sides chose the same words.
fn same_rows(sides: &[Side]) -> bool {
    let rows = |side: &Side| side.samples.first().map(|s| s.made["rows"].clone());
    let ours = rows(&sides[0]);
    let mut good = true;
    for side in &sides[1..] {
        if let Some(theirs) = rows(side)
            && Some(&theirs) != ours.as_ref()
        {
            println!("  WRONG: {} chose other words than we did", side.name);
            good = false;
        }
    }
    good
}

fn linear(bench: &Bench, dir: &str) -> bool {
    let mut good = true;
    let peers = [
        (
            "svm",
            "SVM, 20 passes of SGD, five seeds",
            "scikit-learn SGDClassifier",
        ),
        (
            "bayes",
            "Naive Bayes, twenty fits after the first",
            "scikit-learn MultinomialNB",
        ),
    ];
    for (job, title, peer) in peers {
        let sides = measure(
            vec![
                ("ours", ours(&[job, dir])),
                (peer, theirs(&bench.python, &[job, dir])),
            ],
            bench.rounds,
        );
        print(
            &format!("{title}: 25,000 reviews of IMDb, training alone"),
            &sides,
        );
        let number = |side: &Side, name: &str| made(side, |made| made[name].as_f64());
        for side in &sides {
            if let Some((features, accuracy)) =
                number(side, "features").zip(number(side, "accuracy"))
            {
                println!(
                    "  {}: features before it {features:.3} s; accuracy on 25,000 others {:.2}%",
                    side.name,
                    accuracy * 100.0
                );
            }
        }
        target(
            &format!("ours / {peer}"),
            ratio(&sides[0], &sides[1]),
            "x",
            1.0,
            false,
        );
        let whole = |side: &Side| Some(number(side, "features")? + number(side, "first")?);
        if let Some((mine, other)) = whole(&sides[0]).zip(whole(&sides[1])) {
            let first = |side: &Side| number(side, "first").unwrap_or_default();
            println!(
                "  the first fit, in fresh memory: ours {:.3} s, theirs {:.3} s",
                first(&sides[0]),
                first(&sides[1])
            );
            let times = Some((mine / other, mine / other));
            target(
                "features and first fit, ours / theirs",
                times,
                "x",
                1.0,
                false,
            );
        }
        let accuracies = number(&sides[0], "accuracy").zip(number(&sides[1], "accuracy"));
        let apart = accuracies.map(|(ours, theirs)| (ours - theirs).abs() * 100.0);
        target(
            "accuracies apart",
            apart.map(|a| (a, a)),
            "points",
            0.5,
            false,
        );
        absent(&sides);
        good &= apart.is_none_or(|apart| apart <= 0.5);
    }
    good
}

fn lstm(bench: &Bench, dir: &str) -> bool {
    let sides = measure(
        vec![
            ("ours", ours(&["lstm", dir])),
            (
                "PyTorch, padded",
                theirs(&bench.torch, &["lstm", dir, "padded"]),
            ),
            (
                "PyTorch, packed",
                theirs(&bench.torch, &["lstm", dir, "packed"]),
            ),
        ],
        bench.rounds,
    );
    print(
        "LSTM: 100 steps on IMDb, 250 tokens, 24 reviews, 64 units, frozen GloVe",
        &sides,
    );
    for side in &sides {
        if let Some(loss) = made(side, |made| made["loss"].as_f64()) {
            println!("  {}: mean loss {loss:.3}", side.name);
        }
    }
    for peer in &sides[1..] {
        target(
            &format!("ours / {}", peer.name),
            ratio(&sides[0], peer),
            "x",
            1.0,
            false,
        );
    }
    absent(&sides);
    true
}

fn attack(bench: &Bench, dir: &str) -> bool {
    let sides = measure(
        vec![
            (
                "none: asked before and after",
                ours(&["attack", dir, "none"]),
            ),
            ("swap of 3 words", ours(&["attack", dir, "swap"])),
            ("JSMA, 35 words", ours(&["attack", dir, "jsma"])),
            (
                "PyTorch JSMA, one review at a time",
                theirs(&bench.torch, &["jsma", dir]),
            ),
        ],
        bench.rounds,
    );
    let title =
        format!("Attacks on an LSTM of 64 units: {DRAWN} reviews, ours from tables to tables");
    print(&title, &sides);
    let number = |side: &Side, name: &str| made(side, |made| made[name].as_f64());
    // Ours also asks every review before and after the attack; the peer does not.
    let rate = |side: &Side, asked: f64, less: f64| {
        let seconds = side.median(|s| s.wall)? - less;
        let (forward, backward) = number(side, "forward").zip(number(side, "backward"))?;
        let (items, successes) = number(side, "items").zip(number(side, "successes"))?;
        println!(
            "  {}: {:.0} items/s, {:.0} queries/s ({} forward, {backward} backward; {successes} successes)",
            side.name,
            items / seconds,
            (forward + backward + asked * items) / seconds,
            forward + asked * items,
        );
        Some(items / seconds)
    };
    for side in &sides[1..3] {
        rate(side, 2.0, 0.0);
    }
    println!("  alone, less what `none` takes, the table's packing included:");
    let none = sides[0].median(|s| s.wall).unwrap_or_default();
    let rates = rate(&sides[2], 0.0, none).zip(rate(&sides[3], 0.0, 0.0));
    let times = rates.map(|(ours, theirs)| ours / theirs);
    target(
        "JSMA alone, ours / PyTorch, items/s",
        times.map(|x| (x, x)),
        "x",
        1.0,
        true,
    );
    absent(&sides);
    alike(&sides[2], &sides[3])
}

/// Whether a peer with other sums needed the same numbers of words, but for a few.
pub fn alike(ours: &Side, theirs: &Side) -> bool {
    let words = |side: &Side| {
        side.samples
            .first()
            .and_then(|s| s.made["words"].as_array().cloned())
    };
    let Some((ours, theirs)) = words(ours).zip(words(theirs)) else {
        return true;
    };
    let same = ours.iter().zip(&theirs).filter(|(a, b)| a == b).count();
    println!(
        "  the same number of changes in {same} of {} texts",
        ours.len()
    );
    same * 10 >= ours.len() * 8
}
