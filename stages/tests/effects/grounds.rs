//! What parameters are tried on: texts, signals and models that take a moment to train.

use arrow::record_batch::RecordBatch;
use store::Value;

use super::values::{Settings, entries, float, int};
use super::walk::Ground;
use crate::Stage;
use crate::kinds::attack::TRANSFERRED;
use crate::kinds::attack::attacks::ATTACKS;
use crate::kinds::attack::entry::{AttackEntry, Changes};
use crate::kinds::attack::tests::characters::Characters;
use crate::kinds::attack::tests::{hotflip_words, words};
use crate::kinds::ngrams::Ngrams;
use crate::kinds::table::Table;
use crate::kinds::train::Train;
use crate::tests::trial;
use crate::tests::trial::{listed, signals, text, waves};

/// The inputs that attacks on texts have.
pub struct Words {
    pub rows: RecordBatch,
    pub vocab: RecordBatch,
    pub vectors: RecordBatch,
    pub bayes: RecordBatch,
    pub lstm: RecordBatch,
    pub language: RecordBatch,
}

impl Words {
    pub fn new() -> Words {
        let rows = words::table(&words::reviews()[..150]);
        let vectors = words::table_of_vectors();
        let trained = |given: &[(&str, Value)], inputs: &[(&str, &RecordBatch)]| {
            trial::run(&Train, inputs, given, 3).unwrap()["weights"].clone()
        };
        let lstm = [
            ("model", text("lstm")),
            ("units", int(6)),
            ("epochs", int(4)),
            ("learning_rate", float(0.02)),
        ];
        let grams = trial::run(&Ngrams, &[("rows", &rows)], &[], 0).unwrap();
        Words {
            bayes: trained(&[("model", text("naive-bayes"))], &[("rows", &rows)]),
            lstm: trained(&lstm, &[("rows", &rows), ("vectors", &vectors)]),
            language: grams["ngrams"].clone(),
            vocab: listed(words::words()),
            rows,
            vectors,
        }
    }

    /// Two layers of two heads, on the same rows.
    pub fn transformer(&self) -> RecordBatch {
        let given = [
            ("model", text("transformer")),
            ("layers", int(2)),
            ("heads", int(2)),
            ("dim", int(8)),
            ("positions", int(40)),
            ("epochs", int(12)),
            ("learning_rate", float(0.05)),
        ];
        let trained = trial::run(&Train, &[("rows", &self.rows)], &given, 3);
        trained.unwrap()["weights"].clone()
    }

    /// The same texts, in which opinions go on with the word before.
    pub fn pieces(&self) -> Vec<(&'static str, RecordBatch)> {
        let named = words::words().into_iter().enumerate();
        let named = named.map(|(n, word)| match n {
            2..7 => format!("##{word}"),
            _ => word,
        });
        let named: Vec<String> = named.collect();
        let rows = trial::worded_tokens(&words::reviews()[..150], |n| format!("t/{n}"), &named);
        let given = [
            ("model", text("gru")),
            ("units", int(6)),
            ("epochs", int(4)),
        ];
        let victim = trial::run(&Train, &[("rows", &rows)], &given, 3).unwrap();
        let victim = victim["weights"].clone();
        let vocab = listed(named);
        vec![("victim", victim), ("rows", rows), ("vocab", vocab)]
    }

    pub fn inputs(&self) -> Vec<(&'static str, RecordBatch)> {
        vec![
            ("victim", self.lstm.clone()),
            ("rows", self.rows.clone()),
            ("vectors", self.vectors.clone()),
            ("vocab", self.vocab.clone()),
            ("bayes", self.bayes.clone()),
            ("language", self.language.clone()),
        ]
    }
}

/// The inputs that attacks on signals have.
pub fn moving() -> Vec<(&'static str, RecordBatch)> {
    let rows = signals(&waves()[..90]);
    let given = [
        ("model", text("gru")),
        ("units", int(3)),
        ("epochs", int(4)),
    ];
    let weights = trial::run(&Train, &[("rows", &rows)], &given, 3).unwrap()["weights"].clone();
    vec![("victim", weights), ("rows", rows)]
}

/// A ground for each attack of a kind, and two for the one that takes any rows.
pub fn attacks(
    stage: &'static dyn Stage,
    more: Settings,
    walks: fn(&str) -> fn(&str) -> bool,
) -> Vec<(&'static str, Ground)> {
    let (words, moving) = (Words::new(), moving());
    let characters = Characters::new(150, 6).inputs();
    let mut grounds = Vec::new();
    let entries = ATTACKS.iter().map(|attack| attack.entry());
    // What a program makes of its parameters is its own business; transfer has none of its own.
    let walked = |entry: &AttackEntry| !entry.program && !entry.needs.contains(&TRANSFERRED);
    for entry in entries.filter(walked) {
        let mut base = vec![("attack", text(entry.name))];
        base.extend(more.clone());
        if entry.name == "optimal-control" {
            base.push(("iterations", int(4)));
        }
        if entry.params.iter().any(|param| param.name == "budget") {
            base.push(("budget", float(0.4)));
        }
        if entry.name == "deepwordbug" {
            // So few that it matters which word comes first.
            base.push(("max_characters", int(2)));
        }
        if entry.name == "genetic" {
            base.extend([("population", int(6)), ("generations", int(4))]);
        }
        if entry.name == "hotflip-words" {
            base.push(("similarity", float(0.2)));
        }
        let mut add = |name: String, inputs| {
            let (base, walks) = (base.clone(), walks(entry.name));
            grounds.push((
                entry.name,
                Ground {
                    name,
                    stage,
                    base,
                    inputs,
                    walks,
                },
            ));
        };
        if entry.changes == Changes::Characters {
            add(entry.name.to_owned(), characters.clone());
            continue;
        }
        if entry.name == "hotflip-words" {
            // Vectors that the model has trained on, and words that are alike enough.
            let mut inputs = words.inputs();
            inputs[0].1 = hotflip_words::victim(&words.rows, &words.vectors);
            inputs.push(("lemmas", hotflip_words::lemmas()));
            add(entry.name.to_owned(), inputs);
        } else if entry.needs.contains(&"synonyms") {
            let mut inputs = words.inputs();
            inputs.push(("synonyms", words::synonyms()));
            add(entry.name.to_owned(), inputs);
        } else if entry.name == "replace-word" {
            // A model with attention in two layers and of several heads.
            let mut inputs = words.inputs();
            inputs[0].1 = words.transformer();
            inputs.retain(|(port, _)| *port != "vectors");
            add(entry.name.to_owned(), inputs);
            add(format!("{} on pieces", entry.name), words.pieces());
        } else if entry.changes != Changes::Numbers {
            add(entry.name.to_owned(), words.inputs());
        }
        if entry.changes != Changes::Words {
            add(format!("{} on signals", entry.name), moving.clone());
        }
    }
    grounds
}

/// Texts of two columns, with capitals, punctuation and splits.
pub fn written() -> RecordBatch {
    let row = |n: i64| {
        let split = ["train", "train", "dev", "test"][n as usize % 4];
        let words = [
            "The film was Good, really good!",
            "a bad Movie",
            "so the plot is fine. the the",
        ];
        let body = format!(
            "{} {}",
            words[n as usize % 3],
            ["extraordinarily", "dull"][n as usize % 2]
        );
        entries(&[
            ("id", int(n)),
            ("split", text(split)),
            ("label", int(n % 2)),
            ("text", text(&body)),
            ("another", text(words[(n as usize + 1) % 3])),
        ])
    };
    let rows = Value::List((0..16).map(row).collect());
    trial::run(&Table, &[], &[("rows", rows)], 0).unwrap()["rows"].clone()
}
