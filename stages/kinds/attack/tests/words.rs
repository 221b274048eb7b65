//! Claims about word-mapping: exactly the definition, causality as equality, the same row in any company,
//! true successes and passes.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, FixedSizeListArray, Float32Array};
use arrow::datatypes::{DataType, Field, Float32Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use harper_brill::{Tagger, UPOS, brill_tagger};
use nn::batch::Sequence;
use nn::ngrams::KneserNey;
use store::Value;

use crate::kinds::attack::AttackStage;
use crate::kinds::ngrams::Ngrams;
use crate::kinds::train::Train;
use crate::models::loaded::Loaded;
use crate::tables::ngrams;
use crate::tables::vectors;
use crate::tables::weights::with_metadata;
use crate::tests::trial::{
    Nobody, Text, listed, on_threads, params, run, stored, text, worded_tokens,
};
use crate::{DataHome, Stage, Task};

const DIM: usize = 6;

/// Words that a tagger knows, in families of like meaning.
const FAMILIES: &[&[&str]] = &[
    &["bad", "awful", "poor", "dull", "weak"],
    &["good", "great", "fine", "nice", "brilliant"],
    &["movie", "film", "story", "plot", "show"],
    &["was", "is", "seems", "looks"],
    &["very", "really", "quite", "so"],
    &["the", "this", "a", "that"],
    &[".", ",", "!"],
];

pub fn words() -> Vec<String> {
    let special = ["[PAD]", "[UNK]"].into_iter();
    let all = special.chain(FAMILIES.iter().copied().flatten().copied());
    all.map(str::to_owned).collect()
}

/// The tokens of a family.
fn family(k: usize) -> std::ops::Range<i32> {
    let before: usize = FAMILIES[..k].iter().map(|f| f.len()).sum();
    2 + before as i32..2 + (before + FAMILIES[k].len()) as i32
}

/// A family's words lie around a direction of its own, wide apart; opinions of both kinds are near each other.
fn numbers() -> Vec<f32> {
    let stream = nn::Stream::new(5, "vectors");
    let mut all = vec![0.0; 2 * DIM];
    for (k, words) in FAMILIES.iter().enumerate() {
        for w in 0..words.len() {
            let centre = |d: usize| f64::from(u8::from(d == k.saturating_sub(1)));
            let number = |d: usize| {
                let noise = stream.item((10 * k + w) as u64).normal(d as u64);
                (centre(d) + 0.35 * noise) as f32
            };
            all.extend((0..DIM).map(number));
        }
    }
    all
}

/// Words like others: two of their own family, and one of the next, which for opinions is the opposite.
pub fn synonyms() -> RecordBatch {
    let mut pairs: Vec<(&'static str, &'static str)> = Vec::new();
    for (k, words) in FAMILIES.iter().enumerate() {
        for (w, word) in words.iter().enumerate() {
            let other = FAMILIES[if k == 1 { 0 } else { (k + 1) % FAMILIES.len() }];
            let own = [words[(w + 1) % words.len()], words[(w + 2) % words.len()]];
            let other = other[w % other.len()];
            pairs.extend(own.into_iter().chain([other]).map(|new| (*word, new)));
        }
    }
    let column = |get: fn(&(&'static str, &'static str)) -> &'static str| -> ArrayRef {
        let words = pairs.iter().map(get);
        Arc::new(arrow::array::StringArray::from_iter_values(words))
    };
    let columns = vec![
        ("source", column(|pair| pair.0)),
        ("target", column(|pair| pair.1)),
    ];
    with_metadata(columns, Default::default())
}

pub fn table_of_vectors() -> RecordBatch {
    let item = Field::new("item", DataType::Float32, true);
    let values = Arc::new(Float32Array::from(numbers()));
    let v = FixedSizeListArray::new(item.into(), DIM as i32, values, None);
    let v: ArrayRef = Arc::new(v);
    with_metadata(vec![("v", v)], Default::default())
}

/// `this film is very bad . the plot …`: the opinions say the class, most of them.
pub fn reviews() -> Vec<Text> {
    let stream = nn::Stream::new(6, "reviews");
    let review = |n: usize| {
        let (s, label) = (stream.item(n as u64), (n / 6 % 2) as i64);
        let mut tokens = Vec::new();
        for clause in 0..1 + s.below(0, 3) as u64 {
            let draw = |k: usize, n: u64| {
                let family = family(k);
                family.start + s.below(10 * clause + n, family.len()) as i32
            };
            let opinion = match s.below(10 * clause + 6, 5) {
                0 => 1 - label,
                _ => label,
            };
            tokens.extend([draw(5, 1), draw(2, 2), draw(3, 3)]);
            tokens.extend([draw(4, 4), draw(opinion as usize, 5), draw(6, 7)]);
        }
        let split = ["train", "train", "train", "train", "dev", "test"][n % 6];
        (split, label, tokens)
    };
    (0..360).map(review).collect()
}

struct World {
    lstm: RecordBatch,
    vectors: RecordBatch,
    language: RecordBatch,
}

impl World {
    fn new() -> World {
        let (rows, vectors) = (table(&reviews()), table_of_vectors());
        let given = [
            ("model", text("lstm")),
            ("units", Value::Int(6)),
            ("epochs", Value::Int(4)),
            ("learning_rate", Value::Float(0.02)),
        ];
        let inputs = [("rows", &rows), ("vectors", &vectors)];
        let lstm = run(&Train, &inputs, &given, 3).unwrap()["weights"].clone();
        let language = run(&Ngrams, &[("rows", &rows)], &[], 0).unwrap();
        World {
            lstm,
            vectors,
            language: language["ngrams"].clone(),
        }
    }

    fn attack(&self, rows: &RecordBatch, more: &[(&str, Value)]) -> crate::Outputs {
        let mut given = vec![("attack", text("word-mapping"))];
        given.extend(more.iter().cloned());
        let vocab = listed(words());
        let inputs = [
            ("victim", &self.lstm),
            ("rows", rows),
            ("vectors", &self.vectors),
            ("vocab", &vocab),
            ("language", &self.language),
        ];
        run(&AttackStage, &inputs, &given, 9).unwrap()
    }
}

pub fn table(texts: &[Text]) -> RecordBatch {
    worded_tokens(texts, |row| format!("text/{row}"), &words())
}

fn tests() -> Vec<Text> {
    let all = reviews().into_iter();
    all.filter(|(split, ..)| *split == "test")
        .take(12)
        .collect()
}

/// Every way of choosing a word.
fn every_rule() -> Vec<Vec<(&'static str, Value)>> {
    vec![
        // Of few candidates the word itself is not always one, so that something changes.
        vec![("alpha", Value::Float(2.0)), ("candidates", FEW)],
        vec![("nearest_to", text("original")), ("candidates", FEW)],
        vec![("alpha", Value::Float(2.0)), ("own_word", OUT)],
        vec![("nearest_to", text("original")), ("own_word", OUT)],
        vec![("rule", text("exhaustive"))],
        vec![("rule", text("exhaustive")), ("candidates", Value::Int(2))],
        vec![("rule", text("random"))],
        vec![("rule", text("random")), ("own_word", OUT)],
    ]
}

const FEW: Value = Value::Int(2);

/// The current word is no candidate.
const OUT: Value = Value::Bool(false);

/// Whether a way of choosing has the current word among the candidates.
fn own(given: &[(&str, Value)]) -> bool {
    !given.contains(&("own_word", OUT))
}

fn lists(table: &RecordBatch, name: &str) -> Vec<Vec<i32>> {
    let lists = table[name].as_list::<i32>();
    let list = |i| lists.value(i).as_primitive::<Int32Type>().values().to_vec();
    (0..table.num_rows()).map(list).collect()
}

fn wholes(table: &RecordBatch, name: &str) -> Vec<i64> {
    table[name].as_primitive::<Int64Type>().values().to_vec()
}

fn tag(sentence: &[u32]) -> Option<UPOS> {
    let all = words();
    let sentence: Vec<String> = sentence.iter().map(|w| all[*w as usize].clone()).collect();
    brill_tagger().tag_sentence(&sentence)[sentence.len() - 1]
}

/// The words for a place straight from the definition: every word is looked at, the one in place if `own`.
fn candidates(language: &KneserNey, before: &[u32], word: u32, most: usize, own: bool) -> Vec<u32> {
    let vectors = numbers();
    let of = |w: u32| &vectors[w as usize * DIM..(w as usize + 1) * DIM];
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let cosine = |a, b| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    let context = &before[before.len().saturating_sub(4)..];
    let with = |w: u32| tag(&[context, &[w]].concat());
    if with(word).is_none() {
        return Vec::new();
    }
    let mut fits: Vec<(f64, u32)> = (2..words().len() as u32)
        .filter(|w| (own || *w != word) && cosine(of(*w), of(word)) > 0.4)
        .filter(|w| tag(&[*w]).is_some() && with(*w) == with(word))
        .filter(|w| language.seen().contains(w))
        .map(|w| (language.probabilities(before, &[w])[0], w))
        .collect();
    fits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    fits.into_iter().map(|(_, w)| w).take(most).collect()
}

/// Every word of the exhaustive rule is the one that a model asked about each prefix would choose, and
/// what was asked is what is on the bill.
#[test]
fn the_exhaustive_rule_takes_the_worst_of_all_candidates() {
    let world = World::new();
    let rows = table(&tests());
    let read = vectors::read(&world.vectors).unwrap();
    let loaded = Loaded::open(&world.lstm, Some(&read)).unwrap();
    let subject = loaded.subject().unwrap();
    let (language, _) = ngrams::read(&world.language).unwrap();
    let mut changed = 0;
    for most in [20, 2] {
        let given = [
            ("rule", text("exhaustive")),
            ("candidates", Value::Int(most)),
        ];
        let made = world.attack(&rows, &given);
        let examples = &made["examples"];
        let (old, new) = (lists(examples, "original"), lists(examples, "adversarial"));
        let labels = wholes(examples, "label");
        for (row, (old, new)) in old.iter().zip(&new).enumerate() {
            let old: Vec<u32> = old.iter().map(|w| *w as u32).collect();
            let new: Vec<u32> = new.iter().map(|w| *w as u32).collect();
            let mut passes = 0;
            for k in 0..old.len() {
                let set = candidates(&language, &old[..k], old[k], most as usize, false);
                passes += 1;
                if set.is_empty() {
                    assert_eq!(new[k], old[k]);
                    continue;
                }
                passes += 2 * (1 + set.len());
                let odds = |w: u32| {
                    let prefix = Sequence::Tokens([&new[..k], &[w]].concat());
                    let p = &subject.victim().probabilities(&[&prefix]).unwrap()[0];
                    f64::from(p[[0, 1 - labels[row] as usize]])
                };
                let all = set.iter().copied().chain([old[k]]);
                assert!(new[k] == old[k] || set.contains(&new[k]), "{row} {k}");
                let best = all.map(odds).fold(f64::NEG_INFINITY, f64::max);
                assert!(odds(new[k]) >= best - 1e-6, "{row} {k}");
                changed += usize::from(new[k] != old[k]);
            }
            assert_eq!(wholes(examples, "forward")[row], passes as i64);
            assert_eq!(wholes(examples, "backward")[row], 0);
        }
    }
    assert!(changed > 100, "{changed}");
}

/// By direction every word put in is a candidate, and a word that is its own candidate is the nearest to itself.
#[test]
fn the_direction_rule_takes_candidates_only() {
    let world = World::new();
    let rows = table(&tests());
    let (language, _) = ngrams::read(&world.language).unwrap();
    let (mut all, mut kept) = (Vec::new(), 0);
    for given in &every_rule()[..4] {
        let original = given.contains(&("nearest_to", text("original")));
        let most = if given.contains(&("candidates", FEW)) {
            2
        } else {
            20
        };
        let made = world.attack(&rows, given);
        let examples = &made["examples"];
        let (old, new) = (lists(examples, "original"), lists(examples, "adversarial"));
        for (old, new) in old.iter().zip(&new) {
            let old: Vec<u32> = old.iter().map(|w| *w as u32).collect();
            for k in 0..old.len() {
                let (was, is) = (old[k], new[k] as u32);
                let set = candidates(&language, &old[..k], was, most, own(given));
                assert!(is == was || set.contains(&is), "{was} {is} {set:?}");
                if original && set.contains(&was) {
                    assert_eq!(is, was, "R-1.20: at distance 0 of itself");
                    kept += 1;
                }
            }
        }
        assert!(wholes(examples, "backward").iter().all(|n| *n > 0));
        let changed: i64 = wholes(examples, "words_changed").iter().sum();
        all.push((changed, new));
    }
    assert!(kept > 10, "{kept}");
    assert_ne!(all[2].1, all[3].1, "the two readings of the formula differ");
    for (own, out) in [(0, 2), (1, 3)] {
        assert!(all[own].0 < all[out].0, "fewer words change");
    }
}

/// The control asks the model nothing, and takes every candidate now and then.
#[test]
fn the_random_rule_takes_any_candidate() {
    let world = World::new();
    let rows = table(&tests());
    let (language, _) = ngrams::read(&world.language).unwrap();
    let given = [("rule", text("random")), ("own_word", OUT)];
    let made = world.attack(&rows, &given);
    let examples = &made["examples"];
    let (old, new) = (lists(examples, "original"), lists(examples, "adversarial"));
    let mut places = std::collections::BTreeSet::new();
    for (old, new) in old.iter().zip(&new) {
        let old: Vec<u32> = old.iter().map(|w| *w as u32).collect();
        for k in 0..old.len() {
            let set = candidates(&language, &old[..k], old[k], 20, false);
            match set.iter().position(|w| *w == new[k] as u32) {
                Some(place) => drop(places.insert(place)),
                None => assert!(set.is_empty() && new[k] as u32 == old[k]),
            }
        }
    }
    assert!(places.len() > 2, "{places:?}");
    assert!(wholes(examples, "backward").iter().all(|n| *n == 0));
    let lengths = old.iter().map(|text| text.len() as i64);
    assert_eq!(wholes(examples, "forward"), lengths.collect::<Vec<_>>());
}

/// A text that ends otherwise is the same up to there: exact equality.
#[test]
fn nothing_that_comes_later_changes_a_word() {
    let world = World::new();
    let texts = tests();
    for given in every_rule() {
        let made = world.attack(&table(&texts), &given)["examples"].clone();
        for k in [1, 3, 5] {
            let other = texts.iter().map(|(split, label, tokens)| {
                let mut tokens = tokens.clone();
                tokens[k..].reverse();
                tokens.extend([7, 3, 2]);
                (*split, *label, tokens)
            });
            let other: Vec<Text> = other.collect();
            let also = world.attack(&table(&other), &given)["examples"].clone();
            let (one, two) = (lists(&made, "adversarial"), lists(&also, "adversarial"));
            for (one, two) in one.iter().zip(&two) {
                assert_eq!(one[..k], two[..k], "{given:?}");
            }
            assert_ne!(one, two);
        }
    }
}

#[test]
fn a_row_is_the_same_alone_and_on_any_number_of_threads() {
    let world = World::new();
    let texts = tests();
    for given in every_rule() {
        let all = on_threads(1, || world.attack(&table(&texts), &given));
        for threads in [2, 8] {
            let again = on_threads(threads, || world.attack(&table(&texts), &given));
            assert_eq!(all, again);
        }
        let of = |made: &crate::Outputs| lists(&made["examples"], "adversarial");
        for (row, one) in texts.iter().enumerate() {
            let same = |_| format!("text/{row}");
            let alone = worded_tokens(std::slice::from_ref(one), same, &words());
            let alone = world.attack(&alone, &given);
            assert_eq!(of(&alone)[0], of(&all)[row]);
        }
    }
}

/// A replay agrees, and does not when a word is another.
#[test]
fn what_it_says_of_itself_can_be_replayed() {
    let world = World::new();
    let rows = table(&tests());
    for given in every_rule() {
        let made = world.attack(&rows, &given);
        let mut all = vec![("attack", text("word-mapping"))];
        all.extend(given.iter().cloned());
        let params = crate::tests::trial::completed(&AttackStage, &all);
        let inputs = [
            ("victim", &world.lstm),
            ("rows", &rows),
            ("vectors", &world.vectors),
            ("vocab", &listed(words())),
            ("language", &world.language),
        ];
        let task = Task {
            inputs: inputs.map(|(n, t)| (n.to_owned(), t.clone())).into(),
            params: &params,
            seed: 9,
            files: Default::default(),
            data: &DataHome::nowhere(),
            place: &crate::Place::default(),
            watch: &Nobody,
        };
        let outputs = made.iter().map(|(n, t)| (n.clone(), stored(t))).collect();
        let replayed = AttackStage.replay(&task, &outputs, true).unwrap().unwrap();
        assert_eq!(replayed.disagreements, []);
        assert_eq!(replayed.rows, tests().len());
        assert_eq!(replayed.budget, "words with a cosine above 0.4");
        // The same table where words must be more alike than they are.
        let mut stricter = params.clone();
        stricter.insert("similarity".into(), Value::Float(0.999));
        let task = Task {
            params: &stricter,
            inputs: task.inputs.clone(),
            files: Default::default(),
            ..task
        };
        let replayed = AttackStage.replay(&task, &outputs, true).unwrap().unwrap();
        let first = &replayed.disagreements[0];
        assert_eq!(
            (first.column.as_str(), first.stored.as_str()),
            ("budget", "words with a cosine above 0.999")
        );
        let changed = wholes(&made["examples"], "words_changed");
        let rows = changed.iter().filter(|words| **words > 0).count();
        assert_eq!(replayed.disagreements.len(), rows);
        let p = made["examples"]["p_after"].as_list::<i32>();
        assert_eq!(p.value(0).as_primitive::<Float32Type>().len(), 2);
    }
}

#[test]
fn what_is_missing_is_named() {
    let world = World::new();
    let rows = table(&tests());
    let vocab = listed(words());
    let mut inputs = vec![("victim", &world.lstm), ("rows", &rows)];
    inputs.push(("vectors", &world.vectors));
    let given = [("attack", text("word-mapping"))];
    let said = |inputs: &[(&str, &RecordBatch)]| {
        let failure = run(&AttackStage, inputs, &given, 9).unwrap_err();
        (failure.message, failure.help.unwrap_or_default())
    };
    let (message, help) = said(&inputs);
    assert_eq!(
        message,
        "the attack `word-mapping` needs the input `language`"
    );
    assert_eq!(help, "connect it to an ngrams stage");
    inputs.push(("language", &world.language));
    let (message, _) = said(&inputs);
    assert_eq!(message, "the attack `word-mapping` needs the input `vocab`");
    inputs[3] = ("language", &vocab);
    let (message, help) = said(&inputs);
    assert_eq!(message, "the input `language` is not a table of n-grams");
    assert_eq!(help, "connect the output `ngrams` of an ngrams stage");
    let idle = params(&[
        ("attack", text("word-mapping")),
        ("rule", text("exhaustive")),
        ("alpha", Value::Float(1.0)),
    ]);
    assert_eq!(
        crate::complete(&AttackStage, &idle).unwrap_err().message,
        "`alpha` would have no effect here"
    );
}
