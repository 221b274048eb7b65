//! Rows that models read: tokens or signals, perhaps with a second text and a label, as `tokenize` and `dataset`
//! make them.
//! Knows nothing of models.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use nn::batch::{Example, Sequence, Target};

use super::schema::table;
use crate::Failure;
use crate::contract::expected;
use crate::contract::expected::ExpectedRows;
use crate::tables::vocabulary;

/// The numbers of a signal.
pub const SIGNAL: &str = "x";

table!("tokens", "tokenize", "A row for each text. The metadata has the size and digest of the vocabulary, and its special tokens.", {
    ID = "id": "any", "The id of the row.";
    SPLIT = "split": "string", "Its split.";
    LABEL = "label": "int64", "Its class, from 0; null if it has none.";
    IDS = "ids": "list of int32", "The ids of its tokens; of a character grid, those of all words one after the other.";
    LEN = "len": "int32", "How many tokens, or words of a grid, there are, padding not counted.";
    SECOND = "ids_b": "list of int32", "The ids of the second text.", only "pairs of texts";
    SECOND_LEN = "len_b": "int32", "How many they are.", only "pairs of texts";
});

/// A table of sequences, decoded.
pub struct SequenceTable {
    /// What names each row.
    pub ids: Vec<String>,
    /// The split of each row.
    pub splits: Vec<String>,
    /// What is read, and the class if it is known.
    pub examples: Vec<Example>,
    /// The second text of each row, if the table has one and its reader asked for it.
    pub second: Option<Vec<Sequence>>,
    /// What separates the two texts, of pairs that were joined into one sequence.
    pub separator: Option<u32>,
    /// What all rows hold.
    pub form: Form,
    /// Texts without a token; they are read as one unknown word.
    pub empty: usize,
}

/// What rows hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Ids of tokens.
    Tokens {
        /// How many there are.
        vocabulary: usize,
        /// The one that stands for nothing.
        pad: u32,
        /// The one that stands for words that are not in the vocabulary.
        unknown: u32,
        /// The digest of the vocabulary.
        words: String,
        /// Whether shorter texts are filled up with padding.
        filled: bool,
    },
    /// Words of a fixed number of characters.
    Chars {
        /// How many characters there are.
        vocabulary: usize,
        /// Characters in a word.
        width: usize,
        /// The one that stands for nothing.
        pad: u32,
        /// The one that stands for characters that are not in the vocabulary.
        unknown: u32,
        /// The digest of the vocabulary.
        words: String,
    },
    /// Steps of numbers.
    Signals {
        /// Numbers in a step.
        channels: usize,
    },
}

impl Form {
    /// What such rows hold, in the words of what the pipeline file tells.
    pub fn rows(&self) -> ExpectedRows {
        match self {
            Form::Tokens { filled, .. } => ExpectedRows::Tokens { padded: *filled },
            Form::Chars { .. } => ExpectedRows::Grid,
            Form::Signals { .. } => ExpectedRows::Signals,
        }
    }

    /// The digest of the vocabulary, if there is one.
    pub fn words(&self) -> Option<&str> {
        match self {
            Form::Tokens { words, .. } | Form::Chars { words, .. } => Some(words),
            Form::Signals { .. } => None,
        }
    }
}

impl Form {
    /// The padding and the unknown token, if there are tokens or characters.
    pub fn special(&self) -> Option<[u32; 2]> {
        match self {
            Form::Tokens { pad, unknown, .. } | Form::Chars { pad, unknown, .. } => {
                Some([*pad, *unknown])
            }
            Form::Signals { .. } => None,
        }
    }
}

impl SequenceTable {
    /// The rows of the output `tokens` of a tokenize stage, or of a data set of signals. Pairs of texts are an
    /// error: the second would be ignored.
    pub fn read(table: &RecordBatch) -> Result<SequenceTable, Failure> {
        match are_pairs(table) {
            true => Err(Failure::new(expected::pairs(SECOND)).help(expected::PAIRS_HELP)),
            false => SequenceTable::read_pairs(table),
        }
    }

    /// The same with the second text of each row, if there is one.
    pub fn read_pairs(table: &RecordBatch) -> Result<SequenceTable, Failure> {
        let ids = ids(table)?;
        let splits = texts(table, SPLIT)?;
        let labels = labels(table)?;
        let (sequences, form, mut empty) = match table.column_by_name(IDS) {
            Some(column) => tokens(table, column)?,
            None => signals(table)?,
        };
        let second = match table.column_by_name(SECOND) {
            Some(column) => {
                let (second, _, without) = tokens(table, column)?;
                empty += without;
                Some(second)
            }
            None => None,
        };
        let examples = sequences
            .into_iter()
            .zip(labels)
            .map(|(input, label)| Example {
                input,
                target: label.map_or(Target::None, Target::Class),
            })
            .collect();
        Ok(SequenceTable {
            ids,
            splits,
            examples,
            second,
            separator: None,
            form,
            empty,
        })
    }

    /// The places of a split's rows.
    pub fn split(&self, name: &str) -> Vec<usize> {
        (0..self.splits.len())
            .filter(|row| self.splits[*row] == name)
            .collect()
    }

    /// The examples at these places, all of which must have a label.
    pub fn examples(&self, places: &[usize]) -> Result<Vec<Example>, Failure> {
        let unlabelled = places.iter().find(|row| self.label(**row).is_none());
        if let Some(row) = unlabelled {
            return Err(Failure::new(format!(
                "the row with the id {} has no label",
                self.ids[*row]
            ))
            .help("leave such rows out: SELECT * … WHERE label IS NOT NULL"));
        }
        Ok(places
            .iter()
            .map(|row| self.examples[*row].clone())
            .collect())
    }

    /// The class of a row.
    pub fn label(&self, row: usize) -> Option<u32> {
        match self.examples[row].target {
            Target::Class(label) => Some(label),
            _ => None,
        }
    }

    /// The error for a split that has no rows.
    pub fn no_split(&self, name: &str, param: &'static str) -> Failure {
        let mut known: Vec<&str> = self.splits.iter().map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        Failure::new(format!("no row has the split `{name}`"))
            .help(format!("splits: {}", known.join(", ")))
            .at(param)
    }
}

/// Whether rows have a second text.
pub fn are_pairs(table: &RecordBatch) -> bool {
    table.column_by_name(SECOND).is_some()
}

/// The ids of rows, as text.
pub fn ids(table: &RecordBatch) -> Result<Vec<String>, Failure> {
    let column = table.column_by_name(ID).ok_or_else(|| missing(table, ID))?;
    let ids: Option<Vec<String>> = match column.data_type() {
        DataType::Utf8 => column
            .as_string::<i32>()
            .iter()
            .map(|id| id.map(str::to_owned))
            .collect(),
        DataType::Int64 => column
            .as_primitive::<Int64Type>()
            .iter()
            .map(|id| id.map(|id| id.to_string()))
            .collect(),
        other => {
            return Err(Failure::new(format!(
                "the column `id` holds {other}, not strings or integers"
            )));
        }
    };
    ids.ok_or_else(|| Failure::new("the column `id` has a null"))
}

/// A column of texts without nulls.
pub fn texts(table: &RecordBatch, name: &str) -> Result<Vec<String>, Failure> {
    let column = table
        .column_by_name(name)
        .ok_or_else(|| missing(table, name))?;
    let texts = column.as_string_opt::<i32>();
    let texts = texts.map(|texts| texts.iter().map(|text| text.map(str::to_owned)).collect());
    texts
        .flatten()
        .ok_or_else(|| Failure::new(format!("the column `{name}` is not text without nulls")))
}

/// The class of each row; none where the table has no labels.
fn labels(table: &RecordBatch) -> Result<Vec<Option<u32>>, Failure> {
    let Some(column) = table.column_by_name(LABEL) else {
        return Ok(vec![None; table.num_rows()]);
    };
    let labels = column.as_primitive_opt::<Int64Type>().ok_or_else(|| {
        let got = column.data_type();
        Failure::new(format!("the column `label` holds {got}, not integers"))
    })?;
    let label = |(row, label): (usize, Option<i64>)| match label {
        None => Ok(None),
        Some(label) if (0..1 << 16).contains(&label) => Ok(Some(label as u32)),
        Some(label) => Err(Failure::new(format!("row {row} has the label {label}"))
            .help("labels are integers from 0: number the classes")),
    };
    labels.iter().enumerate().map(label).collect()
}

type Sequences = (Vec<Sequence>, Form, usize);

fn tokens(table: &RecordBatch, column: &ArrayRef) -> Result<Sequences, Failure> {
    let not_tokens = || {
        Failure::new("the input `rows` is not the output `tokens` of a tokenize stage")
            .help("it has the columns id, split, label, ids and len, and counts in its metadata")
    };
    let lists = column.as_list_opt::<i32>().ok_or_else(not_tokens)?;
    let values = lists
        .values()
        .as_primitive_opt::<Int32Type>()
        .ok_or_else(not_tokens)?;
    let schema = table.schema();
    let number = |key: &str| {
        let text = schema.metadata().get(&format!("ablate.{key}"));
        text.and_then(|text| text.parse::<usize>().ok())
            .ok_or_else(not_tokens)
    };
    let (vocabulary, width) = (number("vocab_size")?, number("word_width")?);
    let (pad, unknown) = (number("pad")? as u32, number("unknown")? as u32);
    let words = schema.metadata().get(vocabulary::KEY);
    let words = words.ok_or_else(not_tokens)?.clone();
    let filled = schema.metadata().contains_key("ablate.filled");
    let ids = values.values();
    let wrong = |id: &&i32| !(0..vocabulary as i32).contains(*id);
    if let Some(id) = ids.iter().find(wrong) {
        return Err(Failure::new(format!(
            "the rows have the token {id}, but the vocabulary has {vocabulary}"
        )));
    }
    let mut empty = 0;
    let sequences = lists.value_offsets().windows(2).map(|ends| {
        let ids = &ids[ends[0] as usize..ends[1] as usize];
        let mut ids: Vec<u32> = ids.iter().map(|id| *id as u32).collect();
        if ids.is_empty() {
            empty += 1;
            ids = vec![unknown; width];
        }
        match width {
            1 => Sequence::Tokens(ids),
            width => Sequence::Chars { width, ids },
        }
    });
    let sequences = sequences.collect();
    let form = match width {
        1 => Form::Tokens {
            vocabulary,
            pad,
            unknown,
            words,
            filled,
        },
        width => Form::Chars {
            vocabulary,
            width,
            pad,
            unknown,
            words,
        },
    };
    Ok((sequences, form, empty))
}

fn signals(table: &RecordBatch) -> Result<Sequences, Failure> {
    let column = table.column_by_name(SIGNAL).ok_or_else(|| {
        Failure::new("the input `rows` has no column `ids` or `x`")
            .help("connect the output `tokens` of a tokenize stage, or a data set of signals")
    })?;
    let lists = column.as_list_opt::<i32>();
    let values = lists.and_then(|l| l.values().as_primitive_opt::<Float32Type>());
    let (lists, values) = lists
        .zip(values)
        .ok_or_else(|| Failure::new("the column `x` does not hold lists of 32-bit floats"))?;
    let schema = table.schema();
    let shape = schema.metadata().get("ablate.shape");
    let channels = shape
        .and_then(|shape| signal_channels(shape))
        .ok_or_else(|| {
            Failure::new("the rows have no shape `[steps,channels]` in their metadata")
                .help("connect a dataset stage: what SQL makes of signals has lost their shape")
        })?;
    let whole = |(row, ends): (usize, &[i32])| {
        let data = values.values()[ends[0] as usize..ends[1] as usize].to_vec();
        if data.is_empty() || data.len() % channels != 0 {
            let found = data.len();
            return Err(Failure::new(format!(
                "row {row} has {found} numbers, which is not a multiple of {channels}, the number of channels"
            )));
        }
        Ok(Sequence::of_rows(channels, data))
    };
    let sequences = lists.value_offsets().windows(2).enumerate().map(whole);
    let sequences = sequences.collect::<Result<_, _>>()?;
    Ok((sequences, Form::Signals { channels }, 0))
}

/// How many channels signals of this shape have: `[64,9]`, or `[*,9]` where rows have different
/// numbers of steps.
pub fn signal_channels(shape: &str) -> Option<usize> {
    let (_, channels) = shape.trim_matches(['[', ']']).rsplit_once(',')?;
    let channels = channels.trim().parse().ok()?;
    (channels > 0).then_some(channels)
}

fn missing(table: &RecordBatch, name: &str) -> Failure {
    let schema = table.schema();
    let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    Failure::new(format!("the rows have no column `{name}`"))
        .help(format!("their columns: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_with_and_without_a_number_of_steps_say_their_channels() {
        assert_eq!(signal_channels("[64,9]"), Some(9));
        assert_eq!(signal_channels("[*,9]"), Some(9));
        assert_eq!(signal_channels("[*, 3]"), Some(3));
        assert_eq!(signal_channels("[64,0]"), None);
        assert_eq!(signal_channels("[64]"), None);
    }
}
