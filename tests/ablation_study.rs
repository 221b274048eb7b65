//! docs/ablation.md is run: its pipeline, on a CSV of our own, with its commands.

use std::fmt::Write;

use serde_json::Value;

use crate::lab::Lab;

/// Short reviews whose words tell their class, most of the time.
fn reviews() -> String {
    let (good, bad) = (["fine", "great", "warm"], ["dull", "poor", "cold"]);
    let mut csv = "text,label,split\n".to_owned();
    for n in 0..180_usize {
        let label = n % 2;
        // One in seven says the opposite of its label, so that no model is perfect.
        let words = if (label == 1) != (n % 7 == 3) {
            good
        } else {
            bad
        };
        let split = ["train", "train", "train", "train", "dev", "test"][n / 2 % 6];
        let (first, second) = (words[n % 3], words[n / 3 % 3]);
        writeln!(csv, "a {first} and {second} film,{label},{split}").unwrap();
    }
    csv
}

#[test]
fn the_study_of_the_docs_runs() {
    let root = env!("CARGO_MANIFEST_DIR");
    let page = std::fs::read_to_string(format!("{root}/docs/ablation.md")).unwrap();
    let pipeline = page.split("```toml\n").nth(1).unwrap();
    let pipeline = pipeline.split("```").next().unwrap();
    assert!(
        pipeline.lines().count() <= 60,
        "{}",
        pipeline.lines().count()
    );
    let lab = Lab::new(pipeline);
    lab.write("reviews.csv", &reviews());
    let commands = page.split("```console\n").nth(1).unwrap();
    let commands = commands.split("```").next().unwrap();
    let commands: Vec<&str> = commands.split("$ ablate ").skip(1).map(str::trim).collect();
    assert_eq!(
        commands,
        ["run", "ablation", "ablation --latex > study.tex"]
    );
    let ran = lab.run();
    assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
    // Variants share what they do not touch: six trainings of three seeds, one tokenization.
    let labels = ran.with("ran");
    let count = |stage: &str| labels.iter().filter(|l| l.starts_with(stage)).count();
    assert_eq!((count("model["), count("tokens")), (18, 1), "{labels:?}");
    let printed = lab
        .ablate(&["ablation", "--json", "--draws", "200"])
        .good()
        .stdout;
    let found: Value = serde_json::from_str(printed.trim()).unwrap();
    let names = found["variants"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|v| v["name"].as_str().unwrap()).collect();
    assert_eq!(names[0], "base");
    assert_eq!(names.len(), 6);
    assert_eq!(found["over"], "items and seeds");
    let values = found["numbers"][0]["values"].as_array().unwrap();
    assert!(values[0]["difference"].is_null());
    for value in &values[1..] {
        assert_eq!(value["of_seeds"].as_array().unwrap().len(), 3);
    }
    let latex = lab
        .ablate(&["ablation", "--latex", "--draws", "200"])
        .good()
        .stdout;
    assert!(
        latex.contains("\\toprule") && latex.contains("\\textbf{"),
        "{latex}"
    );
    assert!(
        latex.contains("95\\% intervals of the difference to the base"),
        "{latex}"
    );
}
