//! From texts to vectors through the real program: the examples of the kinds, and neighbours.

use crate::lab::{Lab, text};

fn example(kind: &str) -> Lab {
    let root = env!("CARGO_MANIFEST_DIR");
    Lab::new(&std::fs::read_to_string(format!("{root}/stages/kinds/{kind}/example.toml")).unwrap())
}

#[test]
fn the_example_of_tokenize_makes_what_its_readme_says() {
    let lab = example("tokenize");
    lab.run().ran(["reviews", "tokens"]);
    let readme = include_str!("../stages/kinds/tokenize/README.md");
    for row in lab.rows("tokens.tokens") {
        let ids: Vec<String> = row["ids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.to_string())
            .collect();
        let (split, ids) = (text(&row["split"]), ids.join(", "));
        let line = format!(
            "| {} | {split} | {} | [{ids}] | {} |",
            row["id"], row["label"], row["len"]
        );
        assert!(readme.contains(&line), "{line}");
    }
}

#[test]
fn neighbours_of_a_word_are_printed() {
    let lab = example("embed");
    lab.run().ran(["reviews", "tokens", "vectors"]);
    let printed = lab
        .ablate(&["show", "vectors", "--nearest", "film", "-n", "3"])
        .good();
    assert_eq!(printed.stdout.lines().count(), 3, "{}", printed.stdout);
    let json = lab
        .ablate(&["show", "vectors", "--nearest", "film", "--json"])
        .good();
    let first: serde_json::Value =
        serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
    assert!(
        printed
            .stdout
            .lines()
            .next()
            .unwrap()
            .ends_with(text(&first["word"]))
    );
    let wrong = lab.ablate(&["show", "vectors", "--nearest", "flm"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("`film`"),
        "{}",
        wrong.stderr
    );
    let none = lab.ablate(&["show", "reviews", "--nearest", "film"]);
    assert!(
        none.code == 2 && none.stderr.contains("has no vectors"),
        "{}",
        none.stderr
    );
}

/// A word more in the test split must not change what the training split decides.
#[test]
fn only_the_training_split_decides_the_vocabulary() {
    let lab = example("embed");
    lab.run();
    let before = lab.digests();
    lab.edit(
        "a cold and tedious film\" },",
        "a cold and tedious film\" },\n    { id = 2, split = \"test\", label = 0, text = \"unseen\" },",
    );
    // The vocabulary is the same bytes; the tokens are not, and skip-gram reads both.
    lab.run().ran(["reviews", "tokens", "vectors"]);
    let after = lab.digests();
    assert_eq!(before["tokens.vocab"], after["tokens.vocab"]);
    assert_ne!(before["tokens.tokens"], after["tokens.tokens"]);
    assert_eq!(before["vectors.vectors"], after["vectors.vectors"]);
}

/// A table that a query made is the same to its readers at once and out of the store.
#[test]
fn a_query_s_texts_can_be_tokenized_in_a_cold_run() {
    let lab = Lab::new(include_str!("pipelines/tokens_of_a_query.toml"));
    let cold = lab.ablate(&["run"]);
    assert_eq!(cold.code, 0, "{}", cold.stderr);
}
