//! Which values of a column a query can see: rows with others need not be computed for it. Decides no result, and no kind
//! reads it: a key does not change when this does.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, ObjectName, Query, Select, SetExpr, Statement, TableFactor, Value, Visit,
    Visitor,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

/// The values of `column` in the rows of `table` that a query looks at; none for all of them, and when in doubt.
pub fn values_read(query: &str, table: &str, column: &str) -> Option<BTreeSet<String>> {
    let parsed = Parser::parse_sql(&GenericDialect, query).ok()?;
    let [Statement::Query(query)] = &parsed[..] else {
        return None;
    };
    let mut reader = Reader {
        table,
        column,
        mentioned: 0,
        limited: 0,
        values: BTreeSet::new(),
    };
    let _ = query.visit(&mut reader);
    (reader.mentioned == reader.limited).then_some(reader.values)
}

struct Reader<'a> {
    table: &'a str,
    column: &'a str,
    /// How often the table is named.
    mentioned: usize,
    /// How often it is named where only some values pass.
    limited: usize,
    values: BTreeSet<String>,
}

impl Visitor for Reader<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.mentioned += usize::from(is_named(relation, self.table));
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.body(&query.body);
        ControlFlow::Continue(())
    }
}

impl Reader<'_> {
    /// Queries within are visited by themselves.
    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            _ => {}
        }
    }

    fn select(&mut self, select: &Select) {
        let [from] = &select.from[..] else { return };
        let TableFactor::Table {
            name, args: None, ..
        } = &from.relation
        else {
            return;
        };
        if !from.joins.is_empty() || !is_named(name, self.table) {
            return;
        }
        let chosen = select.selection.as_ref();
        if let Some(values) = chosen.and_then(|chosen| passing(chosen, self.column)) {
            self.limited += 1;
            self.values.extend(values);
        }
    }
}

fn is_named(relation: &ObjectName, table: &str) -> bool {
    let last = relation.0.last().and_then(|part| part.as_ident());
    last.is_some_and(|ident| ident.value.eq_ignore_ascii_case(table))
}

/// The values that a condition lets through.
fn passing(condition: &Expr, column: &str) -> Option<BTreeSet<String>> {
    match condition {
        Expr::Nested(inner) => passing(inner, column),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => passing(left, column).or_else(|| passing(right, column)),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Or,
            right,
        } => {
            let mut both = passing(left, column)?;
            both.extend(passing(right, column)?);
            Some(both)
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } if is_column(left, column) => Some([literal(right)?].into()),
        Expr::InList {
            expr,
            list,
            negated: false,
        } if is_column(expr, column) => list.iter().map(literal).collect(),
        _ => None,
    }
}

fn is_column(expr: &Expr, column: &str) -> bool {
    match expr {
        Expr::Identifier(ident) => ident.value == column,
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|part| part.value == column),
        _ => false,
    }
}

fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::values_read;

    fn read(query: &str) -> Option<Vec<String>> {
        let values = values_read(query, "results", "table");
        values.map(|values| values.into_iter().collect())
    }

    #[test]
    fn values_that_no_condition_lets_through_are_not_read() {
        let one = r#"SELECT a > 0 AS holds FROM (SELECT AVG(value) AS a FROM results WHERE "table" = 'fig8' AND col = 'x')"#;
        assert_eq!(read(one).unwrap(), ["fig8"]);
        let two = r#"WITH r AS (SELECT * FROM results WHERE (results."table" IN ('a', 'b')) OR "table" = 'c')
            SELECT (SELECT MAX(value) FROM results WHERE seed > 1 AND "table" = 'd') > 0 AS holds FROM r"#;
        assert_eq!(read(two).unwrap(), ["a", "b", "c", "d"]);
        let union = r#"SELECT value FROM results WHERE "table" = 'a' UNION ALL SELECT value FROM results WHERE "table" = 'b'"#;
        assert_eq!(read(union).unwrap(), ["a", "b"]);
        assert_eq!(read("SELECT 1 FROM words").unwrap(), [""; 0]);
    }

    #[test]
    fn all_values_are_read_when_in_doubt() {
        for query in [
            "SELECT value FROM results",
            r#"SELECT value FROM results WHERE "table" = 'a' OR value > 0"#,
            r#"SELECT value FROM results WHERE NOT "table" = 'a'"#,
            r#"SELECT value FROM results WHERE "table" NOT IN ('a')"#,
            r#"SELECT value FROM results WHERE "table" = col"#,
            r#"SELECT value FROM results WHERE "table" LIKE 'fig%'"#,
            r#"SELECT a.value FROM results a JOIN results b ON a.seed = b.seed WHERE a."table" = 'a'"#,
            r#"SELECT value FROM results WHERE "table" = 'a' AND value > (SELECT AVG(value) FROM Results)"#,
            r#"SELECT CASE WHEN "table" = 'a' THEN value END AS v FROM results"#,
            "no query",
        ] {
            assert_eq!(read(query), None, "{query}");
        }
    }
}
