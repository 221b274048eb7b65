//! Which column of a user's file is what: as told, by its name, or by what it holds. A guess is shown, and a flag
//! corrects it.

use std::collections::BTreeSet;

use super::sample::Sample;

/// What the user says of the columns.
#[derive(Debug, Default)]
pub struct Columns {
    pub text: Option<String>,
    pub label: Option<String>,
    pub split: Option<String>,
    pub id: Option<String>,
}

/// A column, and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub name: String,
    /// `as told`, `by its name`, …
    pub why: &'static str,
}

/// What columns mean, as far as it is known.
#[derive(Debug)]
pub struct Meaning {
    pub text: Chosen,
    pub label: Chosen,
    pub split: Option<Chosen>,
    pub id: Option<Chosen>,
    /// A column that is called like ids, and has a value twice.
    pub repeated_id: Option<String>,
    /// A column that looks like the second text of a pair, which is not read.
    pub second_text: Option<String>,
    /// The splits, if a column names them.
    pub splits: BTreeSet<String>,
}

/// Why the columns cannot be told.
#[derive(Debug, PartialEq, Eq)]
pub struct ColumnError {
    pub message: String,
    pub help: String,
}

/// Names that people give to such columns, the commonest first.
const TEXTS: [&str; 12] = [
    "text",
    "sentence",
    "review",
    "content",
    "body",
    "comment",
    "message",
    "tweet",
    "document",
    "question",
    "premise",
    "sentence1",
];
const SECOND_TEXTS: [&str; 5] = ["text_b", "sentence2", "hypothesis", "answer", "question2"];
const LABELS: [&str; 12] = [
    "label",
    "class",
    "category",
    "target",
    "sentiment",
    "polarity",
    "stars",
    "rating",
    "score",
    "y",
    "gold_label",
    "topic",
];
const SPLITS: [&str; 4] = ["split", "fold", "partition", "subset"];
const IDS: [&str; 3] = ["id", "uid", "guid"];

/// More classes than this are taken for something else.
const MOST_CLASSES: usize = 50;

const TOLD: &str = "as told";
const NAMED: &str = "by its name";

/// Chooses the columns.
pub fn choose(sample: &Sample, told: &Columns) -> Result<Meaning, ColumnError> {
    if sample.rows.is_empty() {
        return Err(ColumnError {
            message: "it has no rows".to_owned(),
            help: "name a file with a header and at least a few rows of each class".to_owned(),
        });
    }
    let mut taken = BTreeSet::new();
    for name in [&told.text, &told.label, &told.split, &told.id]
        .into_iter()
        .flatten()
    {
        if sample.find(name).is_none() {
            return Err(no_column(sample, name));
        }
        taken.insert(name.clone());
    }
    let split = match &told.split {
        Some(name) => Some(chosen(name, TOLD)),
        None => named(sample, &SPLITS, &taken).filter(|name| names_splits(sample, name)),
    };
    taken.extend(split.iter().map(|chosen| chosen.name.clone()));
    let text = text(sample, told, &taken)?;
    taken.insert(text.name.clone());
    let second_text = named(sample, &SECOND_TEXTS, &taken).map(|found| found.name);
    taken.extend(second_text.clone());
    let label = label(sample, told, &taken)?;
    taken.insert(label.name.clone());
    let (mut id, mut repeated_id) = (told.id.as_deref().map(|name| chosen(name, TOLD)), None);
    if let (None, Some(found)) = (&id, named(sample, &IDS, &taken)) {
        match all_different(sample, &found.name) {
            true => id = Some(found),
            false => repeated_id = Some(found.name),
        }
    }
    let splits = split.as_ref().map(|found| distinct(sample, &found.name));
    Ok(Meaning {
        text,
        second_text,
        label,
        splits: splits.unwrap_or_default(),
        split,
        id,
        repeated_id,
    })
}

fn chosen(name: &str, why: &'static str) -> Chosen {
    Chosen {
        name: name.to_owned(),
        why,
    }
}

fn no_column(sample: &Sample, name: &str) -> ColumnError {
    ColumnError {
        message: format!("it has no column `{name}`"),
        help: format!("its columns are: {}", sample.names.join(", ")),
    }
}

/// The first of these names that is a column, in any case of letters.
fn named(sample: &Sample, names: &[&str], taken: &BTreeSet<String>) -> Option<Chosen> {
    names.iter().find_map(|name| {
        let mut free = sample.names.iter().filter(|known| !taken.contains(*known));
        let found = free.find(|known| known.eq_ignore_ascii_case(name))?;
        Some(chosen(found, NAMED))
    })
}

/// By its name, or the column with the most words.
fn text(sample: &Sample, told: &Columns, taken: &BTreeSet<String>) -> Result<Chosen, ColumnError> {
    if let Some(name) = &told.text {
        return Ok(chosen(name, TOLD));
    }
    if let Some(found) = named(sample, &TEXTS, taken) {
        return Ok(found);
    }
    let words = |at: usize| -> usize {
        let cells = sample.column(at);
        cells.map(|cell| cell.split_whitespace().count()).sum()
    };
    let free = (0..sample.names.len()).filter(|at| !taken.contains(&sample.names[*at]));
    let most = free.max_by_key(|at| (words(*at), usize::MAX - at));
    // A word a row is a label or a number.
    match most.filter(|at| words(*at) > 2 * sample.rows.len()) {
        Some(at) => Ok(chosen(&sample.names[at], "has the most words")),
        None => Err(ColumnError {
            message: "none of its columns looks like texts".to_owned(),
            help: format!(
                "--text COLUMN says which one it is, of: {}",
                sample.names.join(", ")
            ),
        }),
    }
}

/// By its name, or the column with the fewest different values.
fn label(sample: &Sample, told: &Columns, taken: &BTreeSet<String>) -> Result<Chosen, ColumnError> {
    let found = match &told.label {
        Some(name) => Some(chosen(name, TOLD)),
        None => named(sample, &LABELS, taken).or_else(|| fewest_values(sample, taken)),
    };
    let Some(found) = found else {
        return Err(ColumnError {
            message: "none of its columns looks like labels".to_owned(),
            help: format!(
                "--label COLUMN says which one it is, of: {}",
                sample.names.join(", ")
            ),
        });
    };
    let classes = distinct(sample, &found.name).len();
    let column = &found.name;
    match classes {
        0 | 1 => Err(ColumnError {
            message: format!(
                "the column `{column}` has only one class in the first {} rows",
                sample.rows.len()
            ),
            help: "--label COLUMN names another one; a file sorted by class must be shuffled first"
                .to_owned(),
        }),
        2..=MOST_CLASSES => Ok(found),
        _ => Err(ColumnError {
            message: format!(
                "the column `{column}` has {classes} different values in the first {} rows, too many for classes",
                sample.rows.len()
            ),
            help: "--label COLUMN names another one".to_owned(),
        }),
    }
}

fn fewest_values(sample: &Sample, taken: &BTreeSet<String>) -> Option<Chosen> {
    let values = |name: &String| distinct(sample, name).len();
    let free = sample.names.iter().filter(|name| !taken.contains(*name));
    let possible = free.filter(|name| (2..=MOST_CLASSES).contains(&values(name)));
    // Five rows with five values say nothing.
    let repeated = possible.filter(|name| values(name) * 2 <= sample.rows.len());
    let fewest = repeated.min_by_key(|name| values(name))?;
    Some(chosen(fewest, "has the fewest different values"))
}

/// The different values of a column that are not empty.
fn distinct(sample: &Sample, name: &str) -> BTreeSet<String> {
    let at = sample.find(name).expect("a column of the sample");
    let cells = sample.column(at).map(str::trim);
    let cells = cells.filter(|cell| !cell.is_empty());
    cells.map(str::to_owned).collect()
}

/// Whether a column holds the names of splits, and not the number of a fold.
fn names_splits(sample: &Sample, found: &Chosen) -> bool {
    const KNOWN: [&str; 6] = ["train", "dev", "test", "valid", "validation", "val"];
    let values = distinct(sample, &found.name);
    !values.is_empty() && values.iter().all(|value| KNOWN.contains(&value.as_str()))
}

fn all_different(sample: &Sample, name: &str) -> bool {
    distinct(sample, name).len() == sample.rows.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(names: &[&str], rows: &[&[&str]]) -> Sample {
        Sample {
            names: names.iter().map(|name| name.to_string()).collect(),
            rows: rows
                .iter()
                .map(|row| row.iter().map(|cell| cell.to_string()).collect())
                .collect(),
            ..Sample::default()
        }
    }

    #[test]
    fn names_come_first_then_what_columns_hold() {
        let rows: [&[&str]; 4] = [
            &["1", "a fine film", "yes", "train"],
            &["2", "a bad film it was", "no", "train"],
            &["3", "not so bad", "yes", "dev"],
            &["4", "worse than that", "no", "test"],
        ];
        let by_name = choose(
            &sample(&["ID", "Review", "Stars", "split"], &rows),
            &Columns::default(),
        );
        let by_name = by_name.unwrap();
        assert_eq!(by_name.text, chosen("Review", NAMED));
        assert_eq!(by_name.label, chosen("Stars", NAMED));
        assert_eq!(by_name.split, Some(chosen("split", NAMED)));
        assert_eq!(by_name.id, Some(chosen("ID", NAMED)));
        let by_content =
            choose(&sample(&["a", "b", "c", "d"], &rows), &Columns::default()).unwrap();
        assert_eq!(by_content.text, chosen("b", "has the most words"));
        assert_eq!(
            by_content.label,
            chosen("c", "has the fewest different values")
        );
        assert_eq!(by_content.split, None);
    }

    #[test]
    fn a_fold_is_not_a_split_and_ids_that_repeat_are_not_ids() {
        let rows: [&[&str]; 2] = [
            &["7", "one two three", "0", "1"],
            &["7", "four five six", "1", "2"],
        ];
        let found = choose(
            &sample(&["id", "text", "label", "fold"], &rows),
            &Columns::default(),
        )
        .unwrap();
        assert_eq!((found.split, found.id), (None, None));
        assert_eq!(found.repeated_id.as_deref(), Some("id"));
    }

    #[test]
    fn what_is_told_wins_and_what_cannot_be_is_said() {
        let rows: [&[&str]; 2] = [&["one two three", "0", "x"], &["four five six", "1", "x"]];
        let sample = sample(&["text", "label", "other"], &rows);
        let told = |name: &str| Columns {
            label: Some(name.to_owned()),
            ..Columns::default()
        };
        let why = |name: &str| choose(&sample, &told(name)).unwrap_err().message;
        assert_eq!(why("none"), "it has no column `none`");
        assert_eq!(
            why("other"),
            "the column `other` has only one class in the first 2 rows"
        );
        assert_eq!(choose(&sample, &told("label")).unwrap().label.why, TOLD);
    }
}
