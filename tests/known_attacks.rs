//! Attacks that people know, through the whole program: each changes only what it may, queries are those that the model
//! was asked, `ablate replay` confirms every row, and rows do not depend on threads.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::characters;
use crate::lab::{Lab, digests_of, text};

const PIPELINE: &str = include_str!("pipelines/known_attacks.toml");

/// Adds up weights of words, and says how many texts it is asked about. The first synonym of an adjective means less to
/// it, the second a little of the opposite; the noun means most of all, and so does the synonym of the stop word.
const MODEL: &str = r#"
import math
import ablate

WEIGHTS = {
    "good": 2.0, "fine": 0.5, "decent": -0.8, "goodness": -3.0,
    "great": 2.5, "grand": 1.0, "large": -0.6, "greatness": -3.0,
    "bad": -2.0, "weak": -0.5, "tough": 0.8, "badness": 3.0,
    "poor": -1.5, "modest": -0.7, "humble": 0.5, "poverty": 3.0,
    "extremely": -6.0,
}

def predict(texts):
    print("asked about", len(texts))
    scores = [sum(WEIGHTS.get(word, 0.0) for word in text.split()) for text in texts]
    shares = [1 / (1 + math.exp(-score)) for score in scores]
    return [[1 - share, share] for share in shares]

ablate.serve(predict=predict)
"#;

/// One or two adjectives; the row that teaches the vocabulary all synonyms is not attacked.
fn texts() -> String {
    const ADJECTIVES: [[&str; 2]; 2] = [["bad", "poor"], ["good", "great"]];
    const NOUNS: [&str; 4] = ["film", "story", "music", "actor"];
    let mut lines = "split,label,text\n\
                     train,1,fine decent goodness grand large greatness weak tough badness modest humble poverty very extremely\n"
        .to_owned();
    for n in 0..48_usize {
        let split = ["train", "train", "test"][n / 2 % 3];
        let (one, other) = (NOUNS[n / 6 % 4], NOUNS[(n / 6 + 1) % 4]);
        let adjectives = ADJECTIVES[n % 2];
        let (a, b) = (adjectives[n / 4 % 2], adjectives[(n / 4 + 1) % 2]);
        let text = match n / 2 % 2 {
            0 => format!("the {one} was {a}"),
            _ => format!("the {one} was very {a} and the {other} was {b}"),
        };
        lines.push_str(&format!("{split},{},{text}\n", n % 2));
    }
    lines
}

fn lab() -> Option<Lab> {
    if !Path::new("/usr/bin/python3").is_file() {
        println!("skipped: there is no /usr/bin/python3");
        return None;
    }
    let lab = Lab::new(PIPELINE);
    lab.write("texts.csv", &texts());
    lab.write("letters.csv", &characters::texts());
    lab.write("model.py", MODEL);
    Some(lab)
}

fn strings(row: &Value, column: &str) -> Vec<String> {
    let list = row[column].as_array().unwrap().iter();
    list.map(|word| text(word).to_owned()).collect()
}

fn number(row: &Value, column: &str) -> usize {
    row[column].as_u64().unwrap() as usize
}

fn won(rows: &[Value]) -> usize {
    rows.iter().filter(|row| row["success"] == true).count()
}

/// The words that an attack put in, over all rows.
fn put_in(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().flat_map(|row| strings(row, "new")).collect()
}

#[test]
fn words_are_replaced_by_listed_synonyms_within_the_budget_and_queries_are_those_asked() {
    let Some(lab) = lab() else { return };
    lab.run_with(&["attacked"]);
    let pairs: BTreeSet<(String, String)> = lab
        .rows("synonyms")
        .iter()
        .map(|row| {
            (
                text(&row["source"]).to_owned(),
                text(&row["target"]).to_owned(),
            )
        })
        .collect();
    let rows = |adversary: &str| lab.rows(&format!("attacked[adversary={adversary}].examples"));
    for adversary in ADVERSARIES {
        let rows = rows(adversary);
        assert_eq!(rows.len(), 16, "{adversary}");
        for row in &rows {
            assert_eq!(row["predicted_before"], row["label"], "{row}");
            assert_eq!(
                row["success"],
                row["predicted_after"] != row["label"],
                "{row}"
            );
            for pair in strings(row, "old").into_iter().zip(strings(row, "new")) {
                assert!(pairs.contains(&pair), "{adversary}: {pair:?}");
            }
        }
        // The model says itself how often it was asked: about every row before and after, and by the attack.
        let log = lab.ablate(&["show", &format!("attacked[adversary={adversary}]"), "--log"]);
        let log = log.good().stdout;
        let asked = log
            .lines()
            .filter_map(|line| line.strip_prefix("asked about "));
        let asked: usize = asked.map(|count| count.parse::<usize>().unwrap()).sum();
        let counted: usize = rows.iter().map(|row| number(row, "queries")).sum();
        assert_eq!(asked, 2 * rows.len() + counted, "{adversary}");
    }

    // Adjectives for adjectives, until the prediction changes: one or two words, as many as there are.
    let words =
        |list: &[&str]| -> BTreeSet<String> { list.iter().map(|w| (*w).to_owned()).collect() };
    let fooled = rows("textfooler");
    assert_eq!(won(&fooled), 16);
    let firsts = words(&["fine", "grand", "weak", "modest"]);
    let seconds = words(&["decent", "large", "tough", "humble"]);
    let adjectives: BTreeSet<String> = firsts.union(&seconds).cloned().collect();
    assert!(put_in(&fooled).is_subset(&adjectives) && put_in(&fooled).is_superset(&seconds));
    let lengths = fooled.iter().map(|row| number(row, "words_changed"));
    assert_eq!(lengths.collect::<BTreeSet<_>>(), [1, 2].into());
    // One word turns the rows that have one.
    let one = rows("textfooler-one");
    let most = one.iter().map(|row| number(row, "words_changed")).max();
    let is_short = |row: &&Value| row["original"].as_array().unwrap().len() == 4;
    assert_eq!(
        (won(&one), most),
        (one.iter().filter(is_short).count(), Some(1))
    );
    // The first synonym of each adjective turns none; that of a stop word does, where it may be replaced.
    let first = rows("textfooler-first");
    assert_eq!((won(&first), put_in(&first)), (0, firsts.clone()));
    let stop_words = rows("textfooler-stop-words");
    let with_more: BTreeSet<String> = firsts.union(&words(&["extremely"])).cloned().collect();
    assert_eq!((won(&stop_words), put_in(&stop_words)), (4, with_more));
    // Nouns turn more than adjectives do.
    let untagged = put_in(&rows("textfooler-untagged"));
    assert!(
        untagged.contains("badness") && untagged.contains("greatness"),
        "{untagged:?}"
    );
    let alike = rows("textfooler-alike");
    assert!(
        won(&alike) < won(&fooled) && !put_in(&alike).is_empty(),
        "{}",
        won(&alike)
    );

    let salient = put_in(&rows("pwws"));
    assert_eq!(won(&rows("pwws")), 16);
    assert!(
        salient.contains("extremely") && salient.contains("poverty"),
        "{salient:?}"
    );
    let tagged = rows("pwws-tagged");
    assert!(
        !put_in(&tagged)
            .iter()
            .any(|word| word.ends_with("ness") || word == "poverty")
    );
    assert!(tagged.iter().all(|row| number(row, "words_changed") <= 1));

    let bred = rows("genetic");
    assert!(won(&bred) > 8, "{}", won(&bred));
    for row in &bred {
        let words = row["original"].as_array().unwrap().len();
        assert!(number(row, "words_changed") <= (words / 5).max(1), "{row}");
    }
    let replayed = lab.ablate(&["replay", "attacked"]).good().stdout;
    let said = format!(
        "ablate: all confirmed: {} stages, {} rows, 0 mismatches\n",
        ADVERSARIES.len(),
        16 * ADVERSARIES.len()
    );
    assert!(replayed.ends_with(&said), "{replayed}");
}

const ADVERSARIES: [&str; 9] = [
    "textfooler",
    "textfooler-one",
    "textfooler-first",
    "textfooler-stop-words",
    "textfooler-untagged",
    "textfooler-alike",
    "pwws",
    "pwws-tagged",
    "genetic",
];

#[test]
fn misspelt_words_are_unknown_within_the_budget_and_queries_are_words_and_typos() {
    let Some(lab) = lab() else { return };
    lab.run_with(&["misspelt"]);
    let letters: Vec<String> = lab
        .rows("grid.vocab")
        .iter()
        .map(|row| text(&row["token"]).to_owned())
        .collect();
    let known: BTreeSet<String> = lab
        .rows("words.vocab")
        .iter()
        .map(|row| text(&row["token"]).to_owned())
        .collect();
    let words = |row: &Value, column: &str| -> Vec<String> {
        let ids: Vec<usize> = row[column]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_u64().unwrap() as usize)
            .collect();
        let spelt = ids.chunks(8).map(|word| {
            word.iter()
                .filter(|id| **id != 0)
                .map(|id| letters[*id].as_str())
                .collect()
        });
        spelt.filter(|word: &String| !word.is_empty()).collect()
    };
    let mut all = Vec::new();
    for (point, most, passes) in [("combined", 30, 2), ("replace-1", 4, 1)] {
        let rows = lab.rows(&format!("misspelt[misspelling={point}].examples"));
        assert!(won(&rows) > 0, "{point}: {} of {}", won(&rows), rows.len());
        for row in rows.iter().filter(|row| row["attacked"] == true) {
            let (old, new) = (words(row, "original"), words(row, "adversarial"));
            let edits = strings(row, "operations");
            assert!(
                edits.len() <= most && edits.iter().all(|edit| edit == "replace"),
                "{row}"
            );
            let changed: Vec<_> = old
                .iter()
                .zip(&new)
                .filter(|(old, new)| old != new)
                .collect();
            assert_eq!(
                (old.len(), 2 * changed.len()),
                (new.len(), edits.len()),
                "{row}"
            );
            for (old, new) in changed {
                let sorted = |word: &str| {
                    let mut letters: Vec<char> = word.chars().collect();
                    letters.sort_unstable();
                    letters
                };
                assert_eq!(sorted(old), sorted(new), "a swap");
                assert!(!known.contains(new), "{new} is a word");
            }
            // The importance of each word, and one question after each typo.
            assert_eq!(
                number(row, "queries"),
                passes * old.len() + edits.len() / 2,
                "{row}"
            );
        }
        all.push(rows);
    }
    assert_ne!(all[0], all[1]);
    let replayed = lab.ablate(&["replay", "misspelt"]).good().stdout;
    assert!(
        replayed.ends_with("ablate: all confirmed: 2 stages, 120 rows, 0 mismatches\n"),
        "{replayed}"
    );
}

#[test]
fn rows_are_the_same_on_any_number_of_threads() {
    let Some(lab) = lab() else { return };
    let mut found = Vec::new();
    for threads in ["1", "2", "8"] {
        lab.run_with(&["--store", threads, "--jobs", threads]);
        let printed = lab
            .ablate(&["runs", "last", "--json", "--store", threads])
            .good();
        let mut digests = digests_of(&printed.stdout);
        digests.retain(|output, _| output.ends_with(".examples"));
        assert_eq!(digests.len(), ADVERSARIES.len() + 2);
        found.push(digests);
    }
    assert!(
        found.iter().all(|digests| *digests == found[0]),
        "{found:?}"
    );
}
