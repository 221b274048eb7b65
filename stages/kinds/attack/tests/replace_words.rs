//! Claims about replace-words: what it leaves is what its pseudo-code says, done here word by word, on classifiers and on
//! translators; the same rows on any number of threads; and `replay` confirms them.

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use nn::numeric::argmax;
use nn::victim::Victim;
use store::Value;

use super::{Row, rows};
use crate::kinds::attack::AttackStage;
use crate::kinds::keyword_detector::tests as detectors;
use crate::kinds::train::Train;
use crate::models::loaded::Loaded;
use crate::tests::trial::{
    Nobody, completed, listed, on_threads, reviews, run, text, tokens, vocab,
};
use crate::{DataHome, Failure, Place, Stage, Task};

/// A model with the rows that it is attacked on, the words that may be put in, and all words.
struct Ground {
    name: String,
    victim: RecordBatch,
    rows: RecordBatch,
    vocab: RecordBatch,
    candidates: Vec<String>,
    split: &'static str,
}

/// An LSTM, and a detector on each translator. Words that are not the keyword must do: with it, one word is enough.
fn grounds() -> Vec<Ground> {
    let given = [
        ("model", text("lstm")),
        ("units", Value::Int(8)),
        ("epochs", Value::Int(6)),
        ("learning_rate", Value::Float(0.01)),
    ];
    let reviews = tokens(&reviews());
    let lstm = run(&Train, &[("rows", &reviews)], &given, 3).unwrap()["weights"].clone();
    let few = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut all = vec![Ground {
        name: "lstm".to_owned(),
        victim: lstm,
        rows: reviews,
        vocab: vocab(),
        candidates: few(&["bad1", "good1", "word1", "word2", "word3", "[UNK]"]),
        split: "test",
    }];
    for (name, translator) in detectors::translators() {
        for keyword in ["a", "c", "d", "e"] {
            let mut candidates = detectors::words().split_off(2);
            candidates.retain(|word| word != keyword);
            all.push(Ground {
                name: name.to_owned(),
                victim: detectors::detector(&translator, keyword).unwrap(),
                rows: detectors::sources(),
                vocab: listed(detectors::words()),
                candidates,
                split: "train",
            });
        }
    }
    all
}

impl Ground {
    fn given(&self, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
        let mut given = vec![
            ("attack", text("replace-words")),
            ("split", text(self.split)),
        ];
        given.extend(more.iter().cloned());
        given
    }

    fn attack(&self, more: &[(&'static str, Value)]) -> Result<RecordBatch, Failure> {
        let candidates = listed(self.candidates.clone());
        let inputs = [
            ("victim", &self.victim),
            ("rows", &self.rows),
            ("vocab", &self.vocab),
            ("candidates", &candidates),
        ];
        let made = run(&AttackStage, &inputs, &self.given(more), 9);
        made.map(|outputs| outputs["examples"].clone())
    }

    /// The ids of the words that may be put in.
    fn ids(&self) -> Vec<u32> {
        let words = crate::tables::vocabulary::words(&self.vocab, "vocab").unwrap();
        let known = words.iter().flatten().zip(0..);
        let listed = |word: &str| self.candidates.iter().any(|c| c == word);
        let ids = known.filter(|(word, _)| listed(word) && !word.starts_with('['));
        ids.map(|(_, id)| id).collect()
    }
}

fn objective(victim: &dyn Victim, input: &Sequence, label: usize) -> f64 {
    let logits = victim.logits(&[input]).unwrap().remove(0);
    margin(logits.as_slice().unwrap(), label)
}

fn margin(logits: &[f32], label: usize) -> f64 {
    let mut best = f64::NEG_INFINITY;
    for (class, z) in logits.iter().enumerate() {
        if class != label {
            best = best.max(f64::from(*z));
        }
    }
    best - f64::from(logits[label])
}

/// The text after the attack, and whether it succeeded.
fn by_hand(
    victim: &dyn Victim,
    row: &Row,
    candidates: &[u32],
    max_words: usize,
) -> (Vec<u32>, bool) {
    let original: Vec<u32> = row.original.iter().map(|id| *id as u32).collect();
    let label = row.label as usize;
    let (mut text, mut done) = (original.clone(), Vec::new());
    for _ in 0..max_words.min(text.len()) {
        let mut place = None;
        for here in (0..text.len()).filter(|here| !done.contains(here)) {
            let logits = victim.without(&text, &[here]).unwrap().remove(0);
            let score = margin(logits.as_slice().unwrap(), label);
            if place.is_none_or(|(_, most)| score > most) {
                place = Some((here, score));
            }
        }
        let (place, _) = place.unwrap();
        done.push(place);
        let with = |word: u32| {
            let mut text = text.clone();
            text[place] = word;
            Sequence::Tokens(text)
        };
        let sentence = |word: u32| victim.sentences(&[&with(word)]).unwrap().remove(0);
        let before = sentence(text[place]);
        let mut tried: Vec<(f64, u32)> = Vec::new();
        for word in candidates
            .iter()
            .copied()
            .filter(|word| *word != text[place])
        {
            let pairs = before.iter().zip(sentence(word));
            let distance = pairs
                .map(|(a, b)| (f64::from(*a) - f64::from(b)).abs())
                .sum();
            tried.push((distance, word));
        }
        tried.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let wrong = |word: u32| {
            let p = victim.probabilities(&[&with(word)]).unwrap().remove(0);
            argmax(p.as_slice().unwrap()) != label
        };
        if let Some((_, word)) = tried.iter().find(|(_, word)| wrong(*word)) {
            text[place] = *word;
            return (text, true);
        }
        let mut best: Option<(u32, f64)> = None;
        for (_, word) in tried {
            let score = objective(victim, &with(word), label);
            if best.is_none_or(|(_, most)| score > most) {
                best = Some((word, score));
            }
        }
        text[place] = best.unwrap().0;
    }
    (original, false)
}

#[test]
fn what_it_leaves_is_what_the_pseudo_code_says() {
    let mut counted: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    for ground in grounds() {
        let loaded = Loaded::open(&ground.victim, None).unwrap();
        let subject = loaded.subject().unwrap();
        let [several, failed, alone] = counted.entry(ground.name.clone()).or_default();
        for most in [1, 3] {
            let table = ground.attack(&[("max_words", Value::Int(most))]).unwrap();
            for row in rows(&table) {
                // The clean output has the keyword, or the class is wrong: there is nothing to do.
                if row.said[0] != row.label {
                    assert!(!row.attacked && !row.success && row.original == row.adversarial);
                    *alone += 1;
                    continue;
                }
                assert!(row.attacked && row.words <= most);
                let (text, success) = by_hand(subject.victim(), &row, &ground.ids(), most as usize);
                let found: Vec<u32> = row.adversarial.iter().map(|id| *id as u32).collect();
                assert_eq!(
                    (found, row.success),
                    (text, success),
                    "{} {}",
                    ground.name,
                    row.id
                );
                *several += usize::from(row.words > 1);
                *failed += usize::from(!row.success);
            }
        }
    }
    // Successes with several words, failures, and rows that are left alone.
    let all = |counts: &[usize; 3]| counts.iter().all(|n| *n > 0);
    assert!(counted.values().all(all), "{counted:?}");
}

#[test]
fn rows_are_the_same_on_any_number_of_threads_and_replay_confirms_them() {
    let mut successes = 0;
    // The LSTM and a detector on each translator.
    for ground in grounds().into_iter().step_by(4) {
        let made = |threads| {
            let table = on_threads(threads, || ground.attack(&[]));
            store::encode(&table.unwrap()).unwrap()
        };
        let one = made(1);
        assert!(one == made(2) && one == made(8), "{}", ground.name);
        let params = completed(&AttackStage, &ground.given(&[]));
        let candidates = listed(ground.candidates.clone());
        let inputs = [
            ("victim", &ground.victim),
            ("rows", &ground.rows),
            ("vocab", &ground.vocab),
            ("candidates", &candidates),
        ];
        let inputs = inputs.map(|(port, table)| (port.to_owned(), table.clone()));
        let task = Task {
            inputs: inputs.into_iter().collect(),
            params: &params,
            seed: 9,
            files: BTreeMap::new(),
            data: &DataHome::nowhere(),
            place: &Place::default(),
            watch: &Nobody,
        };
        let outputs = AttackStage.run(&task).unwrap();
        let replayed = AttackStage.replay(&task, &outputs, true).unwrap().unwrap();
        assert!(
            replayed.disagreements.is_empty(),
            "{:?}",
            replayed.disagreements
        );
        successes += replayed.successes;
        assert_eq!(replayed.budget, "at most 3 words");
        // Rows of one detector are not those of a detector of another keyword.
        if ground.name != "lstm" {
            let (_, translator) = detectors::translators()
                .into_iter()
                .find(|(name, _)| *name == ground.name)
                .unwrap();
            let mut task = task;
            let other = detectors::detector(&translator, "b").unwrap();
            task.inputs.insert("victim".to_owned(), other);
            let replayed = AttackStage.replay(&task, &outputs, true).unwrap().unwrap();
            assert!(!replayed.disagreements.is_empty(), "{}", ground.name);
        }
    }
    assert!(successes > 20, "{successes}");
}

#[test]
fn a_limit_keeps_the_nearest_and_models_without_vectors_are_refused() {
    let ground = grounds().remove(0);
    let successes = |n: i64| {
        let table = ground.attack(&[("max_candidates", Value::Int(n))]).unwrap();
        rows(&table).iter().filter(|row| row.success).count()
    };
    assert!(successes(1) < successes(0), "a limit has no effect");
    let bayes = run(
        &Train,
        &[("rows", &ground.rows)],
        &[("model", text("naive-bayes"))],
        3,
    );
    let ground = Ground {
        victim: bayes.unwrap()["weights"].clone(),
        ..ground
    };
    let error = ground.attack(&[]).unwrap_err();
    assert_eq!(
        (error.message.as_str(), error.help.as_deref().unwrap()),
        (
            "this model has no input vectors",
            "`replace-words` needs the vectors of words and sentences: connect `victim` to a network or a keyword-detector"
        )
    );
    let ground = Ground {
        candidates: vec!["unheard".to_owned()],
        ..grounds().remove(0)
    };
    assert_eq!(
        ground.attack(&[]).unwrap_err().message,
        "no word of the input `candidates` is in the vocabulary of the rows"
    );
}
