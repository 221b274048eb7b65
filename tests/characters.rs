//! Attacks on characters through the real program: a curve from one run, hardened models, replay.

use std::collections::BTreeMap;

use crate::lab::Lab;
use crate::report::{data, report};

const PIPELINE: &str = include_str!("pipelines/characters.toml");

/// Texts whose class shows in some words.
pub fn texts() -> String {
    const CLASSES: [[&str; 4]; 2] = [
        ["bad", "awful", "poor", "dull"],
        ["good", "great", "fine", "happy"],
    ];
    const OTHERS: [&str; 8] = ["the", "film", "was", "story", "of", "night", "and", "day."];
    let mut lines = "split,label,text\n".to_owned();
    for n in 0..360_usize {
        let split = ["train", "train", "train", "train", "dev", "test"][n / 2 % 6];
        let word = |k: usize| match (n * 7 + k * 5) % 3 {
            0 => CLASSES[n % 2][(n / 3 + k) % 4],
            _ => OTHERS[(n * 3 + k * k + n / 7) % 8],
        };
        let words: Vec<&str> = (0..6 + n % 4).map(word).collect();
        lines.push_str(&format!("{split},{},{}\n", n % 2, words.join(" ")));
    }
    lines
}

fn lab() -> Lab {
    let lab = Lab::new(PIPELINE);
    lab.write("texts.csv", &texts());
    lab
}

fn number(lab: &Lab, output: &str, names: [&str; 3]) -> Option<f64> {
    let rows = lab.rows(output);
    let row = rows.iter().find(|row| {
        let is = |column: &str, name: &str| row[column].as_str() == Some(name);
        is("table", names[0]) && is("row", names[1]) && is("col", names[2])
    });
    row.unwrap_or_else(|| panic!("no cell {names:?}"))["value"].as_f64()
}

/// Which words an attack must not make is known by the texts they come from, before anything is trained.
#[test]
fn known_words_of_other_texts_or_in_another_case_are_refused_before_training() {
    let refused = |from: &str, to: &str| {
        let lab = lab();
        lab.edit(from, to);
        let printed = lab.ablate(&["run"]);
        assert_eq!(printed.code, 2, "{}", printed.stderr);
        assert!(!lab.path(".ablate").exists(), "something ran");
        let lines = printed.stderr.lines();
        let told = lines.filter(|line| line.starts_with("error: ") || line.contains("= help: "));
        told.map(|line| line.trim_start_matches([' ', '|']).to_owned())
            .take(2)
            .collect::<Vec<String>>()
    };
    assert_eq!(
        refused("lowercase = false", "lowercase = true"),
        [
            "error: `rows` are in their own case, and the words of `known_words` in lower case",
            "= help: set the same `lowercase` in both tokenize stages",
        ]
    );
    assert_eq!(
        refused(
            "[stage.words]\nkind = \"tokenize\"\ninputs = { rows = \"texts\" }",
            "[stage.others]\nkind = \"dataset\"\nname = \"reviews-grammar\"\n\n\
             [stage.words]\nkind = \"tokenize\"\ninputs = { rows = \"others\" }",
        ),
        [
            "error: `rows` are texts of `texts.csv`, and `known_words` has words of `reviews-grammar`",
            "= help: connect a tokenize stage that reads the same texts",
        ]
    );
}

#[test]
fn characters_are_attacked_and_models_hardened_end_to_end() {
    let lab = lab();
    lab.run();
    let rate = |adversary: &str, confidence: &str| {
        let rate = number(&lab, "results", ["figure 1", adversary, confidence]);
        rate.expect("there were rows to attack")
    };
    for adversary in ["beam", "greedy", "key-star"] {
        let curve = ["0", "0.5", "0.6", "0.7", "0.8", "0.9"].map(|c| rate(adversary, c));
        assert!(curve.is_sorted_by(|a, b| a >= b), "{adversary}: {curve:?}");
    }
    assert!(rate("beam", "0") > 0.0, "nothing succeeded");
    let shares = ["replace", "insert", "delete"]
        .map(|operation| number(&lab, "results", ["operations", "beam", operation]).unwrap());
    assert!(
        (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9,
        "{shares:?}"
    );
    let changed = number(&lab, "results", ["characters", "beam", "changed"]).unwrap();
    assert!(changed > 0.0 && changed <= 0.2, "{changed}");
    let spearman = number(&lab, "results", ["estimates", "flips", "spearman"]).unwrap();
    assert!(
        (-1.0..=1.0).contains(&spearman) && spearman > 0.0,
        "{spearman}"
    );
    for training in ["white-box", "black-box", "miyato"] {
        assert!(number(&lab, "table-2", ["table 2", training, "accuracy"]).unwrap() > 0.4);
    }
    let replayed = lab.ablate(&["replay"]).good();
    assert!(
        replayed.stdout.contains("7 stages, 420 rows, 0 mismatches"),
        "{}",
        replayed.stdout
    );
    // Keys hold: nothing is computed again.
    lab.run().ran([]);
}

/// The report called an attack failed that had changed the prediction.
#[test]
fn the_report_says_what_a_changed_prediction_lacks() {
    let lab = lab();
    lab.edit("confidence = 0.9", "confidence = 0.9999");
    lab.ablate(&["run", "--quiet", "attacked[adversary=beam]"])
        .good();
    let table = &data(&report(&lab, &[]))["examples"]["tables"][0];
    let mut told = BTreeMap::new();
    for row in table["rows"].as_array().unwrap() {
        let [label, before, after] = [0, 1, 2].map(|n| row[1][n].as_i64().unwrap());
        let text = &table["outcomes"][row[11].as_u64().unwrap() as usize];
        let same = (before == label, after == label, row[2] == true);
        told.insert(same, text.as_str().unwrap().to_owned());
    }
    let changed = told.get(&(true, false, false)).map(String::as_str);
    let expected = "prediction changed, but below the wanted confidence 0.9999";
    assert_eq!(changed, Some(expected), "{told:?}");
    for (same, text) in &told {
        let failed = *same == (true, true, false);
        assert_eq!(text == "attack failed", failed, "{told:?}");
    }
}

#[test]
fn what_characters_lack_is_said_before_anything_runs() {
    let refused = |from: &str, to: &str| {
        let lab = lab();
        lab.edit(from, to);
        let printed = lab.ablate(&["plan"]);
        assert_eq!(printed.code, 2, "{}", printed.stdout);
        printed.stderr
    };
    let told = refused(
        ", known_words = \"words.vocab\" }\nwith = [\"adversary\"]",
        " }\nwith = [\"adversary\"]",
    );
    assert!(told.contains("needs the input `known_words`"), "{told}");
    let told = refused("beam = 4 }", "beam = 0 }");
    assert!(told.contains("`beam` is 0"), "{told}");
    let told = refused("confidence = 0.9", "confidence = 1.9");
    assert!(told.contains("`confidence` is 1.9"), "{told}");
    let told = refused(
        "scheme = \"char-grid\"\nword_width = 8\n",
        "scheme = \"whitespace\"\n",
    );
    assert!(told.contains("char-cnn"), "{told}");
}
