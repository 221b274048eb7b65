//! Whether a query computes each of its rows from the rows of one item: then to repeat an item before the query is to
//! repeat it after. Decides no result, and no kind reads it: a key does not change when this does.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    visit_expressions,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

/// Functions of one row.
const SCALAR: [&str; 13] = [
    "abs", "ceil", "coalesce", "floor", "ifnull", "length", "ln", "log", "nullif", "pow", "round",
    "sign", "sqrt",
];

/// Whether a query reads one table, gives its column `id` on, and either looks at single rows or groups them by
/// `id`. False when in doubt.
pub fn is_item_local(query: &str, id: &str) -> bool {
    let parsed = Parser::parse_sql(&GenericDialect, query);
    let Ok([Statement::Query(query)]) = parsed.as_deref() else {
        return false;
    };
    let Some(select) = plain_select(query) else {
        return false;
    };
    let grouped = match &select.group_by {
        GroupByExpr::All(_) => return false,
        GroupByExpr::Expressions(_, modifiers) if !modifiers.is_empty() => return false,
        GroupByExpr::Expressions(by, _) if by.is_empty() => false,
        GroupByExpr::Expressions(by, _) if by.iter().any(|expr| is_column(expr, id)) => true,
        GroupByExpr::Expressions(..) => return false,
    };
    let kept = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) => is_column(expr, id),
        SelectItem::ExprWithAlias { expr, alias } => is_column(expr, id) && alias.value == id,
        SelectItem::Wildcard(_) => !grouped,
        _ => false,
    });
    kept && visit_expressions(query, |expr| plain_expression(expr, grouped)).is_continue()
}

/// A query for the rows that a query reads of its only table, if it chooses them one by one: to leave the others out
/// before it runs changes nothing. None when in doubt, or if it reads all.
pub fn row_filter(query: &str) -> Option<String> {
    let parsed = Parser::parse_sql(&GenericDialect, query);
    let Ok([Statement::Query(query)]) = parsed.as_deref() else {
        return None;
    };
    let select = plain_select(query)?;
    let (table, chosen) = (&select.from[0].relation, select.selection.as_ref()?);
    let plain = visit_expressions(chosen, |expr| plain_expression(expr, false));
    plain
        .is_continue()
        .then(|| format!("SELECT * FROM {table} WHERE {chosen}"))
}

/// The query's SELECT, if it is all there is to it: one table, and nothing that looks at several rows at once.
fn plain_select(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = &*query.body else {
        return None;
    };
    let [from] = &select.from[..] else {
        return None;
    };
    let whole = query.with.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.pipe_operators.is_empty();
    let plain = from.joins.is_empty()
        && matches!(from.relation, TableFactor::Table { args: None, .. })
        && select.distinct.is_none()
        && select.top.is_none()
        && select.qualify.is_none()
        && select.lateral_views.is_empty()
        && select.named_window.is_empty();
    (whole && plain).then_some(select)
}

fn is_column(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Identifier(ident) => ident.value == name,
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|part| part.value == name),
        _ => false,
    }
}

fn plain_expression(expr: &Expr, grouped: bool) -> ControlFlow<()> {
    let plain = match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => false,
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            function.over.is_none() && (grouped || SCALAR.contains(&name.as_str()))
        }
        _ => true,
    };
    match plain {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_item_local, row_filter};

    #[test]
    fn rows_are_left_out_beforehand_only_if_each_decides_for_itself() {
        let query = "SELECT seed, MAX(value) AS most FROM t WHERE series = 'd' OR ABS(value) > 1 GROUP BY seed";
        let expected = "SELECT * FROM t WHERE series = 'd' OR ABS(value) > 1";
        assert_eq!(row_filter(query).as_deref(), Some(expected));
        for query in [
            "SELECT MAX(value) AS most FROM t",
            "SELECT id FROM t WHERE value > (SELECT AVG(value) FROM t)",
            "SELECT a.id FROM a JOIN b ON a.id = b.id WHERE a.value > 0",
            "SELECT id FROM t WHERE value > 0 LIMIT 3",
            "SELECT id FROM t WHERE id IN (SELECT id FROM u)",
        ] {
            assert_eq!(row_filter(query), None, "{query}");
        }
    }

    #[test]
    fn rows_of_one_item_are_told_from_rows_of_many() {
        for query in [
            "SELECT seed, id, step, value AS fixed FROM t WHERE run = 'attacked' AND series = 'd'",
            "SELECT * FROM t WHERE label = 0 ORDER BY id",
            "SELECT t.id, ABS(linf) AS size FROM t",
            "SELECT id AS id, CASE WHEN success THEN 1 ELSE 0 END AS hit FROM t",
            "SELECT seed, id, MAX(value) AS most FROM t GROUP BY seed, id HAVING MAX(value) > 0",
        ] {
            assert!(is_item_local(query, "id"), "{query}");
        }
        for query in [
            "SELECT label, AVG(value) AS mean FROM t GROUP BY label",
            "SELECT id, label FROM t LIMIT 3",
            "SELECT DISTINCT id FROM t",
            "SELECT a.id FROM a JOIN b ON a.id = b.id",
            "SELECT a.id FROM a, b",
            "SELECT id, RANK() OVER (ORDER BY value) AS place FROM t",
            "SELECT id FROM t WHERE value > (SELECT AVG(value) FROM t)",
            "SELECT id FROM t UNION ALL SELECT id FROM u",
            "WITH u AS (SELECT id FROM t) SELECT id FROM u",
            "SELECT label AS id FROM t",
            "SELECT COUNT(*) AS n FROM t",
            "SELECT SOMETHING(id) AS x, id FROM t",
            "SELECT value FROM t",
            "SELECT FROM",
        ] {
            assert!(!is_item_local(query, "id"), "{query}");
        }
    }
}
