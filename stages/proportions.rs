//! Which numbers of an evaluation are proportions of items, so that their uncertainty can be told from their size and
//! the number of items alone. Decides no result, and no kind reads it: a key does not change when this does.

use std::collections::BTreeMap;

use store::{Params, Value};

use crate::tables::comparison::{ATTACKED_ACCURACY, CLEAN_ACCURACY};

/// Metrics, and columns of tables that kinds make, that count the share of items for which something is so.
const PROPORTIONS: [&str; 11] = [
    "accuracy",
    "accuracy_before",
    ATTACKED_ACCURACY,
    CLEAN_ACCURACY,
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
/// parameter `cells` makes such a number, or lines that are as near to the names and differ do.
pub fn origin<'p>(params: &'p Params, names: [&str; 3]) -> Option<Origin<'p>> {
    let cells = params.get("cells").and_then(Value::as_list)?;
    let mut found: Vec<(usize, Origin<'p>)> = cells
        .iter()
        .filter_map(|cell| made_by(cell.as_table()?, names))
        .collect();
    // A column that is written out is nearer than one that an axis fills in.
    let literal = found.iter().map(|(literal, _)| *literal).max()?;
    found.retain(|(other, _)| *other == literal);
    let (_, first) = found.first()?.clone();
    let same =
        |(_, other): &(usize, Origin<'p>)| (other.from, other.metric) == (first.from, first.metric);
    found.iter().all(same).then_some(first)
}

/// Where a number comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin<'p> {
    /// The input.
    pub from: &'p str,
    /// The metric, or a column of the input.
    pub metric: &'p str,
    /// Columns of the input with the one value that the number's rows have there.
    pub values: BTreeMap<String, String>,
}

/// Whether a line of `cells` makes a number of these names: how many of its letters are written out, and where it
/// comes from.
fn made_by<'p>(cell: &'p BTreeMap<String, Value>, names: [&str; 3]) -> Option<(usize, Origin<'p>)> {
    let mut values = BTreeMap::new();
    let mut literal = 0;
    for (key, name) in ["table", "row", "col"].into_iter().zip(names) {
        let template = text(cell, key)?;
        let filled = filled(template, name)?;
        let inserted: usize = filled.iter().map(|(_, value)| value.len()).sum();
        literal += name.len() - inserted;
        for (placeholder, value) in filled {
            values.insert(placeholder.to_owned(), value.to_owned());
        }
    }
    let only = cell.get("where").and_then(Value::as_table);
    for (column, value) in only.into_iter().flatten() {
        let one = match value {
            Value::List(list) => list.first().filter(|_| list.len() == 1),
            value => Some(value),
        };
        let one = one.map(|one| one.as_text().map_or(one.to_string(), str::to_owned));
        values.extend(one.map(|one| (column.clone(), one)));
    }
    let origin = Origin {
        from: text(cell, "from")?,
        metric: text(cell, "metric")?,
        values,
    };
    Some((literal, origin))
}

fn text<'v>(cell: &'v BTreeMap<String, Value>, key: &str) -> Option<&'v str> {
    cell.get(key).and_then(Value::as_text)
}

/// What stands in a name in place of each `{placeholder}` of its template; none if it is not made by it.
fn filled<'t, 'n>(template: &'t str, name: &'n str) -> Option<Vec<(&'t str, &'n str)>> {
    let parts = template
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (placeholder, after))) = parts else {
        return (template == name).then(Vec::new);
    };
    let left = name.strip_prefix(before)?;
    let mut ends = (0..=left.len()).filter(|at| left.is_char_boundary(*at));
    ends.find_map(|at| {
        let mut rest = filled(after, &left[at..])?;
        rest.insert(0, (placeholder, &left[..at]));
        Some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::evaluate::metrics::METRICS;

    /// What a new metric's author decides here.
    #[test]
    fn every_metric_is_a_proportion_or_known_not_to_be_one() {
        const OTHERS: [&str; 16] = [
            "auc",
            "changed_characters",
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
            "operation_share",
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
        assert!(filled("{a}-{b}", "ä-").is_some() && filled("{a}-{b}", "ab").is_none());
        let origin = origin(&params, ["t", "lstm", "swap-3"]).unwrap();
        assert_eq!(origin.values["n"], "3");
    }
}
