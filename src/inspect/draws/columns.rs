//! Which columns of an item's table a stage can read, told from its parameters: texts and vectors beside them are large,
//! and copied for every draw.

use std::collections::BTreeSet;

use stages::Role;
use stages::kinds::evaluate::metrics::METRICS;
use stages::tables::{TABLES, examples};
use store::{Params, Value};

use super::unread::CELLS;

/// The columns that a stage may read of a table of items that comes in by this port; none for all of them.
pub fn columns_read(role: Role, params: &Params, port: &str) -> Option<BTreeSet<String>> {
    let mut words = BTreeSet::new();
    for (name, value) in params {
        match (role, value) {
            (Role::Results, Value::List(cells)) if name == CELLS => {
                let about = cells.iter().filter(|cell| may_read(cell, port));
                about.for_each(|cell| words_of(cell, &mut words));
            }
            _ => words_of(value, &mut words),
        }
    }
    if role == Role::Query {
        let query = params.get("query").and_then(Value::as_text)?;
        return (!reads_all(query)).then_some(words);
    }
    // Metrics read columns that no parameter names: lists only if they say so, an id only if a name has it.
    let tables = TABLES.iter().flat_map(|table| table.columns);
    let plain = tables.filter(|column| !column.ty.starts_with("list"));
    let plain = plain.map(|column| column.name.to_owned());
    let named = words.contains(examples::ID);
    let plain: Vec<String> = plain.filter(|name| named || name != examples::ID).collect();
    let metrics = METRICS.iter().map(|metric| metric.entry());
    let metrics = metrics.filter(|entry| words.contains(entry.name));
    let lists: Vec<&str> = metrics.flat_map(|entry| entry.columns).copied().collect();
    words.extend(plain);
    words.extend(lists.into_iter().map(str::to_owned));
    Some(words)
}

/// Whether a line of an evaluation is about what comes in by this port: the others' metrics read nothing of it.
fn may_read(cell: &Value, port: &str) -> bool {
    let from = cell.as_table().and_then(|cell| cell.get("from")?.as_text());
    from.is_none_or(|from| from == port)
}

fn words_of(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::Text(text) => {
            let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
        }
        Value::List(items) => items.iter().for_each(|item| words_of(item, words)),
        Value::Table(entries) => entries.values().for_each(|entry| words_of(entry, words)),
        _ => {}
    }
}

/// Whether a query may read columns that it does not name: `*`, or a join that finds them itself. Multiplication
/// looks the same, and costs a little time.
fn reads_all(query: &str) -> bool {
    let text: String = query.to_lowercase().split_whitespace().collect();
    text.replace("count(*)", "").contains('*') || text.contains("natural")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Option<Vec<String>> {
        let params = [("query".to_owned(), Value::Text(query.to_owned()))].into();
        columns_read(Role::Query, &params, "t").map(|words| words.into_iter().collect())
    }

    #[test]
    fn a_query_reads_what_it_names() {
        let words = ["AS", "AVG", "COUNT", "FROM", "SELECT", "linf", "n", "t"];
        let found = of("SELECT AVG(linf) AS linf, COUNT( * ) AS n FROM t").unwrap();
        assert_eq!(found, words);
        assert_eq!(of("SELECT * FROM t"), None);
        assert_eq!(of("SELECT id FROM a NATURAL JOIN b"), None);
    }

    #[test]
    fn an_evaluation_reads_the_lists_of_its_metrics_and_an_id_only_by_name() {
        let text = |key: &str, value: &str| (key.to_owned(), Value::Text(value.to_owned()));
        let read = |cell: &[(String, Value)], port: &str| {
            let cells = Value::List(vec![Value::Table(cell.iter().cloned().collect())]);
            let params = [(CELLS.to_owned(), cells)].into();
            columns_read(Role::Results, &params, port).unwrap()
        };
        let cells = |row: &str| read(&[text("row", row)], "attacked");
        assert!(cells("lstm").contains(examples::LABEL));
        assert!(!cells("lstm").contains(examples::ORIGINAL));
        assert!(!cells("lstm").contains(examples::P_AFTER));
        assert!(cells("auc").contains(examples::P_AFTER));
        assert!(!cells("lstm").contains(examples::ID));
        assert!(cells("item {id}").contains(examples::ID));
        let of_one = [text("metric", "auc"), text("from", "attacked")];
        assert!(read(&of_one, "attacked").contains(examples::P_AFTER));
        assert!(!read(&of_one, "clean").contains(examples::P_AFTER));
    }
}
