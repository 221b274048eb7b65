//! The strongest words of each class, by the counts of naive Bayes.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::Metadata;

use crate::models::loaded::Loaded;
use crate::models::sway::Sway;
use crate::params::settings::{Settings, failure};
use crate::tables::vocabulary;
use crate::tables::weights::with_metadata;
use crate::{Failure, Outputs, Task};

/// Special tokens, which are not words.
const SPECIAL: [&str; 2] = ["[PAD]", "[UNK]"];

/// `label, rank, token, count, other`: how often in the class, and in all others.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let count = Settings(task.params).int("strongest").map_err(failure)?;
    let loaded = Loaded::open(&task.inputs["bayes"], None)?;
    let bayes = loaded.bayes().ok_or_else(|| {
        Failure::new("the input `bayes` is not a naive Bayes model")
            .help("connect a train stage with model = \"naive-bayes\"")
    })?;
    let words = task.inputs["vocab"].column_by_name(vocabulary::TOKEN);
    let words = words.and_then(|c| c.as_string_opt::<i32>());
    let words = words.ok_or_else(|| Failure::new("the input `vocab` has no column `token`"))?;
    let listed = vocabulary::listed(&task.inputs["vocab"]);
    if loaded.card.words() != listed.as_deref() {
        return Err(
            Failure::new("the counts of `bayes` are of other words than `vocab` lists")
                .help("connect `bayes` and `vocab` that come from one tokenize stage"),
        );
    }
    let sway = Sway::new(bayes);
    let special: Vec<u32> = (0u32..)
        .zip(words.iter())
        .filter(|(_, word)| word.is_some_and(|word| SPECIAL.contains(&word)))
        .map(|(id, _)| id)
        .collect();
    let classes = 0..bayes.classes() as u32;
    let mut rows: Vec<[i64; 4]> = Vec::new();
    let mut tokens: Vec<&str> = Vec::new();
    for class in classes.clone() {
        let strongest = sway.strongest(class, count, words, &special);
        for (rank, token) in strongest.into_iter().enumerate() {
            let others = classes.clone().filter(|other| *other != class);
            let others: u64 = others.map(|other| sway.count(other, token)).sum();
            let own = sway.count(class, token);
            rows.push([class.into(), rank as i64 + 1, own as i64, others as i64]);
            tokens.push(words.value(token as usize));
        }
    }
    let column = |k: usize| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row[k])))
    };
    let columns = vec![
        ("label", column(0)),
        ("rank", column(1)),
        (
            vocabulary::TOKEN,
            Arc::new(StringArray::from(tokens)) as ArrayRef,
        ),
        (vocabulary::COUNT, column(2)),
        ("other", column(3)),
    ];
    Ok([(
        "words".to_owned(),
        with_metadata(columns, Metadata::default()),
    )]
    .into())
}
