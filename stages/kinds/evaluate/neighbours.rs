//! The words nearest to edited ones, by the vectors that a network of characters makes of words (HotFlip, table 4).
//!
//! A word's vector is what comes after the highway layers, before any context. Nearest is by cosine; the edited word
//! itself is not among its neighbours, the original may be.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;
use ndarray::{Array1, ArrayView1};
use nn::batch::{Example, Sequence, Target};
use store::{Params, Value};

use crate::models::failure as refused;
use crate::models::loaded::Loaded;
use crate::params::settings::{Settings, failure, wrong};
use crate::tables::vocabulary;
use crate::tables::weights::with_metadata;
use crate::{Failure, Outputs, ParamError, Task};

/// The columns of the output.
pub const COLUMNS: [&str; 6] = ["word", "edited", "rank", "neighbour", "cosine", "original"];

/// Words in one text.
const WORDS: usize = 64;

/// The parameter `pairs`: words with their edited forms.
pub fn pairs(params: &Params) -> Result<Vec<(String, String)>, ParamError> {
    let list = params.get("pairs").and_then(Value::as_list).unwrap_or(&[]);
    let pair = |value: &Value| {
        let table = value.as_table()?;
        let text = |key: &str| table.get(key)?.as_text().map(str::to_owned);
        Some((text("word")?, text("edited")?)).filter(|_| table.len() == 2)
    };
    let pairs: Option<Vec<(String, String)>> = list.iter().map(pair).collect();
    pairs.filter(|pairs| !pairs.is_empty()).ok_or_else(|| {
        let message = "`pairs` has no words with their edited forms".to_owned();
        let help = "write pairs = [{ word = \"past\", edited = \"pas!t\" }]";
        wrong("pairs", message, help)
    })
}

/// The characters of a grid, by id.
struct Letters<'a> {
    letters: &'a StringArray,
    width: usize,
}

impl Letters<'_> {
    /// A word as a row of the grid, cut and padded as a tokenize stage does it.
    fn row(&self, word: &str) -> Vec<u32> {
        let id = |c: char| {
            let text = c.to_string();
            let place = self.letters.iter().position(|l| l == Some(text.as_str()));
            // 0 is padding and 1 the unknown character in every vocabulary that is made here.
            place.map_or(1, |n| n as u32)
        };
        let ids = word.chars().take(self.width - 1).map(id);
        ids.chain(std::iter::repeat(0)).take(self.width).collect()
    }
}

/// `word, edited, rank, neighbour, cosine, original`.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let count = Settings(task.params).int("strongest").map_err(failure)?;
    let pairs = pairs(task.params).map_err(failure)?;
    let loaded = Loaded::open(&task.inputs["victim"], None)?;
    let vocab = &task.inputs["vocab"];
    let listed = vocabulary::listed(vocab);
    vocabulary::agreed("victim", loaded.card.words(), "vocab", listed.as_deref())?;
    let letters = Letters {
        letters: vocab
            .column_by_name(vocabulary::TOKEN)
            .and_then(|c| c.as_string_opt::<i32>())
            .ok_or_else(|| Failure::new("the input `vocab` has no column `token`"))?,
        width: width(vocab)?,
    };
    let words = vocabulary::words(&task.inputs["words"], "words")?;
    let special = [vocabulary::PAD, vocabulary::UNKNOWN];
    let words: Vec<&str> = words.iter().flatten().collect();
    let words: Vec<&str> = words.into_iter().filter(|w| !special.contains(w)).collect();
    let vectors = vectors(&loaded, &letters, &words)?;
    let edited: Vec<&str> = pairs.iter().map(|(_, edited)| edited.as_str()).collect();
    let asked = self::vectors(&loaded, &letters, &edited)?;
    let mut rows = Vec::new();
    for ((word, edited), asked) in pairs.iter().zip(&asked) {
        let mut near: Vec<(f64, &str)> = words
            .iter()
            .zip(&vectors)
            .filter(|(other, _)| *other != edited)
            .map(|(other, vector)| (cosine(asked.view(), vector.view()), *other))
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let near = near.into_iter().take(count).enumerate();
        rows.extend(near.map(|(rank, (cosine, other))| (word, edited, rank, other, cosine)));
    }
    let texts = |get: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..rows.len()).map(get)))
    };
    let ranks = rows.iter().map(|row| row.2 as i64 + 1);
    let cosines = rows.iter().map(|row| row.4);
    let same = rows.iter().map(|row| Some(row.0 == row.3));
    let arrays: [ArrayRef; 6] = [
        texts(&|n| rows[n].0.clone()),
        texts(&|n| rows[n].1.clone()),
        Arc::new(Int64Array::from_iter_values(ranks)),
        texts(&|n| rows[n].3.to_owned()),
        Arc::new(Float64Array::from_iter_values(cosines)),
        Arc::new(BooleanArray::from_iter(same)),
    ];
    let columns = COLUMNS.into_iter().zip(arrays).collect();
    let table = with_metadata(columns, Metadata::default());
    Ok([("neighbours".to_owned(), table)].into())
}

/// Slots of a word, as the tokenize stage says.
fn width(vocab: &RecordBatch) -> Result<usize, Failure> {
    let schema = vocab.schema();
    let width = schema.metadata().get("ablate.word_width");
    let width = width.and_then(|width| width.parse().ok());
    width.filter(|width| *width > 1).ok_or_else(|| {
        Failure::new("the input `vocab` does not have the characters of a grid")
            .help("connect the output `vocab` of the tokenize stage with scheme = \"char-grid\"")
    })
}

/// The vector of each word.
fn vectors(
    loaded: &Loaded,
    letters: &Letters<'_>,
    words: &[&str],
) -> Result<Vec<Array1<f32>>, Failure> {
    let text = |words: &[&str]| Example {
        input: Sequence::Chars {
            width: letters.width,
            ids: words.iter().flat_map(|word| letters.row(word)).collect(),
        },
        target: Target::None,
    };
    let texts: Vec<Example> = words.chunks(WORDS).map(text).collect();
    let subject = loaded.subject()?;
    let mut found = Vec::with_capacity(words.len());
    for texts in texts.chunks(WORDS) {
        let texts: Vec<&Example> = texts.iter().collect();
        for layers in subject.victim().hidden(&texts).map_err(refused)? {
            let first = layers
                .first()
                .ok_or_else(|| Failure::new("no word vectors"))?;
            found.extend(first.vectors.rows().into_iter().map(|row| row.to_owned()));
        }
    }
    Ok(found)
}

/// The cosine of two vectors; 0 if one of them has no direction.
fn cosine(a: ArrayView1<'_, f32>, b: ArrayView1<'_, f32>) -> f64 {
    let dot = |a: ArrayView1<'_, f32>, b: ArrayView1<'_, f32>| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    match lengths > 0.0 {
        true => dot(a, b) / lengths,
        false => 0.0,
    }
}
