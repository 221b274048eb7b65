//! The tables that data sets load into: one builder for each schema, and the digest of what
//! a split holds. Knows nothing of files.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListBuilder, Float32Builder, Int64Builder, ListBuilder,
    RecordBatch, StringArray, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Float32Type, Int32Type, Int64Type, Metadata, Schema};
use store::Digest;

use crate::Failure;

/// The metadata key with the shape of one `x`: `[64,9]` is 64 steps of 9 channels, `[*,9]` any number of steps.
pub const SHAPE: &str = "ablate.shape";

/// Rows with a text and a label.
#[derive(Default)]
pub struct Texts {
    id: StringBuilder,
    split: StringBuilder,
    label: Int64Builder,
    text: StringBuilder,
    text_b: Option<StringBuilder>,
}

impl Texts {
    /// With capacity for this many rows and bytes of text: growing would copy them again and again.
    pub fn with_capacity(rows: usize, bytes: usize) -> Texts {
        Texts {
            id: StringBuilder::with_capacity(rows, rows * 16),
            split: StringBuilder::with_capacity(rows, rows * 5),
            label: Int64Builder::with_capacity(rows),
            text: StringBuilder::with_capacity(rows, bytes),
            text_b: None,
        }
    }

    /// With a second text in each row.
    pub fn pairs() -> Texts {
        Texts {
            text_b: Some(StringBuilder::new()),
            ..Texts::default()
        }
    }

    /// Adds a row.
    pub fn push(&mut self, id: &str, split: &str, label: Option<i64>, text: &str) {
        self.id.append_value(id);
        self.split.append_value(split);
        self.label.append_option(label);
        self.text.append_value(text);
    }

    /// Adds a row with two texts.
    pub fn push_pair(&mut self, id: &str, split: &str, label: Option<i64>, texts: [&str; 2]) {
        self.push(id, split, label, texts[0]);
        let second = self.text_b.as_mut().expect("made with `pairs`");
        second.append_value(texts[1]);
    }

    /// The table.
    pub fn finish(mut self) -> RecordBatch {
        let mut columns = vec![
            ("id", text(&mut self.id)),
            ("split", text(&mut self.split)),
            ("label", Arc::new(self.label.finish()) as ArrayRef),
            ("text", text(&mut self.text)),
        ];
        columns.extend(self.text_b.as_mut().map(|second| ("text_b", text(second))));
        table(columns)
    }
}

/// Rows with a list of numbers and a label.
pub struct Sequences {
    id: StringBuilder,
    split: StringBuilder,
    label: Int64Builder,
    x: ListBuilder<Float32Builder>,
    /// None where rows have different numbers of steps.
    steps: Option<usize>,
    channels: usize,
}

impl Sequences {
    /// Sequences of `shape[0]` steps of `shape[1]` numbers.
    pub fn new(shape: [usize; 2]) -> Sequences {
        Sequences::with(Some(shape[0]), shape[1])
    }

    /// For these rows, of one length or of several.
    pub fn of(rows: &[Vec<f32>], channels: usize) -> Sequences {
        let first = rows.first().map(Vec::len);
        let even = first.filter(|first| rows.iter().all(|row| row.len() == *first));
        Sequences::with(even.map(|numbers| numbers / channels), channels)
    }

    fn with(steps: Option<usize>, channels: usize) -> Sequences {
        Sequences {
            id: StringBuilder::new(),
            split: StringBuilder::new(),
            label: Int64Builder::new(),
            x: ListBuilder::new(Float32Builder::new()),
            steps,
            channels,
        }
    }

    /// Adds a row. `x` has as many numbers as the shape says, step by step.
    pub fn push(&mut self, id: &str, split: &str, label: impl Into<Option<i64>>, x: &[f32]) {
        let numbers = self.steps.map_or(x.len(), |steps| steps * self.channels);
        assert_eq!(x.len(), numbers, "one whole sequence");
        self.id.append_value(id);
        self.split.append_value(split);
        self.label.append_option(label.into());
        self.x.values().append_slice(x);
        self.x.append(true);
    }

    /// The table.
    pub fn finish(mut self) -> RecordBatch {
        let plain = table(vec![
            ("id", text(&mut self.id)),
            ("split", text(&mut self.split)),
            ("label", Arc::new(self.label.finish()) as ArrayRef),
            ("x", Arc::new(self.x.finish())),
        ]);
        let steps = self.steps.map_or("*".to_owned(), |steps| steps.to_string());
        let shape = [(SHAPE.to_owned(), format!("[{steps},{}]", self.channels))];
        let schema = plain.schema().as_ref().clone();
        let schema = schema.with_metadata(shape.into_iter().collect::<Metadata>());
        plain
            .with_schema(Arc::new(schema))
            .expect("only metadata is added")
    }
}

/// Rows of texts alone: corpora and pairs, with whatever columns they have.
pub struct Columns {
    names: &'static [&'static str],
    columns: Vec<StringBuilder>,
}

impl Columns {
    /// A table of text columns. The first two are `id` and `split`.
    pub fn new(names: &'static [&'static str]) -> Columns {
        Columns {
            names,
            columns: names.iter().map(|_| StringBuilder::new()).collect(),
        }
    }

    /// Adds a row.
    pub fn push<const N: usize>(&mut self, row: [&str; N]) {
        assert_eq!(N, self.columns.len(), "one value a column");
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.append_value(value);
        }
    }

    /// The table.
    pub fn finish(mut self) -> RecordBatch {
        let columns = self.columns.iter_mut().map(text);
        table(self.names.iter().copied().zip(columns).collect())
    }
}

/// Words with a vector each.
pub struct Vectors {
    word: StringBuilder,
    v: FixedSizeListBuilder<Float32Builder>,
}

impl Vectors {
    /// Vectors of this many numbers.
    pub fn new(dimension: usize) -> Vectors {
        let dimension = i32::try_from(dimension).expect("a vector of ordinary size");
        Vectors {
            word: StringBuilder::new(),
            v: FixedSizeListBuilder::new(Float32Builder::new(), dimension),
        }
    }

    /// Adds a word.
    pub fn push(&mut self, word: &str, v: &[f32]) {
        self.word.append_value(word);
        self.v.values().append_slice(v);
        self.v.append(true);
    }

    /// The table.
    pub fn finish(mut self) -> RecordBatch {
        table(vec![
            ("word", text(&mut self.word)),
            ("v", Arc::new(self.v.finish())),
        ])
    }
}

/// The names of classes: `label, name`.
pub fn labels(names: &[String]) -> RecordBatch {
    let label: arrow::array::Int64Array = (0..names.len() as i64).collect::<Vec<_>>().into();
    let name: StringArray = names.iter().map(Some).collect();
    table(vec![
        ("label", Arc::new(label) as ArrayRef),
        ("name", Arc::new(name)),
    ])
}

/// The digest of the rows of one split, in their order: of their values, not of any file format.
/// A table without splits is one split.
pub fn content(table: &RecordBatch, split: &str) -> Result<Digest, Failure> {
    let rows = rows_of(table, split);
    let mut hasher = blake3::Hasher::new();
    // Values are gathered first: the hash works on many kilobytes at once, and most are short.
    let mut block = Vec::with_capacity(BLOCK + (BLOCK >> 2));
    for (field, column) in table.schema().fields().iter().zip(table.columns()) {
        block.extend_from_slice(field.name().as_bytes());
        block.push(0);
        for &row in &rows {
            feed(&mut block, column, row)?;
            if block.len() >= BLOCK {
                hasher.update(&block);
                block.clear();
            }
        }
    }
    hasher.update(&block);
    Ok(Digest::from(*hasher.finalize().as_bytes()))
}

/// How many bytes are hashed at a time.
const BLOCK: usize = 1 << 17;

/// The positions of a split's rows.
pub fn rows_of(table: &RecordBatch, split: &str) -> Vec<usize> {
    match table.column_by_name("split") {
        None => (0..table.num_rows()).collect(),
        Some(column) => {
            let splits = column.as_string::<i32>();
            let here = |row: &usize| splits.value(*row) == split;
            (0..table.num_rows()).filter(here).collect()
        }
    }
}

fn feed(block: &mut Vec<u8>, column: &ArrayRef, row: usize) -> Result<(), Failure> {
    if column.is_null(row) {
        block.extend_from_slice(&[0xff; 9]);
        return Ok(());
    }
    let numbers = |block: &mut Vec<u8>, values: ArrayRef| {
        if let Some(sizes) = values.as_primitive_opt::<Int32Type>() {
            sizes
                .values()
                .iter()
                .for_each(|n| block.extend(n.to_le_bytes()));
            return;
        }
        let values = values.as_primitive::<Float32Type>().values();
        block.extend_from_slice(&(values.len() as u64).to_le_bytes());
        values.iter().for_each(|x| block.extend(x.to_le_bytes()));
    };
    match column.data_type() {
        DataType::Utf8 => {
            let bytes = column.as_string::<i32>().value(row).as_bytes();
            block.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            block.extend_from_slice(bytes);
        }
        DataType::Int64 => {
            let value = column.as_primitive::<Int64Type>().value(row);
            block.extend_from_slice(&value.to_le_bytes());
        }
        DataType::List(_) => numbers(block, column.as_list::<i32>().value(row)),
        DataType::FixedSizeList(..) => numbers(block, column.as_fixed_size_list().value(row)),
        other => {
            return Err(Failure::new(format!(
                "a data set has no columns of type {other}"
            )));
        }
    }
    Ok(())
}

fn text(builder: &mut StringBuilder) -> ArrayRef {
    Arc::new(builder.finish())
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(schema), columns).expect("columns of one length")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_split_sees_values_order_and_nothing_else() {
        let rows = |rows: &[(&str, &str, i64)]| {
            let mut texts = Texts::default();
            rows.iter()
                .for_each(|(id, text, label)| texts.push(id, "train", Some(*label), text));
            texts.push("z", "test", None, "other split");
            content(&texts.finish(), "train").unwrap()
        };
        let base = rows(&[("a", "xy", 0), ("b", "z", 1)]);
        assert_eq!(base, rows(&[("a", "xy", 0), ("b", "z", 1)]));
        assert_ne!(base, rows(&[("a", "x", 0), ("b", "yz", 1)]));
        assert_ne!(base, rows(&[("b", "z", 1), ("a", "xy", 0)]));
        assert_ne!(base, rows(&[("a", "xy", 1), ("b", "z", 1)]));
    }

    #[test]
    fn sequences_carry_their_shape() {
        let mut sequences = Sequences::new([2, 1]);
        sequences.push("0", "train", 1, &[0.5, -0.5]);
        let table = sequences.finish();
        assert_eq!(
            table.schema().metadata().get(SHAPE).map(|s| s.to_string()),
            Some("[2,1]".to_owned())
        );
        assert_eq!(
            store::schema_text(&table.schema()),
            "id: Utf8, split: Utf8, label: Int64, x: List(Float32)"
        );
    }
}
