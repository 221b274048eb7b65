//! The table: one line a tool, a gap between cases.

use std::fmt::Write;
use std::time::Duration;

use crate::row::Row;

const HEAD: [&str; 7] = [
    "case", "tool", "wall s", "cpu s", "peak MB", "ran", "x ablate",
];

/// All rows, in columns.
pub fn render(rows: &[Row]) -> String {
    let lines: Vec<[String; 7]> = rows.iter().map(|row| cells(row, rows)).collect();
    let mut widths = HEAD.map(str::len);
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.len());
        }
    }
    let mut text = line(&HEAD.map(str::to_owned), &widths);
    let mut last = None;
    for (row, cells) in rows.iter().zip(&lines) {
        if last.replace(row.case) != Some(row.case) {
            text.push('\n');
        }
        text.push_str(&line(cells, &widths));
        let trouble = match &row.trouble {
            None if row.samples.is_empty() => Some("not run: it failed before"),
            trouble => trouble.as_deref(),
        };
        if let Some(trouble) = trouble {
            text.truncate(text.trim_end().len());
            let _ = writeln!(text, "  {trouble}");
        }
    }
    text
}

/// Seconds with as many digits as tell something.
pub fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..0.1 => format!("{seconds:.4}"),
        0.1..10.0 => format!("{seconds:.3}"),
        _ => format!("{seconds:.1}"),
    }
}

fn cells(row: &Row, rows: &[Row]) -> [String; 7] {
    let ours = rows
        .iter()
        .find(|other| other.case == row.case && other.tool == "ablate");
    let ratio = ours.and_then(|ours| {
        let (ours, theirs) = (ours.wall()?.0, row.wall()?.0);
        Some(format!("{:.2}", theirs.as_secs_f64() / ours.as_secs_f64()))
    });
    let wall = row
        .wall()
        .map(|(median, least, most)| match row.samples.len() {
            1 => format!("{} (once)", seconds(median)),
            _ => format!(
                "{} ({} .. {})",
                seconds(median),
                seconds(least),
                seconds(most)
            ),
        });
    [
        row.case.to_string(),
        row.tool.to_owned(),
        wall.unwrap_or_default(),
        row.cpu().map(seconds).unwrap_or_default(),
        row.peak()
            .map(|bytes| (bytes / 1_000_000).to_string())
            .unwrap_or_default(),
        row.ran.map(|ran| ran.to_string()).unwrap_or_default(),
        ratio.unwrap_or_default(),
    ]
}

fn line(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let mut text = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let _ = write!(text, "{cell:<width$}  ");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
