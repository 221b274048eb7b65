//! Where a cell of tidy results was measured: read off the parameters of the stage that made it.

use std::collections::BTreeMap;

use serde::Serialize;
use store::Value;

use crate::results::recorded::Step;

/// Which input of the stage a cell was measured on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellSource {
    /// The input's port.
    pub port: String,
    /// The metric or column.
    pub metric: String,
    /// Axis values that the cell's names are made of.
    pub axes: BTreeMap<String, String>,
    /// What rows and columns count up: the holes in the names of both.
    #[serde(skip)]
    pub counted: [String; 2],
}

/// A line of the parameter `cells` of an evaluate stage: names with holes, and where they lead.
pub struct Template<'a> {
    names: [&'a str; 3],
    port: &'a str,
    metric: &'a str,
}

/// The lines of an evaluate stage; none for other kinds.
pub fn sources(step: &Step) -> Vec<Template<'_>> {
    let params = step
        .execution
        .iter()
        .filter_map(|found| found.key.params.get("cells"));
    let cells = params
        .filter_map(Value::as_list)
        .flatten()
        .filter_map(Value::as_table);
    cells
        .filter_map(|cell| {
            let text = |key: &str| cell.get(key).and_then(Value::as_text);
            Some(Template {
                names: [text("table")?, text("row")?, text("col")?],
                port: text("from")?,
                metric: text("metric")?,
            })
        })
        .collect()
}

impl Template<'_> {
    /// Where the number with these names (table, row, column) comes from, if from this line.
    pub fn of(&self, names: [&str; 3]) -> Option<CellSource> {
        let mut axes = BTreeMap::new();
        for (template, name) in self.names.into_iter().zip(names) {
            axes.extend(fits(template, name)?);
        }
        Some(CellSource {
            port: self.port.to_owned(),
            metric: self.metric.to_owned(),
            axes,
            counted: [self.names[1], self.names[2]].map(holes),
        })
    }
}

/// The holes of a name: `{method}, class {label}` is `method, label`.
fn holes(template: &str) -> String {
    let parts = template.split('{').skip(1);
    let named = parts.filter_map(|part| Some(part.split_once('}')?.0));
    named.collect::<Vec<_>>().join(", ")
}

/// What the holes of `swap{n}` must hold to give this name; each as short as it can be.
fn fits(template: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut held = BTreeMap::new();
    let Some((before, rest)) = template.split_once('{') else {
        return (template == name).then_some(held);
    };
    let Some((hole, after)) = rest.split_once('}') else {
        return (template == name).then_some(held);
    };
    let name = name.strip_prefix(before)?;
    for (at, _) in name.char_indices().chain([(name.len(), ' ')]) {
        if let Some(others) = fits(after, &name[at..]) {
            held.insert(hole.to_owned(), name[..at].to_owned());
            held.extend(others);
            return Some(held);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_name_what_is_counted() {
        assert_eq!(holes("{method}, class {label}"), "method, label");
        assert_eq!([holes("clean"), holes("{n")], ["", ""]);
    }

    #[test]
    fn names_lead_back_to_their_template() {
        let held = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            Some(pairs.collect::<BTreeMap<_, _>>())
        };
        assert_eq!(fits("swap-{n}", "swap-3"), held(&[("n", "3")]));
        assert_eq!(
            fits("{a} of {b}", "x of y"),
            held(&[("a", "x"), ("b", "y")])
        );
        assert_eq!(fits("clean", "clean"), held(&[]));
        assert_eq!(fits("clean", "cleaner"), None);
        assert_eq!(fits("swap-{n}", "tack-on"), None);
        assert_eq!(fits("plain } {", "plain } {"), held(&[]));
    }
}
