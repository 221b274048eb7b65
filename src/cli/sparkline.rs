//! A history at a glance: each column of numbers as a line of small bars.
//! Knows nothing of the store: it is handed a table.

use arrow::record_batch::RecordBatch;

use crate::results::columns;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The most bars in a line; longer histories are thinned out.
const WIDTH: usize = 60;

/// A line for each column of a history (a table with a column `epoch`): its bars, its first and
/// its last number. Nothing for other tables and for single rows.
pub fn lines(table: &RecordBatch) -> Vec<String> {
    let schema = table.schema();
    if schema.column_with_name("epoch").is_none() || table.num_rows() < 2 {
        return Vec::new();
    }
    // They only count, so their bars carry no information.
    let counted = ["epoch", "step", "attempt", "attempts"];
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let names: Vec<&str> = names.filter(|name| !counted.contains(name)).collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let line = |name: &&str| {
        let numbers = columns::numbers(table, name)?;
        let seen = || numbers.iter().flatten().filter(|number| number.is_finite());
        let (first, last) = (seen().next()?, seen().next_back()?);
        let (bars, first, last) = (
            bars(&numbers),
            columns::short(*first),
            columns::short(*last),
        );
        Some(format!("{name:<width$}  {bars}  {first} -> {last}"))
    };
    names.iter().filter_map(line).collect()
}

fn bars(numbers: &[Option<f64>]) -> String {
    let seen = || numbers.iter().flatten().filter(|number| number.is_finite());
    let low = seen().copied().fold(f64::INFINITY, f64::min);
    let high = seen().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = |number: &Option<f64>| match number.filter(|number| number.is_finite()) {
        None => ' ',
        Some(_) if high <= low => BARS[3],
        Some(number) => BARS[((number - low) / (high - low) * 7.0).round() as usize],
    };
    let shown = numbers.len().min(WIDTH);
    (0..shown)
        .map(|n| bar(&numbers[n * numbers.len() / shown]))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array};

    use super::*;

    #[test]
    fn a_history_is_seen_at_a_glance() {
        let epochs: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let floats = |list: Vec<Option<f64>>| -> ArrayRef { Arc::new(Float64Array::from(list)) };
        let loss = floats(vec![Some(0.8), Some(0.4), None, Some(0.1)]);
        let flat = floats(vec![Some(0.5); 4]);
        let none = floats(vec![None; 4]);
        let columns = [
            ("epoch", epochs.clone()),
            ("attempt", epochs.clone()),
            ("loss", loss),
            ("dev", flat),
            ("none", none),
        ];
        let table = RecordBatch::try_from_iter(columns).unwrap();
        assert_eq!(
            lines(&table),
            ["loss  █▄ ▁  0.8 -> 0.1", "dev   ▄▄▄▄  0.5 -> 0.5"]
        );
        assert!(lines(&table.slice(0, 1)).is_empty());
        let other = RecordBatch::try_from_iter([("x", epochs)]).unwrap();
        assert!(lines(&other).is_empty());
    }

    #[test]
    fn long_histories_are_thinned() {
        let numbers: Vec<Option<f64>> = (0..1000).map(|n| Some(f64::from(n))).collect();
        let line = bars(&numbers);
        assert_eq!(line.chars().count(), WIDTH);
        assert!(line.starts_with('▁') && line.ends_with('█'));
    }
}
