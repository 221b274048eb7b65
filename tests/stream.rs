//! `ablate attack-stream`: samples in, perturbed samples out, for as long as they come.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use wait4::Wait4;

use crate::lab::Lab;

const PIPELINE: &str = include_str!("pipelines/stream.toml");

/// What comes out for what goes in, and the peak of memory in bytes.
fn piped(
    lab: &Lab,
    arguments: &[&str],
    input: impl Iterator<Item = String> + Send,
) -> (Vec<String>, u64) {
    let mut command = lab.command(&[&["attack-stream"], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let lines = std::thread::scope(|scope| {
        scope.spawn(move || {
            for line in input {
                if writeln!(to, "{line}").is_err() {
                    break;
                }
            }
        });
        let lines = BufReader::new(from).lines().map(Result::unwrap);
        // A long answer is looked at as it comes: the test must not grow either.
        lines.fold((Vec::new(), 0u64), |(mut kept, n), line| {
            if n < 300 {
                kept.push(line);
            }
            (kept, n + 1)
        })
    });
    let used = child.wait4().unwrap();
    assert!(used.status.success());
    let (mut kept, count) = lines;
    kept.push(count.to_string());
    (kept, used.rusage.maxrss)
}

#[test]
fn a_stream_gives_what_the_stage_gives() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    // What the stages say of themselves is true, limits included.
    lab.ablate(&["replay"]).good();
    let rows = lab.rows("sign");
    let numbers = |row: &serde_json::Value, name: &str| -> Vec<f32> {
        let list = row[name].as_array().unwrap().iter();
        list.map(|x| x.as_f64().unwrap() as f32).collect()
    };
    for row in &rows[..2] {
        let label = row["label"].to_string();
        let (x, expected) = (numbers(row, "original"), numbers(row, "adversarial"));
        let json = x.iter().map(|x| format!("[{x}]"));
        let (printed, _) = piped(&lab, &["sign", "--label", &label], json);
        let printed: Vec<f32> = printed[..100]
            .iter()
            .map(|line| serde_json::from_str::<Vec<f32>>(line).unwrap()[0])
            .collect();
        assert_eq!(printed, expected);
        let twice = x.iter().map(f32::to_string);
        let twice = twice
            .chain([String::new()])
            .chain(x.iter().map(f32::to_string));
        let (printed, _) = piped(
            &lab,
            &["sign", "--label", &label],
            twice.collect::<Vec<_>>().into_iter(),
        );
        assert_eq!(printed[201], "201", "an empty line begins anew");
        assert_eq!(printed[..100], printed[101..201]);
        let plain: Vec<f32> = printed[..100].iter().map(|x| x.parse().unwrap()).collect();
        assert_eq!(plain, expected);
    }
}

/// A million samples need the memory of a thousand.
#[test]
fn a_million_samples_are_perturbed_in_constant_memory() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    let samples = |n: u32| (0..n).map(|k| (0.11 * f64::from(k)).sin().to_string());
    let (few, small) = piped(&lab, &["sign", "--label", "0"], samples(1_000));
    let (many, large) = piped(&lab, &["sign", "--label", "0"], samples(1_000_000));
    assert_eq!(many.last().unwrap(), "1000000");
    assert_eq!(
        few[..300],
        many[..300],
        "the first do not depend on the rest"
    );
    let more = large.saturating_sub(small);
    assert!(more < 4 << 20, "{more} bytes more for 999,000 samples more");
}

#[test]
fn a_stream_says_what_is_wrong() {
    let lab = Lab::new(PIPELINE);
    let fail = |arguments: &[&str], input: &str| {
        let mut command = lab.command(&[&["attack-stream"], arguments].concat());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may have ended before it reads.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let printed = child.wait_with_output().unwrap();
        assert_eq!(printed.status.code(), Some(2));
        String::from_utf8(printed.stderr).unwrap()
    };
    lab.run_with(&["signals"]);
    assert_eq!(
        fail(&["sign"], ""),
        "error: `gru` has not been run\n |\n = help: ablate run 'gru'\n"
    );
    lab.run();
    assert_eq!(
        fail(&["sign"], ""),
        "error: there is no goal: neither a label nor a target class is given\n |\n = help: pass the true class with --label CLASS, or set `target` in the stage\n"
    );
    assert_eq!(
        fail(&["swept", "--label", "0"], ""),
        "error: `swept` has several instances\n |\n = help: name one: ablate attack-stream 'swept[alpha=0.1]'\n"
    );
    assert_eq!(
        fail(&["gru", "--label", "0"], ""),
        "error: `gru` is not an attack stage\n |\n = help: `ablate kinds attack` describes those that perturb samples as they arrive\n"
    );
    assert_eq!(
        fail(&["whole", "--label", "0"], ""),
        "error: the attack `optimal-control` does not perturb samples as they arrive\n |\n = help: choose gradient-sign, fixed-point or dynamic\n"
    );
    assert_eq!(
        fail(&["started", "--label", "0"], ""),
        "error: `start` is drawn for each row of a table, and a stream has none\n |\n = help: leave it out: --set STAGE.start=0\n"
    );
    assert_eq!(
        fail(&["targeted", "--label", "0"], ""),
        "error: `targeted` has a target, so --label would have no effect\n |\n = help: omit --label\n"
    );
    assert_eq!(
        fail(&["sign", "--label", "7"], ""),
        "error: the label is 7, but the model has 2 classes\n |\n = help: it must be at most 1\n"
    );
    assert_eq!(
        fail(&["sign", "--label", "0"], &"1".repeat((1 << 24) + 9)),
        "error: line 1: it is longer than 16777216 bytes\n |\n = help: put each sample on its own line\n"
    );
    assert_eq!(
        fail(
            &["sign", "--label", "0"],
            &format!("0.1\n{}", "x".repeat(99))
        ),
        format!(
            "error: line 2: `{0}…` is not a sample: `{0}…` is not a number\n |\n = help: a sample is 0.1,0.2 or [0.1, 0.2]\n",
            "x".repeat(60)
        )
    );
    assert_eq!(
        fail(&["sign", "--label", "0"], "0.1\n0.2,0.3\n"),
        "error: line 2: 2 numbers, but the model reads 1 in a sample\n"
    );
    assert_eq!(
        fail(&["sign", "--label", "0"], "zero\n"),
        "error: line 1: `zero` is not a sample: `zero` is not a number\n |\n = help: a sample is 0.1,0.2 or [0.1, 0.2]\n"
    );
    assert_eq!(
        fail(&["sign", "--label", "0"], "0.1\n[1e39]\n"),
        "error: line 2: 1e39 does not fit in 32 bits\n |\n = help: numbers are between -3.4e38 and 3.4e38: scale the samples as the training data was\n"
    );
    assert_eq!(
        fail(&["sign", "--label", "0"], "NaN\n"),
        "error: line 1: NaN is not a finite number\n |\n = help: leave out samples without a value, or impute them\n"
    );
}

/// What is read need not be text.
#[test]
fn a_stream_names_the_byte_that_is_no_text() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    let mut command = lab.command(&["attack-stream", "sign", "--label", "0"]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(b"0.1\n0.2\xff\n");
    let printed = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(printed.stderr).unwrap(),
        "error: line 2: byte 4 is 0xff, which is not UTF-8\n |\n = help: samples are text: 0.1,0.2 or [0.1, 0.2]\n"
    );
}

/// `--json` is an object a line whatever came in; without it answers have the form of the question.
#[test]
fn a_stream_in_json_is_objects() {
    let lab = Lab::new(PIPELINE);
    lab.run();
    let lines = ["0.5", "[0.25]", "", "0.5"].map(str::to_owned);
    let (plain, _) = piped(&lab, &["sign", "--label", "0"], lines.clone().into_iter());
    let asked = ["--json", "sign", "--label", "0", "--probabilities"];
    let (printed, _) = piped(&lab, &asked, lines.into_iter());
    let read = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let printed: Vec<_> = printed[..3].iter().map(read).collect();
    let places = printed
        .iter()
        .map(|o| (o["sequence"].as_u64(), o["step"].as_u64()));
    let expected = [(0, 0), (0, 1), (1, 0)].map(|(a, b)| (Some(a), Some(b)));
    assert!(places.eq(expected));
    assert_eq!(
        plain[0].parse::<f32>().unwrap(),
        printed[0]["x"][0].as_f64().unwrap() as f32
    );
    assert_eq!(read(&plain[1]), printed[1]["x"]);
    assert_eq!(
        (plain[2].as_str(), printed[2]["x"][0].clone()),
        ("", printed[0]["x"][0].clone())
    );
    assert_eq!(printed[0]["p"].as_array().unwrap().len(), 2);
}
