//! Claims about the kind `tokenize`: hand-worked examples of every scheme, what holds for any
//! text, and the same bytes on any number of threads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use proptest::prelude::*;
use store::{Digest, Params, Value, encode};

use super::Tokenize;
use crate::{Failure, Outputs, SourceFile, Stage, Task, Usage, Watch};

struct Nobody;

impl Watch for Nobody {
    fn progress(&self, _: u64, _: u64) {}
    fn work(&self, _: &'static str, _: u64) {}

    fn log(&self, _: &str) {}
    fn child(&self, _: Usage) {}
    fn stopped(&self) -> bool {
        false
    }
}

fn params(scheme: &str, more: &[(&str, Value)]) -> Params {
    let mut params: Params = [("scheme".to_owned(), Value::Text(scheme.into()))].into();
    for (name, value) in more {
        params.insert((*name).to_owned(), value.clone());
    }
    params
}

fn run(params: &Params, inputs: &[(&str, &RecordBatch)]) -> Result<Outputs, Failure> {
    let path = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/kinds/tokenize/tests/vocab.txt"
    ));
    let digest = Digest::of_file(&path).unwrap();
    let file = SourceFile {
        path: &path,
        digest,
        executable: false,
    };
    let task = Task {
        inputs: inputs
            .iter()
            .map(|(n, t)| ((*n).to_owned(), (*t).clone()))
            .collect(),
        params,
        seed: 0,
        files: BTreeMap::from([("vocab.txt".to_owned(), file)]),
        data: &crate::DataHome::nowhere(),
        place: &crate::Place::default(),
        watch: &Nobody,
    };
    Tokenize.run(&task)
}

/// Rows of split and text.
fn rows(texts: &[(&str, &str)]) -> RecordBatch {
    let n = texts.len() as i64;
    let strings = |items: Vec<&str>| Arc::new(StringArray::from(items)) as ArrayRef;
    RecordBatch::try_from_iter_with_nullable([
        (
            "id",
            Arc::new(Int64Array::from_iter_values((0..n).map(|n| 10 + n))) as _,
            true,
        ),
        (
            "split",
            strings(texts.iter().map(|(split, _)| *split).collect()),
            true,
        ),
        (
            "label",
            Arc::new(Int64Array::from_iter_values((0..n).map(|n| n % 2))) as _,
            true,
        ),
        (
            "text",
            strings(texts.iter().map(|(_, text)| *text).collect()),
            true,
        ),
    ])
    .unwrap()
}

fn ids(made: &Outputs) -> Vec<Vec<i32>> {
    let lists = made["tokens"]["ids"].as_list::<i32>();
    let row = |n| lists.value(n).as_primitive::<Int32Type>().values().to_vec();
    (0..lists.len()).map(row).collect()
}

fn lens(made: &Outputs) -> Vec<i32> {
    made["tokens"]["len"]
        .as_primitive::<Int32Type>()
        .values()
        .to_vec()
}

fn vocab(made: &Outputs) -> Vec<(String, i64)> {
    let tokens = made["vocab"]["token"].as_string::<i32>();
    let counts = made["vocab"]["count"].as_primitive::<Int64Type>();
    let tokens = tokens.iter().flatten().map(str::to_owned);
    tokens.zip(counts.values().iter().copied()).collect()
}

fn stat(made: &Outputs, split: &str, stat: &str) -> f64 {
    let table = &made["stats"];
    let text = |name: &str| table[name].as_string::<i32>().clone();
    let (splits, stats) = (text("split"), text("stat"));
    let row = (0..table.num_rows()).find(|n| splits.value(*n) == split && stats.value(*n) == stat);
    table["value"]
        .as_primitive::<Float64Type>()
        .value(row.unwrap())
}

fn owned(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
    pairs.iter().map(|(t, n)| ((*t).to_owned(), *n)).collect()
}

#[test]
fn texts_are_filled_up_if_asked() {
    let table = rows(&[("train", "a b a"), ("train", ""), ("test", "b b b b b c")]);
    let fill = [("pad", Value::Bool(true)), ("max_len", Value::Int(4))];
    let made = run(&params("words", &fill), &[("rows", &table)]).unwrap();
    assert_eq!(
        ids(&made),
        [vec![2, 3, 2, 0], vec![0, 0, 0, 0], vec![3, 3, 3, 3]]
    );
    assert_eq!(lens(&made), [3, 0, 4]);
    let plain = run(&params("words", &fill[1..]), &[("rows", &table)]).unwrap();
    assert_eq!(plain["stats"], made["stats"]);
    let metadata = |made: &Outputs| made["tokens"].schema().metadata().clone();
    assert_eq!(metadata(&made)["ablate.filled"], "true");
    assert!(!metadata(&plain).contains_key("ablate.filled"));
    assert_eq!(
        metadata(&made)["ablate.vocab"],
        metadata(&plain)["ablate.vocab"]
    );
    // A word of a grid is filled up anyway; now texts are, too, by words.
    let grid = [&fill[..], &[("word_width", Value::Int(3))]].concat();
    let made = run(&params("char-grid", &grid), &[("rows", &table)]).unwrap();
    assert_eq!(ids(&made)[0], [2, 0, 0, 3, 0, 0, 2, 0, 0, 0, 0, 0]);
    assert_eq!(lens(&made), [3, 0, 4]);
    let error = Tokenize.check(&params("words", &fill[..1])).unwrap_err();
    assert_eq!(error.message, "`pad` needs `max_len`");
}

#[test]
fn words_by_hand() {
    let table = rows(&[
        ("train", "The film. The FILM!"),
        ("train", "a bad film"),
        ("test", "The worst film, a <br />bore"),
    ]);
    let made = run(&params("words", &[]), &[("rows", &table)]).unwrap();
    assert_eq!(
        vocab(&made),
        owned(&[
            ("[PAD]", 0),
            ("[UNK]", 0),
            ("film", 3),
            ("the", 2),
            ("a", 1),
            ("bad", 1)
        ])
    );
    assert_eq!(
        ids(&made),
        [vec![3, 2, 3, 2], vec![4, 5, 2], vec![3, 1, 2, 4, 1]]
    );
    assert_eq!(lens(&made), [4, 3, 5]);
    assert_eq!(stat(&made, "test", "unknown_rate"), 0.4);
    assert_eq!(stat(&made, "train", "unknown_rate"), 0.0);
    assert_eq!(stat(&made, "train", "mean_length"), 3.5);
    let tokens = &made["tokens"];
    assert_eq!(
        tokens["id"].as_primitive::<Int64Type>().values(),
        &[10, 11, 12]
    );
    assert_eq!(
        tokens["label"].as_primitive::<Int64Type>().values(),
        &[0, 1, 0]
    );
    assert_eq!(tokens["split"].as_string::<i32>().value(2), "test");
}

#[test]
fn limits_leave_rare_tokens_unknown_and_cut_long_texts() {
    let table = rows(&[("train", "b a c a b d"), ("test", "a")]);
    let limits = [
        ("min_count", Value::Int(2)),
        ("max_vocab", Value::Int(1)),
        ("max_len", Value::Int(5)),
    ];
    let made = run(&params("words", &limits), &[("rows", &table)]).unwrap();
    // `a` and `b` are equally frequent: the text decides. `d` is cut off and not counted.
    assert_eq!(vocab(&made), owned(&[("[PAD]", 0), ("[UNK]", 3), ("a", 2)]));
    assert_eq!(ids(&made), [vec![1, 2, 1, 2, 1], vec![2]]);
    assert_eq!(stat(&made, "train", "truncated_rate"), 1.0);
    assert_eq!(stat(&made, "train", "max_length"), 6.0);
    assert_eq!(stat(&made, "test", "truncated_rate"), 0.0);
    assert_eq!(stat(&made, "train", "unknown_rate"), 0.6);
}

#[test]
fn words_and_signs_by_hand() {
    let table = rows(&[("train", "Don't!<br />no")]);
    let made = run(&params("words-punctuation", &[]), &[("rows", &table)]).unwrap();
    let tokens: Vec<String> = vocab(&made).into_iter().map(|(t, _)| t).collect();
    assert_eq!(tokens, ["[PAD]", "[UNK]", "!", "'", "don", "no", "t"]);
    assert_eq!(ids(&made), [[4, 3, 6, 2, 5]]);
}

#[test]
fn a_grid_by_hand() {
    let table = rows(&[("train", "Ab, abcd"), ("test", "xb")]);
    let width = [("word_width", Value::Int(4)), ("max_len", Value::Int(3))];
    let made = run(&params("char-grid", &width), &[("rows", &table)]).unwrap();
    assert_eq!(
        vocab(&made),
        owned(&[
            ("[PAD]", 0),
            ("[UNK]", 0),
            ("b", 2),
            (",", 1),
            ("A", 1),
            ("a", 1),
            ("c", 1)
        ])
    );
    // Three characters of a word at most, so that one slot is padding.
    assert_eq!(ids(&made)[0], [4, 2, 0, 0, 3, 0, 0, 0, 5, 2, 6, 0]);
    assert_eq!(ids(&made)[1], [1, 2, 0, 0]);
    assert_eq!(lens(&made), [3, 1]);
    assert_eq!(stat(&made, "test", "unknown_rate"), 0.5);
    assert_eq!(made["tokens"].schema().metadata()["ablate.word_width"], "4");
}

#[test]
fn characters_by_hand() {
    let table = rows(&[("train", "aé a"), ("test", "aZ")]);
    let made = run(
        &params("chars", &[("eos", Value::Bool(true))]),
        &[("rows", &table)],
    )
    .unwrap();
    let tokens: Vec<String> = vocab(&made).into_iter().map(|(t, _)| t).collect();
    assert_eq!(tokens, ["[PAD]", "[UNK]", "[EOS]", "[GO]", "a", " ", "é"]);
    assert_eq!(ids(&made), [vec![4, 6, 5, 4, 2], vec![4, 1, 2]]);
}

#[test]
fn lines_of_a_corpus_by_hand() {
    let table = rows(&[("train", "the <unk> N"), ("test", "the end")]);
    let table = table.project(&[1, 3]).unwrap();
    let more = [("eos", Value::Bool(true)), ("max_len", Value::Int(3))];
    let made = run(&params("whitespace", &more), &[("rows", &table)]).unwrap();
    assert_eq!(ids(&made), [vec![4, 3, 2], vec![4, 1, 2]]);
    assert_eq!(vocab(&made)[2], ("[EOS]".to_owned(), 1));
    assert_eq!(
        made["tokens"]["id"].as_primitive::<Int64Type>().values(),
        &[0, 1]
    );
}

#[test]
fn two_texts_share_one_vocabulary() {
    let a = rows(&[("train", "a man"), ("test", "a dog")]);
    let b: ArrayRef = Arc::new(StringArray::from(vec!["a dog", "no man"]));
    let schema = a.schema();
    let columns = schema
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .zip(a.columns().to_vec());
    let columns = columns
        .chain([("text_b".to_owned(), b)])
        .map(|(n, c)| (n, c, true));
    let table = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let made = run(&params("words", &[]), &[("rows", &table)]).unwrap();
    assert_eq!(ids(&made), [[2, 4], [2, 3]]);
    let second = made["tokens"]["ids_b"].as_list::<i32>();
    assert_eq!(
        second.value(0).as_primitive::<Int32Type>().values(),
        &[2, 3]
    );
    assert_eq!(
        second.value(1).as_primitive::<Int32Type>().values(),
        &[1, 4]
    );
}

#[test]
fn a_given_vocabulary_keeps_its_ids() {
    let table = rows(&[("train", "good film good"), ("test", "film zzz")]);
    let first = run(&params("words", &[]), &[("rows", &table)]).unwrap();
    let other = rows(&[("train", "film bad")]);
    let given = [("rows", &other), ("vocab", &first["vocab"])];
    let made = run(&params("words", &[]), &given).unwrap();
    assert_eq!(ids(&made), [[3, 1]]);
    assert_eq!(
        vocab(&made),
        owned(&[("[PAD]", 0), ("[UNK]", 1), ("good", 0), ("film", 1)])
    );
    // The word list of pretrained vectors has no special tokens: they come first.
    let words: ArrayRef = Arc::new(StringArray::from(vec!["bad", "film"]));
    let words = RecordBatch::try_from_iter_with_nullable([("word", words, true)]).unwrap();
    let made = run(
        &params("words", &[]),
        &[("rows", &other), ("vocab", &words)],
    )
    .unwrap();
    assert_eq!(ids(&made), [[3, 2]]);
    let limited = params("words", &[("min_count", Value::Int(2))]);
    let failure = run(&limited, &[("rows", &other), ("vocab", &words)]).unwrap_err();
    assert_eq!(failure.param, Some("min_count"));
}

/// Text is data: words that are written like marks are unknown, and take no place in a vocabulary.
#[test]
fn words_written_like_marks_are_unknown() {
    let table = rows(&[("train", "[PAD] [PAD] [PAD] [UNK] [EOS] a b b c")]);
    let limited = params("whitespace", &[("max_vocab", Value::Int(2))]);
    let made = run(&limited, &[("rows", &table)]).unwrap();
    let tokens: Vec<String> = vocab(&made).into_iter().map(|(token, _)| token).collect();
    assert_eq!(tokens, ["[PAD]", "[UNK]", "b", "a"]);
    assert_eq!(ids(&made), [[1, 1, 1, 1, 1, 3, 2, 2, 1]]);
    // Also where another stage has that mark and this one does not.
    let ended = params("whitespace", &[("eos", Value::Bool(true))]);
    let first = run(&ended, &[("rows", &rows(&[("train", "a b")]))]).unwrap();
    let again = run(
        &params("whitespace", &[]),
        &[
            ("rows", &rows(&[("train", "a [EOS] b")])),
            ("vocab", &first["vocab"]),
        ],
    );
    assert_eq!(ids(&again.unwrap()), [[3, 1, 4]]);
}

/// What Hugging Face `tokenizers` 0.23 (WordPiece, BertNormalizer, BertPreTokenizer) makes of
/// the same texts with the same vocabulary.
#[test]
fn word_pieces_are_those_of_the_reference() {
    let known = include_str!("word_piece.jsonl").lines();
    let known: Vec<(bool, String, Vec<i32>)> = known
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(known.len() > 30);
    for (uncased, text, expected) in known {
        let more = [
            ("vocab_file", Value::Text("vocab.txt".into())),
            ("lowercase", Value::Bool(uncased)),
            ("add_special_tokens", Value::Bool(false)),
        ];
        let table = rows(&[("train", &text)]);
        let made = run(&params("word-piece", &more), &[("rows", &table)]).unwrap();
        assert_eq!(ids(&made), [expected], "{text:?} uncased: {uncased}");
    }
}

#[test]
fn word_pieces_stand_between_their_marks() {
    let table = rows(&[("train", "the film was unaffable")]);
    let more = [
        ("vocab_file", Value::Text("vocab.txt".into())),
        ("max_len", Value::Int(6)),
    ];
    let made = run(&params("word-piece", &more), &[("rows", &table)]).unwrap();
    assert_eq!(ids(&made), [[2, 5, 10, 11, 6, 3]]);
    assert_eq!(stat(&made, "train", "truncated_rate"), 1.0);
    assert_eq!(stat(&made, "train", "tokens"), 6.0);
    assert_eq!(vocab(&made)[5], ("the".to_owned(), 1));
}

#[test]
fn mistakes_say_what_to_do() {
    let table = rows(&[("train", "a")]);
    let wrong = |scheme: &str, more: &[(&str, Value)]| {
        run(&params(scheme, more), &[("rows", &table)]).unwrap_err()
    };
    assert_eq!(wrong("word", &[]).help.unwrap(), "did you mean `words`?");
    assert_eq!(wrong("word-piece", &[]).param, Some("scheme"));
    assert_eq!(
        wrong("words", &[("eos", Value::Bool(true))]).param,
        Some("eos")
    );
    assert_eq!(
        wrong("words", &[("max_len", Value::Int(0))]).param,
        Some("max_len")
    );
    let none = wrong("words", &[("train", Value::Text("tain".into()))]);
    assert_eq!(none.help.unwrap(), "splits: train");
    let bare = table.project(&[3]).unwrap();
    let failure = run(&params("words", &[]), &[("rows", &bare)]).unwrap_err();
    assert!(failure.message.contains("`split`") && failure.help.is_some());
}

/// What looks like padding or the end in a text is neither.
#[test]
fn a_text_cannot_say_marks() {
    let table = rows(&[
        ("train", "a [PAD] b [EOS] [UNK] [CLS]"),
        ("test", "[EOS] a"),
    ]);
    let params = params("whitespace", &[("eos", Value::Bool(true))]);
    let made = run(&params, &[("rows", &table)]).unwrap();
    let tokens = vocab(&made);
    let id = |token: &str| tokens.iter().position(|(t, _)| t == token).unwrap() as i32;
    let (a, b, unknown, end) = (id("a"), id("b"), id("[UNK]"), id("[EOS]"));
    assert_eq!(
        ids(&made),
        [
            vec![a, unknown, b, unknown, unknown, unknown, end],
            vec![unknown, a, end]
        ]
    );
}

/// Enough text for several shards, with accents and long tails.
fn corpus() -> RecordBatch {
    let noise = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let texts: Vec<String> = (0..2_400)
        .map(|row| {
            let words = (0..400).map(|n| {
                let w = noise(row * 400 + n);
                format!(
                    "w{}{}",
                    w % (1 + w % 5_000),
                    if w % 97 == 0 { "é," } else { "" }
                )
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let pairs: Vec<(&str, &str)> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| (if n % 3 == 0 { "test" } else { "train" }, text.as_str()))
        .collect();
    rows(&pairs)
}

#[test]
fn the_same_bytes_on_any_number_of_threads() {
    let table = corpus();
    for scheme in ["words", "words-punctuation", "char-grid", "word-piece"] {
        let (name, value) = match scheme {
            "word-piece" => ("vocab_file", Value::Text("vocab.txt".into())),
            _ => ("min_count", Value::Int(2)),
        };
        let params = params(scheme, &[(name, value)]);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let made = pool.install(|| run(&params, &[("rows", &table)])).unwrap();
            made.values()
                .map(|t| encode(t).unwrap())
                .collect::<Vec<_>>()
        };
        let one = on(1);
        assert!(one == on(2) && one == on(8), "{scheme}");
    }
}

const ANY: [&str; 6] = [
    "words",
    "words-punctuation",
    "whitespace",
    "char-grid",
    "chars",
    "word-piece",
];

proptest! {
    /// Any text: never a panic, every id is in the vocabulary, and known words come back.
    #[test]
    fn any_text(texts in prop::collection::vec("(\\PC|[ -~]|\\s|[a-c ]|\\p{Mn}){0,40}", 1..6), cut in 3_i64..30) {
        let pairs: Vec<(&str, &str)> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| (if n == 0 { "train" } else { "test" }, text.as_str()))
            .collect();
        let table = rows(&pairs);
        for scheme in ANY {
            let mut params = params(scheme, &[("max_len", Value::Int(cut))]);
            if scheme == "word-piece" {
                params.insert("vocab_file".into(), Value::Text("vocab.txt".into()));
            }
            let made = run(&params, &[("rows", &table)]).unwrap();
            let tokens = vocab(&made);
            for (row, len) in ids(&made).iter().zip(lens(&made)) {
                let width = if scheme == "char-grid" { 20 } else { 1 };
                prop_assert_eq!(row.len() as i32, len * width);
                prop_assert!(len as i64 <= cut);
                prop_assert!(row.iter().all(|id| (0..tokens.len() as i32).contains(id)));
            }
            if ["words", "words-punctuation", "whitespace"].contains(&scheme) {
                // The training text has no unknown words, so it can be written out again.
                let first = ids(&made)[0].clone();
                let again: Vec<&str> = first.iter().map(|id| tokens[*id as usize].0.as_str()).collect();
                prop_assert!(!first.contains(&1));
                let again = rows(&[("train", &again.join(" "))]);
                let twice = run(&params, &[("rows", &again), ("vocab", &made["vocab"])]).unwrap();
                prop_assert_eq!(&ids(&twice)[0], &first);
            }
        }
    }
}
