//! For tests of the kinds that learn and attack: tables by hand, and stages run on them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float32Builder, Int32Builder, Int64Array, ListBuilder, StringArray};
use arrow::record_batch::RecordBatch;
use store::{Params, Value};

use crate::tables::weights::with_metadata;
use crate::{Failure, Outputs, Stage, Task, Usage, Watch};

/// A watch that nobody looks at.
pub struct Nobody;

impl Watch for Nobody {
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, _: &str) {}
    fn work(&self, _: &'static str, _: u64) {}
    fn child(&self, _: Usage) {}
    fn stopped(&self) -> bool {
        false
    }
}

/// Padding, unknown, 10 words for class 0 (`bad0` …), 10 for class 1 (`good0` …), 28 for neither.
pub fn vocabulary() -> Vec<String> {
    let mut words = vec!["[PAD]".to_owned(), "[UNK]".to_owned()];
    words.extend((0..10).map(|k| format!("bad{k}")));
    words.extend((0..10).map(|k| format!("good{k}")));
    words.extend((0..28).map(|k| format!("word{k}")));
    words
}

/// The table `vocab` of those words.
pub fn vocab() -> RecordBatch {
    listed(vocabulary())
}

/// The table `vocab` of some words.
pub fn listed(words: Vec<String>) -> RecordBatch {
    let ids = Int64Array::from_iter_values(0..words.len() as i64);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(ids)),
        ("token", Arc::new(StringArray::from(words))),
    ];
    with_metadata(columns, Default::default())
}

/// A text: its split, its class and its tokens.
pub type Text = (&'static str, i64, Vec<i32>);

/// Texts as a tokenize stage leaves them.
pub fn tokens(texts: &[Text]) -> RecordBatch {
    named_tokens(texts, |row| format!("text/{row}"))
}

/// The same with ids of one's own.
pub fn named_tokens(texts: &[Text], id: impl Fn(usize) -> String) -> RecordBatch {
    worded_tokens(texts, id, &vocabulary())
}

/// The same with a vocabulary of one's own, padding and unknown first.
pub fn worded_tokens(
    texts: &[Text],
    id: impl Fn(usize) -> String,
    words: &[String],
) -> RecordBatch {
    let mut ids = ListBuilder::new(Int32Builder::new());
    for (_, _, tokens) in texts {
        ids.values().append_slice(tokens);
        ids.append(true);
    }
    let names: Vec<String> = (0..texts.len()).map(id).collect();
    let splits = StringArray::from_iter_values(texts.iter().map(|t| t.0));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(StringArray::from(names))),
        ("split", Arc::new(splits)),
        (
            "label",
            Arc::new(Int64Array::from_iter_values(texts.iter().map(|t| t.1))),
        ),
        ("ids", Arc::new(ids.finish())),
    ];
    let size = words.len().to_string();
    let digest = crate::tables::vocabulary::digest(words.iter().map(|word| word.as_bytes()));
    let facts = [
        ("vocab", digest.as_str()),
        ("pad", "0"),
        ("unknown", "1"),
        ("vocab_size", &size),
        ("word_width", "1"),
    ];
    let facts = facts.map(|(key, value)| (format!("ablate.{key}"), value.to_owned()));
    with_metadata(columns, facts.into_iter().collect())
}

/// Rows with a second text, as a tokenize stage leaves pairs.
pub fn with_second(rows: &RecordBatch, second: &[Vec<i32>]) -> RecordBatch {
    let mut ids = ListBuilder::new(Int32Builder::new());
    for tokens in second {
        ids.values().append_slice(tokens);
        ids.append(true);
    }
    let schema = rows.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let mut columns: Vec<(&str, ArrayRef)> = names.zip(rows.columns().iter().cloned()).collect();
    columns.push(("ids_b", Arc::new(ids.finish())));
    with_metadata(columns, schema.metadata().clone())
}

/// Rows of two to five letters, and the same letters in reverse, which end with the token 2.
pub fn reversals(rows: usize) -> RecordBatch {
    let stream = nn::Stream::new(13, "reversals");
    let mut second = Vec::new();
    let text = |n: usize| {
        let s = stream.item(n as u64);
        let letters: Vec<i32> = (0..2 + s.below(0, 4) as u64)
            .map(|k| 3 + s.below(1 + k, 5) as i32)
            .collect();
        let reversed = letters.iter().rev().copied().chain([2]);
        second.push(reversed.collect());
        (["train", "train", "train", "dev"][n % 4], 0, letters)
    };
    let texts: Vec<Text> = (0..rows).map(text).collect();
    let words: Vec<String> = ["[PAD]", "[UNK]", "[EOS]", "a", "b", "c", "d", "e"]
        .map(str::to_owned)
        .to_vec();
    let rows = worded_tokens(&texts, |row| format!("text/{row}"), &words);
    with_second(&rows, &second)
}

/// The same texts as words of four characters: a token is its number, padded.
pub fn grids(texts: &[Text]) -> RecordBatch {
    let letters = |token: &i32| [2 + token % 10, 2 + token / 10, 0, 0];
    let spelt = |(split, label, tokens): &Text| {
        let characters = tokens.iter().flat_map(letters).collect();
        (*split, *label, characters)
    };
    let spelt: Vec<Text> = texts.iter().map(spelt).collect();
    let words: Vec<String> = (0..12).map(|k| format!("c{k}")).collect();
    let table = worded_tokens(&spelt, |row| format!("text/{row}"), &words);
    let schema = table.schema_ref().as_ref().clone();
    let mut metadata = schema.metadata().clone();
    metadata.insert("ablate.word_width".to_owned(), "4".to_owned());
    let schema = schema.with_metadata(metadata);
    RecordBatch::try_new(Arc::new(schema), table.columns().to_vec()).unwrap()
}

/// Texts whose class shows in some words, none of which is sure: 160 train, 40 dev, 40 test.
pub fn reviews() -> Vec<Text> {
    let stream = nn::Stream::new(11, "reviews");
    let text = |n: usize| {
        let (split, s) = (
            ["train", "train", "train", "train", "dev", "test"][n % 6],
            stream.item(n as u64),
        );
        let label = (n / 6 % 2) as i64;
        let word = |k: u64| {
            // Three words in ten speak for the class, one for the other.
            match s.below(2 * k, 10) {
                0..=2 => 2 + 10 * label as i32 + s.below(2 * k + 1, 10) as i32,
                3 => 12 - 10 * label as i32 + s.below(2 * k + 1, 10) as i32,
                _ => 22 + s.below(2 * k + 1, 28) as i32,
            }
        };
        let len = 6 + s.below(1000, 9) as u64;
        (split, label, (0..len).map(word).collect())
    };
    (0..240).map(text).collect()
}

/// A signal: its id, its split, its class and its numbers, two a step.
pub type Signal = (String, &'static str, i64, Vec<f32>);

/// Signals as a dataset stage leaves them.
pub fn signals(rows: &[Signal]) -> RecordBatch {
    let mut x = ListBuilder::new(Float32Builder::new());
    for (_, _, _, numbers) in rows {
        x.values().append_slice(numbers);
        x.append(true);
    }
    let texts = |get: fn(&Signal) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(get)))
    };
    let labels = Int64Array::from_iter_values(rows.iter().map(|row| row.2));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", texts(|row| &row.0)),
        ("split", texts(|row| row.1)),
        ("label", Arc::new(labels)),
        ("x", Arc::new(x.finish())),
    ];
    let shape = ("ablate.shape".to_owned(), "[*,2]".to_owned());
    with_metadata(columns, [shape].into_iter().collect())
}

/// Waves of three periods with noise, of 9 to 14 steps of two numbers: 180 train, 45 dev, 45 test.
pub fn waves() -> Vec<Signal> {
    let stream = nn::Stream::new(12, "waves");
    let wave = |n: usize| {
        let s = stream.item(n as u64);
        let (label, steps) = (n % 3, 9 + s.below(0, 6));
        let speed = [0.4, 1.1, 2.0][label];
        let phase = std::f64::consts::TAU * s.uniform(1);
        let number = |k: usize| {
            let angle = phase + speed * (k / 2) as f64 + (k % 2) as f64;
            (angle.sin() + 0.1 * s.normal(10 + k as u64)) as f32
        };
        let split = ["train", "train", "train", "train", "dev", "test"][n / 3 % 6];
        let numbers = (0..2 * steps).map(number).collect();
        (format!("wave/{n}"), split, label as i64, numbers)
    };
    (0..270).map(wave).collect()
}

/// Parameters by name.
pub fn params(all: &[(&str, Value)]) -> Params {
    all.iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect()
}

/// A string.
pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Parameters with the defaults of a kind, as the engine hands them over.
pub fn completed(stage: &dyn Stage, given: &[(&str, Value)]) -> Params {
    match crate::complete(stage, &params(given)) {
        Ok(params) => params,
        Err(error) => panic!("{}: {}", error.param, error.message),
    }
}

/// Runs a stage with its defaults filled in, as the engine does.
pub fn run(
    stage: &dyn Stage,
    inputs: &[(&str, &RecordBatch)],
    given: &[(&str, Value)],
    seed: u64,
) -> Result<Outputs, Failure> {
    run_watched(stage, inputs, given, seed, &Nobody)
}

/// The same, and somebody looks.
pub fn run_watched(
    stage: &dyn Stage,
    inputs: &[(&str, &RecordBatch)],
    given: &[(&str, Value)],
    seed: u64,
    watch: &dyn Watch,
) -> Result<Outputs, Failure> {
    let params = completed(stage, given);
    let inputs = inputs.iter();
    stage.run(&Task {
        inputs: inputs
            .map(|(name, table)| ((*name).to_owned(), (*table).clone()))
            .collect(),
        params: &params,
        seed,
        files: Default::default(),
        data: &crate::DataHome::nowhere(),
        place: &crate::Place::default(),
        watch,
    })
}

/// As it comes back from the store.
pub fn stored(table: &RecordBatch) -> RecordBatch {
    store::decode(store::encode(table).unwrap().into()).unwrap()
}

/// The same work on so many threads.
pub fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(work)
}
