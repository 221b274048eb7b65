//! The table `stats`: how long texts are, how much was cut off, how much is unknown.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use rayon::prelude::*;

use super::output::{Ids, batch};
use super::rows::Rows;
use super::settings::Settings;
use super::vocab::Vocabulary;

/// How many lengths a bar of the histogram covers.
const BAR: u32 = 10;

#[derive(Default)]
struct Summary {
    texts: u64,
    tokens: u64,
    longest: u32,
    cut: u64,
    kept: u64,
    unknown: u64,
    bars: BTreeMap<u32, u64>,
}

/// `column, split, stat, from, value`: a row for each number, `from` only for the histogram.
pub fn table(rows: &Rows, columns: &[Ids], vocab: &Vocabulary, settings: &Settings) -> RecordBatch {
    let mut lines = Lines::default();
    for ((name, _), ids) in rows.texts.iter().zip(columns) {
        let mut summaries: Vec<Summary> = rows.splits.iter().map(|_| Summary::default()).collect();
        let found: Vec<Found> = (0..ids.lengths.len())
            .into_par_iter()
            .map(|row| Found::of(ids, row, vocab, settings))
            .collect();
        for (row, found) in found.iter().enumerate() {
            summaries[rows.split[row] as usize].add(ids.lengths[row], found, settings);
        }
        for (split, summary) in rows.splits.iter().zip(summaries) {
            lines.summary(name, split, &summary);
        }
    }
    lines.table()
}

/// What was kept of one text.
struct Found {
    kept: u64,
    unknown: u64,
}

impl Found {
    fn of(ids: &Ids, row: usize, vocab: &Vocabulary, settings: &Settings) -> Found {
        let from = ids.offsets[row] as usize;
        let kept = &ids.ids[from..from + ids.kept[row] as usize];
        let count = |id: u32| kept.iter().filter(|kept| **kept == id as i32).count() as u64;
        let marks = u64::from(settings.before.is_some()) + u64::from(settings.after.is_some());
        let empty = if settings.width > 1 {
            count(vocab.pad)
        } else {
            0
        };
        Found {
            kept: kept.len() as u64 - empty - marks,
            unknown: count(vocab.unknown),
        }
    }
}

impl Summary {
    fn add(&mut self, length: u32, found: &Found, settings: &Settings) {
        self.texts += 1;
        self.tokens += u64::from(length);
        self.longest = self.longest.max(length);
        self.cut += u64::from(length as usize > settings.keep());
        *self.bars.entry(length / BAR * BAR).or_default() += 1;
        self.kept += found.kept;
        self.unknown += found.unknown;
    }
}

#[derive(Default)]
struct Lines {
    column: Vec<String>,
    split: Vec<String>,
    stat: Vec<&'static str>,
    from: Vec<Option<i64>>,
    value: Vec<f64>,
}

impl Lines {
    fn summary(&mut self, column: &str, split: &str, of: &Summary) {
        // A split without texts or tokens has no rates: 0 / 0 would be stored as NaN.
        let rate = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let single = [
            ("texts", of.texts as f64),
            ("tokens", of.tokens as f64),
            ("mean_length", rate(of.tokens, of.texts)),
            ("max_length", f64::from(of.longest)),
            ("truncated_rate", rate(of.cut, of.texts)),
            ("unknown_rate", rate(of.unknown, of.kept)),
        ];
        for (stat, value) in single {
            self.line(column, split, stat, None, value);
        }
        for (from, texts) in &of.bars {
            let from = Some(i64::from(*from));
            self.line(column, split, "length_histogram", from, *texts as f64);
        }
    }

    fn line(
        &mut self,
        column: &str,
        split: &str,
        stat: &'static str,
        from: Option<i64>,
        value: f64,
    ) {
        self.column.push(column.to_owned());
        self.split.push(split.to_owned());
        self.stat.push(stat);
        self.from.push(from);
        self.value.push(value);
    }

    fn table(self) -> RecordBatch {
        let columns: Vec<(String, ArrayRef)> = vec![
            (
                "column".to_owned(),
                Arc::new(StringArray::from(self.column)),
            ),
            ("split".to_owned(), Arc::new(StringArray::from(self.split))),
            ("stat".to_owned(), Arc::new(StringArray::from(self.stat))),
            ("from".to_owned(), Arc::new(Int64Array::from(self.from))),
            ("value".to_owned(), Arc::new(Float64Array::from(self.value))),
        ];
        batch(columns, Vec::new())
    }
}
