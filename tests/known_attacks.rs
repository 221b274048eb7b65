//! Attacks that people know, on real sentences and with real synonyms, through the real program and `ablate replay`.
//! Skipped with a word where ABLATE_MIRROR does not name a folder with the data.

use std::collections::BTreeSet;

use crate::lab::{Lab, text};

const PIPELINE: &str = include_str!("pipelines/known_attacks.toml");

fn lab() -> Option<Lab> {
    let mirror = std::env::var_os("ABLATE_MIRROR").map(std::path::PathBuf::from);
    let has = |name: &str| {
        mirror
            .as_ref()
            .is_some_and(|mirror| mirror.join(name).is_dir())
    };
    if !(has("sst2_sentences") && has("counterfit")) {
        println!("skipped: ABLATE_MIRROR names no folder with sst2_sentences and counterfit");
        return None;
    }
    Some(Lab::new(PIPELINE))
}

#[test]
fn synonyms_of_counter_fitted_vectors_turn_real_sentences_and_all_is_replayed() {
    let Some(lab) = lab() else { return };
    let ran = lab.run_with(&["attacked"]);
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    let printed = lab.ablate(&["export", "counterfit", "--csv"]).good().stdout;
    let mut lines = printed
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| header.iter().position(|known| *known == name).unwrap();
    let (word, other) = (column("word"), column("other"));
    let pairs: BTreeSet<(String, String)> = lines
        .map(|row| (row[word].to_owned(), row[other].to_owned()))
        .collect();
    assert!(pairs.len() > 100_000, "{}", pairs.len());
    let rows = |adversary: &str| lab.rows(&format!("attacked[adversary={adversary}].examples"));
    let clean = rows("clean");
    let right = clean
        .iter()
        .filter(|row| row["label"] == row["predicted_before"])
        .count();
    assert!(right > 60, "{right} of {}", clean.len());
    for adversary in ["textfooler", "pwws", "genetic"] {
        let attacked = rows(adversary);
        let won = attacked.iter().filter(|row| row["success"] == true);
        println!("{adversary}: {} of {right}", won.clone().count());
        assert!(won.clone().count() > 5, "{adversary}");
        for row in won {
            let words = |column: &str| text(&row[column]).split(' ').map(str::to_owned);
            let changed = words("original_text").zip(words("adversarial_text"));
            let changed: Vec<_> = changed.filter(|(old, new)| old != new).collect();
            assert!(!changed.is_empty(), "{row}");
            for pair in changed {
                assert!(
                    pairs.contains(&pair),
                    "{adversary}: {pair:?} are no synonyms"
                );
            }
        }
    }
    let replayed = lab.ablate(&["replay", "attacked"]).good().stdout;
    assert!(replayed.contains(" 0 mismatches"), "{replayed}");
}

#[test]
fn deepwordbug_misspells_real_sentences_and_how_words_are_ranked_matters() {
    let Some(lab) = lab() else { return };
    let ran = lab.run_with(&["misspelt"]);
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    let rows = |point: &str| lab.rows(&format!("misspelt[misspelling={point}].examples"));
    let changed = |point: &str| {
        let rows = rows(point);
        let won = rows.iter().filter(|row| row["success"] == true).count();
        println!("{point}: {won} of {}", rows.len());
        assert!(won > 5, "{point}: {won}");
        rows
    };
    assert_ne!(changed("combined"), changed("replace-1"));
    let replayed = lab.ablate(&["replay", "misspelt"]).good().stdout;
    assert!(replayed.contains(" 0 mismatches"), "{replayed}");
}
