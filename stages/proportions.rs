//! Which numbers of an evaluation are proportions of items, so that their uncertainty can be told from their size and
//! the number of items alone. Decides no result, and no kind reads it: a key does not change when this does.

use std::collections::BTreeMap;

use store::{Params, Value};

/// Metrics, and columns of tables that kinds make, that count the share of items for which something is so.
const PROPORTIONS: [&str; 11] = [
    "accuracy",
    "accuracy_before",
    "attacked_accuracy",
    "clean_accuracy",
    "micro_f1",
    "miss_rate",
    "precision",
    "recall",
    "success_rate",
    "success_rate_all",
    "success_rate_correct",
];

/// Whether a metric is the share of items for which something is so.
pub fn is_proportion(metric: &str) -> bool {
    PROPORTIONS.contains(&metric)
}

/// Where a number of an evaluation comes from, by its names: `metric` of the input `from`. None if no line of its
/// parameter `cells` makes such a number, or lines that differ do.
pub fn origin<'p>(params: &'p Params, names: [&str; 3]) -> Option<Origin<'p>> {
    let cells = params.get("cells").and_then(Value::as_list)?;
    let mut found = cells.iter().filter_map(|cell| {
        let cell = cell.as_table()?;
        let made = ["table", "row", "col"].into_iter().zip(names);
        let fits = made.into_iter().all(|(key, name)| {
            let template = text(cell, key);
            template.is_some_and(|template| fits(template, name))
        });
        let origin = || {
            Some(Origin {
                from: text(cell, "from")?,
                metric: text(cell, "metric")?,
            })
        };
        fits.then(origin).flatten()
    });
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'p> {
    /// The input.
    pub from: &'p str,
    /// The metric, or a column of the input.
    pub metric: &'p str,
}

fn text<'v>(cell: &'v BTreeMap<String, Value>, key: &str) -> Option<&'v str> {
    cell.get(key).and_then(Value::as_text)
}

/// Whether a template, with something in place of each `{placeholder}`, is this name.
fn fits(template: &str, name: &str) -> bool {
    let Some((before, rest)) = template.split_once('{') else {
        return template == name;
    };
    let Some((_, after)) = rest.split_once('}') else {
        return template == name;
    };
    let Some(left) = name.strip_prefix(before) else {
        return false;
    };
    let ends = (0..=left.len()).filter(|at| left.is_char_boundary(*at));
    ends.into_iter().any(|at| fits(after, &left[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::evaluate::metrics::METRICS;

    /// What a new metric's author decides here.
    #[test]
    fn every_metric_is_a_proportion_or_known_not_to_be_one() {
        const OTHERS: [&str; 14] = [
            "auc",
            "changed_share",
            "confusion",
            "ece",
            "f1",
            "kept_share",
            "macro_f1",
            "mean_characters",
            "mean_queries",
            "mean_words",
            "median_queries",
            "median_words",
            "success_queries",
            "words",
        ];
        for metric in METRICS {
            let name = metric.entry().name;
            assert!(
                is_proportion(name) != OTHERS.contains(&name),
                "is `{name}` the share of items for which something is so? Add it to PROPORTIONS or to OTHERS \
                 of stages/proportions.rs"
            );
        }
    }

    #[test]
    fn a_number_is_found_by_its_names() {
        let cell = |from: &str, metric: &str, row: &str, col: &str| {
            let keys = [
                ("from", from),
                ("metric", metric),
                ("table", "t"),
                ("row", row),
                ("col", col),
            ];
            let cell = keys.map(|(key, value)| (key.to_owned(), Value::Text(value.to_owned())));
            Value::Table(cell.into())
        };
        let cells = vec![
            cell("swap", "accuracy", "lstm", "swap-{n}"),
            cell("jsma", "median_words", "lstm", "words"),
            cell(
                "jsma",
                "confusion",
                "actual {true}",
                "predicted {predicted}",
            ),
            cell("a", "accuracy", "{method}", "both"),
            cell("b", "success", "{method}", "both"),
        ];
        let params: Params = [("cells".to_owned(), Value::List(cells))].into();
        let metric = |row, col| origin(&params, ["t", row, col]).map(|found| found.metric);
        assert_eq!(metric("lstm", "swap-3"), Some("accuracy"));
        assert_eq!(metric("lstm", "words"), Some("median_words"));
        assert_eq!(metric("actual 1", "predicted 0"), Some("confusion"));
        assert_eq!(metric("lstm", "sway-3"), None);
        assert_eq!(metric("any", "both"), None, "two lines make it");
        assert_eq!(origin(&params, ["u", "lstm", "words"]), None);
        assert!(fits("{a}-{b}", "ä-") && !fits("{a}-{b}", "ab"));
    }
}
