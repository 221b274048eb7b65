//! A table as text that fits a width: long lists and texts are cut, and columns that have no room are named below.
//! Knows nothing of results and terminals.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// The widest that a cell may be while others need room.
const WIDEST: usize = 40;
/// The narrowest that a column is cut to.
const NARROWEST: usize = 8;
/// How many items of a list are shown.
const ITEMS: usize = 4;

/// The columns of the terminal; what is read elsewhere is as wide as a screen.
pub fn width() -> usize {
    const ELSEWHERE: usize = 120;
    terminal_size::terminal_size().map_or(ELSEWHERE, |(width, _)| usize::from(width.0))
}

/// The rows as lines, and the names of columns that did not fit.
pub fn fitted(table: &RecordBatch, width: usize) -> (String, Vec<String>) {
    let schema = table.schema();
    let columns = schema.fields().iter().zip(table.columns());
    let columns: Vec<Vec<String>> = columns
        .map(|(field, array)| {
            let cells = (0..array.len()).map(|row| cell(array, row));
            std::iter::once(field.name().clone()).chain(cells).collect()
        })
        .collect();
    let widths = widths(&columns, width);
    let shown = widths.len();
    let mut lines = Vec::new();
    let parts: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
    let rule = format!("+{}+", parts.join("+"));
    lines.push(rule.clone());
    for row in 0..=table.num_rows() {
        let cells = columns[..shown].iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(column, width)| format!(" {} ", padded(&column[row], *width)))
            .collect();
        lines.push(format!("|{}|", cells.join("|")));
        if row == 0 {
            lines.push(rule.clone());
        }
    }
    lines.push(rule);
    let left = columns[shown..].iter().map(|column| column[0].clone());
    (lines.join("\n"), left.collect())
}

/// How wide each column is; columns at the end that have no room are left out, but never the first.
fn widths(columns: &[Vec<String>], width: usize) -> Vec<usize> {
    let natural: Vec<usize> = columns
        .iter()
        .map(|column| column.iter().map(|cell| length(cell)).max().unwrap_or(0))
        .collect();
    let taken = |widths: &[usize]| widths.iter().map(|w| w + 3).sum::<usize>() + 1;
    if taken(&natural) <= width {
        return natural;
    }
    let mut widths: Vec<usize> = natural.iter().map(|w| (*w).min(WIDEST)).collect();
    // The widest gives way first.
    while taken(&widths) > width {
        let Some((at, widest)) = widths.iter().enumerate().max_by_key(|(_, w)| **w) else {
            break;
        };
        if *widest > NARROWEST {
            widths[at] -= 1;
        } else if widths.len() > 1 {
            widths.pop();
        } else {
            break;
        }
    }
    widths
}

/// One value: the first items of a list, a text without line breaks.
fn cell(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    let items = match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().value(row),
        DataType::FixedSizeList(_, _) => array.as_fixed_size_list().value(row),
        _ => return plain(array, row),
    };
    let first: Vec<String> = (0..items.len().min(ITEMS))
        .map(|at| cell(&items, at))
        .collect();
    match items.len() > ITEMS {
        true => format!("[{}, … {} items]", first.join(", "), items.len()),
        false => format!("[{}]", first.join(", ")),
    }
}

fn plain(array: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default().with_null("null");
    let text = ArrayFormatter::try_new(array.as_ref(), &options)
        .map_or_else(|_| "?".to_owned(), |format| format.value(row).to_string());
    crate::visible::one_line(&text).into_owned()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn padded(text: &str, width: usize) -> String {
    match length(text) > width {
        true => {
            let cut: String = text.chars().take(width.saturating_sub(1)).collect();
            format!("{cut}…")
        }
        false => format!("{text}{}", " ".repeat(width - length(text))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, ListArray, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn table() -> RecordBatch {
        let list = |n: i64| Some((0..n).map(Some).collect::<Vec<_>>());
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([list(3), list(300)]);
        RecordBatch::try_from_iter(vec![
            ("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
            (
                "text",
                Arc::new(StringArray::from(vec!["short\nline", &"long ".repeat(99)])),
            ),
            ("ids", Arc::new(lists)),
        ])
        .unwrap()
    }

    #[test]
    fn every_line_fits_and_long_values_are_cut() {
        for width in [30, 60, 80, 200] {
            let (text, _) = fitted(&table(), width);
            for line in text.lines() {
                assert!(length(line) <= width, "{width}: {line}");
            }
        }
        let (text, left) = fitted(&table(), 80);
        assert!(left.is_empty());
        assert!(text.contains("| 1  | short␤line"), "{text}");
        assert!(text.contains("[0, 1, 2]"), "{text}");
        assert!(text.contains("[0, 1, 2, 3, … 300 items]"), "{text}");
    }

    #[test]
    fn columns_without_room_are_named() {
        let (text, left) = fitted(&table(), 20);
        assert_eq!(left, ["ids"]);
        assert!(text.lines().all(|line| length(line) <= 20), "{text}");
    }
}
