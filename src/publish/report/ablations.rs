//! Ablations on a page: for each number a picture of the differences to the base, and the table beside it.

use serde::Serialize;

use super::view::number_as;
use crate::amounts::thousands;
use crate::inspect::ablation::{Ablation, Number, Outcome};

/// An ablation as the page shows it.
#[derive(Serialize)]
pub struct AblationView {
    stage: String,
    axis: String,
    caption: String,
    notes: Vec<String>,
    numbers: Vec<NumberView>,
}

#[derive(Serialize)]
struct NumberView {
    title: String,
    svg: String,
    rows: Vec<[String; 4]>,
}

/// What the page shows of an ablation.
pub fn view(ablation: &Ablation) -> AblationView {
    let variants = ablation.variants.iter();
    let notes = variants.flat_map(|variant| {
        let same = variant.same_as_base.then(|| "same as base".to_owned());
        let notes = same.into_iter().chain(variant.notes.iter().cloned());
        notes.map(|note| format!("{}: {note}", variant.name))
    });
    AblationView {
        stage: ablation.stage.clone(),
        axis: ablation.axis.clone(),
        caption: match ablation.draws {
            0 => "No intervals: nothing is known of how these numbers vary.".to_owned(),
            draws => format!(
                "Differences to the base with 95% intervals from {} draws over {}, paired. p is adjusted by Holm's method for all differences.",
                thousands(draws as usize),
                ablation.over
            ),
        },
        notes: notes.collect(),
        numbers: ablation
            .numbers
            .iter()
            .map(|number| number_view(ablation, number))
            .collect(),
    }
}

fn number_view(ablation: &Ablation, number: &Number) -> NumberView {
    let rows = ablation.variants.iter().zip(&number.values);
    let shown = rows.clone().map(|(variant, outcome)| {
        [
            variant.name.clone(),
            outcome
                .mean
                .map_or(String::new(), |mean| number_as(mean, false)),
            difference(outcome),
            outcome.p.map_or(String::new(), |p| format!("{p:.3}")),
        ]
    });
    let drawn = rows.filter_map(|(variant, outcome)| {
        let ends = outcome.interval.map(|at| [at.low, at.high]);
        Some(Row {
            name: variant.name.clone(),
            value: outcome.difference.unwrap_or(0.0),
            ends,
        })
        .filter(|_| outcome.mean.is_some())
    });
    NumberView {
        title: format!("{} / {} / {}", number.table, number.row, number.col),
        svg: intervals(&drawn.collect::<Vec<_>>(), Some(0.0)),
        rows: shown.collect(),
    }
}

fn difference(outcome: &Outcome) -> String {
    let Some(difference) = outcome.difference else {
        return String::new();
    };
    let ends = outcome
        .interval
        .map(|at| format!(" [{:+.3}, {:+.3}]", at.low, at.high));
    format!("{difference:+.3}{}", ends.unwrap_or_default())
}

/// A line of a picture: a number with its interval.
struct Row {
    name: String,
    value: f64,
    ends: Option<[f64; 2]>,
}

/// A picture with a line for each number: a dot, and its interval as a bar. `mark`: where a vertical line stands.
fn intervals(rows: &[Row], mark: Option<f64>) -> String {
    let (width, names, line) = (560.0, 180.0, 22.0);
    let all = rows.iter().flat_map(|row| {
        let [low, high] = row.ends.unwrap_or([row.value; 2]);
        [row.value, low, high]
    });
    let all: Vec<f64> = all.chain(mark).filter(|x| x.is_finite()).collect();
    let (Some(least), Some(most)) = (
        all.iter().copied().reduce(f64::min),
        all.iter().copied().reduce(f64::max),
    ) else {
        return String::new();
    };
    let room = (most - least).max(1e-9);
    let at = |x: f64| names + 10.0 + (x - least) / room * (width - names - 30.0);
    let height = line * rows.len() as f64 + 26.0;
    let mut svg = format!(
        "<svg class=\"intervals\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"numbers with their 95% intervals\">"
    );
    if let Some(mark) = mark {
        let (x, end) = (at(mark), height - 20.0);
        svg += &format!(
            "<line x1=\"{x:.1}\" y1=\"2\" x2=\"{x:.1}\" y2=\"{end:.1}\" stroke=\"currentColor\" stroke-dasharray=\"3 3\" opacity=\"0.5\"/>"
        );
    }
    for (n, row) in rows.iter().enumerate() {
        let y = line * (n as f64 + 0.5) + 2.0;
        let name = escaped(&row.name);
        svg += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"12\" fill=\"currentColor\">{name}</text>",
            names,
            y + 4.0
        );
        if let Some([low, high]) = row.ends {
            svg += &format!(
                "<line x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"currentColor\" stroke-width=\"2\" opacity=\"0.6\"/>",
                at(low),
                at(high)
            );
        }
        svg += &format!(
            "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"currentColor\"/>",
            at(row.value)
        );
    }
    for (x, anchor) in [(least, "start"), (most, "end")] {
        svg += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" font-size=\"11\" fill=\"currentColor\" opacity=\"0.7\">{x:.3}</text>",
            at(x),
            height - 6.0
        );
    }
    svg + "</svg>"
}

/// A text inside SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_line_for_each_number_and_escapes_names() {
        let row = |name: &str, value, ends| Row {
            name: name.to_owned(),
            value,
            ends,
        };
        let rows = [row("base", 0.0, None), row("<b>", 0.2, Some([0.1, 0.3]))];
        let svg = intervals(&rows, Some(0.0));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"));
        assert_eq!(intervals(&[], None), "");
    }
}
