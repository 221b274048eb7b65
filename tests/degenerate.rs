//! Results without information are reported, wherever their numbers are shown.

use serde_json::Value;

use crate::lab::Lab;

/// Texts that cannot be told apart, counts of them with two seeds, an attack of size 0 on signals, and results
/// of which one was measured on a single row.
const PIPELINE: &str = include_str!("pipelines/degenerate.toml");

const CLAIMS: &str = include_str!("pipelines/degenerate.claims.toml");

const CONSTANT: &str = "the model predicts class 0 for all 2 rows, which have 2 classes";
const STILL: &str = "`still`: gradient-sign attacked 10 rows and changed none";
const EQUAL: &str = "`bayes[seed=1]` and `bayes[seed=2]` have equal weights in every digit: what differs between them had no effect";
const SINGLE: &str = "`results`: 1 number was measured on a single row (n = 1)";

fn lab() -> Lab {
    let lab = Lab::new(PIPELINE);
    lab.write("claims.toml", CLAIMS);
    lab
}

#[test]
fn what_says_nothing_is_said_to_where_its_number_is_shown() {
    let lab = lab();
    let ran = lab.run();
    let notes = |values: &[Value]| -> Vec<String> {
        let texts = values.iter().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let told: Vec<Value> = ran
        .events
        .iter()
        .map(|event| event["note"].clone())
        .collect();
    let told = notes(&told);
    for note in [CONSTANT, STILL, EQUAL, SINGLE] {
        assert!(
            told.iter().any(|printed| printed.ends_with(note)),
            "run: {note}\n{told:?}"
        );
    }
    // What was cached was reported before.
    let again = lab.run();
    assert!(again.events.iter().all(|event| event["event"] != "note"));

    let shown = lab.ablate(&["show", "results"]).good().stdout;
    for note in [CONSTANT, STILL, EQUAL, SINGLE] {
        assert!(
            shown
                .lines()
                .any(|line| line.starts_with("note     ") && line.ends_with(note)),
            "show: {note}\n{shown}"
        );
    }
    let shown = lab.ablate(&["show", "still"]).good().stdout;
    assert!(
        shown.contains(STILL) && !shown.contains(CONSTANT),
        "{shown}"
    );
    let shown = lab.ablate(&["show", "results", "--json"]).good().stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert!(notes(shown["notes"].as_array().unwrap()).contains(&STILL.to_owned()));
    // A past run says the same of itself.
    let shown = lab.ablate(&["show", "results", "--run", "1"]).good().stdout;
    assert!(shown.contains(CONSTANT) && shown.contains(EQUAL), "{shown}");
    // The numbers are what they were.
    let plain = lab.ablate(&["show", "texts"]).good().stdout;
    assert!(!plain.contains("note"), "{plain}");
}

#[test]
fn claims_say_what_they_rest_on() {
    let lab = lab();
    lab.run();
    let printed = lab.ablate(&["claims"]).good().stdout;
    let note = "rests on numbers measured on a single row (n = 1): 1 of 5 rows of `results`";
    assert_eq!(printed.matches(note).count(), 1, "{printed}");
    assert!(printed.contains(&format!("note: {STILL}\n")), "{printed}");
    let printed = lab.ablate(&["claims", "--json"]).good().stdout;
    let claims: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let has = |claim: &Value, note: &str| {
        let notes = claim["notes"].as_array().unwrap();
        notes
            .iter()
            .any(|printed| printed.as_str().unwrap().ends_with(note))
    };
    assert!(
        has(&claims[0], note) && has(&claims[0], CONSTANT),
        "{printed}"
    );
    assert!(
        !has(&claims[1], note) && has(&claims[1], CONSTANT),
        "{printed}"
    );
}

#[test]
fn reports_say_it_on_the_page_and_beside_it() {
    let lab = lab();
    lab.run();
    let printed = lab.ablate(&["report", "--json"]).good();
    let written: Value = serde_json::from_str(&printed.stdout).unwrap();
    let notes = written["notes"].as_array().unwrap();
    let page = std::fs::read_to_string(lab.path("report.html")).unwrap();
    for note in [CONSTANT, STILL, EQUAL, SINGLE] {
        assert!(
            notes
                .iter()
                .any(|printed| printed.as_str().unwrap().ends_with(note)),
            "{note}\n{notes:?}"
        );
        assert!(printed.stderr.contains(note), "{note}\n{}", printed.stderr);
        let note = note.split('`').next_back().unwrap();
        assert!(page.contains(note), "{note}");
    }
    assert!(page.contains("rests on numbers measured on a single row"));
}
