//! Claims about attacks: exactly the definitions, the same row in any company, and true successes.

pub mod characters;
pub mod hotflip_words;
pub mod replace_word;
mod replace_words;
mod searches;
mod signals;
mod theory;
pub mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use nn::batch::{Example, Sequence, Target};
use nn::numeric::argmax;
use nn::objectives::Objective;
use store::Value;

use crate::kinds::attack::AttackStage;
use crate::kinds::attack::attacks::{ATTACKS, transfer};
use crate::kinds::attack::entry::Changes;
use crate::kinds::train::Train;
use crate::models::loaded::Loaded;
use crate::models::sway::Sway;
use crate::tests::trial;
use crate::tests::trial::{
    Text, named_tokens, on_threads, reviews, run, stored, text, tokens, vocab,
};
use crate::{ExpectedInputs, Stage};

fn trained(model: &str) -> RecordBatch {
    let units = ("units", Value::Int(8));
    let given = [
        ("model", text(model)),
        ("epochs", Value::Int(6)),
        ("learning_rate", Value::Float(0.01)),
        units,
    ];
    let given = &given[..if model == "lstm" { 4 } else { 1 }];
    run(&Train, &[("rows", &tokens(&reviews()))], given, 3).unwrap()["weights"].clone()
}

struct World {
    lstm: RecordBatch,
    bayes: RecordBatch,
}

impl World {
    fn new() -> World {
        World {
            lstm: trained("lstm"),
            bayes: trained("naive-bayes"),
        }
    }

    fn attack(&self, rows: &RecordBatch, name: &str, more: &[(&str, Value)]) -> RecordBatch {
        let mut given = vec![("attack", text(name))];
        given.extend(more.iter().cloned());
        let inputs = [
            ("victim", &self.lstm),
            ("rows", rows),
            ("vocab", &vocab()),
            ("bayes", &self.bayes),
            ("synonyms", &synonyms()),
        ];
        run(&AttackStage, &inputs, &given, 9).unwrap()["examples"].clone()
    }
}

/// Every good word has two bad words as synonyms, every bad word two good ones, and any other word its neighbours.
fn synonyms() -> RecordBatch {
    let words = trial::vocabulary();
    let other = |word: &str, by: usize| {
        let n = |prefix: &str| {
            let n: usize = word.strip_prefix(prefix)?.parse().ok()?;
            Some(n + by)
        };
        match (n("bad"), n("good"), n("word")) {
            (Some(n), ..) => format!("good{}", n % 10),
            (_, Some(n), _) => format!("bad{}", n % 10),
            (_, _, Some(n)) => format!("word{}", n % 28),
            _ => word.to_owned(),
        }
    };
    let pairs = words[2..].iter().flat_map(|word| {
        let both = [1, 4].map(|by| (word.clone(), other(word, by)));
        both.into_iter()
    });
    let (source, target): (Vec<String>, Vec<String>) = pairs.unzip();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("source", Arc::new(StringArray::from(source))),
        ("target", Arc::new(StringArray::from(target))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// One row of `examples`.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    id: String,
    label: i64,
    said: [i64; 2],
    success: bool,
    attacked: bool,
    words: i64,
    positions: Vec<i32>,
    old: Vec<String>,
    new: Vec<String>,
    original: Vec<i32>,
    adversarial: Vec<i32>,
    after: Vec<f32>,
    queries: [i64; 2],
}

fn rows(table: &RecordBatch) -> Vec<Row> {
    let whole = |name: &str, i| table[name].as_primitive::<Int64Type>().value(i);
    let flag = |name: &str, i| table[name].as_boolean().value(i);
    let list = |name: &str, i| {
        let list = table[name].as_list::<i32>().value(i);
        list.as_primitive::<Int32Type>().values().to_vec()
    };
    let words = |name: &str, i| {
        let list = table[name].as_list::<i32>().value(i);
        list.as_string::<i32>()
            .iter()
            .flatten()
            .map(str::to_owned)
            .collect()
    };
    let row = |i| Row {
        id: table["id"].as_string::<i32>().value(i).to_owned(),
        label: whole("label", i),
        said: [whole("predicted_before", i), whole("predicted_after", i)],
        success: flag("success", i),
        attacked: flag("attacked", i),
        words: whole("words_changed", i),
        positions: list("positions", i),
        old: words("old", i),
        new: words("new", i),
        original: list("original", i),
        adversarial: list("adversarial", i),
        after: {
            let list = table["p_after"].as_list::<i32>().value(i);
            list.as_primitive::<Float32Type>().values().to_vec()
        },
        queries: [whole("forward", i), whole("backward", i)],
    };
    (0..table.num_rows()).map(row).collect()
}

/// Every attack on words, and `none`: with its defaults if nothing else is said here.
fn every_attack() -> Vec<(&'static str, Vec<(&'static str, Value)>)> {
    let mut all = vec![
        ("swap", vec![("n", Value::Int(3))]),
        ("jsma", vec![("max_words", Value::Int(4))]),
        (
            "jsma",
            vec![
                ("max_words", Value::Int(3)),
                ("direction", text("gradient")),
            ],
        ),
        (
            "jsma",
            vec![("max_words", Value::Int(3)), ("jacobian", text("once"))],
        ),
        (
            "hotflip-words",
            // No tagger and no dictionary knows these words.
            vec![
                ("similarity", Value::Float(0.1)),
                ("same_part_of_speech", Value::Bool(false)),
                ("other_lexeme", Value::Bool(false)),
            ],
        ),
    ];
    all.push(("replace-word", vec![("replace", text("nearest"))]));
    let few = [("place", text("random")), ("max_candidates", Value::Int(8))];
    all.push(("replace-word", few.to_vec()));
    // No tagger knows these words, and there are no vectors.
    all.push((
        "textfooler",
        vec![
            ("sentence_similarity", Value::Float(-1.0)),
            ("same_part_of_speech", Value::Bool(false)),
        ],
    ));
    all.push((
        "textfooler",
        vec![
            ("sentence_similarity", Value::Float(-1.0)),
            ("same_part_of_speech", Value::Bool(false)),
            ("max_words", Value::Int(1)),
        ],
    ));
    all.push(("pwws", vec![("max_words", Value::Int(2))]));
    let small = [
        ("population", Value::Int(5)),
        ("generations", Value::Int(3)),
        ("max_share", Value::Float(0.4)),
    ];
    all.push(("genetic", small.to_vec()));
    for entry in ATTACKS.iter().map(|attack| attack.entry()) {
        let words = matches!(entry.changes, Changes::Words | Changes::Nothing);
        // There is no language model here: `words` has one, and words that a tagger knows.
        let elsewhere = ["language", transfer::PORT];
        let ready = entry.needs.iter().all(|need| !elsewhere.contains(need));
        if words && ready && all.iter().all(|(name, _)| *name != entry.name) {
            all.push((entry.name, Vec::new()));
        }
    }
    all
}

#[test]
fn every_attack_of_the_list_is_tried_here() {
    let tried = every_attack().into_iter().map(|(name, _)| name);
    let signals = signals::every_attack();
    let signals = signals.iter().map(|(name, _)| *name);
    // Word-mapping needs words that a tagger knows: `texts`.
    let characters = characters::every_setting();
    let characters = characters.iter().map(|(name, _)| *name);
    let tried: BTreeSet<&str> = tried
        .chain(signals)
        .chain(characters)
        .chain(["word-mapping", "transfer"])
        .collect();
    let known = ATTACKS.iter().map(|attack| attack.entry());
    // Programs of the user are tried by the tests of the whole program.
    let known: BTreeSet<&str> = known
        .filter(|entry| !entry.program)
        .map(|entry| entry.name)
        .collect();
    assert_eq!(
        tried, known,
        "add the new attack to every_attack() of tests/mod.rs or tests/signals.rs"
    );
}

#[test]
fn a_row_says_what_was_changed_and_nothing_else_was() {
    let (world, words) = (World::new(), trial::vocabulary());
    for (name, more) in every_attack() {
        for row in rows(&world.attack(&tokens(&reviews()), name, &more)) {
            assert_eq!(row.words as usize, row.positions.len(), "{name}");
            let mut again = row.original.clone();
            for (k, place) in row.positions.iter().enumerate() {
                assert_eq!(words[again[*place as usize] as usize], row.old[k], "{name}");
                let new = words.iter().position(|w| *w == row.new[k]).unwrap();
                again[*place as usize] = new as i32;
            }
            assert_eq!(again, row.adversarial, "{name}");
            let places: BTreeSet<_> = row.positions.iter().collect();
            assert_eq!(places.len(), row.positions.len(), "{name}: a place twice");
            let won = row.said[0] == row.label && row.said[1] != row.label;
            assert_eq!(row.success, won, "{name}");
        }
    }
}

/// Replay: the stored weights, read afresh, say of every stored row what the attack reported.
#[test]
fn every_success_is_true_of_the_stored_weights() {
    let world = World::new();
    let loaded = Loaded::open(&stored(&world.lstm), None).unwrap();
    let subject = loaded.subject().unwrap();
    for (name, more) in every_attack() {
        let examples = rows(&stored(&world.attack(&tokens(&reviews()), name, &more)));
        assert!(!examples.is_empty());
        for row in examples {
            for (ids, said) in [
                (&row.original, row.said[0]),
                (&row.adversarial, row.said[1]),
            ] {
                let text = Sequence::Tokens(ids.iter().map(|id| *id as u32).collect());
                let p = subject.victim().probabilities(&[&text]).unwrap();
                let p = p[0].as_slice().unwrap();
                assert_eq!(argmax(p) as i64, said, "{name} {}", row.id);
                if *ids == row.adversarial {
                    assert_eq!(p, row.after, "{name} {}", row.id);
                }
            }
        }
    }
}

#[test]
fn a_row_is_the_same_alone_in_any_order_and_on_any_number_of_threads() {
    let world = World::new();
    let test: Vec<Text> = reviews().into_iter().filter(|t| t.0 == "test").collect();
    let turned: Vec<Text> = test.iter().rev().cloned().collect();
    let last = test.len() - 1;
    for (name, more) in every_attack() {
        let all = on_threads(2, || world.attack(&tokens(&test), name, &more));
        for threads in [1, 8] {
            let again = on_threads(threads, || world.attack(&tokens(&test), name, &more));
            assert!(
                store::encode(&again).unwrap() == store::encode(&all).unwrap(),
                "{name}"
            );
        }
        let all = rows(&all);
        let mut turned = rows(&world.attack(
            &named_tokens(&turned, |row| format!("text/{}", last - row)),
            name,
            &more,
        ));
        turned.reverse();
        assert_eq!(turned, all, "{name}");
        for place in [0, 7, last] {
            let alone = named_tokens(&test[place..=place], |_| format!("text/{place}"));
            assert_eq!(
                rows(&world.attack(&alone, name, &more)),
                [all[place].clone()],
                "{name}"
            );
        }
    }
}

#[test]
fn fewer_items_are_a_part_of_more() {
    let world = World::new();
    let drawn = |items| {
        let table = world.attack(&tokens(&reviews()), "none", &[("items", Value::Int(items))]);
        rows(&table)
            .into_iter()
            .map(|row| row.id)
            .collect::<BTreeSet<_>>()
    };
    let (few, more, all) = (drawn(5), drawn(12), drawn(0));
    assert_eq!((few.len(), more.len(), all.len()), (5, 12, 40));
    assert!(few.is_subset(&more) && more.is_subset(&all));
}

/// Two classes, hand-made counts; the answers are worked out by hand.
#[test]
fn the_strongest_words_are_exact_and_ties_go_by_text() {
    //             pad unk  a  b  c  d  e
    let zero = [0, 0, 9, 4, 1, 0, 4];
    let one = [0, 0, 0, 0, 0, 9, 0];
    let counts = [zero, one].concat();
    let bayes = nn::linear::NaiveBayes::from_counts(counts, 7, 2).unwrap();
    let sway = Sway::new(&bayes);
    let words = |texts: [&str; 7]| arrow::array::StringArray::from(texts.to_vec());
    let in_order = words(["[PAD]", "[UNK]", "a", "b", "c", "d", "e"]);
    // (1 + 9), (1 + 4) twice, (1 + 1), then those that class 0 never has.
    assert_eq!(sway.strongest(0, 4, &in_order, &[0, 1]), [2, 3, 6, 4]);
    let turned = words(["[PAD]", "[UNK]", "a", "z", "c", "d", "b"]);
    assert_eq!(sway.strongest(0, 4, &turned, &[0, 1]), [2, 6, 3, 4]);
    assert_eq!(sway.strongest(1, 1, &in_order, &[0, 1]), [5]);
    // Special words never, though their sway (1) would be the third for class 1.
    assert!(!sway.strongest(1, 7, &in_order, &[0, 1]).contains(&0));
    // Places of equal words: the earlier one first.
    assert_eq!(sway.ranked(0, &[3, 5, 2, 6, 2]), [2, 4, 0, 3, 1]);
}

/// 2/1 and 4/2 are equal as fractions and not as sums of logarithms.
#[test]
fn equal_ratios_of_different_counts_are_ties() {
    let counts = vec![5, 1, 8, 2, 0, 11, /**/ 2, 0, 3, 0, 1, 5];
    let bayes = nn::linear::NaiveBayes::from_counts(counts, 6, 2).unwrap();
    let sway = Sway::new(&bayes);
    let words = arrow::array::StringArray::from(vec!["c", "b", "x", "a", "d", "e"]);
    // Ratios: c 6/3, b 2/1, x 9/4, a 3/1, d 1/2, e 12/6.
    assert_eq!(sway.strongest(0, 5, &words, &[]), [3, 2, 1, 0, 5]);
}

#[test]
fn tack_on_replaces_the_first_word_by_a_strong_one_of_the_other_class() {
    let world = World::new();
    let mut drawn = BTreeSet::new();
    for row in rows(&world.attack(&tokens(&reviews()), "tack-on", &[])) {
        assert_eq!(row.positions, [0]);
        let other = if row.label == 0 { "good" } else { "bad" };
        assert!(row.new[0].starts_with(other), "{row:?}");
        assert!(row.attacked, "also those that are wrong before");
        assert_eq!(row.queries, [0, 0]);
        drawn.insert(row.new[0].clone());
    }
    assert!(
        (6..=10).contains(&drawn.len()),
        "five words a class: {drawn:?}"
    );
}

#[test]
fn swap_takes_the_words_that_speak_most_for_the_class() {
    let world = World::new();
    let bayes = Loaded::open(&world.bayes, None).unwrap();
    let sway = Sway::new(bayes.bayes().unwrap());
    for n in [1, 3, 50] {
        for row in rows(&world.attack(&tokens(&reviews()), "swap", &[("n", Value::Int(n))])) {
            let tokens: Vec<u32> = row.original.iter().map(|id| *id as u32).collect();
            let strongest = sway.ranked(row.label as u32, &tokens);
            let expected: Vec<i32> = strongest
                .iter()
                .take(n as usize)
                .map(|p| *p as i32)
                .collect();
            assert_eq!(row.positions, expected);
            assert_eq!(row.words as usize, tokens.len().min(n as usize));
        }
    }
}

#[test]
fn jsma_keeps_its_limits_and_bill() {
    let world = World::new();
    let mut won = 0;
    for row in rows(&world.attack(&tokens(&reviews()), "jsma", &[("max_words", Value::Int(4))])) {
        let right = row.said[0] == row.label;
        assert_eq!(row.attacked, right, "wrong rows are left alone");
        assert!(row.words <= 4);
        let last = row.original.len() as i32 - 1;
        let from_the_end: Vec<i32> = (0..row.words as i32).map(|k| last - k).collect();
        assert_eq!(row.positions, from_the_end);
        for (old, new) in row.old.iter().zip(&row.new) {
            assert!(new != old && new != "[PAD]" && new != "[UNK]", "{row:?}");
        }
        let rounds = if right { row.words + 1 } else { 0 };
        assert_eq!(
            row.queries,
            [rounds, rounds],
            "one gradient a word, and one to see the end"
        );
        won += i64::from(row.success);
    }
    assert!(won > 10, "{won}");
}

/// The first word that JSMA puts in is the argmax of its definition, over every word.
#[test]
fn jsma_takes_the_best_word_of_all() {
    let world = World::new();
    let loaded = Loaded::open(&world.lstm, None).unwrap();
    let (model, params) = loaded.network().unwrap();
    let table = params.view(model.layout().find("embedding").unwrap());
    let table = table.as_slice().unwrap();
    let dim = table.len() / trial::vocabulary().len();
    let subject = loaded.subject().unwrap();
    let mut looked_at = 0;
    for row in rows(&world.attack(&tokens(&reviews()), "jsma", &[("max_words", Value::Int(1))])) {
        let Some(place) = row.positions.first().map(|p| *p as usize) else {
            continue;
        };
        let example = Example {
            input: Sequence::Tokens(row.original.iter().map(|id| *id as u32).collect()),
            target: Target::None,
        };
        let objective = Objective::Logit(row.said[0] as usize);
        let gradient = subject.victim().gradients(&[&example], &objective).unwrap();
        let j = gradient[0].input.row(place);
        let old = row.original[place] as usize;
        let score = |z: usize| -> f64 {
            let pairs = table[z * dim..].iter().zip(&table[old * dim..]).zip(j);
            pairs
                .map(|((z, x), j)| -f64::from(z - x) * f64::from(j.signum()))
                .sum()
        };
        let chosen = row.adversarial[place] as usize;
        for z in (2..trial::vocabulary().len()).filter(|z| *z != old) {
            assert!(score(z) <= score(chosen) + 1e-5, "{z} beats {chosen}");
        }
        looked_at += 1;
    }
    assert!(looked_at > 20);
}

#[test]
fn an_attack_s_code_has_its_own_file_and_no_other_attack_s() {
    let code = |name: &str| {
        AttackStage.code(
            &trial::params(&[("attack", text(name))]),
            &ExpectedInputs::default(),
        )
    };
    let jsma = code("jsma");
    assert!(
        jsma.files
            .contains_key("stages/kinds/attack/attacks/jsma.rs")
    );
    assert!(
        jsma.files
            .contains_key("stages/kinds/attack/search/greedy.rs")
    );
    assert!(
        !jsma
            .files
            .contains_key("stages/kinds/attack/attacks/swap.rs")
    );
    assert!(
        code("swap")
            .files
            .contains_key("stages/kinds/attack/attacks/swap.rs")
    );
}

/// What one attack did to naive Bayes is given to the LSTM, which is asked about it and about nothing else.
#[test]
fn texts_that_were_made_against_another_model_are_transferred() {
    let world = World::new();
    let (all, vocab) = (tokens(&reviews()), vocab());
    let bayes = [
        ("victim", &world.bayes),
        ("rows", &all),
        ("vocab", &vocab),
        ("bayes", &world.bayes),
    ];
    let swap = [
        ("attack", text("swap")),
        ("n", Value::Int(2)),
        ("items", Value::Int(9)),
    ];
    let made = run(&AttackStage, &bayes, &swap, 9).unwrap()["examples"].clone();
    let transfer = |rows: &RecordBatch, split: &str| {
        let inputs = [
            ("victim", &world.lstm),
            ("rows", rows),
            ("vocab", &vocab),
            ("examples", &made),
        ];
        let given = [("attack", text("transfer")), ("split", text(split))];
        let outputs = run(&AttackStage, &inputs, &given, 1);
        outputs.map(|outputs| outputs["examples"].clone())
    };
    let (theirs, ours) = (rows(&made), rows(&transfer(&all, "test").unwrap()));
    assert_eq!(ours.len(), 9, "the rows that are there, and no others");
    let loaded = Loaded::open(&world.lstm, None).unwrap();
    let subject = loaded.subject().unwrap();
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!(ours.id, theirs.id);
        assert_eq!(ours.adversarial, theirs.adversarial);
        assert_eq!(ours.queries, [0, 0]);
        let ids = ours.adversarial.iter().map(|id| *id as u32).collect();
        let p = subject
            .victim()
            .probabilities(&[&Sequence::Tokens(ids)])
            .unwrap();
        assert_eq!(argmax(p[0].as_slice().unwrap()) as i64, ours.said[1]);
    }
    assert!(ours.iter().any(|row| row.words > 0));

    let fail = |rows: &RecordBatch, split: &str| transfer(rows, split).unwrap_err().message;
    let first = &theirs.iter().map(|row| &row.id).min().unwrap();
    assert_eq!(
        fail(&all, "dev"),
        format!("the input `examples` has the id {first}, which no row of the split `dev` has")
    );
    let mut others = reviews();
    for text in &mut others {
        text.2.push(5);
    }
    let message = fail(&tokens(&others), "test");
    assert!(
        message.ends_with("is another text in the input `examples`"),
        "{message}"
    );
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let world = World::new();
    let rows = tokens(&reviews());
    let fail = |given: &[(&str, Value)], inputs: &[(&str, &RecordBatch)]| {
        let failure = run(&AttackStage, inputs, given, 1).unwrap_err();
        format!("{} ({})", failure.message, failure.help.unwrap_or_default())
    };
    let bare = [("victim", &world.lstm), ("rows", &rows)];
    assert_eq!(
        fail(&[("attack", text("swap"))], &bare),
        "the attack `swap` needs the input `vocab` (connect it to the tokenize stage (its output `vocab`))"
    );
    let vocab = vocab();
    let worded = [("victim", &world.lstm), ("rows", &rows), ("vocab", &vocab)];
    assert_eq!(
        fail(&[("attack", text("tack-on"))], &worded),
        "the attack `tack-on` needs the input `bayes` (connect it to a train stage with model = \"naive-bayes\")"
    );
    let bayes = [("victim", &world.bayes), ("rows", &rows)];
    assert_eq!(
        fail(&[("attack", text("jsma"))], &bayes),
        "the attack `jsma` needs gradients, and this model has none (connect `victim` to a network, or to an external model with gradients = true)"
    );
    let wrong_bayes = [
        ("victim", &world.lstm),
        ("rows", &rows),
        ("bayes", &world.lstm),
    ];
    assert_eq!(
        fail(&[("attack", text("none"))], &wrong_bayes),
        "the input `bayes` is the model `lstm` (connect a train stage with model = \"naive-bayes\")"
    );
    assert_eq!(
        fail(&[("attack", text("none")), ("split", text("tset"))], &bare),
        "no row has the split `tset` (splits: dev, test, train)"
    );
    let check = |given: &[(&str, Value)]| {
        crate::complete(&AttackStage, &trial::params(given))
            .unwrap_err()
            .message
    };
    assert_eq!(
        check(&[("attack", text("jmsa"))]),
        "`attack` cannot be `jmsa`"
    );
    assert_eq!(
        check(&[("attack", text("jsma")), ("n", Value::Int(1))]),
        "`n` does not apply to attack = \"jsma\""
    );
    assert_eq!(
        check(&[("attack", text("swap")), ("n", Value::Int(0))]),
        "`n` is 0"
    );
    assert_eq!(
        check(&[("attack", text("jsma")), ("direction", text("up"))]),
        "`direction` cannot be `up`"
    );
}

/// Two vocabularies of one size: their ids fit everywhere and mean nothing together.
#[test]
fn rows_of_another_vocabulary_are_refused_wherever_they_meet() {
    let (world, rows) = (World::new(), tokens(&reviews()));
    let other = |table: &RecordBatch| {
        let mut metadata = table.schema().metadata().clone();
        metadata.insert(crate::tables::vocabulary::KEY.to_owned(), "0".repeat(64));
        let schema = table.schema().as_ref().clone().with_metadata(metadata);
        RecordBatch::try_new(schema.into(), table.columns().to_vec()).unwrap()
    };
    let mixed = |rows: &RecordBatch, vocab: &RecordBatch, bayes: &RecordBatch| {
        let inputs = [
            ("victim", &world.lstm),
            ("rows", rows),
            ("vocab", vocab),
            ("bayes", bayes),
        ];
        run(&AttackStage, &inputs, &[("attack", text("swap"))], 1)
    };
    assert!(mixed(&rows, &vocab(), &world.bayes).is_ok());
    let message = mixed(&other(&rows), &vocab(), &world.bayes)
        .unwrap_err()
        .message;
    let start =
        "`rows` and `victim` number their words by different vocabularies, 000000000000 and ";
    assert!(message.starts_with(start), "{message}");
    let turned = arrow::compute::take_record_batch(
        &vocab(),
        &arrow::array::UInt32Array::from_iter_values((0..vocab().num_rows() as u32).rev()),
    );
    let message = mixed(&rows, &turned.unwrap(), &world.bayes)
        .unwrap_err()
        .message;
    assert!(
        message.starts_with("`rows` and `vocab` number"),
        "{message}"
    );
    let given = [("model", text("naive-bayes"))];
    let bayes = run(&Train, &[("rows", &other(&rows))], &given, 1).unwrap();
    let message = mixed(&rows, &vocab(), &bayes["weights"])
        .unwrap_err()
        .message;
    assert!(
        message.starts_with("`rows` and `bayes` number"),
        "{message}"
    );
}

/// Rows that are filled up with padding, as a tutorial's LSTM reads them: no attack touches it.
#[test]
fn padding_is_never_changed() {
    let world = World::new();
    // One text is all padding: even its first place is none of a word.
    let texts = reviews().into_iter().chain([("test", 1, vec![])]);
    let filled: Vec<Text> = texts
        .map(|(split, label, mut ids)| {
            ids.resize(20, 0);
            (split, label, ids)
        })
        .collect();
    let table = tokens(&filled);
    // More swaps than any text has words, or strong words alone would keep padding out.
    let every = every_attack().into_iter();
    for (name, more) in every.chain([("swap", vec![("n", Value::Int(20))])]) {
        let mut changed = 0;
        for row in rows(&world.attack(&table, name, &more)) {
            for place in &row.positions {
                assert_ne!(row.original[*place as usize], 0, "{name}");
                changed += 1;
            }
        }
        // A few random words in one random place seldom change a prediction.
        let seldom = more.iter().any(|(param, _)| *param == "max_candidates");
        assert!(changed > 0 || name == "none" || seldom, "{name}");
    }
}
