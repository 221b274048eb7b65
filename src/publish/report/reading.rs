//! How to read an attack's numbers: the words behind token ids, the names of classes, the shape
//! of signals. Found upstream of the attack, in what the same run used.

use std::collections::HashMap;
use std::rc::Rc;

use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use stages::Role;
use store::{Digest, Store, Value};

use crate::results::columns;
use crate::results::recorded::{self, Recorded, Step};

/// What was read before: vocabularies may be large, and many attacks share one.
#[derive(Default)]
pub struct Reading {
    words: HashMap<Digest, Rc<Vec<String>>>,
}

/// How token ids become words.
pub struct Scheme {
    words: Rc<Vec<String>>,
    /// Ids of a word, for a grid of characters.
    width: Option<usize>,
    /// What stands between words.
    pub joiner: &'static str,
}

impl Scheme {
    /// The words of some ids; an id without a word stands for itself.
    pub fn words(&self, ids: &[f64]) -> Vec<String> {
        let word = |id: &f64| match self.words.get(*id as usize) {
            Some(word) => word.clone(),
            None => format!("#{id}"),
        };
        match self.width {
            None => ids.iter().map(word).collect(),
            Some(width) => {
                // In a grid 0 is padding at the end of a word.
                let letters = |row: &[f64]| row.iter().filter(|id| **id != 0.0).map(word).collect();
                ids.chunks(width.max(1)).map(letters).collect()
            }
        }
    }
}

impl Scheme {
    /// The characters of each word of a grid.
    pub fn spelt(&self, ids: &[f64]) -> Option<Vec<Vec<String>>> {
        let word = |row: &[f64]| {
            let letters = row.iter().filter(|id| **id != 0.0);
            letters
                .map(|id| self.words([*id].as_slice()).concat())
                .collect()
        };
        Some(ids.chunks(self.width?.max(1)).map(word).collect())
    }
}

impl Reading {
    /// How the tokens that a step reads become words.
    pub fn scheme(&mut self, store: &Store, recorded: &Recorded, at: usize) -> Scheme {
        let step = &recorded.steps[at];
        let tokenizer = upstream(recorded, at, Role::Tokenizer);
        let param = |name: &str| tokenizer?.execution.as_ref()?.key.params.get(name);
        let scheme = param("scheme").and_then(Value::as_text).unwrap_or_default();
        let connected = step
            .read_by("vocab")
            .and_then(|read| recorded.steps[read.step?].outputs().get(read.output?));
        let vocab = connected.or(tokenizer.and_then(|step| step.output("vocab")));
        let words = vocab.map(|output| {
            let known = self.words.entry(output.digest);
            let read =
                || recorded::table(store, output).and_then(|table| columns::texts(&table, "token"));
            known
                .or_insert_with(|| Rc::new(read().unwrap_or_default()))
                .clone()
        });
        Scheme {
            words: words.unwrap_or_default(),
            width: (scheme == "char-grid").then(|| {
                let width = param("word_width").and_then(Value::as_int);
                width
                    .and_then(|width| usize::try_from(width).ok())
                    .unwrap_or(20)
            }),
            joiner: if scheme == "chars" { "" } else { " " },
        }
    }

    /// Names of the classes of the data set that a step's rows come from.
    pub fn classes(&mut self, store: &Store, recorded: &Recorded, at: usize) -> Vec<String> {
        let set = upstream(recorded, at, Role::Data);
        let labels = set.and_then(|step| recorded::table(store, step.output("labels")?));
        let Some(labels) = labels else {
            return Vec::new();
        };
        let read = (
            columns::wholes(&labels, "label"),
            columns::texts(&labels, "name"),
        );
        let (Some(numbers), Some(names)) = read else {
            return Vec::new();
        };
        let mut classes = Vec::new();
        for (number, name) in numbers.into_iter().zip(names) {
            let Some(place) = number.and_then(|number| usize::try_from(number).ok()) else {
                continue;
            };
            // A data set with a class of a million is not one that has names for them.
            if place < 10_000 {
                classes.resize(classes.len().max(place + 1), String::new());
                classes[place] = name;
            }
        }
        classes
    }
}

/// Following the port `rows`, the first step of this kind.
fn upstream(recorded: &Recorded, at: usize, role: Role) -> Option<&Step> {
    let mut at = at;
    loop {
        let from = recorded.steps[at].read_by("rows")?.step?;
        let step = &recorded.steps[from];
        if step.role() == role {
            return Some(step);
        }
        // Steps are in order, so this ends.
        if from >= at {
            return None;
        }
        at = from;
    }
}

/// How many channels the signals have that a step reads, from the metadata of their table alone:
/// the table itself may be large.
pub fn channels(store: &Store, recorded: &Recorded, step: &Step) -> Option<usize> {
    let read = step.read_by("rows")?;
    let output = recorded.steps[read.step?].outputs().get(read.output?)?;
    let path = store.object_path(&output.digest);
    // A pipe in the place of an object would be waited for.
    let file = path.is_file().then(|| std::fs::File::open(path).ok())??;
    let found = ArrowReaderMetadata::load(&file, Default::default()).ok()?;
    let metadata = found.schema().metadata();
    stages::signal_channels(metadata.get("ablate.shape")?)
}
