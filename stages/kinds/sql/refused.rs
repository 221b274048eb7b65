//! Queries that polars computes otherwise than SQL means them, without a word: refused before
//! anything runs, with a way to write them. Found by asking SQLite the same.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArguments, GroupByExpr, Join,
    JoinConstraint, JoinOperator, Query, Select, SelectItem, TableFactor, Visit, Visitor,
    WindowType,
};

use super::query::wrong;
use crate::ParamError;

/// Refuses what would be computed wrongly.
pub fn check(query: &Query) -> Result<(), ParamError> {
    match query.visit(&mut Look) {
        ControlFlow::Break((message, help)) => Err(wrong(message, Some(help))),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// What is wrong, and what to do.
type Refusal = ControlFlow<(String, &'static str)>;

struct Look;

impl Visitor for Look {
    type Break = (String, &'static str);

    fn pre_visit_select(&mut self, select: &Select) -> Refusal {
        for table in &select.from {
            table.joins.iter().try_for_each(outer_join)?;
        }
        windows(select)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Refusal {
        match table {
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => table_with_joins.joins.iter().try_for_each(outer_join),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// polars makes an inner join of an outer one whose condition is more than equal columns.
fn outer_join(join: &Join) -> Refusal {
    use JoinOperator::{FullOuter, Left, LeftOuter, Right, RightOuter};
    let (Left(on) | LeftOuter(on) | Right(on) | RightOuter(on) | FullOuter(on)) =
        &join.join_operator
    else {
        return ControlFlow::Continue(());
    };
    match on {
        JoinConstraint::On(condition) if !equal_columns(condition) => ControlFlow::Break((
            format!("the outer join is ON {condition}, which is more than equal columns"),
            "put other conditions into the table that is joined: LEFT JOIN (SELECT … FROM u WHERE …) AS u ON t.id = u.id",
        )),
        _ => ControlFlow::Continue(()),
    }
}

/// `a.x = b.y AND a.z = b.z`.
fn equal_columns(condition: &Expr) -> bool {
    let column = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    match condition {
        Expr::Nested(inner) => equal_columns(inner),
        Expr::BinaryOp { left, op, right } => match op {
            BinaryOperator::And => equal_columns(left) && equal_columns(right),
            BinaryOperator::Eq => column(left) && column(right),
            _ => false,
        },
        _ => false,
    }
}

/// Aggregates that polars lets run along the order of a window.
const RUNNING: &[&str] = &["sum", "total", "count", "min", "max"];

/// Functions that are there for windows, and follow their order.
const ORDERED: &[&str] = &[
    "row_number",
    "rank",
    "dense_rank",
    "lag",
    "lead",
    "first_value",
    "last_value",
];

fn windows(select: &Select) -> Refusal {
    let mut found = Windows::default();
    let _ = select.projection.visit(&mut found);
    for function in &found.windows {
        running(function)?;
    }
    let Some(first) = found.windows.first() else {
        return ControlFlow::Continue(());
    };
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    if grouped {
        return ControlFlow::Break((
            format!("{first} is used with GROUP BY, and would see one group at a time"),
            "group first: WITH g AS (SELECT … GROUP BY …) SELECT … OVER (…) FROM g",
        ));
    }
    let alone = |function: &&Function| match &function.over {
        Some(WindowType::WindowSpec(over)) => {
            over.partition_by.is_empty() && over.order_by.is_empty()
        }
        _ => false,
    };
    // Without a column beside it, polars gives one row for all.
    let lone = found.windows.iter().all(|function| alone(&function));
    if lone && !select.projection.iter().any(has_column_outside) {
        return ControlFlow::Break((
            format!("{first} is selected without a column, and would give a single row"),
            "select a column beside it",
        ));
    }
    ControlFlow::Continue(())
}

/// polars gives the aggregate of the whole window for all but a few functions.
fn running(function: &Function) -> Refusal {
    let Some(WindowType::WindowSpec(over)) = &function.over else {
        return ControlFlow::Continue(());
    };
    let name = function.name.to_string().to_lowercase();
    let distinct = matches!(
        &function.args,
        FunctionArguments::List(list) if list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
    );
    let known = RUNNING.contains(&name.as_str()) && !distinct || ORDERED.contains(&name.as_str());
    if over.order_by.is_empty() || known {
        return ControlFlow::Continue(());
    }
    ControlFlow::Break((
        format!("{function} would be that of the whole window, not of the rows so far"),
        "leave ORDER BY out, or use SUM and COUNT, which do run along it: SUM(x) OVER (…) / COUNT(x) OVER (…)",
    ))
}

#[derive(Default)]
struct Windows {
    windows: Vec<Function>,
}

impl Visitor for Windows {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && function.over.is_some()
        {
            self.windows.push(function.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Whether an item reads a column outside of windows.
fn has_column_outside(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => outside(expr),
        _ => true,
    }
}

fn outside(expr: &Expr) -> bool {
    /// How deep inside windows, and whether a column was seen outside of them.
    #[derive(Default)]
    struct Columns(usize, bool);
    let is_window = |expr: &Expr| matches!(expr, Expr::Function(f) if f.over.is_some());
    impl Visitor for Columns {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function) if function.over.is_some() => self.0 += 1,
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => self.1 |= self.0 == 0,
                _ => {}
            }
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if matches!(expr, Expr::Function(function) if function.over.is_some()) {
                self.0 -= 1;
            }
            ControlFlow::Continue(())
        }
    }
    if is_window(expr) {
        return false;
    }
    let mut columns = Columns::default();
    let _ = expr.visit(&mut columns);
    columns.1
}

#[cfg(test)]
mod tests {
    use super::super::query::parse;

    #[test]
    fn what_polars_would_get_wrong_is_refused_with_a_way_to_write_it() {
        let cases = [
            (
                "SELECT t.id, u.v FROM t LEFT JOIN u ON t.id = u.id AND u.v > 9",
                "the outer join is ON t.id = u.id AND u.v > 9, which is more than equal columns",
            ),
            (
                "SELECT t.id FROM t RIGHT JOIN u ON t.id > u.id",
                "the outer join is ON t.id > u.id, which is more than equal columns",
            ),
            (
                "SELECT t.id FROM t FULL JOIN u ON t.id = u.id AND u.v = 3",
                "the outer join is ON t.id = u.id AND u.v = 3, which is more than equal columns",
            ),
            (
                "SELECT id, AVG(f) OVER (ORDER BY id) AS m FROM t",
                "AVG(f) OVER (ORDER BY id) would be that of the whole window, not of the rows so far",
            ),
            (
                "SELECT id, COUNT(DISTINCT g) OVER (PARTITION BY h ORDER BY id) AS n FROM t",
                "COUNT(DISTINCT g) OVER (PARTITION BY h ORDER BY id) would be that of the whole window, not of the rows so far",
            ),
            (
                "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY g",
                "SUM(COUNT(*)) OVER () is used with GROUP BY, and would see one group at a time",
            ),
            (
                "SELECT MAX(x) OVER () AS m FROM t",
                "MAX(x) OVER () is selected without a column, and would give a single row",
            ),
            (
                "WITH a AS (SELECT MAX(x) OVER () - 1 AS m FROM t) SELECT m FROM a",
                "MAX(x) OVER () is selected without a column, and would give a single row",
            ),
        ];
        for (query, message) in cases {
            let error = parse(query).unwrap_err();
            assert_eq!(error.message, message, "{query}");
            assert!(error.help.is_some(), "{query}");
        }
        for query in [
            "SELECT t.id FROM t LEFT JOIN u ON t.id = u.id AND (t.k = u.k)",
            "SELECT t.id FROM t LEFT JOIN u USING (id)",
            "SELECT t.id FROM t JOIN u ON t.id = u.id AND u.v > 9",
            "SELECT id, SUM(f) OVER (ORDER BY id) AS s FROM t",
            "SELECT id, AVG(f) OVER (PARTITION BY g) AS m FROM t",
            "SELECT g, n, SUM(n) OVER () AS all FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g)",
            "SELECT f / SUM(f) OVER () AS share FROM t",
            "SELECT ROW_NUMBER() OVER (ORDER BY g) AS n FROM t",
        ] {
            assert!(parse(query).is_ok(), "{query}: {:?}", parse(query));
        }
    }
}
